//! What a power loss may leave in free runs.
//!
//! What is stored to a run that was free can reach its file at once (see [`new_blocks`](crate::pool::new_blocks)). A power loss
//! takes back that the run was taken, and leaves what was stored: also whole records, with numbers that the next records get. So
//! it is removed, wherever the journal was not closed, before any blocks are taken: fresh ones, too, as free runs can become such.
//!
//! Not before: until then an engine may refuse the pool, and nothing may be lost of that. Without a journal before it is marked
//! as open: then the file goes that says that something may be left.

use std::io;

use chimera_pmem::{Extent, Pmem};

use super::{FreeList, Pool, sites};
use crate::pool::BlockWord;
use crate::pool::block_word::BlockKind;
use crate::sync::lock_relaxing;
use crate::types::error::{Error, Result};

/// Bytes that are looked at together where no holes are made.
const PART_BYTES: u64 = 64 << 10;

impl<P: Pmem> Pool<P> {
    /// Removes what a life that was lost may have left in the free runs that opening found, unless that is done already.
    ///
    /// # Errors
    /// What a file says. Then it is to be done again.
    ///
    /// # Durability
    /// As durable as the free runs on return.
    ///
    /// # Cost
    /// Nothing where the journal was closed. Else two system calls for each free run with a whole page, a sync of their
    /// files, and a checkpoint. Where no holes are made, all of it is read, and passes the journal where it is not zeros.
    pub(crate) fn remove_leftovers_of_runs(&self) -> Result<()> {
        self.remove_leftovers(&mut lock_relaxing(&self.free_runs, &*self.environment))
    }

    /// Remembers where something may have been left.
    pub(super) fn note_leftovers(&self, free: &mut FreeList) {
        if self.has_leftovers && self.is_journaled {
            free.leftovers = free.in_order().collect();
        }
    }

    /// As [`remove_leftovers_of_runs`](Self::remove_leftovers_of_runs), of a pool that is opened without a journal, and whose runs
    /// are not found yet. Nothing is done behind a word that is damaged, nor where blocks are no runs.
    pub(in crate::pool) fn remove_leftovers_without_journal(&self) -> Result<()> {
        let (mut free, mut block, used) = (FreeList::default(), 0, self.used_blocks());
        while self.has_leftovers && block < used {
            let end = used.min(block + self.map.blocks_to_segment_end(block));
            let at = self.map.block_at(block);
            let run = BlockWord::decode(self.pmem.load_u64(at), at)
                .filter(|word| !word.is_single() && u64::from(word.blocks()) <= end - block);
            let Some(run) = run else {
                block = end;
                continue;
            };
            if run.code() == BlockKind::FREE.code() {
                free.leftovers.push((block, run.blocks()));
            }
            block += u64::from(run.blocks());
        }
        self.remove_leftovers(&mut free)
    }

    /// As [`remove_leftovers_of_runs`](Self::remove_leftovers_of_runs), by whoever has the lock of all runs.
    pub(super) fn remove_leftovers(&self, free: &mut FreeList) -> Result<()> {
        if free.leftovers.is_empty() {
            return Ok(());
        }
        for (first, blocks) in free.leftovers.clone() {
            let blocks = first..first + u64::from(blocks);
            let Some(place) = self.place_in_run(blocks.clone()) else { continue };
            // Before: where it fails a part may have gone.
            free.holes.add(blocks);
            let path = self.files.segment_path(first / self.map.blocks_per_segment);
            self.clear(place).map_err(Error::io("clear free space of", &path))?;
        }
        // Nothing that is pending has zeros for what is stored there from now on.
        let done = match self.pmem.journal() {
            Some(journal) => {
                self.pmem.sync_punched(sites::RUN_FREE).and_then(|()| journal.checkpoint())
            }
            None => self.pmem.sync(sites::RUN_FREE),
        };
        done.map_err(Error::io("clear free space of", &self.files.path))?;
        free.leftovers = Vec::new();
        Ok(())
    }

    fn clear(&self, place: Extent) -> io::Result<()> {
        let keeps_storage = self.keeps_all_storage() || !self.is_journaled;
        if !keeps_storage && self.pmem.punch(place, sites::RUN_FREE)? {
            return Ok(());
        }
        let mut found = vec![0; PART_BYTES as usize];
        for at in (place.offset()..place.end()).step_by(PART_BYTES as usize) {
            let part = self.extent(at, PART_BYTES.min(place.end() - at));
            let found = &mut found[..part.length() as usize];
            self.pmem.read(part, found);
            if found.iter().any(|byte| *byte != 0) {
                self.pmem.zero(part, sites::RUN_FREE);
                self.pmem.flush(part, sites::RUN_FREE);
                self.pmem.fence(sites::RUN_FREE);
            }
        }
        Ok(())
    }
}
