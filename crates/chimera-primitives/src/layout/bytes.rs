//! Arrays of bytes in a node, which are hashes or slots: read and stored by whole words.

use std::ops::Range;

use chimera_pmem::Pmem;

use super::dirty::Dirty;
use super::node::Node;
use super::sites;

/// The byte `number` of the array at `at`.
#[inline]
pub(crate) fn load<P: Pmem>(node: Node<'_, P>, at: u64, number: usize) -> u8 {
    let word = node.load(at + (number as u64 & !7));
    word.to_le_bytes()[number & 7]
}

/// Bytes that [`store`] stores for a range: its whole words.
pub(crate) fn stored_bytes(range: Range<usize>) -> u64 {
    if range.is_empty() { 0 } else { 8 * (range.end.div_ceil(8) - range.start / 8) as u64 }
}

/// Stores the bytes of a range: what `byte` says for each. Bytes of the same words that are not in the range stay.
pub(crate) fn store<P: Pmem>(
    node: Node<'_, P>,
    at: u64,
    range: Range<usize>,
    dirty: &mut Dirty,
    mut byte: impl FnMut(usize) -> u8,
) {
    let mut number = range.start;
    while number < range.end {
        let first = number & !7;
        let end = (first + 8).min(range.end);
        let whole = number == first && end == first + 8;
        let mut word = if whole { [0; 8] } else { node.load(at + first as u64).to_le_bytes() };
        for number in number..end {
            word[number & 7] = byte(number);
        }
        node.store(at + first as u64, u64::from_le_bytes(word), dirty, sites::SEARCH);
        number = end;
    }
}

/// Reads the first `count` bytes of the array.
pub(crate) fn read<P: Pmem>(node: Node<'_, P>, at: u64, count: usize, into: &mut Vec<u8>) {
    into.clear();
    for first in (0..count).step_by(8) {
        let bytes = node.load(at + first as u64).to_le_bytes();
        into.extend_from_slice(&bytes[..(count - first).min(8)]);
    }
}

/// Bits of the bytes of a word that may be equal to `byte`; every byte that is equal is among them.
#[inline]
pub(crate) fn matches(word: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let differs = word ^ (u64::from(byte) * LOW);
    differs.wrapping_sub(LOW) & !differs & HIGH
}
