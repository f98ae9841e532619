//! Searching a node, also while a writer changes it.
//!
//! Heads are compared first, which lie side by side in the slots. What lies in the heap is read only of keys whose
//! heads are equal to that of the one that is looked for: mostly one, or none.

use std::cmp::Ordering;

use super::format::{Header, Slot, unit_of};
use super::node::Node;
use super::shape::{HEAD, UNIT, child_units, tail_units};

/// A key that is looked for among those of a node.
#[derive(Clone, Copy)]
pub(super) struct SearchKey<'k> {
    key: &'k [u8],
    /// Behind the prefix of the node, which the key has as well because it belongs there.
    rest: &'k [u8],
    head: u32,
}

impl<'k> SearchKey<'k> {
    #[inline(always)]
    pub(super) fn new(key: &'k [u8], header: Header) -> Self {
        let rest = key.get(header.prefix as usize..).unwrap_or_default();
        Self { key, rest, head: unit_of(rest, 0) }
    }
}

impl Node<'_> {
    /// Which child of an inner node a key belongs to.
    #[inline(always)]
    pub(super) fn child_toward(self, key: &[u8]) -> u32 {
        let header = self.header();
        self.upper_bound(header, SearchKey::new(key, header)).saturating_sub(1)
    }

    /// How many of the keys are below `sought`, and whether the next one is equal.
    #[inline(always)]
    pub(super) fn lower_bound(self, header: Header, sought: SearchKey<'_>) -> (u32, bool) {
        let (mut from, mut to) = self.equal_heads(header, sought.head);
        let mut found = false;
        while from < to {
            let middle = from.midpoint(to);
            match self.compare_tail(header.level, self.slot(middle), sought) {
                Ordering::Less => from = middle + 1,
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
    pub(super) fn upper_bound(self, header: Header, sought: SearchKey<'_>) -> u32 {
        let (mut from, mut to) = self.equal_heads(header, sought.head);
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
    fn equal_heads(self, header: Header, head: u32) -> (u32, u32) {
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
    fn compare_tail(self, level: u32, slot: Slot, sought: SearchKey<'_>) -> Ordering {
        let start = slot.place.offset + child_units(level);
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
}

/// One of two numbers, without a branch.
#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    std::hint::select_unpredictable(condition, yes, no)
}
