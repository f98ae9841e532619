//! [`Node`]: reading a node, also while a writer changes it.
//!
//! ```text
//!  word 0     version (see VersionWord)
//!  word 1     count 16 | first unit of the heap 16 | units of garbage 16 | bytes of the prefix 8 | level 8
//!  word 2     low fence 32 | high fence 32, each: offset 16 | length 16; 0 is none
//!  word 3..   slots in the order of their keys: head 32 | offset 16 | length 16
//!  ...        free
//!  heap       in units of 4 bytes, growing down: of an entry the payload and the key behind its head,
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

use std::cmp::Ordering as Compared;
use std::sync::Arc;

use chimera_pmem::prefetch_read;

use super::format::{Header, Place, Slot, unit_of};
use super::long_keys::LongKeys;
use super::shape::{HEAD, HEADER_WORDS, Layout, SLOT_UNITS, UNIT, tail_units};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{ArenaRange, VersionWord};

/// One of two numbers, without a branch.
#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    std::hint::select_unpredictable(condition, yes, no)
}

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

/// A key that is looked for among those of a node.
#[derive(Clone, Copy)]
pub(super) struct Sought<'k> {
    key: &'k [u8],
    /// Behind the prefix of the node, which the key has as well because it belongs there.
    rest: &'k [u8],
    head: u32,
}

impl<'k> Sought<'k> {
    #[inline(always)]
    pub(super) fn new(key: &'k [u8], header: Header) -> Self {
        let rest = key.get(header.prefix as usize..).unwrap_or_default();
        Self { key, rest, head: unit_of(rest, 0) }
    }
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

    /// How many of the keys are below `sought`, and whether the next one is equal.
    #[inline(always)]
    pub(super) fn lower_bound(self, header: Header, sought: Sought<'_>) -> (u32, bool) {
        let (mut from, mut to) = self.alike(header, sought.head);
        let mut found = false;
        while from < to {
            let middle = from.midpoint(to);
            match self.compare_tail(header.level, self.slot(middle), sought) {
                Compared::Less => from = middle + 1,
                order => {
                    found = order.is_eq();
                    to = middle;
                }
            }
        }
        (from, found)
    }

