//! VPages of fixed-size records (Viper, section 3.2.2).
//!
//! ```text
//! byte 0   flags word: of the block, in its first page; zero in the others
//! byte 8   bitset: one bit per slot; a set bit means a record
//!          padding, chosen so that records touch the fewest lines
//! slots    [check of place, version, key: 4 | check of place, value: 4 | version: 8] key value
//! ```
//! The part in brackets is there in the checked layout only. Keys and values are padded to 8 bytes
//! each, so that every field of a value keeps its alignment.
//!
//! In the checked layout the flags and each 32 bits of the bitset have a check in the upper half of
//! their word, changed together with them by one swap. The published layout has bits only, 64 to a
//! word.
//!
//! The version lock of the paper's page header lives in DRAM, where a crash cannot leave it set.

mod pages;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::pool::checked_word;
use crate::types::options::{Geometry, RecordLayout};
pub(crate) use pages::{Place, RecordHeader, VERSION_MAX, VPages};

/// The sites of pages.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// A record with its header, before its bit.
        RECORD = "vpage.record";
        /// The bit that makes a record count.
        BIT_SET = "vpage.bit_set";
        /// The bit of a record that is deleted or has been replaced.
        BIT_CLEAR = "vpage.bit_clear";
        /// Bits that others cleared, before their slots are used again.
        BITS_REUSED = "vpage.bits_reused";
        /// A word of a value, in place.
        VALUE_WORD = "vpage.value_word";
        /// The bits of a block that held an index.
        BLOCK_RESET = "vpage.block_reset";
    }
}

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::sites! {
        /// The check of a word of the bitset.
        BITS_CHECK = "vpage.step.bits_check";
        /// The checksum of a key and its version, at recovery.
        KEY_CHECK = "vpage.step.key_check";
        /// The checksum of a value, at recovery.
        VALUE_CHECK = "vpage.step.value_check";
        /// The checksums of a record that is read.
        READ_CHECK = "vpage.step.read_check";
    }
}

/// Bytes before each record in the checked layout.
pub(crate) const RECORD_HEADER_BYTES: u32 = 16;

/// Where things are inside a page of fixed-size records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    pub(crate) slots: u32,
    pub(crate) bitset_words: u32,
    /// log2 of the slots that a word of the bitset stands for.
    word_shift: u32,
    pub(crate) first_slot: u32,
    pub(crate) slot_bytes: u32,
    /// From the start of a slot to its key.
    pub(crate) key_at: u32,
    /// From the start of a slot to its value.
    pub(crate) value_at: u32,
    pub(crate) checked: bool,
}

fn padded(bytes: u32) -> u32 {
    bytes.next_multiple_of(8)
}

/// Lines that records of `slot_bytes` touch when the first starts at `first`.
fn lines_touched(first: u32, slot_bytes: u32, slots: u32) -> u32 {
    (0..slots)
        .map(|slot| {
            let start = first + slot * slot_bytes;
            (start + slot_bytes - 1) / 64 - start / 64 + 1
        })
        .sum()
}

impl PageLayout {
    /// Bytes of one record with its header.
    pub(crate) fn slot_bytes_of(layout: RecordLayout, key_bytes: u32, value_bytes: u32) -> u32 {
        let header = if layout == RecordLayout::Checked { RECORD_HEADER_BYTES } else { 0 };
        header + padded(key_bytes) + padded(value_bytes)
    }

    /// The layout for these sizes, or `None` when not even one record fits a page.
    pub(crate) fn new(
        geometry: &Geometry,
        layout: RecordLayout,
        key_bytes: u32,
        value_bytes: u32,
    ) -> Option<Self> {
        let checked = layout == RecordLayout::Checked;
        let key_at = if checked { RECORD_HEADER_BYTES } else { 0 };
        let slot_bytes = Self::slot_bytes_of(layout, key_bytes, value_bytes);
        let word_shift = if checked { 5 } else { 6 };
        let header = |slots: u32| 8 + 8 * slots.div_ceil(1 << word_shift);
        let mut slots = (geometry.page_bytes / slot_bytes).min(u32::from(u16::MAX) - 1);
        while slots > 0 && header(slots) + slots * slot_bytes > geometry.page_bytes {
            slots -= 1;
        }
        if slots == 0 {
            return None;
        }
        let slack = geometry.page_bytes - header(slots) - slots * slot_bytes;
        let first_slot = (0..=slack / 8)
            .map(|words| header(slots) + 8 * words)
            .take(8)
            .min_by_key(|first| lines_touched(*first, slot_bytes, slots))?;
        Some(Self {
            slots,
            bitset_words: slots.div_ceil(1 << word_shift),
            word_shift,
            first_slot,
            slot_bytes,
            key_at,
            value_at: key_at + padded(key_bytes),
            checked,
        })
    }

    /// Offset of a slot in its page.
    #[inline(always)]
    pub(crate) fn slot_at(&self, slot: u32) -> u64 {
        u64::from(self.first_slot + slot * self.slot_bytes)
    }

    /// Offset in its page of word `word` of the bitset.
    #[inline(always)]
    pub(crate) fn bitset_at(word: u32) -> u64 {
        8 + 8 * u64::from(word)
    }

    /// The word of the bitset with a slot's bit, and the bit.
    #[inline(always)]
    pub(crate) fn bit_of(&self, slot: u32) -> (u32, u64) {
        (slot >> self.word_shift, 1 << (slot & ((1 << self.word_shift) - 1)))
    }

    /// The slot of bit number `bit` of word `word`.
    #[inline(always)]
    pub(crate) fn slot_of(&self, word: u32, bit: u32) -> u32 {
        (word << self.word_shift) + bit
    }

    /// The bits of bitset word `word` that stand for slots.
    #[inline(always)]
    pub(crate) fn bits_of_word(&self, word: u32) -> u64 {
        let bits = (self.slots - (word << self.word_shift)).min(1 << self.word_shift);
        u64::MAX >> (64 - bits)
    }

    /// The word that stands for these bits.
    #[inline(always)]
    pub(crate) fn encode_bits(&self, bits: u64) -> u64 {
        if self.checked { checked_word::encode(bits as u32) } else { bits }
    }

    /// The bits of word number `word`, unless it is damaged.
    #[inline(always)]
    pub(crate) fn decode_bits(&self, word: u32, encoded: u64) -> Option<u64> {
        let bits = if self.checked { u64::from(checked_word::decode(encoded)?) } else { encoded };
        (bits & !self.bits_of_word(word) == 0).then_some(bits)
    }
}

/// Checksum of a record's key, by its hash, and version at its place.
#[inline]
pub(crate) fn key_checksum(place: u64, version: u64, key_hash: u64) -> u32 {
    let mixed = u128::from(key_hash ^ seed(place)) * u128::from(MULTIPLIER);
    let folded = (mixed as u64 ^ (mixed >> 64) as u64).wrapping_add(version);
    let mixed = u128::from(folded ^ key_hash.rotate_left(32)) * u128::from(MULTIPLIER);
    (mixed >> 64) as u32 ^ mixed as u32
}

/// Checksum of a record's value at its place.
#[inline]
pub(crate) fn value_checksum(place: u64, value: &[u8]) -> u32 {
    xxh3_64_with_seed(value, seed(place)) as u32
}

/// What a checksum starts from: different for any two places.
#[inline(always)]
fn seed(place: u64) -> u64 {
    place.wrapping_mul(MULTIPLIER)
}

/// Odd, with well-mixed bits.
const MULTIPLIER: u64 = 0x9fb2_1c65_1e98_df25;

#[cfg(test)]
mod tests;
