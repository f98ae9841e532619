//! [`StreamReader`]: verified frames, one after the other.

use std::fmt;
use std::io::{self, Read};

use zerocopy::FromBytes;

use super::format::{
    CONTENT_BYTES_MAX, End, FRAME_HEAD_BYTES, Frame, FrameKind, HEADER_BYTES, Header, MAGIC,
    content_checksum, take_record,
};
use super::writer::StreamProgress;
use crate::types::error::{Error, Result};
use crate::types::position::StreamPosition;
use crate::types::stream::StreamKind;

/// Memory for content is taken in steps: first so much, then as much as has arrived.
const FIRST_STEP_BYTES: usize = 64 << 10;

/// Reads a stream of records, as [`Db::export`](crate::Db::export) writes them.
///
/// Nothing of it is used before its checksum was verified, and memory grows only with content that has
/// arrived.
pub struct StreamReader<R> {
    from: R,
    header: Header,
    reached: StreamProgress,
    content: Vec<u8>,
}

impl<R: Read> StreamReader<R> {
    /// Reads the header of a stream.
    ///
    /// # Errors
    /// [`Error::StreamDamaged`] when this is no stream, or its header is damaged;
    /// [`Error::StreamTruncated`], [`Error::NewerStream`], [`Error::StreamIo`].
    ///
    /// # Cost
    /// 64 bytes. Reads are small: give it something that is buffered.
    pub fn new(mut from: R) -> Result<Self> {
        let mut bytes = [0; HEADER_BYTES];
        let found = read_up_to(&mut from, &mut bytes)?;
        let begun = &bytes[..found.min(MAGIC.len())];
        if found < HEADER_BYTES && MAGIC.starts_with(begun) {
            return Err(Error::StreamTruncated { at: found as u64 });
        }
        let header = Header::decode(&bytes)?;
        let reached = StreamProgress {
            bytes: HEADER_BYTES as u64,
            frames: 0,
            records: 0,
            digest: header.digest(),
            done_below: 0,
        };
        Ok(Self { from, header, reached, content: Vec::new() })
    }

    /// What kind of records the stream has.
    pub fn kind(&self) -> StreamKind {
        self.header.kind
    }

    /// Reads the stream to its end, or to where it stops being right.
    ///
    /// # Errors
    /// [`Error::StreamIo`]. What is wrong with the stream itself is in the result.
    ///
    /// # Cost
    /// Reads everything; memory for the longest frame.
    pub fn verify(mut self) -> Result<Verified> {
        let fault = loop {
            match self.next_frame() {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error @ Error::StreamIo { .. }) => return Err(error),
                Err(error) => break Some(error),
            }
        };
        Ok(Verified { header: self.header, reached: self.reached, fault })
    }

    /// How far the frames that were read go.
    pub(super) fn reached(&self) -> &StreamProgress {
        &self.reached
    }

    pub(super) fn position(&self) -> StreamPosition {
        self.reached.position()
    }

    /// Reads and verifies the next frame; `None` at the end of a complete stream. What was reached
    /// changes only when all of the frame is right.
    ///
    /// # Errors
    /// `StreamTruncated`, `StreamDamaged`, `StreamIo`.
    pub(super) fn next_frame(&mut self) -> Result<Option<Records<'_>>> {
        let StreamProgress { bytes: at, frames: number, .. } = self.reached;
        let damaged = |what: &str, at| {
            let what = format!("the {what} of frame {number} does not match its checksum");
            Error::StreamDamaged { what, at }
        };
        let mut head = [0; FRAME_HEAD_BYTES];
        let found = read_up_to(&mut self.from, &mut head)?;
        if found < head.len() {
            return Err(Error::StreamTruncated { at: at + found as u64 });
        }
        let (frame, digest) =
            Frame::decode(&head, self.reached.digest).ok_or_else(|| damaged("head", at))?;
        let content_at = at + FRAME_HEAD_BYTES as u64;
        let is_possible = frame.number == number
            && frame.content_bytes <= CONTENT_BYTES_MAX
            && frame.done_below >= self.reached.done_below
            && (frame.kind == FrameKind::Records || frame.records == 0);
        if !is_possible {
            let what = format!("the head of frame {number} says what cannot be");
            return Err(Error::StreamDamaged { what, at });
        }
        self.read_content(frame.content_bytes, content_at)?;
        if content_checksum(self.header.stream_id, &[&self.content]) != frame.content_checksum {
            return Err(damaged("content", content_at));
        }
        let is_end = frame.kind == FrameKind::End;
        if is_end {
            self.check_end(content_at)?;
        } else if !holds_records(&self.content, frame.records, self.header.kind) {
            let what = format!("frame {number} does not hold the records that it says");
            return Err(Error::StreamDamaged { what, at: content_at });
        }
        self.reached = StreamProgress {
            bytes: content_at + frame.content_bytes,
            frames: number + u64::from(!is_end),
            records: self.reached.records + u64::from(frame.records),
            digest,
            done_below: frame.done_below,
        };
        Ok((!is_end).then_some(Records { rest: &self.content }))
    }

    /// Reads the content of a frame.
    fn read_content(&mut self, bytes: u64, at: u64) -> Result<()> {
        self.content.clear();
        let whole = bytes as usize;
        while self.content.len() < whole {
            let before = self.content.len();
            let step = (whole - before).min(before.max(FIRST_STEP_BYTES));
            self.content.try_reserve_exact(step).map_err(|_| {
                let source = io::ErrorKind::OutOfMemory.into();
                Error::StreamIo { action: "hold a frame of", source }
            })?;
            self.content.resize(before + step, 0);
            let found = read_up_to(&mut self.from, &mut self.content[before..])?;
            if found < step {
                return Err(Error::StreamTruncated { at: at + (before + found) as u64 });
            }
        }
        Ok(())
    }

    /// Checks the frame at the end, and that nothing follows.
    fn check_end(&mut self, at: u64) -> Result<()> {
        let StreamProgress { records, digest, .. } = self.reached;
        let end = End::read_from_bytes(&self.content).ok();
        if !end.is_some_and(|end| end.records.get() == records && end.digest.get() == digest) {
            let what = "what the end says of the stream is not so".to_owned();
            return Err(Error::StreamDamaged { what, at });
        }
        if read_up_to(&mut self.from, &mut [0])? > 0 {
            let at = at + self.content.len() as u64;
            let what = "something follows behind its end".to_owned();
            return Err(Error::StreamDamaged { what, at });
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.content.capacity()
    }
}

