//! The word in front of an item, and where its parts lie.

use crate::records::lengths;
use crate::types::layout::RecordLayout;

/// Bytes in which room is taken.
pub(super) const UNIT_BYTES: u64 = 32;

/// The word of an item with checks; as published it has 32 bits, without one.
const KEY_BITS: u32 = 13;
const VALUE_BITS: u32 = 31;
const CHECK_SHIFT: u32 = KEY_BITS + VALUE_BITS;
/// Odd, without long rows of equal bits: a flipped bit of the lengths changes the upper bits of their product.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bits for the length of a key, and for that of a value.
#[inline(always)]
fn length_bits(layout: RecordLayout) -> (u32, u32) {
    match layout {
        RecordLayout::Checked => (KEY_BITS, VALUE_BITS),
        #[cfg(feature = "baselines")]
        RecordLayout::Published => (10, 22),
    }
}

/// Longest key and longest value that the word can say.
pub(super) fn length_limits(layout: RecordLayout) -> (usize, u64) {
    let (key_bits, value_bits) = length_bits(layout);
    ((1 << key_bits) - 1, (1 << value_bits) - 1)
}

/// From the start of an item to its key.
#[inline(always)]
pub(super) fn key_at(layout: RecordLayout) -> u64 {
    match layout {
        RecordLayout::Checked => lengths::KEY_AT,
        // Behind a whole word, because all access is by words of 8 bytes.
        #[cfg(feature = "baselines")]
        RecordLayout::Published => 8,
    }
}

/// From the start of an item to its value.
#[inline(always)]
pub(super) fn value_at(layout: RecordLayout, key_bytes: usize) -> u64 {
    key_at(layout) + key_bytes.next_multiple_of(8) as u64
}

/// Bytes of an item, in whole words.
#[inline(always)]
pub(super) fn span(layout: RecordLayout, key_bytes: usize, value_bytes: usize) -> u64 {
    value_at(layout, key_bytes) + value_bytes.next_multiple_of(8) as u64
}

/// Bytes that an item takes.
pub(crate) fn item_bytes(layout: RecordLayout, key_bytes: u32, value_bytes: u32) -> u64 {
    span(layout, key_bytes as usize, value_bytes as usize).next_multiple_of(UNIT_BYTES)
}

/// The word of an item with these lengths, which are within the limits.
#[inline(always)]
pub(super) fn encode(layout: RecordLayout, key_bytes: usize, value_bytes: usize) -> u64 {
    let low = key_bytes as u64 | (value_bytes as u64) << length_bits(layout).0;
    let check = low.wrapping_mul(FACTOR) >> CHECK_SHIFT << CHECK_SHIFT;
    if layout.is_checked() { low | check } else { low }
}

/// The lengths that a word says, of key and value, unless it is damaged. A key has at least one byte.
#[inline(always)]
pub(super) fn decode(layout: RecordLayout, word: u64) -> Option<(usize, usize)> {
    let (key_bits, value_bits) = length_bits(layout);
    let key_bytes = (word & ((1 << key_bits) - 1)) as usize;
    let value_bytes = (word >> key_bits & ((1 << value_bits) - 1)) as usize;
    let is_sound = key_bytes > 0 && encode(layout, key_bytes, value_bytes) == word;
    is_sound.then_some((key_bytes, value_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_and_the_layouts_have_their_declared_bytes() {
        for layout in [RecordLayout::Checked, RecordLayout::Published] {
            let (key_most, value_most) = length_limits(layout);
            for key_bytes in [1, 16, key_most] {
                for value_bytes in [0, 1, 200, value_most as usize] {
                    let word = encode(layout, key_bytes, value_bytes);
                    assert_eq!(decode(layout, word), Some((key_bytes, value_bytes)));
                }
            }
            assert_eq!(decode(layout, encode(layout, 0, 8)), None, "there is no empty key");
        }
        assert_eq!(span(RecordLayout::Checked, 16, 200), 24 + 16 + 200);
        assert_eq!(span(RecordLayout::Published, 16, 200), 8 + 16 + 200);
        assert_eq!(length_limits(RecordLayout::Published), (1023, (4 << 20) - 1));
    }

    #[test]
    fn every_flipped_bit_of_checked_lengths_is_noticed() {
        for key_bytes in [1, 8, 16, 4096] {
            for value_bytes in [0, 1, 200, 70_000, 1 << 30] {
                let word = encode(RecordLayout::Checked, key_bytes, value_bytes);
                for bit in 0..64 {
                    assert_eq!(decode(RecordLayout::Checked, word ^ 1 << bit), None, "bit {bit}");
                }
            }
        }
    }
}
