//! Recovery: which room is taken follows from the items that the engine reaches.

use chimera_pmem::{Extent, Pmem};

use super::ItemHeap;
use crate::pool::runs::Run;
use crate::sync::lock;

/// An item does not lie in a run of the heap, or two items lie at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unplaced;

impl<P: Pmem> ItemHeap<P> {
    /// Takes over a run that the pool found, without items.
    pub(crate) fn adopt(&self, run: Run) {
        let bytes = self.pool.run_bytes(&run);
        lock(&self.space).add(bytes.offset(), bytes.length(), run);
    }

    /// Marks the room of an item that is reached as taken.
    ///
    /// # Errors
    /// When it cannot be an item, with nothing changed.
    pub(crate) fn mark(&self, room: Extent) -> Result<(), Unplaced> {
        let is_marked = lock(&self.space).mark(room.offset(), room.length());
        if is_marked { Ok(()) } else { Err(Unplaced) }
    }

    /// A damaged item lies at `at`: nothing in its run is used again.
    pub(crate) fn condemn(&self, at: u64) {
        lock(&self.space).condemn(at);
    }

    /// Ends recovery: all items that are reached are marked. Takes the runs without items out of the heap, for the engine
    /// to free.
    pub(crate) fn end_recovery(&self) -> Vec<Run> {
        let mut space = lock(&self.space);
        // A process that was killed may have been about to free what lay there.
        space.each_free(|at, bytes| self.pool.pmem.withdrawn(self.pool.extent(at, bytes)));
        space.remove_empty()
    }

    /// Runs, bytes of their units, and bytes of units that are taken.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let (runs, units, used) = lock(&self.space).counts();
        (runs, units * super::layout::UNIT_BYTES, used * super::layout::UNIT_BYTES)
    }

    /// Bytes of DRAM.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.space).bytes()
    }
}