    /// How many of the keys are not above `sought`.
    #[inline(always)]
    pub(super) fn upper_bound(self, header: Header, sought: Sought<'_>) -> u32 {
        let (mut from, mut to) = self.alike(header, sought.head);
        while from < to {
            let middle = from.midpoint(to);
            if self.compare_tail(header.level, self.slot(middle), sought).is_le() {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// The first slot whose head is not below `head`, and the first one whose head is above it: mostly the
    /// same, or the next.
    #[inline(always)]
    fn alike(self, header: Header, head: u32) -> (u32, u32) {
        let from = self.first_where(0, header.count, |other| other >= head);
        let is_alike = |at| at < header.count && self.slot(at).head == head;
        if !is_alike(from) {
            return (from, from);
        }
        if !is_alike(from + 1) {
            return (from, from + 1);
        }
        (from, self.first_where(from + 2, header.count, |other| other > head))
    }

    /// The first slot of a range for whose head something holds that holds for all larger ones, too. Nothing
    /// depends on a guess which way the search goes.
    #[inline(always)]
    fn first_where(self, start: u32, end: u32, holds: impl Fn(u32) -> bool) -> u32 {
        let (mut from, mut length) = (start, end.saturating_sub(start));
        while length > 0 {
            let half = length / 2;
            let is_before = !holds(self.slot(from + half).head);
            from = select(is_before, from + half + 1, from);
            length = select(is_before, length - half - 1, half);
        }
        from
    }

    /// How the key of a slot compares with the one that is looked for, if the heads are equal.
    #[inline]
    fn compare_tail(self, level: u32, slot: Slot, sought: Sought<'_>) -> Compared {
        let start = slot.place.offset + self.layout().payload_units(level);
        let Some(length) = slot.place.length() else {
            return self.context.long_keys.compare(self.unit(start), sought.key);
        };
        for unit in 0..tail_units(length.min(self.layout().rest_max)) {
            let order = self.unit(start + unit).cmp(&unit_of(sought.rest, HEAD + unit * UNIT));
            if order.is_ne() {
                return order;
            }
        }
        // Zeros stand behind the shorter one.
        (length as usize).cmp(&sought.rest.len())
    }

    /// Which child of an inner node a key belongs to.
    #[inline(always)]
    pub(super) fn child_toward(self, key: &[u8]) -> u32 {
        let header = self.header();
        self.upper_bound(header, Sought::new(key, header)).saturating_sub(1)
    }

    /// The number of a child.
    #[inline(always)]
    pub(super) fn child(self, at: u32) -> u32 {
        self.unit(self.slot(at).place.offset)
    }

    /// The payload of an entry of a leaf.
    #[inline(always)]
    pub(super) fn payload(self, slot: Slot) -> u64 {
        if self.layout().payload_units(0) == 0 {
            return 0;
        }
        let offset = slot.place.offset;
        u64::from(self.unit(offset)) << 32 | u64::from(self.unit(offset + 1))
    }

    /// Appends a whole key.
    pub(super) fn append_key(self, header: Header, slot: Slot, into: &mut Vec<u8>) {
        if let Some(number) = self.long_key(header.level, slot) {
            return self.context.long_keys.append(number, into);
        }
        self.append_prefix(header, into);
        let (length, room) = self.rest_length(slot);
        let start = into.len();
        into.resize(start + room, 0);
        self.read_rest(header.level, slot, &mut into[start..]);
        into.truncate(start + length);
    }

    /// Bytes that a key that is not a long one has behind the prefix, and bytes to read it to.
    #[inline(always)]
    pub(super) fn rest_length(self, slot: Slot) -> (usize, usize) {
        let length = slot.place.length().unwrap_or_default().min(self.layout().rest_max);
        (length as usize, (HEAD + UNIT * tail_units(length)) as usize)
    }

    /// Reads what a key that is not a long one has behind the prefix.
    #[inline(always)]
    pub(super) fn read_rest(self, level: u32, slot: Slot, into: &mut [u8]) {
        let Some((head, tail)) = into.split_first_chunk_mut::<4>() else { return };
        *head = slot.head.to_be_bytes();
        self.read_units(slot.place.offset + self.layout().payload_units(level), tail);
    }

    #[inline(always)]
    fn read_units(self, start: u32, into: &mut [u8]) {
        let parts = into.chunks_exact_mut(UNIT as usize);
        for (part, unit) in parts.zip(start..) {
            part.copy_from_slice(&self.unit(unit).to_be_bytes());
        }
    }

    /// Appends the prefix.
    pub(super) fn append_prefix(self, header: Header, into: &mut Vec<u8>) {
        let start = self.layout().units().saturating_sub(header.prefix.div_ceil(UNIT));
        self.append_bytes(start, header.prefix, into);
    }

    fn append_bytes(self, start: u32, length: u32, into: &mut Vec<u8>) {
        let at = into.len();
        into.resize(at + length.next_multiple_of(UNIT) as usize, 0);
        self.read_units(start, &mut into[at..]);
        into.truncate(at + length as usize);
    }

    /// Appends a whole fence. `false` if the node has none.
    pub(super) fn append_fence(self, header: Header, place: Place, into: &mut Vec<u8>) -> bool {
        if place.is_absent() {
            return false;
        }
        if let Some(length) = place.length() {
            self.append_prefix(header, into);
            self.append_bytes(place.offset, length.min(self.layout().rest_max), into);
        } else {
            self.context.long_keys.append(self.unit(place.offset), into);
        }
        true
    }

    /// The low and the high fence. Only with the lock held.
    pub(super) fn whole_fences(self) -> [Option<Arc<[u8]>>; 2] {
        let header = self.header();
        self.fences().map(|place| {
            if !place.is_absent() && place.length().is_none() {
                return self.context.long_keys.get(self.unit(place.offset));
            }
            let mut fence = Vec::new();
            self.append_fence(header, place, &mut fence).then(|| fence.into())
        })
    }

    /// The number of the long key of an entry.
    pub(super) fn long_key(self, level: u32, slot: Slot) -> Option<u32> {
        let is_long = slot.place.length().is_none();
        is_long.then(|| self.unit(slot.place.offset + self.layout().payload_units(level)))
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
