//! [`PageLayout`]: where things are inside a page.

use crate::pool::checked_word;
use crate::records::header::RECORD_HEADER_BYTES;
use crate::types::layout::{Geometry, RecordLayout};

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
    layout: RecordLayout,
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
        let header = if layout.is_checked() { RECORD_HEADER_BYTES } else { 0 };
        header + padded(key_bytes) + padded(value_bytes)
    }

    /// The layout for these sizes, or `None` when not even one record fits a page.
    pub(crate) fn new(
        geometry: &Geometry,
        layout: RecordLayout,
        key_bytes: u32,
        value_bytes: u32,
    ) -> Option<Self> {
        let checked = layout.is_checked();
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
            layout,
        })
    }

    /// Whether records have checksums and versions.
    #[inline(always)]
    pub(crate) fn is_checked(&self) -> bool {
        self.layout.is_checked()
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

    /// The word at offset `at` of the pool that stands for these bits.
    #[inline(always)]
    pub(crate) fn encode_bits(&self, bits: u64, at: u64) -> u64 {
        if self.is_checked() { checked_word::encode_at(bits as u32, at) } else { bits }
    }

    /// The bits of word number `word`, which lies at offset `at` of the pool, unless it is damaged.
    #[inline(always)]
    pub(crate) fn decode_bits(&self, word: u32, encoded: u64, at: u64) -> Option<u64> {
        let checked = || checked_word::decode_at(encoded, at).map(u64::from);
        let bits = if self.is_checked() { checked()? } else { encoded };
        (bits & !self.bits_of_word(word) == 0).then_some(bits)
    }
}

#[cfg(test)]
mod tests;
