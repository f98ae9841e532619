//! [`LockedNode`]: changes of single entries of a node, in place.

use std::ops::Deref;
use std::sync::Arc;

use chimera_pmem::Environment;

use super::format::{Header, Place, Slot, unit_of};
use super::node::Node;
use super::shape::{HEAD, HEADER_UNITS, HEADER_WORDS, SLOT_UNITS, UNIT, child_units, tail_units};
use crate::sync::VersionGuard;
use crate::sync::atomic::Ordering;

/// A node whose lock is held.
pub(super) struct LockedNode<'a> {
    node: Node<'a>,
    _guard: VersionGuard<'a>,
}

impl<'a> Deref for LockedNode<'a> {
    type Target = Node<'a>;

    #[inline(always)]
    fn deref(&self) -> &Node<'a> {
        &self.node
    }
}

/// Writes an entry from the unit `offset` on, with a child in inner nodes, and the number of its long key if it has one; its slot.
#[inline(always)]
pub(super) fn write_entry(
    level: u32,
    offset: u32,
    (rest, long_key): (&[u8], Option<u32>),
    child: u32,
    mut put: impl FnMut(u32, u32),
) -> Slot {
    if level > 0 {
        put(offset, child);
    }
    let start = offset + child_units(level);
    let place = if let Some(number) = long_key {
        put(start, number);
        Place::long(offset)
    } else {
        for unit in 0..tail_units(rest.len() as u32) {
            put(start + unit, unit_of(rest, HEAD + unit * UNIT));
        }
        Place::new(offset, rest.len() as u32)
    };
    Slot { head: unit_of(rest, 0), place }
}

impl<'a> LockedNode<'a> {
    #[inline(always)]
    pub(super) fn new(node: Node<'a>, guard: VersionGuard<'a>) -> Self {
        Self { node, _guard: guard }
    }

    /// Locks the node, which nothing else is locked beside.
    pub(super) fn wait(node: Node<'a>, environment: &dyn Environment) -> Self {
        Self::new(node, node.lock_word().lock(environment))
    }

    #[inline(always)]
    pub(super) fn store(&self, number: u32, value: u64) {
        self.word(number).expect("a word of the node").store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn store_unit(&self, number: u32, value: u32) {
        let word = self.load(number / 2);
        let word = if number.is_multiple_of(2) {
            word & u64::from(u32::MAX) | u64::from(value) << 32
        } else {
            word & !u64::from(u32::MAX) | u64::from(value)
        };
        self.store(number / 2, word);
    }

    /// Units between the slots and the heap.
    #[inline(always)]
    fn free(header: Header) -> u32 {
        header.heap - HEADER_UNITS - SLOT_UNITS * header.count
    }

    /// Units that an entry with this key would take.
    #[inline(always)]
    pub(super) fn demand(&self, header: Header, key: &[u8]) -> u32 {
        let length = key.len() as u32 - header.prefix;
        SLOT_UNITS + self.layout().entry_units(header.level, length)
    }

    /// Whether there is room for `units`, perhaps after compaction.
    pub(super) fn has_room(&self, units: u32) -> bool {
        let header = self.header();
        units <= Self::free(header) + header.garbage
    }

    /// Whether there is room for `units` between slots and heap.
    pub(super) fn has_room_now(&self, units: u32) -> bool {
        units <= Self::free(self.header())
    }

    /// Units of all entries, and units that entries can have.
    pub(super) fn fill(&self) -> (u32, u32) {
        let header = self.header();
        let capacity = self.layout().units() - HEADER_UNITS - self.fixed_units(header);
        (capacity - Self::free(header) - header.garbage, capacity)
    }

    /// Units of the prefix and the fences.
    fn fixed_units(&self, header: Header) -> u32 {
        let units = |place: Place| {
            let length = place.length().unwrap_or(u32::MAX);
            if place.is_absent() { 0 } else { self.layout().fence_units(length) }
        };
        header.prefix.div_ceil(UNIT) + self.fences().map(units).iter().sum::<u32>()
    }

    /// Whether entries take less than a third of the node.
    pub(super) fn is_sparse(&self) -> bool {
        let (used, capacity) = self.fill();
        used * 3 < capacity
    }

    /// Inserts an entry in front of the one with the number `at`, in inner nodes with a child. `false` if there is no room between slots
    /// and heap.
    #[inline]
    pub(super) fn insert(&self, header: Header, at: u32, key: &[u8], child: u32) -> bool {
        let units = self.demand(header, key);
        if units > Self::free(header) {
            return false;
        }
        let rest = &key[header.prefix as usize..];
        let is_long = rest.len() > self.layout().rest_max as usize;
        let long_key = is_long.then(|| self.context.long_keys.insert(Arc::from(key)));
        let heap = header.heap - (units - SLOT_UNITS);
        let put = |unit, value| self.store_unit(unit, value);
        let slot = write_entry(header.level, heap, (rest, long_key), child, put);
        for slot in (at..header.count).rev() {
            self.store(HEADER_WORDS + slot + 1, self.load(HEADER_WORDS + slot));
        }
        self.store(HEADER_WORDS + at, slot.word());
        self.store(1, Header { count: header.count + 1, heap, ..header }.word());
        true
    }

    /// Removes an entry.
    pub(super) fn remove(&self, at: u32) {
        let header = self.header();
        let slot = self.slot(at);
        let units = self.units_of(header.level, slot) - SLOT_UNITS;
        if let Some(number) = self.long_key(header.level, slot) {
            self.context.long_keys.remove(number);
        }
        for slot in at + 1..header.count {
            self.store(HEADER_WORDS + slot - 1, self.load(HEADER_WORDS + slot));
        }
        let mut header = Header { count: header.count - 1, ..header };
        if slot.place.offset == header.heap {
            header.heap += units;
        } else {
            header.garbage += units;
        }
        self.store(1, header.word());
    }
}
