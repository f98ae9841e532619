//! [`Waiting`]: room of items that waits to be used again.

use std::collections::VecDeque;

use chimera_pmem::{Extent, Fenced};

use crate::records::item_heap::layout::UNIT_BYTES;

/// Room that waits to be written back, what was freed first at the front.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    rooms: VecDeque<(Fenced, Extent)>,
    bytes: u64,
    units: u64,
}

impl Waiting {
    /// Adds room that nothing led to when `emptied` was fenced.
    pub(super) fn add(&mut self, room: Extent, emptied: Fenced) {
        self.bytes += room.length();
        self.units += room.length().div_ceil(UNIT_BYTES);
        self.rooms.push_back((emptied, room));
    }

    /// Takes the room off the front, if it `may` be used again.
    pub(super) fn take(&mut self, may: impl FnOnce(Fenced) -> bool) -> Option<(Fenced, Extent)> {
        if !self.rooms.front().is_some_and(|(emptied, _)| may(*emptied)) {
            return None;
        }
        let first = self.rooms.pop_front()?;
        self.bytes -= first.1.length();
        self.units -= first.1.length().div_ceil(UNIT_BYTES);
        Some(first)
    }

    /// Bytes of all of it.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of DRAM.
    pub(super) fn bytes_of_dram(&self) -> u64 {
        (self.rooms.capacity() * size_of::<(Fenced, Extent)>()) as u64
    }

    /// Units of all of it.
    pub(super) fn units(&self) -> u64 {
        self.units
    }
}
