//! Runs that are mostly free are left: their items move, so that fewer runs have all of them.

use super::super::layout::UNIT_BYTES;
use super::Space;

/// A run whose items are to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeftRun {
    /// The offset of its first unit.
    pub(crate) start: u64,
    pub(crate) blocks: u32,
}

impl Space {
    /// Leaves the runs of which at least so many percent are free, if others of so many units, fewer in all, have room for
    /// what is in them. No room is taken in them until they [stay](Self::stay). The fullest one comes first.
    ///
    /// A run that has no room for another item like its largest one is not left: one of the same length would take its place.
    pub(in crate::records::item_heap) fn leave_sparse(
        &mut self,
        free_percent: u32,
        usual_units: u64,
    ) -> Vec<LeftRun> {
        let (mut left, mut units, mut used, mut largest) = (Vec::new(), 0, 0, 0);
        for (start, run) in &self.runs {
            let (all, taken) = (u64::from(run.units.count()), u64::from(run.units.used()));
            let is_sparse = (all - taken) * 100 >= all * u64::from(free_percent) && taken < all;
            if run.is_found || run.is_condemned || taken == 0 || !is_sparse {
                continue;
            }
            let of_run = u64::from(run.units.largest());
            if 2 * of_run > all {
                continue;
            }
            units += all;
            used += taken;
            largest = of_run.max(largest);
            left.push((taken, LeftRun { start: *start, blocks: run.run.blocks() }));
        }
        // At the end of each of the others there may be no room for the largest one, and the last one is not full.
        let filled = usual_units.saturating_sub(largest).max(1);
        let needed = (used.div_ceil(filled) + 1) * usual_units;
        if needed > units {
            return Vec::new();
        }
        left.sort_unstable_by_key(|(taken, run)| (std::cmp::Reverse(*taken), run.start));
        left.into_iter()
            .map(|(_, left)| {
                self.set_leaving(left.start, true);
                left
            })
            .collect()
    }

    /// What is free in a run that was left is room again.
    pub(in crate::records::item_heap) fn stay(&mut self, start: u64) {
        self.set_leaving(start, false);
    }

    /// Whether there is a run that begins there, and is being left.
    pub(in crate::records::item_heap) fn is_leaving(&self, start: u64) -> bool {
        self.runs.get(&start).is_some_and(|run| run.is_leaving)
    }

    /// Where the items of a run lie.
    pub(in crate::records::item_heap) fn items_in(&self, start: u64) -> Vec<u64> {
        let firsts = self.runs.get(&start).map(|run| run.units.firsts());
        let at = |first: u32| start + u64::from(first) * UNIT_BYTES;
        firsts.into_iter().flatten().map(at).collect()
    }

    fn set_leaving(&mut self, start: u64, is_leaving: bool) {
        let Some(run) = self.runs.get_mut(&start) else { return };
        if std::mem::replace(&mut run.is_leaving, is_leaving) == is_leaving {
            return;
        }
        let class = &mut self.by_class[run.class()];
        if is_leaving {
            class.remove(&start);
            self.current = self.current.filter(|current| *current != start);
        } else {
            class.insert(start);
        }
    }
}
