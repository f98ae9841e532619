//! Whole keys and fences of a node, also while a writer changes it.

use std::sync::Arc;

use super::format::{Header, Place, Slot};
use super::node::Node;
use super::shape::{HEAD, UNIT, child_units, tail_units};

impl Node<'_> {
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
        self.read_units(slot.place.offset + child_units(level), tail);
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
}
