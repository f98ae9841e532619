//! [`Header`]: what precedes the slots of a table in persistent memory.
//!
//! ```text
//! header   [magic: 8] [slots: 4] [entries: 4] [owner: 8] [checksum of all slots: 8] [check of these words: 8] [0: 216]
//! ```
//! The check depends on where the table lies, so a copy elsewhere is none.

use chimera_pmem::{Extent, Pmem, sum};
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zerocopy::IntoBytes;

use super::{SLOTS_MAX, SLOTS_UNIT, steps};
use crate::types::error::{Error, Result};

/// A table begins at a multiple of it, in bytes.
pub(crate) const TABLE_ALIGN: u64 = 256;
/// Bytes of a header.
pub(super) const HEADER_BYTES: u64 = TABLE_ALIGN;
/// Bytes of a slot.
pub(super) const SLOT_BYTES: u64 = 16;
/// Bytes of slots that are summed at a time.
pub(super) const CHUNK_BYTES: usize = 4096;

/// First word: "CHIMTBL2" in ASCII, little-endian.
const MAGIC: u64 = u64::from_le_bytes(*b"CHIMTBL2");
/// Words that the check covers.
const CHECKED_WORDS: usize = 4;

/// What precedes the slots of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) slots: u32,
    pub(super) entries: u32,
    /// What the owner says of the table.
    pub(super) owner: u64,
    pub(super) checksum: Checksum,
}

/// The checksum of all slots, which depends on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checksum(u64);

impl Checksum {
    /// Of slots in whole.
    pub(super) fn of(slots: &[u8]) -> Self {
        let chunks = slots.chunks(CHUNK_BYTES);
        chunks.fold(Self::default(), |checksum, chunk| checksum.with(sum(chunk)))
    }

    /// With one chunk more, which has this [sum].
    pub(super) fn with(self, chunk_sum: u64) -> Self {
        let mixed = u128::from(self.0 ^ chunk_sum) * u128::from(FACTOR);
        Self((mixed as u64 ^ (mixed >> 64) as u64).wrapping_add(FACTOR))
    }

    pub(super) fn word(self) -> u64 {
        self.0
    }
}

/// Odd, with well-mixed bits.
const FACTOR: u64 = 0x9fb2_1c65_1e98_df25;

impl Header {
    /// The words of the header of a table at `at`.
    pub(super) fn encode(self, at: u64) -> [u64; CHECKED_WORDS + 1] {
        let sizes = u64::from(self.slots) | u64::from(self.entries) << 32;
        let words = [MAGIC, sizes, self.owner, self.checksum.0];
        let check = xxh3_64_with_seed(words.as_bytes(), at);
        [words[0], words[1], words[2], words[3], check]
    }

    /// Loads the header of a table at `at`, where one fits.
    ///
    /// # Errors
    /// `Corrupted` when there is none, or it is damaged.
    pub(super) fn load<P: Pmem>(pmem: &P, at: u64) -> Result<Self> {
        let words: [u64; CHECKED_WORDS + 1] =
            std::array::from_fn(|word| pmem.load_u64(at + 8 * word as u64));
        let header = Self {
            slots: words[1] as u32,
            entries: (words[1] >> 32) as u32,
            owner: words[2],
            checksum: Checksum(words[3]),
        };
        if words != header.encode(at) && !pmem.skips(steps::HEADER_CHECK) {
            return Err(Error::corrupted("the header of a table of the index is damaged", at));
        }
        Ok(header)
    }

    /// Where the slots lie, of a table that `place` begins with.
    ///
    /// # Errors
    /// `Corrupted` when there is no room for them, or there cannot be so many.
    pub(super) fn slots_in(self, place: Extent) -> Result<Extent> {
        let is_possible = is_slot_count(self.slots) && self.entries <= self.slots;
        let bytes = u64::from(self.slots) * SLOT_BYTES;
        let slots = place.part(HEADER_BYTES, bytes).filter(|_| is_possible);
        let what = "a table of the index has a size that cannot be";
        slots.ok_or_else(|| Error::corrupted(what, place.offset()))
    }
}

/// Whether a table in persistent memory can have so many slots.
pub(super) fn is_slot_count(slots: u32) -> bool {
    0 < slots && slots <= SLOTS_MAX && slots.is_multiple_of(SLOTS_UNIT)
}
