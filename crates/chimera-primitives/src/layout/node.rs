//! [`Node`]: the parts of one node in persistent memory, by value.
//!
//! Keys are words, the first the most significant: [`key_words`] makes them of bytes so that their order is that of the
//! bytes. Values are bytes. Nothing here knows how a node is organised.

use std::cmp::Ordering;

use chimera_pmem::{CACHE_LINE, Extent, Pmem, Site};

use super::dirty::Dirty;
use super::shape::Geometry;
use super::sites;
use crate::error::{PrimitivesError, Result};

/// Bytes that are moved at a time.
const MOVE_BYTES: usize = 512;

/// The words of a key, in an order that is that of its bytes; `words` is filled up with zeros.
///
/// # Panics
/// When `words` is shorter than the key.
pub fn key_words(key: &[u8], words: &mut [u64]) {
    assert!(key.len() <= words.len() * 8, "a key of {} bytes", key.len());
    words.fill(0);
    for (word, bytes) in words.iter_mut().zip(key.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_be_bytes(whole);
    }
}

/// The bytes of a key that [`key_words`] made.
pub fn key_bytes(words: &[u64], key: &mut [u8]) {
    for (bytes, word) in key.chunks_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes()[..bytes.len()]);
    }
}

/// A hash of one byte, by which most keys that are another one are told apart.
#[inline]
pub fn key_hash(key: &[u64]) -> u8 {
    let mixed = key.iter().fold(0_u64, |hash, word| {
        (hash.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    (mixed >> 56) as u8
}

/// One node. It gives out values, and knows where they lie.
#[derive(Debug)]
pub struct Node<'a, P: Pmem> {
    pub(crate) pmem: &'a P,
    pub(crate) at: u64,
    pub(crate) geometry: &'a Geometry,
}

impl<P: Pmem> Clone for Node<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Pmem> Copy for Node<'_, P> {}

impl<'a, P: Pmem> Node<'a, P> {
    /// The node at an offset.
    ///
    /// # Errors
    /// `Corrupted` when it would not lie at the beginning of a line of what is mapped.
    #[inline]
    pub fn at(pmem: &'a P, geometry: &'a Geometry, at: u64) -> Result<Self> {
        if !at.is_multiple_of(CACHE_LINE) || pmem.check(at, geometry.node_bytes()).is_none() {
            return PrimitivesError::corrupted("a link leads to no node", at);
        }
        Ok(Self { pmem, at, geometry })
    }

    /// Where it lies.
    pub fn offset(self) -> u64 {
        self.at
    }

    /// All of it.
    pub fn extent(self) -> Extent {
        Extent::new_checked(self.at, self.geometry.node_bytes())
    }

    /// Nothing noted yet.
    pub(crate) fn dirty(self) -> Dirty {
        Dirty::of(self.at)
    }

    #[inline]
    pub(crate) fn load(self, at: u64) -> u64 {
        self.pmem.load_u64(self.at + at)
    }

    #[inline]
    pub(crate) fn store(self, at: u64, value: u64, dirty: &mut Dirty, site: Site) {
        self.pmem.store_u64(self.at + at, value, site);
        dirty.add(at, 8);
    }

    /// A range of the node. It lies in the node, because geometries do.
    #[inline]
    pub(crate) fn part(self, at: u64, bytes: u64) -> Extent {
        debug_assert!(at + bytes <= self.geometry.node_bytes(), "{bytes} bytes at {at}");
        Extent::new_checked(self.at + at, bytes)
    }

    // ---- keys ----

    #[inline]
    fn key_at(self, index: usize) -> u64 {
        self.geometry.keys_at + index as u64 * self.geometry.key_stride
    }

    #[inline]
    fn value_at(self, index: usize) -> u64 {
        self.geometry.values_at + index as u64 * self.geometry.value_stride
    }

    /// The first word of a key.
    #[inline]
    pub(crate) fn key_first(self, index: usize) -> u64 {
        self.load(self.key_at(index))
    }

    /// How the key at `index` compares with `key`.
    #[inline]
    pub fn compare_key(self, index: usize, key: &[u64]) -> Ordering {
        let at = self.key_at(index);
        for (number, word) in key.iter().enumerate() {
            match self.load(at + 8 * number as u64).cmp(word) {
                Ordering::Equal => {}
                other => return other,
            }
        }
        Ordering::Equal
    }

    /// Appends the words of the key at `index`.
    #[inline]
    pub fn read_key(self, index: usize, into: &mut Vec<u64>) {
        let at = self.key_at(index);
        into.extend((0..self.geometry.key_words as u64).map(|word| self.load(at + 8 * word)));
    }

    /// Reads the value at `index`.
    #[inline]
    pub fn read_value(self, index: usize, into: &mut [u8]) {
        self.pmem.read(self.part(self.value_at(index), self.geometry.value_stride), into);
    }

    // ---- entries ----

    /// Stores a key and its value at `index`.
    #[inline]
    pub(crate) fn write_entry(self, index: usize, key: &[u64], value: &[u8], dirty: &mut Dirty) {
        let at = self.key_at(index);
        for (number, word) in key.iter().enumerate() {
            self.store(at + 8 * number as u64, *word, dirty, sites::ENTRY);
        }
        let to = self.part(self.value_at(index), self.geometry.value_stride);
        self.pmem.copy(to, value, sites::ENTRY);
        dirty.add(self.value_at(index), self.geometry.value_stride);
    }

    /// Where the entry at `index` lies: its key, its value.
    pub(crate) fn entry_extents(self, index: usize) -> [Extent; 2] {
        let geometry = self.geometry;
        [
            self.part(self.key_at(index), geometry.key_stride),
            self.part(self.value_at(index), geometry.value_stride),
        ]
    }

    /// The first word of the value at `index`.
    #[inline]
    pub(crate) fn value_first(self, index: usize) -> u64 {
        self.load(self.value_at(index))
    }

    /// Reads the value at `index` behind its first word.
    #[inline]
    pub(crate) fn read_value_rest(self, index: usize, into: &mut [u8]) {
        let length = self.geometry.value_stride - 8;
        self.pmem.read(self.part(self.value_at(index) + 8, length), into);
    }

    /// Copies the entries `from..from + count` of `source` to `to..` of this node, which may be the same one.
    pub(crate) fn copy_entries(
        self,
        source: Self,
        from: usize,
        to: usize,
        count: usize,
        dirty: &mut Dirty,
    ) {
        let geometry = self.geometry;
        let keys = count as u64 * geometry.key_stride;
        self.copy_range(source, self.key_at(from), self.key_at(to), keys, dirty);
        let values = count as u64 * geometry.value_stride;
        self.copy_range(source, self.value_at(from), self.value_at(to), values, dirty);
    }

    /// Copies a range, which may overlap with where it goes.
    fn copy_range(self, source: Self, from: u64, to: u64, bytes: u64, dirty: &mut Dirty) {
        let mut buffer = [0; MOVE_BYTES];
        let backwards = source.at == self.at && from < to;
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(MOVE_BYTES as u64);
            let skip = if backwards { left - piece } else { bytes - left };
            let buffer = &mut buffer[..piece as usize];
            source.pmem.read(source.part(from + skip, piece), buffer);
            self.pmem.copy(self.part(to + skip, piece), buffer, sites::ENTRY);
            left -= piece;
        }
        if bytes > 0 {
            dirty.add(to, bytes);
        }
    }

    // ---- links ----

    /// The link to the next node; 0 for none. Whoever follows it checks it.
    #[inline]
    pub fn next(self) -> u64 {
        self.load(self.geometry.next_at)
    }

    /// The link to the node before; 0 for none.
    pub fn prev(self) -> u64 {
        self.load(self.geometry.prev_at)
    }

    /// Stores the link to the next node.
    pub(crate) fn set_next(self, next: u64, dirty: &mut Dirty) {
        self.store(self.geometry.next_at, next, dirty, sites::LINK);
    }

    /// Stores the link to the node before.
    pub(crate) fn set_prev(self, prev: u64, dirty: &mut Dirty) {
        self.store(self.geometry.prev_at, prev, dirty, sites::LINK);
    }

    /// Makes the metadata of a node zero: no entries, no links. Not durable yet.
    pub(crate) fn clear(self, dirty: &mut Dirty) {
        let front = self.geometry.keys_at;
        self.pmem.zero(self.part(0, front), sites::FORMAT);
        dirty.add(0, front);
    }
}
