//! Writing items, and room for them.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::layout::{UNIT_BYTES, encode, key_at, span, value_at};
use super::space::{Search, Space};
use super::{ItemHeap, sites};
use crate::pool::runs::Run;
use crate::records::checksum::{Summed, value_checksum};
use crate::records::header::{RecordHeader, VERSION_MAX};
use crate::records::lengths::HEADER_AT;
use crate::records::unchecked_word::UncheckedWord;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::lock;
use crate::types::error::Result;

impl<P: Pmem> ItemHeap<P> {
    /// Takes room for an item with these lengths, in the runs that there are. `None` when they have none, or it would
    /// take long to find: [`grow`](Self::grow) helps.
    ///
    /// # Cost
    /// Some 50 ns under a lock that all share. No persistent memory is touched.
    #[inline]
    pub(crate) fn allocate(&self, key_bytes: usize, value_bytes: usize) -> Option<Extent> {
        self.take(key_bytes, value_bytes, Search::Usual)
    }

    /// As [`allocate`](Self::allocate), however long it takes.
    ///
    /// # Cost
    /// A look at each run.
    #[cold]
    pub(crate) fn allocate_anywhere(&self, key_bytes: usize, value_bytes: usize) -> Option<Extent> {
        self.take(key_bytes, value_bytes, Search::Everywhere)
    }

    #[inline(always)]
    fn take(&self, key_bytes: usize, value_bytes: usize, search: Search) -> Option<Extent> {
        let bytes = span(self.layout, key_bytes, value_bytes);
        let at = lock(&self.space).take(units(bytes), search);
        at.map(|at| self.taken(at, bytes))
    }

    /// Takes room for an item with these lengths that waited and is written back, else in a fresh run; where there is none
    /// wherever there is room. Where `is_sparing` the run is not longer than all fresh ones before, unless the item needs it.
    ///
    /// # Errors
    /// `PoolFull` with nothing changed; when the journal fails.
    ///
    /// # Cost
    /// What a run costs; a checkpoint where much waits to be written back.
    #[cold]
    pub(crate) fn grow(
        &self,
        key_bytes: usize,
        value_bytes: usize,
        is_sparing: bool,
    ) -> Result<Extent> {
        let (pool, bytes) = (&self.pool, span(self.layout, key_bytes, value_bytes));
        if let Some(at) = self.take_written_back(units(bytes))? {
            return Ok(self.taken(at, bytes));
        }
        let need = (bytes.next_multiple_of(UNIT_BYTES) + CACHE_LINE).div_ceil(pool.map.block_bytes);
        let most = if is_sparing { lock(&self.space).fresh_blocks().max(1) } else { u32::MAX };
        let usual = (need as u32).max(self.run_blocks.min(most));
        // Runs without items that are too small for this one: they may be room for its run.
        self.give_back_runs(Space::remove_empty);
        let mut taken = pool.take_bare_run(self.kind, usual);
        if taken.is_err() {
            let mut space = lock(&self.space);
            space.release(|_| true);
            if let Some(at) = space.take(units(bytes), Search::Everywhere) {
                return Ok(self.taken(at, bytes));
            }
            drop(space);
            // Runs that were too short for this item may be room for its run.
            self.give_back_runs(Space::remove_empty);
            taken = pool.take_bare_run(self.kind, need as u32);
        }
        let run = taken?;
        let place = pool.run_bytes(&run);
        let mut space = lock(&self.space);
        space.add(place.offset(), place.length(), run);
        let at = space.take_in(place.offset(), units(bytes)).expect("a run with room for it");
        Ok(self.taken(at, bytes))
    }

    /// Gives back the runs without items; what waits to be written back is room. `false` when there are none.
    ///
    /// # Cost
    /// What freeing them costs.
    pub(crate) fn give_back_empty(&self) -> bool {
        self.give_back_runs(|space| {
            space.release(|_| true);
            space.remove_empty()
        })
    }

    /// Gives back the runs that are taken out of the heap. `false` when there are none.
    pub(super) fn give_back_runs(&self, take_out: impl FnOnce(&mut Space) -> Vec<Run>) -> bool {
        let runs = take_out(&mut lock(&self.space));
        let is_any = !runs.is_empty();
        for run in runs {
            self.give_back(run);
        }
        is_any
    }

    /// Gives back a run that the heap does not have any more.
    pub(crate) fn give_back(&self, run: Run) {
        if let Err(error) = self.pool.free_run(run) {
            // What was asked for is done. The run stays in use until the store is opened again.
            log::warn!("a run without records is not given back: {error}");
        }
    }

    fn taken(&self, at: u64, bytes: u64) -> Extent {
        // Whoever sees what is stored there from now on sees that its last item was gone.
        fence(Ordering::Release);
        self.pool.extent(at, bytes)
    }

    /// Frees the room of an item that nothing durable leads to. Returns the run that it was the last one of: to be freed.
    /// The room of a large one waits to be written back, where there is a journal.
    #[inline]
    pub(crate) fn free(&self, room: Extent) -> Option<Run> {
        self.pool.pmem.withdrawn(room);
        let emptied = self.pool.pmem.fenced();
        if self.waits(room) {
            return self.free_large(room, emptied);
        }
        lock(&self.space).free(room.offset(), room.length(), emptied)
    }

    /// Writes an item of `key`, which has this hash, into its room.
    ///
    /// # Durability
    /// Durable on return. Nothing leads to it.
    ///
    /// # Cost
    /// The lines of the item, 1 fence.
    #[inline]
    pub(crate) fn write(&self, room: Extent, hash: u64, version: u64, key: &[u8], value: &[u8]) {
        let (pool, pmem, at) = (&self.pool, &self.pool.pmem, room.offset());
        let key_to = pool.extent(at + key_at(self.layout), key.len() as u64);
        let value_to = pool.extent(at + value_at(self.layout, key.len()), value.len() as u64);
        pmem.store_u64(at, encode(self.layout, key.len(), value.len()), sites::ITEM);
        pmem.copy(key_to, key, sites::ITEM);
        if self.layout.is_checked() {
            let sum = pmem.copy_sum(value_to, value, sites::ITEM);
            let checksum = value_checksum(at, Summed { bytes: value, sum });
            let version = version.min(VERSION_MAX);
            let header = RecordHeader::new(at, hash, version, UncheckedWord::NONE, checksum);
            header.store(pmem, at + HEADER_AT, sites::ITEM);
        } else {
            pmem.copy(value_to, value, sites::ITEM);
        }
        self.flush_item(room);
        pmem.fence(sites::ITEM);
    }

    /// Flushes an item that nothing leads to.
    #[inline(always)]
    fn flush_item(&self, room: Extent) {
        let pmem = &self.pool.pmem;
        let is_large = pmem.journal().is_some_and(|journal| journal.writes_new(room.length()));
        let emptied = is_large.then(|| lock(&self.space).emptied(room.offset())).flatten();
        match emptied {
            Some(emptied) => pmem.flush_new(room, emptied, sites::ITEM),
            None => pmem.flush(room, sites::ITEM),
        }
    }
}

/// Units for so many bytes. A run has fewer than 2^32.
fn units(bytes: u64) -> u32 {
    bytes.div_ceil(UNIT_BYTES) as u32
}
