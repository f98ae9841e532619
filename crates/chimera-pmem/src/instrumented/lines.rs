//! [`LineSet`]: which lines an operation has touched, and how.

/// Distinct lines remembered; beyond that the set forgets all and starts anew, so that an operation
/// as long as a recovery needs bounded memory.
pub(super) const LINES_MAX: usize = 1 << 16;

const SLOTS_MIN: usize = 64;

/// The line was booked as read, in whatever way.
pub(super) const READ: u32 = 1;
/// The line was flushed.
pub(super) const FLUSHED: u32 = 2;

/// Numbers of lines, each with a few flags. Clearing costs nothing: slots of an older stamp are empty.
#[derive(Debug)]
pub(super) struct LineSet {
    slots: Vec<Slot>,
    stamp: u32,
    count: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    line: u64,
    stamp: u32,
    flags: u32,
}

impl LineSet {
    pub(super) fn new() -> Self {
        Self { slots: vec![Slot::default(); SLOTS_MIN], stamp: 1, count: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sets `flag` on a line; true when it was not set before.
    pub(super) fn mark(&mut self, line: u64, flag: u32) -> bool {
        if self.count * 2 >= self.slots.len() {
            self.make_room();
        }
        let at = self.find(line);
        let stamp = self.stamp;
        let slot = &mut self.slots[at];
        if slot.stamp != stamp {
            *slot = Slot { line, stamp, flags: flag };
            self.count += 1;
            return true;
        }
        let new = slot.flags & flag == 0;
        slot.flags |= flag;
        new
    }

    /// Whether `flag` is set on a line.
    pub(super) fn has(&self, line: u64, flag: u32) -> bool {
        let slot = &self.slots[self.find(line)];
        slot.stamp == self.stamp && slot.flags & flag != 0
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.slots.fill(Slot::default());
            self.stamp = 1;
        }
    }

    /// The slot of a line, or the empty one where it belongs. There is always an empty slot: the set
    /// is at most half full.
    fn find(&self, line: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        while self.slots[at].stamp == self.stamp && self.slots[at].line != line {
            at = (at + 1) & mask;
        }
        at
    }

    fn make_room(&mut self) {
        if self.count >= LINES_MAX {
            self.clear();
            return;
        }
        let grown = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, grown);
        for slot in old.into_iter().filter(|slot| slot.stamp == self.stamp) {
            let at = self.find(slot.line);
            self.slots[at] = slot;
        }
    }
}
