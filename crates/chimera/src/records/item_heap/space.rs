//! [`Space`]: the runs of the heap, and which of them have room. In DRAM alone.

mod evacuation;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use chimera_pmem::{Extent, Fenced};

use super::layout::UNIT_BYTES;
use super::units::Units;
use crate::pool::runs::Run;
pub(crate) use evacuation::SparseRun;
use waiting::Waiting;

/// Runs are sorted by how many eighths of them are free.
const CLASSES: usize = 9;
/// A run that is less free is looked at only when the pool has no other.
const CLASS_USUAL_MIN: usize = 2;
/// Runs that are looked at before a fresh one is taken: room may be free, and not in a row.
const TRIES: usize = 4;

/// The runs of the heap.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// By the offset of their first unit.
    runs: BTreeMap<u64, HeapRun>,
    by_class: [BTreeSet<u64>; CLASSES],
    /// The run that room is taken in.
    current: Option<u64>,
    /// All runs that were found are condemned.
    is_found_condemned: bool,
    /// Blocks of all fresh runs that were ever added.
    fresh_blocks: u32,
    /// Room of items that were freed; its units are taken.
    waiting: Waiting,
}

#[derive(Debug)]
struct HeapRun {
    run: Run,
    units: Units,
    /// Found when the store was opened, and it is not known yet which of it is free. It is in no class.
    is_found: bool,
    /// Damaged items lie in it: nothing in it is used again.
    is_condemned: bool,
    /// It is evacuated: its items move elsewhere. It is in no class.
    is_evacuating: bool,
    /// When what is free in it was freed, at the latest.
    emptied: Fenced,
}

impl HeapRun {
    fn new(run: Run, units: Units, is_found: bool) -> Self {
        let emptied = run.emptied();
        Self { run, units, is_found, is_condemned: false, is_evacuating: false, emptied }
    }

    /// Frees so many bytes `at` bytes behind its first unit, unless no item begins there.
    fn free(&mut self, at: u64, bytes: u64, emptied: Fenced) {
        // Two threads may come in the other order.
        self.emptied = self.emptied.max(emptied);
        if !self.is_condemned {
            let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
            self.units.free((at / UNIT_BYTES) as u32, units);
        }
    }

    /// Whether room is taken in it.
    fn is_open(&self) -> bool {
        !self.is_found && !self.is_evacuating
    }

    fn class(&self) -> usize {
        let free = u64::from(self.units.count() - self.units.used());
        (free * (CLASSES as u64 - 1) / u64::from(self.units.count())) as usize
    }
}

/// Whether room is looked for everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// Where it will be found soon.
    Usual,
    Everywhere,
}

impl Space {
    /// Adds a fresh run of so many bytes from `start` on, in which nothing is taken.
    pub(super) fn add(&mut self, start: u64, bytes: u64, run: Run) {
        let units = Units::new((bytes / UNIT_BYTES) as u32);
        self.fresh_blocks = self.fresh_blocks.saturating_add(run.blocks());
        let run = HeapRun::new(run, units, false);
        self.by_class[run.class()].insert(start);
        self.runs.insert(start, run);
    }

    /// Adds a run that was found. Nothing is taken in it until it is [opened](Self::open).
    pub(super) fn add_found(&mut self, start: u64, bytes: u64, run: Run) {
        let units = Units::new((bytes / UNIT_BYTES) as u32);
        let run = HeapRun::new(run, units, true);
        self.runs.insert(start, run);
    }

    /// The first run from `from` on that was found and is not opened: where it begins, and what is free in it, as offsets
    /// and bytes.
    pub(super) fn next_found(&self, from: u64) -> Option<(u64, Vec<(u64, u64)>)> {
        let (start, run) = self.runs.range(from..).find(|(_, run)| run.is_found)?;
        let mut free = Vec::new();
        run.units.each_free(|first, count| {
            free.push((start + u64::from(first) * UNIT_BYTES, u64::from(count) * UNIT_BYTES));
        });
        Some((*start, free))
    }

    /// All items in a run that was found are marked: what else there is in it can be taken.
    pub(super) fn open(&mut self, start: u64) {
        if let Some(run) = self.runs.get_mut(&start) {
            run.is_found = false;
            self.by_class[run.class()].insert(start);
        }
    }

    /// Takes so many units in a row in a run that was added, and from now on in this run. The offset.
    pub(super) fn take_in(&mut self, start: u64, need: u32) -> Option<u64> {
        let taken = self.change(start, |run| run.units.take(need))??;
        self.current = Some(start);
        Some(start + u64::from(taken) * UNIT_BYTES)
    }

    /// Takes so many units in a row. The offset.
    pub(super) fn take(&mut self, need: u32, search: Search) -> Option<u64> {
        if let Some(taken) = self.current.and_then(|start| self.take_in(start, need)) {
            return Some(taken);
        }
        let (least, tries) = match search {
            Search::Usual => (CLASS_USUAL_MIN, TRIES),
            Search::Everywhere => (0, usize::MAX),
        };
        let classes = self.by_class[least..].iter().rev();
        let starts: Vec<u64> = classes.flatten().copied().take(tries).collect();
        starts.into_iter().find_map(|start| self.take_in(start, need))
    }

    /// When what is free in the run around `at` was freed, at the latest.
    pub(super) fn emptied(&self, at: u64) -> Option<Fenced> {
        let start = self.start_of(at)?;
        self.runs.get(&start).map(|run| run.emptied)
    }

    /// Frees so many bytes at `at`, unless no item begins there. Nothing led to them when `emptied` was fenced. Returns the run
    /// when nothing is left in it, unless room is taken in it.
    pub(super) fn free(&mut self, at: u64, bytes: u64, emptied: Fenced) -> Option<Run> {
        let start = self.start_of(at)?;
        let is_empty = self.change(start, |run| {
            run.free(at - start, bytes, emptied);
            !run.is_found && run.units.used() == 0
        })?;
        (is_empty && self.current != Some(start)).then(|| self.remove(start)).flatten()
    }

