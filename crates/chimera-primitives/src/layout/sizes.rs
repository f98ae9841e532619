//! Bytes that each operation stores, as formulas of the layout's geometry alone.
//!
//! They are in whole words of 8 bytes, which is the least that can be stored through the seam: a hash or a slot that changes
//! costs a word, where the paper counts a byte. Where an operation has to close gaps, or to clear bits, it matters which entries
//! left: [`Spread`] says so.

use super::bytes::stored_bytes;
use super::{Direction, Geometry, LayoutKind, Split};

const WORD: u64 = 8;
const LINK: u64 = 8;

/// Where the entries lie that leave a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Those below what is left: another entry is moved to each place, in a layout with a count.
    pub gaps: usize,
    /// Words of hashes that have such a place.
    pub hash_words: usize,
    /// Words of the bitmap that have any of the entries.
    pub bitmap_words: usize,
}

impl Spread {
    /// Of the entries at `indices`, when `left` stay.
    pub fn of(indices: &[usize], left: usize) -> Self {
        let distinct = |per_word: usize, below: usize| {
            let words =
                indices.iter().filter(|index| **index < below).map(|index| index / per_word);
            words.collect::<std::collections::BTreeSet<_>>().len()
        };
        Self {
            gaps: indices.iter().filter(|index| **index < left).count(),
            hash_words: distinct(8, left),
            bitmap_words: distinct(64, usize::MAX),
        }
    }
}

/// Bytes of the slots from `rank` on, and of their count, when there are `count` afterwards.
fn slots_bytes(rank: usize, count: usize) -> u64 {
    if rank + 1 < 8 { stored_bytes(0..count + 1) } else { WORD + stored_bytes(rank + 1..count + 1) }
}

/// Bytes of the bits of a range.
fn bits_bytes(from: usize, count: usize) -> u64 {
    if count == 0 { 0 } else { WORD * ((from + count).div_ceil(64) - from / 64) as u64 }
}

/// E4: a node of `count` entries gets one at `rank`.
pub fn insert(geometry: &Geometry, count: usize, rank: usize) -> u64 {
    let entry = geometry.entry_bytes();
    match geometry.shape.kind {
        LayoutKind::Sorted => (count - rank + 1) as u64 * entry + WORD,
        LayoutKind::Unsorted | LayoutKind::Bitmap => entry + WORD,
        LayoutKind::Hashing | LayoutKind::HashingCounted => entry + 2 * WORD,
        LayoutKind::Indirection => entry + slots_bytes(rank, count + 1) + WORD,
    }
}

/// E5: a node of `count` entries is split; `spread` is that of the larger half.
pub fn split(geometry: &Geometry, count: usize, how: Split, spread: Spread) -> u64 {
    let (entry, moved) = (geometry.entry_bytes(), count / 2);
    let bitmap = WORD * geometry.bitmap_words as u64;
    let entries = moved as u64 * entry;
    let hashes = if geometry.shape.kind.has_hashes() { stored_bytes(0..moved) } else { 0 };
    // Count or bitmap of the new node, its two links; count or bitmap of the old one, and its link.
    let counts = WORD + 2 * LINK + WORD + LINK;
    let gaps = spread.gaps as u64 * entry;
    match (geometry.shape.kind, how) {
        (LayoutKind::Sorted, _) => entries + counts,
        (LayoutKind::Unsorted, _) => entries + counts + gaps,
        (LayoutKind::HashingCounted, _) => {
            entries + counts + hashes + gaps + WORD * spread.hash_words as u64
        }
        (LayoutKind::Hashing | LayoutKind::Bitmap, Split::Move) => {
            entries + hashes + 2 * bitmap + 3 * LINK
        }
        (LayoutKind::Hashing | LayoutKind::Bitmap, Split::Copy) => {
            geometry.node_bytes() + bitmap + LINK
        }
        (LayoutKind::Indirection, Split::Move) => {
            entries + slots_bytes(0, moved) + 2 * bitmap + 3 * LINK + WORD
        }
        (LayoutKind::Indirection, Split::Copy) => geometry.node_bytes() + WORD + bitmap + LINK,
    }
}

/// E8: a node of `count` entries loses the one at `rank`, which is its index in layouts without an order.
pub fn erase(geometry: &Geometry, count: usize, rank: usize) -> u64 {
    let (entry, is_last) = (geometry.entry_bytes(), rank + 1 == count);
    match geometry.shape.kind {
        LayoutKind::Sorted => (count - 1 - rank) as u64 * entry + WORD,
        LayoutKind::Unsorted | LayoutKind::HashingCounted if is_last => WORD,
        LayoutKind::Unsorted => entry + WORD,
        LayoutKind::HashingCounted => entry + 2 * WORD,
        LayoutKind::Hashing | LayoutKind::Bitmap => WORD,
        LayoutKind::Indirection => slots_bytes(rank, count - 1) + WORD,
    }
}

/// E9: `moved` of `donor` entries go to a node that has `receiver` entries in its first places.
pub fn balance(
    geometry: &Geometry,
    (donor, receiver, moved): (usize, usize, usize),
    direction: Direction,
    spread: Spread,
) -> u64 {
    let entry = geometry.entry_bytes();
    let entries = moved as u64 * entry;
    let kind = geometry.shape.kind;
    let hashes = if kind.has_hashes() { stored_bytes(receiver..receiver + moved) } else { 0 };
    let bits = bits_bytes(receiver, moved) + WORD * spread.bitmap_words as u64;
    match (kind, direction) {
        (LayoutKind::Sorted, Direction::ToSmaller) => {
            entries + (donor - moved) as u64 * entry + 2 * WORD
        }
        (LayoutKind::Sorted, Direction::ToLarger) => entries + receiver as u64 * entry + 2 * WORD,
        (LayoutKind::Unsorted, _) => entries + spread.gaps as u64 * entry + 2 * WORD,
        (LayoutKind::HashingCounted, _) => {
            let gaps = spread.gaps as u64 * entry + WORD * spread.hash_words as u64;
            entries + hashes + gaps + 2 * WORD
        }
        (LayoutKind::Hashing | LayoutKind::Bitmap, _) => entries + hashes + bits,
        (LayoutKind::Indirection, direction) => {
            let (at, from) = match direction {
                Direction::ToSmaller => (receiver, 0),
                Direction::ToLarger => (0, donor - moved),
            };
            entries + slots_bytes(at, receiver + moved) + slots_bytes(from, donor - moved) + bits
        }
    }
}

/// E10: `donor` entries go to a node that has `receiver` entries in its first places.
pub fn merge(geometry: &Geometry, receiver: usize, donor: usize) -> u64 {
    let kind = geometry.shape.kind;
    let entries = donor as u64 * geometry.entry_bytes();
    let range = receiver..receiver + donor;
    let hashes = if kind.has_hashes() { stored_bytes(range) } else { 0 };
    let bits = bits_bytes(receiver, donor);
    match kind {
        LayoutKind::Sorted | LayoutKind::Unsorted => entries + WORD + LINK,
        LayoutKind::HashingCounted => entries + hashes + WORD + LINK,
        LayoutKind::Hashing | LayoutKind::Bitmap => entries + hashes + bits + LINK,
        LayoutKind::Indirection => entries + slots_bytes(receiver, receiver + donor) + bits + LINK,
    }
}
