//! Giving back the storage of free runs.
//!
//! Storage goes on request alone, run by run, under the lock of all runs. The first page of a free run stays: it has the word
//! that says so. Who takes a run asks for its storage first, and for that of the blocks whose words are stored then; where there
//! is none nothing is taken. Where holes are is known in DRAM alone: for opening all free runs are holes.

use std::ops::Range;

use chimera_pmem::Pmem;

use super::{FreeList, FreeRun, HEADER_BYTES, Pool, sites};
use crate::pool::files::full_or_io;
use crate::pool::storage::{SYSTEM_PAGE_BYTES, no_storage};
use crate::sync::atomic::Ordering;
use crate::sync::lock_relaxing;
use crate::types::error::{Error, Result};

/// Least bytes of a run to give back.
const BYTES_MIN: u64 = 64 << 10;

impl<P: Pmem> Pool<P> {
    /// Returns storage of free runs of plain files with a journal to the file system. What cannot be returned stays. Elsewhere
    /// whoever reads a run that was just freed may find no storage, which is a signal on a full `tmpfs`.
    ///
    /// # Cost
    /// A checkpoint, and for each free run of 64 KiB or more two system calls under the lock of all runs, and a checkpoint of
    /// what was appended meanwhile; a sync of each segment at the end.
    pub(crate) fn release_free_runs(&self) {
        self.punch_free_runs();
        // Here nobody who takes a run waits, and below hardly anything is left.
        if let Err(error) = self.pmem.sync_punched(sites::RUN_FREE) {
            log::debug!("storage that is given back is not durable: {error}");
        }
        let mut free = lock_relaxing(&self.free_runs, &*self.environment);
        if let Err(error) = self.sync_holes(&mut free) {
            log::warn!("nothing is written any more: {error}");
        }
    }

    /// As [`release_free_runs`](Self::release_free_runs), but that it is not durable.
    pub(in crate::pool) fn punch_free_runs(&self) {
        let Some(journal) = self.pmem.journal() else { return };
        if self.keeps_all_storage() {
            return;
        }
        // Most of it here, where nobody who takes a run waits.
        if let Err(error) = journal.checkpoint() {
            log::debug!("storage of free runs is kept: {error}");
            return;
        }
        let free = lock_relaxing(&self.free_runs, &*self.environment);
        let runs: Vec<_> = free.longest().take_while(|run| self.is_long(*run)).collect();
        drop(free);
        for run in runs {
            let mut free = lock_relaxing(&self.free_runs, &*self.environment);
            if free.starting_at(run.0) == Some(run) {
                self.release_run(&mut free, run);
            }
        }
    }

    /// Asks for the storage of all used blocks but free runs, as opening has found them: whoever takes one of those asks for it.
    ///
    /// # Errors
    /// `PoolFull` when there is no room.
    pub(super) fn ask_for_storage_of_runs(&self, free: &mut FreeList) -> Result<()> {
        if !self.is_journaled || self.read_only {
            return Ok(());
        }
        let long: Vec<_> = free.in_order().filter(|run| run.1 > 1 && !self.keeps_storage).collect();
        let mut next = 0;
        for (first, blocks) in long {
            let end = first + u64::from(blocks);
            // The first block has the word of the run.
            self.ask_for(next..first + 1)?;
            free.holes.add(first + 1..end);
            next = end;
        }
        self.ask_for(next..self.used_blocks())?;
        self.has_asked_for_storage.store(true, Ordering::Release);
        Ok(())
    }

    fn ask_for(&self, blocks: Range<u64>) -> Result<()> {
        let mut block = blocks.start;
        while block < blocks.end {
            let end = blocks.end.min(block + self.map.blocks_to_segment_end(block));
            let path = self.files.segment_path(block / self.map.blocks_per_segment);
            self.allocate(&(block..end)).map_err(|error| no_storage(error, &path))?;
            block = end;
        }
        Ok(())
    }

    fn is_long(&self, run: FreeRun) -> bool {
        u64::from(run.1) * self.map.block_bytes >= BYTES_MIN
    }

    fn release_run(&self, free: &mut FreeList, run: FreeRun) {
        let blocks = run.0..run.0 + u64::from(run.1);
        if free.holes.has_all(&blocks) {
            return;
        }
        // Before: where it fails a part may have gone.
        free.holes.add(blocks.clone());
        free.has_unsynced_holes = true;
        let first_page = self.map.block_at(blocks.start) + HEADER_BYTES;
        let start = first_page.next_multiple_of(SYSTEM_PAGE_BYTES);
        let end = self.map.block_at(blocks.end - 1) + self.map.block_bytes;
        if start < end
            && let Err(error) = self.pmem.punch(self.extent(start, end - start), sites::RUN_FREE)
        {
            log::debug!("storage of a free run is kept: {error}");
        }
    }

    /// Makes sure that blocks have storage.
    ///
    /// # Errors
    /// `PoolFull`, with nothing changed. Those of a sync: nothing is written any more.
    pub(super) fn fill(&self, free: &mut FreeList, blocks: Range<u64>) -> Result<()> {
        if !free.holes.has_any(&blocks) {
            return Ok(());
        }
        self.sync_holes(free)?;
        let segment = blocks.start / self.map.blocks_per_segment;
        let path = self.files.segment_path(segment);
        self.allocate(&blocks).map_err(|error| full_or_io(error, "allocate space in", &path))?;
        free.holes.remove(blocks);
        Ok(())
    }

    /// Makes holes durable before anything is stored there: a power loss would bring back what was there, under records that are
    /// stored where there are zeros now.
    fn sync_holes(&self, free: &mut FreeList) -> Result<()> {
        if free.has_unsynced_holes {
            let failed = Error::io("sync what was given back of", &self.files.path);
            self.pmem.sync_punched(sites::RUN_FREE).map_err(failed)?;
            free.has_unsynced_holes = false;
        }
        Ok(())
    }
}
