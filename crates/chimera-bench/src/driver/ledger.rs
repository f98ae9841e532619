//! [`Ledger`]: which records a store has.

use std::ops::Range;

use crate::workload::random::Random;

/// Splits `total` into `parts` that differ by at most one.
pub(crate) fn split(total: u64, parts: usize) -> Vec<u64> {
    let count = parts.max(1) as u64;
    (0..count).map(|part| total / count + u64::from(part < total % count)).collect()
}

/// Which records a store has.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Records `0..loaded` are live.
    pub(crate) loaded: u64,
    /// And these, by phase.
    pub(super) inserted: Vec<Vec<Range<u64>>>,
    /// The first number that was never used.
    pub(super) next: u64,
    /// Every third of those that were loaded is gone.
    pub(super) thinned: bool,
}

/// Records that were loaded and are live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Population {
    pub(super) loaded: u64,
    thinned: bool,
}

impl Population {
    /// How many.
    fn records(self) -> u64 {
        if self.thinned { self.loaded - self.loaded.div_ceil(3) } else { self.loaded }
    }

    /// Any of them, uniformly.
    #[inline(always)]
    pub(super) fn draw(self, random: &mut Random) -> u64 {
        if self.thinned {
            let number = random.below(self.records());
            number / 2 * 3 + 1 + number % 2
        } else {
            random.below(self.loaded)
        }
    }
}

impl Ledger {
    /// That of a store that was loaded with so many records.
    pub fn of(loaded: u64) -> Self {
        Self { loaded, next: loaded, ..Self::default() }
    }

    /// Takes the last `records` of those that were loaded for inserted by so many threads: the next
    /// [`Delete`](super::phase::Action::Delete) deletes them.
    pub fn unsettle(&mut self, records: u64, threads: usize) {
        self.loaded -= records;
        let mut start = self.loaded;
        let ranges = split(records, threads).into_iter().map(|length| {
            start += length;
            start - length..start
        });
        self.inserted.push(ranges.collect());
    }

    /// Ranges with every live record, and with those that are [gone](Self::is_gone).
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let inserted = self.inserted.iter().flatten().cloned();
        std::iter::once(0..self.loaded).chain(inserted).filter(|range| !range.is_empty()).collect()
    }

    /// Whether a record was loaded and is gone.
    pub(crate) fn is_gone(&self, number: u64) -> bool {
        self.thinned && number < self.loaded && number.is_multiple_of(3)
    }

    pub(crate) fn population(&self) -> Population {
        Population { loaded: self.loaded, thinned: self.thinned }
    }

    /// How many records are live.
    pub fn records(&self) -> u64 {
        let all: u64 = self.ranges().iter().map(|range| range.end - range.start).sum();
        all - (self.loaded - self.population().records())
    }

    /// What was inserted so far is taken for loaded. There must be no gaps.
    pub fn settle(&mut self) {
        self.loaded = self.records();
        self.inserted.clear();
        self.next = self.loaded;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_counts_live_records() {
        let mut ledger =
            Ledger { loaded: 10, inserted: vec![vec![10..15, 20..22]], next: 30, thinned: false };
        assert_eq!(ledger.records(), 17);
        assert_eq!(ledger.ranges(), [0..10, 10..15, 20..22]);
        ledger = Ledger { loaded: 0, inserted: vec![vec![0..5, 5..9]], next: 9, thinned: false };
        ledger.settle();
        assert_eq!((ledger.loaded, ledger.next, ledger.records()), (9, 9, 9));
    }

    #[test]
    fn parts_are_even_and_complete() {
        assert_eq!(split(10, 3), [4, 3, 3]);
        assert_eq!(split(2, 4), [1, 1, 0, 0]);
        assert_eq!(split(0, 1), [0]);
    }

    #[test]
    fn what_was_loaded_can_be_taken_for_inserted() {
        let mut ledger = Ledger::of(11);
        ledger.unsettle(5, 2);
        assert_eq!((ledger.loaded, ledger.next, ledger.records()), (6, 11, 11));
        assert_eq!(ledger.inserted, [[6..9, 9..11]]);
    }

    #[test]
    fn a_thinned_population_is_drawn_from_evenly() {
        let live = Population { loaded: 11, thinned: true };
        let mut random = Random::new(1, 1);
        let mut counts = [0; 11];
        for _ in 0..7000 {
            counts[live.draw(&mut random) as usize] += 1;
        }
        let ledger = Ledger { loaded: 11, thinned: true, ..Ledger::default() };
        for (number, count) in counts.into_iter().enumerate() {
            assert_eq!(ledger.is_gone(number as u64), count == 0, "{number}");
            assert!(count == 0 || (800..1200).contains(&count), "{number}: {count}");
        }
        assert_eq!(ledger.records(), 7);
    }
}
