//! [Growth room](super::super::space) of shards, in a pool that is nearly full.

use chimera_pmem::Pmem;

use super::Flusher;
use crate::engine::chameleon::space::Need;
use crate::sync::lock_relaxing;

impl<P: Pmem> Flusher<P> {
    /// Where the pool has become nearly full: merges shards without growth room. The caller has locked no shard.
    pub(crate) fn keep_growth_room(&self) {
        let index = self.index();
        if index.core().poison.check().is_err() {
            return;
        }
        // Others that take runs wait.
        let _merging = lock_relaxing(&self.merging, &**index.core().environment());
        if !self.tables().space().becomes_nearly_full() {
            return;
        }
        for number in 0..index.shards().shape().shards() {
            let mut writing = index.lock_to_look(number);
            writing.refuses_puts = !self.tables().has_growth_room(number);
        }
        self.add_growth_room();
    }

    /// Merges shards that have no growth room, while there is room for longer tables. What does not work is left to the next put to
    /// the shard, which is refused then.
    fn add_growth_room(&self) {
        for number in 0..self.index().shards().shape().shards() {
            let refuses_puts = self.index().lock_to_look(number).refuses_puts;
            if refuses_puts && let Err(error) = self.compactor.merge_shard(number, Need::Growth) {
                log::debug!("shard {number} takes no puts: {error}");
            }
        }
    }

    /// Leaves the runs of the log that are appended to in order to make room.
    pub(crate) fn leave_runs(&self) {
        let index = self.index();
        if index.core().poison.check().is_err() {
            return;
        }
        index.records().leave_runs();
        index.log().seal_left();
        if let Err(error) = index.log().free_ready() {
            log::error!("runs of the log stay in use: {error}");
        }
    }

    /// Whether the pool is nearly full.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.tables().space().is_nearly_full()
    }
}
