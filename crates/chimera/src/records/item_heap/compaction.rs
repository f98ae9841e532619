//! Compaction: which runs are to be emptied. The engine moves their items, as only the index says which ones are reached.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::ItemHeap;
use super::layout::UNIT_BYTES;
use super::space::SparseRun;
use crate::sync::lock;

impl<P: Pmem> ItemHeap<P> {
    /// Begins to evacuate the runs of which at least so many percent are free, if their items need less elsewhere. No room is
    /// taken in them from now on, unless they are [kept](Self::keep); [freeing](Self::free) the last item of one returns it.
    /// The fullest one comes first. All items that are reached are marked.
    ///
    /// # Cost
    /// A look at the bits of all runs, under the lock that all who take room share.
    pub(crate) fn evacuate_sparse(&self, free_percent: u32) -> Vec<SparseRun> {
        let run_bytes = u64::from(self.run_blocks) * self.pool.map.block_bytes - CACHE_LINE;
        let mut sparse = Vec::new();
        self.give_back_runs(|space| {
            // Room that waits is in no run's way.
            space.release(|_| true);
            let empty = space.remove_empty();
            sparse = space.evacuate_sparse(free_percent, run_bytes / UNIT_BYTES);
            empty
        });
        sparse
    }

    /// A run is not evacuated any more, if it is there: what is free in it is room again.
    pub(crate) fn keep(&self, run: SparseRun) {
        lock(&self.space).keep(run.start);
    }

    /// Whether a run is still there, and being evacuated.
    pub(crate) fn is_evacuating(&self, run: SparseRun) -> bool {
        lock(&self.space).is_evacuating(run.start)
    }

    /// Where items lie in a run, or are about to be written.
    pub(crate) fn items_in(&self, run: SparseRun) -> Vec<u64> {
        lock(&self.space).items_in(run.start)
    }
}
