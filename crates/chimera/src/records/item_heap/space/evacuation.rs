//! Sparse runs are evacuated: their items move, so that fewer runs have all of them.

use std::cmp::Reverse;

use super::super::layout::UNIT_BYTES;
use super::{HeapRun, Space};

/// A run whose items are to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SparseRun {
    /// The offset of its first unit.
    pub(crate) start: u64,
    pub(crate) blocks: u32,
}

/// Units that the items of sparse runs need elsewhere.
#[derive(Default)]
struct Needed {
    /// Of items of which a run of the usual length has room for two or more, and of the largest of them.
    small: u64,
    largest: u64,
    /// Of runs with larger ones, with what their new runs may have too much.
    large: u64,
}

impl Needed {
    /// Adds what the items of a run need. `false` where it would be no less than they have.
    fn add(&mut self, run: &HeapRun, usual: u64) -> bool {
        let (taken, largest) = (u64::from(run.units.used()), u64::from(run.units.largest()));
        if 2 * largest <= usual {
            self.small += taken;
            self.largest = self.largest.max(largest);
            return true;
        }
        // A run for each item, and a block for the end of each.
        let is_less = 2 * taken + usual <= u64::from(run.units.count());
        self.large += if is_less { 2 * taken } else { 0 };
        is_less
    }

    fn units(&self, usual: u64) -> u64 {
        // At the end of each run there may be no room for the largest one, and the last run is not full.
        let filled = (usual - self.largest).max(1);
        (self.small.div_ceil(filled) + 1) * usual + self.large
    }
}

impl Space {
    /// Begins to evacuate the runs of which at least so many percent are free, if their items need fewer units in others,
    /// which have `usual` units. No room is taken in them from now on, unless they are [kept](Self::keep). The fullest one comes
    /// first.
    pub(in crate::records::item_heap) fn evacuate_sparse(
        &mut self,
        free_percent: u32,
        usual: u64,
    ) -> Vec<SparseRun> {
        let (mut sparse, mut units, mut needed) = (Vec::new(), 0, Needed::default());
        for (start, run) in &self.runs {
            let (all, taken) = (u64::from(run.units.count()), u64::from(run.units.used()));
            let free = all - taken;
            let is_sparse = taken > 0 && free > 0 && free * 100 >= all * u64::from(free_percent);
            if is_sparse && !run.is_found && !run.is_condemned && needed.add(run, usual) {
                units += all;
                sparse.push((taken, SparseRun { start: *start, blocks: run.run.blocks() }));
            }
        }
        if needed.units(usual) > units {
            return Vec::new();
        }
        sparse.sort_unstable_by_key(|(taken, run)| (Reverse(*taken), run.start));
        for (_, run) in &sparse {
            self.set_evacuating(run.start, true);
        }
        sparse.into_iter().map(|(_, run)| run).collect()
    }

    /// A run is not evacuated any more, if it is there: what is free in it is room again.
    pub(in crate::records::item_heap) fn keep(&mut self, start: u64) {
        self.set_evacuating(start, false);
    }

    /// Whether there is a run that begins there, and is being evacuated.
    pub(in crate::records::item_heap) fn is_evacuating(&self, start: u64) -> bool {
        self.runs.get(&start).is_some_and(|run| run.is_evacuating)
    }

    /// Where the items of a run lie.
    pub(in crate::records::item_heap) fn items_in(&self, start: u64) -> Vec<u64> {
        let firsts = self.runs.get(&start).map(|run| run.units.firsts());
        let at = |first: u32| start + u64::from(first) * UNIT_BYTES;
        firsts.into_iter().flatten().map(at).collect()
    }

    fn set_evacuating(&mut self, start: u64, is_evacuating: bool) {
        let Some(run) = self.runs.get_mut(&start) else { return };
        if std::mem::replace(&mut run.is_evacuating, is_evacuating) == is_evacuating {
            return;
        }
        let class = &mut self.by_class[run.class()];
        if is_evacuating {
            class.remove(&start);
            self.current = self.current.filter(|current| *current != start);
        } else {
            class.insert(start);
        }
    }
}
