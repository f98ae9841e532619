//! Recovery: which room is taken follows from the items that the engine reaches.
//!
//! Until the engine has marked all of them, which may take a while, nothing in the runs that were found is used for new
//! items: these go to fresh runs. What is freed meanwhile is either marked, and the mark is taken back, or not marked yet,
//! and nothing leads to it any more when the engine comes there.

use std::ops::Range;

use chimera_pmem::{Extent, Pmem};

use super::ItemHeap;
use super::layout::UNIT_BYTES;
use crate::pool::runs::Run;
use crate::sync::lock;

/// An item does not lie in a run of the heap, or two items lie at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unplaced;

/// Where items can lie.
pub(crate) struct Places(Vec<Range<u64>>);

impl Places {
    /// Whether an item can begin at `at`.
    pub(crate) fn has(&self, at: u64) -> bool {
        let behind = self.0.partition_point(|run| run.start <= at);
        let run = behind.checked_sub(1).map(|last| &self.0[last]);
        run.is_some_and(|run| at < run.end && (at - run.start).is_multiple_of(UNIT_BYTES))
    }
}

impl<P: Pmem> ItemHeap<P> {
    /// Where items can lie: in the runs that there are.
    pub(crate) fn places(&self) -> Places {
        Places(lock(&self.space).places().collect())
    }

    /// Takes over a run that the pool found. Nothing in it is used until [`end_recovery`](Self::end_recovery).
    pub(crate) fn adopt(&self, run: Run) {
        let bytes = self.pool.run_bytes(&run);
        lock(&self.space).add_found(bytes.offset(), bytes.length(), run);
    }

    /// Marks the room of an item that is reached as taken. That of one which was written since is.
    ///
    /// The caller makes sure that the item is not freed meanwhile.
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

    /// It is not known which items are reached: nothing in the runs that were found is used again.
    pub(crate) fn condemn_found(&self) {
        lock(&self.space).condemn_found();
    }

    /// Ends recovery: all items that are reached are marked. Takes the runs without items out of the heap, for the engine
    /// to free.
    pub(crate) fn end_recovery(&self) -> Vec<Run> {
        let next = |from| lock(&self.space).next_found(from);
        let mut found = next(0);
        while let Some((start, free)) = found {
            for (at, bytes) in free {
                // A process that was killed may have been about to free what lay there.
                self.pool.pmem.withdrawn(self.pool.extent(at, bytes));
            }
            lock(&self.space).open(start);
            found = next(start);
        }
        lock(&self.space).remove_empty()
    }

    /// Runs, bytes of their units, and bytes of units that are taken.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let (runs, units, used) = lock(&self.space).counts();
        (runs, units * UNIT_BYTES, used * UNIT_BYTES)
    }

    /// Bytes of DRAM.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.space).bytes()
    }
}
