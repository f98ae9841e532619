//! [`Units`]: media units in a buffer, in order of use.

/// Media units, the most recently used one first.
#[derive(Debug)]
pub(super) struct Units {
    units: Vec<BufferedUnit>,
    capacity: usize,
}

/// A unit in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferedUnit {
    pub(super) unit: u64,
    /// A bit for each of its lines that is there.
    pub(super) lines: u64,
    /// When it was used last.
    pub(super) used_ps: u64,
}

impl Units {
    pub(super) fn new(capacity: usize) -> Self {
        Self { units: Vec::with_capacity(capacity), capacity }
    }

    pub(super) fn is_full(&self) -> bool {
        self.units.len() == self.capacity
    }

    /// Adds a line to a unit that is there and makes the unit the most recently used one; says whether it was there.
    pub(super) fn join(&mut self, unit: u64, line: u64, now_ps: u64) -> bool {
        let found = self.units.iter().position(|held| held.unit == unit);
        if let Some(at) = found {
            self.units[..=at].rotate_right(1);
            self.units[0].lines |= line;
            self.units[0].used_ps = now_ps;
        }
        found.is_some()
    }

    /// Adds a unit with one line, which is the most recently used one then. There is room.
    pub(super) fn add(&mut self, unit: u64, line: u64, now_ps: u64) {
        debug_assert!(!self.is_full(), "room was made");
        self.units.insert(0, BufferedUnit { unit, lines: line, used_ps: now_ps });
    }

    pub(super) fn oldest(&self) -> Option<BufferedUnit> {
        self.units.last().copied()
    }

    /// Takes out the least recently used unit.
    pub(super) fn take_oldest(&mut self) -> Option<BufferedUnit> {
        self.units.pop()
    }

    /// Takes out the most recently used unit if all its lines are there.
    pub(super) fn take_if_whole(&mut self, whole: u64) -> bool {
        let is_whole = self.units.first().is_some_and(|held| held.lines == whole);
        if is_whole {
            self.units.remove(0);
        }
        is_whole
    }

    /// Takes everything out; says how many units there were.
    pub(super) fn clear(&mut self) -> u64 {
        let count = self.units.len() as u64;
        self.units.clear();
        count
    }
}
