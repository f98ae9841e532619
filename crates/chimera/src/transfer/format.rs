//! The bytes of a stream. Everything is little-endian.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::types::error::{Error, Result};
use crate::types::stream::StreamKind;

/// First bytes of a stream.
pub(super) const MAGIC: [u8; 8] = *b"CHIMSTR1";
/// Version of the format that this program writes.
pub(super) const VERSION: u32 = 1;
/// Longest content of a frame: a record of the largest size, and room to spare.
pub(super) const CONTENT_BYTES_MAX: u64 = (1 << 30) + (1 << 16);
/// Lengths in front of a record.
pub(super) const RECORD_HEAD_BYTES: usize = 8;
/// Largest keys and values of a fixed size.
const FIXED_KEY_BYTES_MAX: u32 = 4096;
const FIXED_VALUE_BYTES_MAX: u32 = 512 << 10;

/// Bytes before a checksum at the end of a head.
const CHECKSUM_BYTES: usize = 8;

/// The header as it lies in a stream.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 8],
    version: U32,
    reserved: U32,
    key_bytes: U32,
    value_bytes: U32,
    pool_id: U64,
    stream_id: U64,
    reserved_words: [U64; 2],
    checksum: U64,
}

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = size_of::<RawHeader>();
const _: () = assert!(HEADER_BYTES == 64);

/// What a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: StreamKind,
    /// Of the pool it comes from.
    pub(super) pool_id: u64,
    /// Random: so that frames of another stream do not pass.
    pub(super) stream_id: u64,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut raw = RawHeader {
            magic: MAGIC,
            version: U32::new(VERSION),
            reserved: U32::ZERO,
            key_bytes: U32::new(self.kind.key_bytes),
            value_bytes: U32::new(self.kind.value_bytes),
            pool_id: U64::new(self.pool_id),
            stream_id: U64::new(self.stream_id),
            reserved_words: [U64::ZERO; 2],
            checksum: U64::ZERO,
        };
        raw.checksum = U64::new(head_checksum(raw.as_bytes(), 0));
        zerocopy::transmute!(raw)
    }

    /// # Errors
    /// `StreamDamaged`, also for what is no stream; `NewerStream`.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self> {
        let raw: RawHeader = zerocopy::transmute!(*bytes);
        let damaged = |what: &str| Error::StreamDamaged { what: what.to_owned(), at: 0 };
        if raw.magic != MAGIC {
            return Err(damaged("it does not begin as a stream of records does"));
        }
        if raw.checksum.get() != head_checksum(bytes, 0) {
            return Err(damaged("the header does not match its checksum"));
        }
        let found = raw.version.get();
        if found > VERSION {
            return Err(Error::NewerStream { found, supported: VERSION });
        }
        let (key_bytes, value_bytes) = (raw.key_bytes.get(), raw.value_bytes.get());
        let is_possible = match key_bytes {
            0 => value_bytes == 0,
            1..=FIXED_KEY_BYTES_MAX => value_bytes <= FIXED_VALUE_BYTES_MAX,
            _ => false,
        };
        if found == 0 || !is_possible {
            return Err(damaged("the header has no valid version and sizes"));
        }
        Ok(Self {
            kind: StreamKind { key_bytes, value_bytes },
            pool_id: raw.pool_id.get(),
            stream_id: raw.stream_id.get(),
        })
    }

    /// What the chain of digests begins with.
    pub(super) fn digest(&self) -> u64 {
        head_checksum(&self.encode(), 0)
    }
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Records,
    /// The stream is complete.
    End,
}

/// A frame's head as it lies in a stream.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct RawFrame {
    kind: U32,
    records: U32,
    number: U64,
    content_bytes: U64,
    done_below: U64,
    content_checksum: U64,
    checksum: U64,
}

/// Bytes of a frame's head.
pub(super) const FRAME_HEAD_BYTES: usize = size_of::<RawFrame>();
const _: () = assert!(FRAME_HEAD_BYTES == 48);

/// What a frame's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    pub(super) records: u32,
    pub(super) number: u64,
    pub(super) content_bytes: u64,
    /// Everything that comes before this position is in this frame or an earlier one.
    pub(super) done_below: u64,
    pub(super) content_checksum: u64,
}

impl Frame {
    /// The head, and the digest of all frames up to this one, given that of those before.
    pub(super) fn encode(&self, digest: u64) -> ([u8; FRAME_HEAD_BYTES], u64) {
        let kind = match self.kind {
            FrameKind::Records => 1,
            FrameKind::End => 2,
        };
        let mut raw = RawFrame {
            kind: U32::new(kind),
            records: U32::new(self.records),
            number: U64::new(self.number),
            content_bytes: U64::new(self.content_bytes),
            done_below: U64::new(self.done_below),
            content_checksum: U64::new(self.content_checksum),
            checksum: U64::ZERO,
        };
        let digest = head_checksum(raw.as_bytes(), digest);
        raw.checksum = U64::new(digest);
        (zerocopy::transmute!(raw), digest)
    }

    /// What `bytes` say, with the digest that goes with it; `None` when they are not what was written
    /// after frames with this digest.
    pub(super) fn decode(bytes: &[u8; FRAME_HEAD_BYTES], digest: u64) -> Option<(Self, u64)> {
        let raw: RawFrame = zerocopy::transmute!(*bytes);
        let digest = head_checksum(bytes, digest);
        if raw.checksum.get() != digest {
            return None;
        }
        let frame = Self {
            kind: match raw.kind.get() {
                1 => FrameKind::Records,
                2 => FrameKind::End,
                _ => return None,
            },
            records: raw.records.get(),
            number: raw.number.get(),
            content_bytes: raw.content_bytes.get(),
            done_below: raw.done_below.get(),
            content_checksum: raw.content_checksum.get(),
        };
        Some((frame, digest))
    }
}

/// The content of the frame at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct End {
    /// Records of all frames.
    pub(super) records: U64,
    /// Digest of all frames before.
    pub(super) digest: U64,
}

/// The checksum that ends a head: of all before it, seeded by the one of the head before.
fn head_checksum(head: &[u8], before: u64) -> u64 {
    xxh3_64_with_seed(&head[..head.len() - CHECKSUM_BYTES], before)
}

/// The checksum of a frame's content, which is given in parts.
pub(super) fn content_checksum(stream_id: u64, parts: &[&[u8]]) -> u64 {
    if let [only] = parts {
        return xxh3_64_with_seed(only, stream_id);
    }
    let mut hasher = Xxh3::with_seed(stream_id);
    for part in parts {
        hasher.update(part);
    }
    hasher.digest()
}

/// What lies in front of a record: its lengths.
pub(super) fn record_head(key: &[u8], value: &[u8]) -> [u8; RECORD_HEAD_BYTES] {
    let lengths = [U32::new(key.len() as u32), U32::new(value.len() as u32)];
    zerocopy::transmute!(lengths)
}

/// Takes the record that `rest` begins with; `None` when there is no whole one.
pub(super) fn take_record<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (lengths, after) = <[U32; 2]>::read_from_prefix(rest).ok()?;
    let (key, after) = after.split_at_checked(lengths[0].get() as usize)?;
    let (value, after) = after.split_at_checked(lengths[1].get() as usize)?;
    *rest = after;
    (!key.is_empty()).then_some((key, value))
}
