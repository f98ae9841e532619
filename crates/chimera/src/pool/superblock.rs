//! The superblock: what a pool is, in two copies.
//!
//! Each copy is 16 words of 8 bytes, little-endian, at the start of its own 4 KiB page. The last word
//! is a checksum over the others. An update writes the copy that is not in force, with the next
//! sequence number, so that a torn update leaves the other copy as it was.

use zerocopy::IntoBytes;

use crate::types::error::{Error, Result};
use crate::types::options::{EngineKind, Geometry, RecordLayout};

/// First word of both copies: "CHIMERA1" in ASCII, little-endian.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"CHIMERA1");
/// Version of the media format that this program writes.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Words of a copy.
pub(crate) const WORDS: usize = 16;
/// Bytes from one copy to the other.
pub(crate) const COPY_STRIDE: u64 = 4096;
/// Bytes of the superblock file.
pub(crate) const FILE_BYTES: u64 = 2 * COPY_STRIDE;

/// Whether the store was closed in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Closed in order; everything was synced.
    Clean,
    /// Open without a journal, or ended without closing.
    Open,
    /// Open with a journal, or ended without closing: with the journal everything is in order.
    OpenJournaled,
    /// Being made as a copy of another store, or left like that: it lacks records.
    Incomplete,
}

/// What a pool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) engine: EngineKind,
    pub(crate) pool_id: u64,
    pub(crate) hash_seed: u64,
    pub(crate) geometry: Geometry,
    pub(crate) layout: RecordLayout,
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
    pub(crate) sequence: u64,
    pub(crate) segments: u64,
    pub(crate) closing: Closing,
    pub(crate) boot_id: u64,
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn low(word: u64) -> u32 {
    word as u32
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// XXH3 of words, as they lie on media.
pub(super) fn checksum(words: &[u64]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(words.as_bytes())
}

impl Superblock {
    /// Whether records have any size.
    pub(crate) fn is_variable(&self) -> bool {
        self.key_bytes == 0
    }

    /// Whether this copy was written after `other`. Numbers wrap, so that none is the last.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        (self.sequence.wrapping_sub(other.sequence) as i64) > 0
    }

    /// As 16 words.
    pub(crate) fn encode(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[0] = MAGIC;
        words[1] = pair(FORMAT_VERSION, self.engine.code());
        words[2] = self.pool_id;
        words[3] = self.hash_seed;
        words[4] = self.geometry.segment_bytes;
        words[5] = pair(self.geometry.page_bytes, self.geometry.pages_per_block);
        words[6] = pair(self.geometry.block_shift_bytes, self.layout.code());
        words[7] = pair(self.key_bytes, self.value_bytes);
        words[8] = self.sequence;
        words[9] = self.segments;
        words[10] = match self.closing {
            Closing::Clean => 1,
            Closing::Open => 2,
            Closing::OpenJournaled => 3,
            Closing::Incomplete => 4,
        };
        words[11] = self.boot_id;
        words[WORDS - 1] = checksum(&words[..WORDS - 1]);
        words
    }

    /// From 16 words at byte `at` of the pool.
    ///
    /// # Errors
    /// `NewerFormat` for a later version, else `Corrupted`.
    pub(crate) fn decode(words: &[u64; WORDS], at: u64) -> Result<Self> {
        if words[0] != MAGIC {
            return Err(Error::corrupted("the superblock has no magic number", at));
        }
        if words[WORDS - 1] != checksum(&words[..WORDS - 1]) {
            return Err(Error::corrupted("the superblock does not match its checksum", at));
        }
        if low(words[1]) > FORMAT_VERSION {
            return Err(Error::NewerFormat { found: low(words[1]), supported: FORMAT_VERSION });
        }
        let bad = |what: &str, word: usize| {
            Error::corrupted(format!("the superblock has no valid {what}"), at + 8 * word as u64)
        };
        if low(words[1]) == 0 {
            return Err(bad("format version", 1));
        }
        Ok(Self {
            engine: EngineKind::from_code(u64::from(high(words[1]))).ok_or(bad("engine", 1))?,
            pool_id: words[2],
            hash_seed: words[3],
            geometry: Geometry {
                segment_bytes: words[4],
                page_bytes: low(words[5]),
                pages_per_block: high(words[5]),
                block_shift_bytes: low(words[6]),
            },
            layout: RecordLayout::from_code(u64::from(high(words[6])))
                .ok_or(bad("record layout", 6))?,
            key_bytes: low(words[7]),
            value_bytes: high(words[7]),
            sequence: words[8],
            segments: words[9],
            closing: match words[10] {
                1 => Closing::Clean,
                2 => Closing::Open,
                3 => Closing::OpenJournaled,
                4 => Closing::Incomplete,
                _ => return Err(bad("state", 10)),
            },
            boot_id: words[11],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Superblock {
        Superblock {
            engine: EngineKind::Viper,
            pool_id: 0x0123_4567_89ab_cdef,
            hash_seed: 42,
            geometry: Geometry::default(),
            layout: RecordLayout::Checked,
            key_bytes: 16,
            value_bytes: 200,
            sequence: 7,
            segments: 3,
            closing: Closing::Open,
            boot_id: 99,
        }
    }

    #[test]
    fn a_superblock_comes_back_as_it_was() {
        let superblock = example();
        assert_eq!(Superblock::decode(&superblock.encode(), 0).unwrap(), superblock);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let words = example().encode();
        for bit in 0..WORDS * 64 {
            let mut damaged = words;
            damaged[bit / 64] ^= 1 << (bit % 64);
            assert!(Superblock::decode(&damaged, 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_format_is_named() {
        let mut words = example().encode();
        words[1] = pair(FORMAT_VERSION + 1, 1);
        words[WORDS - 1] = checksum(&words[..WORDS - 1]);
        assert!(matches!(
            Superblock::decode(&words, 0),
            Err(Error::NewerFormat { found, .. }) if found == FORMAT_VERSION + 1
        ));
    }
}
