//! [`Pass`]: how far a pass is.

use std::collections::HashSet;

use crate::records::storage_log::Victim;

/// Bytes that sessions write for each that is moved beside the pace.
const WRITTEN_PER_MOVED: u64 = 2;

/// What a pass is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// Between two passes.
    #[default]
    Idle,
    /// Shards from this one on are merged before runs are collected.
    MergeBefore(u32),
    Collect,
    /// Shards from this one on are merged after that.
    MergeAfter(u32),
}

/// A pass.
#[derive(Debug, Default)]
pub(super) struct Pass {
    pub(super) part: Part,
    /// Where the first records lie of the runs that were collected.
    pub(super) collected: HashSet<u64>,
    /// Runs that had been freed when collecting began.
    pub(super) freed: u64,
    /// Those that are worth it and left, of the runs that there were when collecting began. Sessions may make more of them all
    /// the time, and none is freed before the tables are merged.
    left: Option<HashSet<u64>>,
    /// Writes of the store when the last pass for a full pool was over.
    pub(super) writes: u64,
    /// What sessions had written when the last step was made.
    session_bytes: u64,
    /// Bytes that may be moved beside what the pace allows.
    allowance: u64,
}

impl Pass {
    /// Begins another one, for a full pool.
    pub(super) fn begin(&mut self) {
        self.part = Part::MergeBefore(0);
        self.collected.clear();
    }

    pub(super) fn end(&mut self) {
        self.part = Part::Idle;
        self.collected.clear();
        self.allowance = 0;
    }

    /// Runs are collected next, from those that there are now.
    pub(super) fn begin_collecting(&mut self, freed: u64) {
        self.part = Part::Collect;
        self.freed = freed;
        self.left = None;
    }

    /// Where the runs begin that are left, of these that are worth it now.
    pub(super) fn left_of(&mut self, victims: &[Victim]) -> &HashSet<u64> {
        let starts = victims.iter().map(|victim| victim.start);
        let collected = &self.collected;
        self.left.get_or_insert_with(|| starts.filter(|start| !collected.contains(start)).collect())
    }

    /// The run that begins there is being collected.
    pub(super) fn note_collected(&mut self, start: u64) {
        self.collected.insert(start);
        if let Some(left) = &mut self.left {
            left.remove(&start);
        }
    }

    /// What of `moved` bytes the pace counts, where sessions have written `session_bytes` so far. For two bytes that they
    /// write one may be moved for nothing: else they would make garbage faster than it is collected.
    pub(super) fn paced(&mut self, moved: u64, session_bytes: u64) -> u64 {
        let written = session_bytes - std::mem::replace(&mut self.session_bytes, session_bytes);
        self.allowance += written / WRITTEN_PER_MOVED;
        let free = moved.min(self.allowance);
        self.allowance -= free;
        moved - free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions may make such runs as fast as they are collected: the pass would never come to free any.
    #[test]
    fn runs_that_are_worth_it_later_are_left_to_the_next_time() {
        let victims = |starts: &[u64]| -> Vec<_> {
            let victim = |&start: &u64| Victim { start, bytes: 100, live_bytes: 10 };
            starts.iter().map(victim).collect()
        };
        let mut pass = Pass::default();
        pass.begin_collecting(0);
        assert_eq!(*pass.left_of(&victims(&[1, 2, 3])), HashSet::from([1, 2, 3]));
        pass.note_collected(2);
        assert_eq!(*pass.left_of(&victims(&[3, 4, 5])), HashSet::from([1, 3]));
        // Runs were freed: the same pass goes on with those that there are then.
        pass.begin_collecting(7);
        assert_eq!((pass.part, pass.freed), (Part::Collect, 7));
        assert_eq!(*pass.left_of(&victims(&[2, 3, 4])), HashSet::from([3, 4]), "each once");
        pass.end();
        pass.begin_collecting(8);
        assert_eq!(*pass.left_of(&victims(&[2])), HashSet::from([2]));
    }

    #[test]
    fn as_much_as_half_of_what_sessions_write_is_moved_beside_the_pace() {
        let mut pass = Pass::default();
        assert_eq!(pass.paced(10, 0), 10);
        assert_eq!(pass.paced(0, 100), 0);
        assert_eq!(pass.paced(30, 100), 0);
        assert_eq!(pass.paced(30, 100), 10);
        assert_eq!(pass.paced(30, 100), 30);
        // What is left when a pass ends is not kept for the next one.
        assert_eq!(pass.paced(0, 200), 0);
        pass.end();
        assert_eq!(pass.paced(7, 200), 7);
        assert_eq!(pass.paced(7, 210), 2);
    }
}
