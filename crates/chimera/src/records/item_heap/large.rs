//! Large items under a journal. Their room is used again once it is written back, so that the next item goes to its place ahead
//! of the journal. Until then it waits, which DRAM alone knows.

use chimera_pmem::{Extent, Fenced, Pmem};

use super::ItemHeap;
use super::space::Search;
use crate::pool::runs::Run;
use crate::sync::lock;
use crate::types::error::Result;

impl<P: Pmem> ItemHeap<P> {
    /// Whether room of an item waits when it is freed: an item there would go to its place ahead of the journal.
    #[inline(always)]
    pub(super) fn waits(&self, room: Extent) -> bool {
        self.pool.pmem.journal().is_some_and(|journal| journal.writes_new(room.length()))
    }

    /// Has what waits written back in the background, if that has just become half of what may.
    pub(super) fn write_back_at_half(&self, before: u64, after: u64) {
        let half = self.pool.waiting_bytes_max(after) / 2;
        if (before..after).contains(&half)
            && let Some(journal) = self.pool.pmem.journal()
        {
            journal.write_back_soon();
        }
    }

    /// The room of a large item that nothing led to when `emptied` was fenced waits. Returns a run that nothing is left in: as
    /// more waits than may, and a run for who frees while others take.
    #[cold]
    pub(super) fn free_large(&self, room: Extent, emptied: Fenced) -> Option<Run> {
        let mut space = lock(&self.space);
        let Some((before, after)) = space.wait(room, emptied) else {
            return space.free(room.offset(), room.length(), emptied);
        };
        let run_bytes = u64::from(self.run_blocks) * self.pool.map.block_bytes;
        let run = space.bound_waiting(self.pool.waiting_bytes_max(after) + run_bytes);
        drop(space);
        self.write_back_at_half(before, after);
        run
    }

    /// Nothing waits any more. Gives back the runs in which nothing is left.
    pub(crate) fn end_waiting(&self) {
        if lock(&self.space).waiting_bytes() > 0 {
            self.give_back_empty();
        }
    }

    /// Takes so many units of what waited and is written back. Where as much waits as may, writes it back.
    ///
    /// # Errors
    /// As [`write_back`](crate::pool::Pool::write_back).
    pub(super) fn take_written_back(&self, need: u32) -> Result<Option<u64>> {
        let Some(journal) = self.pool.pmem.journal() else { return Ok(None) };
        let waiting = || lock(&self.space).waiting_bytes();
        if waiting() == 0 {
            return Ok(None);
        }
        let take = || {
            let mut space = lock(&self.space);
            space.release(|emptied| journal.is_written_back(emptied));
            space.take(need, Search::Usual)
        };
        let taken = take();
        let waiting = waiting();
        if taken.is_some() || waiting < self.pool.waiting_bytes_max(waiting) {
            return Ok(taken);
        }
        journal.wait_for_checkpoint();
        if let Some(units) = take() {
            return Ok(Some(units));
        }
        self.pool.write_back(journal)?;
        Ok(take())
    }
}
