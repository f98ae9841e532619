//! Compaction: which runs are to be emptied. The engine moves their items, as only the index says which ones are reached.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::ItemHeap;
use super::layout::UNIT_BYTES;
use super::space::LeftRun;
use crate::sync::lock;

impl<P: Pmem> ItemHeap<P> {
    /// Leaves the runs of which at least so many percent are free, if fewer others have room for what is in them. No room is
    /// taken in them from now on, unless they [stay](Self::stay); [freeing](Self::free) the last item of one returns it. The
    /// fullest one comes first. All items that are reached are marked.
    ///
    /// # Cost
    /// A look at the bits of all runs, under the lock that all who take room share.
    pub(crate) fn leave_sparse(&self, free_percent: u32) -> Vec<LeftRun> {
        let run_bytes = u64::from(self.run_blocks) * self.pool.map.block_bytes - CACHE_LINE;
        lock(&self.space).leave_sparse(free_percent, run_bytes / UNIT_BYTES)
    }

    /// What is free in a run that was left is room again.
    pub(crate) fn stay(&self, run: LeftRun) {
        lock(&self.space).stay(run.start);
    }

    /// Whether a run that was left is still there.
    pub(crate) fn is_leaving(&self, run: LeftRun) -> bool {
        lock(&self.space).is_leaving(run.start)
    }

    /// Where items lie in a run, or are about to be written.
    pub(crate) fn items_in(&self, run: LeftRun) -> Vec<u64> {
        lock(&self.space).items_in(run.start)
    }
}