    /// Has the room of an item wait that nothing led to when `emptied` was fenced: bytes that waited before, and that wait now.
    /// `None` where it is to be [freed](Self::free).
    pub(super) fn wait(&mut self, room: Extent, emptied: Fenced) -> Option<(u64, u64)> {
        let run = self.start_of(room.offset()).and_then(|start| self.runs.get(&start))?;
        // In a run that was found it may never have been marked, and be taken for another item once the run is open.
        if !run.is_open() || run.is_condemned {
            return None;
        }
        let before = self.waiting.bytes();
        self.waiting.add(room, emptied);
        Some((before, self.waiting.bytes()))
    }

    /// What waits is room, from the front on, as far as it `may` be. Runs in which nothing is left stay, for whoever needs room.
    pub(super) fn release(&mut self, may: impl Fn(Fenced) -> bool) {
        while let Some((emptied, room)) = self.waiting.take(&may) {
            let (at, bytes) = (room.offset(), room.length());
            if let Some(start) = self.start_of(at) {
                self.change(start, |run| run.free(at - start, bytes, emptied));
            }
        }
    }

    /// Frees what has waited the longest until so many bytes wait, or nothing is left in a run, which is returned as by
    /// [`free`](Self::free).
    pub(super) fn bound_waiting(&mut self, most: u64) -> Option<Run> {
        while self.waiting.bytes() > most {
            let (emptied, room) = self.waiting.take(|_| true)?;
            let run = self.free(room.offset(), room.length(), emptied);
            if run.is_some() {
                return run;
            }
        }
        None
    }

    /// Bytes that wait.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting.bytes()
    }

    /// Marks so many bytes at `at` as taken: in a run that was found. In a fresh one they are. `false` when they do not
    /// lie in one run, or one of them is taken already.
    pub(super) fn mark(&mut self, at: u64, bytes: u64) -> bool {
        let Some(start) = self.start_of(at) else { return false };
        let first = (at - start) / UNIT_BYTES;
        let is_aligned = (at - start).is_multiple_of(UNIT_BYTES);
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES));
        let (Ok(first), Ok(units)) = (u32::try_from(first), units) else { return false };
        let take = |run: &mut HeapRun| {
            if run.is_condemned {
                // All of its units are taken already.
                return first.checked_add(units).is_some_and(|end| end <= run.units.count());
            }
            if run.is_found {
                run.units.take_exactly(first, units)
            } else {
                run.units.is_first(first)
            }
        };
        is_aligned && self.change(start, take) == Some(true)
    }

    /// Makes sure that the run around `at` is never used again, if there is one.
    pub(super) fn condemn(&mut self, at: u64) {
        if let Some(start) = self.start_of(at) {
            self.change(start, |run| {
                if !std::mem::replace(&mut run.is_condemned, true) {
                    run.units.take_all();
                }
            });
        }
    }

    /// As [`condemn`](Self::condemn), all runs that were found. Once is enough, however much is damaged.
    pub(super) fn condemn_found(&mut self) {
        if std::mem::replace(&mut self.is_found_condemned, true) {
            return;
        }
        for run in self.runs.values_mut().filter(|run| run.is_found) {
            run.is_condemned = true;
            run.units.take_all();
        }
    }

    /// Removes the runs in which nothing is taken.
    pub(super) fn remove_empty(&mut self) -> Vec<Run> {
        // The last class has these alone.
        let empty = self.by_class[CLASSES - 1].clone();
        empty.into_iter().filter_map(|start| self.remove(start)).collect()
    }

    /// The units of each run, as ranges of offsets, the first one first.
    pub(super) fn places(&self) -> impl Iterator<Item = Range<u64>> {
        let bytes = |run: &HeapRun| u64::from(run.units.count()) * UNIT_BYTES;
        self.runs.iter().map(move |(start, run)| *start..*start + bytes(run))
    }

    /// Runs, units of all, and units that are taken: what waits is free.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let units = self.runs.values().map(|run| u64::from(run.units.count())).sum();
        let used: u64 = self.runs.values().map(|run| u64::from(run.units.used())).sum();
        let waiting = self.waiting.units();
        (self.runs.len() as u64, units, used.saturating_sub(waiting))
    }

    /// Blocks of all fresh runs that were ever added.
    pub(super) fn fresh_blocks(&self) -> u32 {
        self.fresh_blocks
    }

    /// Bytes of DRAM.
    pub(super) fn bytes(&self) -> u64 {
        let units: u64 = self.runs.values().map(|run| run.units.bytes()).sum();
        units + self.waiting.bytes_of_dram()
    }

    /// Where the run begins that `at` lies in.
    fn start_of(&self, at: u64) -> Option<u64> {
        let (start, run) = self.runs.range(..=at).next_back()?;
        (at - start < u64::from(run.units.count()) * UNIT_BYTES).then_some(*start)
    }

    fn remove(&mut self, start: u64) -> Option<Run> {
        let run = self.runs.remove(&start)?;
        self.by_class[run.class()].remove(&start);
        if self.current == Some(start) {
            self.current = None;
        }
        Some(run.run)
    }

    /// Changes a run, which may change its class.
    fn change<T>(&mut self, start: u64, change: impl FnOnce(&mut HeapRun) -> T) -> Option<T> {
        let run = self.runs.get_mut(&start)?;
        let before = run.class();
        let changed = change(run);
        let after = run.class();
        if before != after && run.is_open() {
            self.by_class[before].remove(&start);
            self.by_class[after].insert(start);
        }
        Some(changed)
    }
}