impl<R> fmt::Debug for StreamReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamReader")
            .field("header", &self.header)
            .field("reached", &self.reached)
            .finish_non_exhaustive()
    }
}

impl StreamProgress {
    pub(super) fn position(&self) -> StreamPosition {
        StreamPosition { frames: self.frames, digest: self.digest }
    }
}

/// The records of a verified frame.
pub(super) struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    /// Key and value.
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        take_record(&mut self.rest)
    }
}

/// Whether content is `count` records of this kind, and nothing else.
fn holds_records(content: &[u8], count: u32, kind: StreamKind) -> bool {
    let mut rest = content;
    for _ in 0..count {
        let Some((key, value)) = take_record(&mut rest) else { return false };
        let is_alike =
            key.len() == kind.key_bytes as usize && value.len() == kind.value_bytes as usize;
        if kind.is_fixed() && !is_alike {
            return false;
        }
    }
    rest.is_empty() && count > 0
}

/// Reads until `into` is full or nothing more comes. How much came.
fn read_up_to(from: &mut impl Read, into: &mut [u8]) -> Result<usize> {
    let mut found = 0;
    while found < into.len() {
        match from.read(&mut into[found..]) {
            Ok(0) => break,
            Ok(bytes) => found += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::StreamIo { action: "read", source }),
        }
    }
    Ok(found)
}

/// How far a stream is right.
#[derive(Debug)]
#[must_use]
pub struct Verified {
    pub(super) header: Header,
    pub(super) reached: StreamProgress,
    fault: Option<Error>,
}

impl Verified {
    /// Whether the stream is right to its end.
    pub fn is_complete(&self) -> bool {
        self.fault.is_none()
    }

    /// What is wrong with it.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.as_ref()
    }

    /// What kind of records it has.
    pub fn kind(&self) -> StreamKind {
        self.header.kind
    }

    /// Bytes of the frames that are right, and of what is before them: where to cut the stream, and to
    /// go on with an export.
    pub fn bytes(&self) -> u64 {
        self.reached.bytes
    }

    /// Frames of records that are right.
    pub fn frames(&self) -> u64 {
        self.reached.frames
    }

    /// Records in them.
    pub fn records(&self) -> u64 {
        self.reached.records
    }

    /// The position behind them.
    pub fn position(&self) -> StreamPosition {
        self.reached.position()
    }
}
