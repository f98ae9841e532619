//! What is [reserved](super::super::space) in a pool that is nearly full, and shards that are merged for it.

use chimera_pmem::Pmem;

use super::Flusher;
use crate::engine::chameleon::space::Need;
use crate::sync::lock_relaxing;

impl<P: Pmem> Flusher<P> {
    /// Reserves room if there is little, or gives it back if there is much. The caller has locked no shard.
    pub(crate) fn reserve(&self) {
        let (index, space) = (self.index(), self.tables().space());
        if index.core().poison.check().is_err() {
            return;
        }
        let mut lacks_growth_room =
            lock_relaxing(&self.lacks_growth_room, &**index.core().environment());
        if space.reserve(index.records()) {
            for number in 0..index.shards().shape().shards() {
                let mut writing = index.lock_to_look(number);
                writing.refuses_puts = !self.tables().has_growth_room(number);
            }
            *lacks_growth_room = true;
        }
        if std::mem::take(&mut *lacks_growth_room) {
            self.add_growth_room();
        }
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

    /// Gives back all that is reserved.
    pub(crate) fn release(&self) {
        let index = self.index();
        if index.core().poison.check().is_err() {
            return;
        }
        self.tables().space().release(index.records());
        index.log().seal_left();
        if let Err(error) = index.log().free_ready() {
            log::error!("runs of the log stay in use: {error}");
        }
    }

    /// Whether the pool is nearly full, so that a part of it is reserved, or was.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.tables().space().is_nearly_full()
    }
}
