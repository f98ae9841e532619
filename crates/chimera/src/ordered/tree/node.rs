//! [`Node`]: reading a node, also while a writer changes it.
//!
//! ```text
//!  word 0     version (see VersionWord)
//!  word 1     count 16 | first unit of the heap 16 | units of garbage 16 | bytes of the prefix 8 | level 8
//!  word 2     low fence 32 | high fence 32, each: offset 16 | length 16; 0 is none
//!  word 3..   slots in the order of their keys: head 32 | offset 16 | length 16
//!  ...        free
//!  heap       in units of 4 bytes, growing down: of an entry of an inner node the child, and the key behind its head,
//!             of a fence the key; both without the prefix, the last unit filled up with zeros
//!  end        the prefix
//! ```
//! The length is that of the key behind the prefix. 0xffff says that the heap has the number of a long
//! key instead, which is kept whole in [`LongKeys`]. Two units are a word, the first one its upper half.
//!
//! # Readers
//! A node may change while it is read. So whatever is read may be wrong until the version has been found
//! unchanged: a count is bounded by what a node can have, an offset that leads out of the node reads as 0, a
//! length is bounded by what is kept in a node. Nothing panics, and every loop ends.

use chimera_pmem::prefetch_read;

use super::format::{Header, Place, Slot};
use super::long_keys::LongKeys;
use super::shape::{HEADER_WORDS, Layout, SLOT_UNITS, child_units};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{ArenaRange, VersionWord};

/// What all nodes of a tree share.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) layout: Layout,
    pub(super) long_keys: LongKeys,
}

/// A node.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    /// Its number, from 1 on.
    pub(super) id: u32,
    words: ArenaRange<'a, AtomicU64>,
    pub(super) context: &'a Context,
}

impl<'a> Node<'a> {
    #[inline(always)]
    pub(super) fn new(id: u32, words: ArenaRange<'a, AtomicU64>, context: &'a Context) -> Self {
        Self { id, words, context }
    }

    #[inline(always)]
    pub(super) fn layout(self) -> Layout {
        self.context.layout
    }

    #[inline(always)]
    pub(super) fn lock_word(self) -> VersionWord<'a> {
        VersionWord::new(self.word(0).expect("a node has words"))
    }

    #[inline(always)]
    pub(super) fn word(self, number: u32) -> Option<&'a AtomicU64> {
        self.words.get(number as usize)
    }

    #[inline(always)]
    pub(super) fn load(self, number: u32) -> u64 {
        self.word(number).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(super) fn unit(self, number: u32) -> u32 {
        let word = self.load(number / 2);
        if number.is_multiple_of(2) { (word >> 32) as u32 } else { word as u32 }
    }

    #[inline(always)]
    pub(super) fn header(self) -> Header {
        let header = Header::of(self.load(1));
        Header { count: header.count.min(self.layout().slots_max()), ..header }
    }

    #[inline(always)]
    pub(super) fn slot(self, at: u32) -> Slot {
        Slot::of(self.load(HEADER_WORDS + at))
    }

    /// Where the low and the high fence are.
    #[inline(always)]
    pub(super) fn fences(self) -> [Place; 2] {
        let word = self.load(2);
        [Place::of((word >> 32) as u32), Place::of(word as u32)]
    }

    /// The number of a child.
    #[inline(always)]
    pub(super) fn child(self, at: u32) -> u32 {
        self.unit(self.slot(at).place.offset)
    }

    /// The number of the long key of an entry.
    pub(super) fn long_key(self, level: u32, slot: Slot) -> Option<u32> {
        let is_long = slot.place.length().is_none();
        is_long.then(|| self.unit(slot.place.offset + child_units(level)))
    }

    /// Hands the numbers of all its long keys to `visit`. Only with the lock held.
    pub(super) fn for_each_long_key(self, mut visit: impl FnMut(u32)) {
        let header = self.header();
        for at in 0..header.count {
            if let Some(number) = self.long_key(header.level, self.slot(at)) {
                visit(number);
            }
        }
        for place in self.fences() {
            if !place.is_absent() && place.length().is_none() {
                visit(self.unit(place.offset));
            }
        }
    }

    /// Units of an entry, with its slot.
    pub(super) fn units_of(self, level: u32, slot: Slot) -> u32 {
        let length = slot.place.length().unwrap_or(u32::MAX);
        SLOT_UNITS + self.layout().entry_units(level, length)
    }

    /// Starts loading the words that a search reads first.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        self.prefetch_words(0, self.layout().words_of_slots);
    }

    /// Starts loading the words that are read when all keys are.
    #[inline(always)]
    pub(super) fn prefetch_heap(self, header: Header) {
        self.prefetch_words(header.heap / 2, self.layout().words);
    }

    #[inline(always)]
    fn prefetch_words(self, start: u32, end: u32) {
        for number in (start..end).step_by(8) {
            if let Some(word) = self.word(number) {
                prefetch_read(word);
            }
        }
    }
}
