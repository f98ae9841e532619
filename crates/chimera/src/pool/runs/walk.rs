//! Walking the words of runs: after opening, and to count them.

use std::ops::Range;

use chimera_pmem::{Fenced, Pmem};

use super::{BATCH, FoundRun, FreeList, Run, sites};
use crate::pool::block_word::BlockKind;
use crate::pool::{BlockWord, Pool, USED_BLOCKS_AT};
use crate::sync::{lock, lock_relaxing};
use crate::types::error::{Error, Result};
use crate::types::runs::{RunCounts, RunsOfKind};

impl<P: Pmem> Pool<P> {
    /// Walks all runs after opening, fills the free list, keeps those of [batches](super::Piece), and tells `visit` of all others
    /// in the order of their blocks. `visit` itself takes and frees no runs. Called once, before any run is taken or freed; an
    /// engine without runs does not call it.
    ///
    /// The engine then frees the runs that nothing refers to: a crash came before they were linked, or before
    /// they were freed.
    ///
    /// # Errors
    /// `Corrupted` for a damaged word, a kind that is not in `kinds` and a length beyond the used blocks or the
    /// segment. With `salvage` they are visited as [`FoundRun::Damaged`]. What `visit` returns. `PoolFull` where there is no
    /// storage for what is in use.
    ///
    /// # Durability
    /// Opened for writing: every run that was found is durable on return. One that a process was
    /// about to take or free when it was killed may have been seen before it was durable.
    ///
    /// # Cost
    /// A word of each run is loaded. For writing also 1 line for each run and 2 more, 1 fence.
    pub(crate) fn recover_runs(
        &self,
        kinds: &[BlockKind],
        salvage: bool,
        mut visit: impl FnMut(FoundRun) -> Result<()>,
    ) -> Result<()> {
        let mut free = FreeList::default();
        self.walk_runs(0..self.used_blocks(), kinds, &mut |first, found| match found {
            Ok(word) => {
                if !self.read_only {
                    let word_at = self.extent(self.map.block_at(first), 8);
                    self.pmem.flush(word_at, sites::RUN_FOUND);
                }
                let (blocks, code) = (word.blocks(), word.code());
                if code == BlockKind::FREE.code() {
                    free.insert((first, blocks));
                    return Ok(());
                }
                // Nothing that came before is pending after opening.
                let run = Run { first, blocks, code, emptied: Fenced::default() };
                if run.is(BATCH) {
                    lock(&self.batch_runs).push(run);
                    return Ok(());
                }
                visit(FoundRun::InUse(run))
            }
            Err(damage) if salvage => {
                self.note_lost(&damage.error, self.map.block_at(first));
                visit(FoundRun::Damaged(damage.blocks))
            }
            Err(damage) => Err(damage.error),
        })?;
        self.ask_for_storage_of_runs(&mut free)?;
        self.note_leftovers(&mut free);
        *lock_relaxing(&self.free_runs, &*self.environment) = free;
        if !self.read_only {
            for at in USED_BLOCKS_AT {
                self.pmem.flush(self.extent(at, 8), sites::RUN_FOUND);
            }
            self.pmem.fence(sites::RUN_FOUND);
        }
        Ok(())
    }

    /// Counts the runs by kind. Other threads may take and free runs; each segment is as of one moment.
    pub(crate) fn count_runs(&self, kinds: &[BlockKind]) -> RunCounts {
        let kinds = &[kinds, &[BATCH]].concat();
        let named = kinds.iter().map(|kind| RunsOfKind::new(kind.name())).collect();
        let mut counts = RunCounts { kinds: named, ..RunCounts::default() };
        let mut start = 0;
        loop {
            let _free = lock_relaxing(&self.free_runs, &*self.environment);
            let used = self.used_blocks();
            let end = used.min(start + self.map.blocks_per_segment);
            if start >= end {
                counts.kinds.pop_if(|batch| batch.runs == 0);
                return counts;
            }
            let counted = self.walk_runs(start..end, kinds, &mut |_, found| {
                match found {
                    Ok(word) if word.code() == BlockKind::FREE.code() => {
                        counts.note_free(word.blocks().into());
                    }
                    Ok(word) => {
                        let index = kinds.iter().position(|kind| kind.code() == word.code());
                        counts.note_in_use(index.unwrap_or_default(), word.blocks().into());
                    }
                    Err(damage) => counts.note_damaged(damage.blocks.end - damage.blocks.start),
                }
                Ok(())
            });
            counted.expect("counting goes on behind damage");
            start = end;
        }
    }

    /// Walks the runs of some blocks, from the first one of a segment on, up to used blocks or the end of a
    /// segment. Behind damage it goes on with the next segment.
    fn walk_runs(
        &self,
        blocks: Range<u64>,
        kinds: &[BlockKind],
        visit: &mut dyn FnMut(u64, Result<BlockWord, DamagedRun>) -> Result<()>,
    ) -> Result<()> {
        let mut block = blocks.start;
        while block < blocks.end {
            let end = blocks.end.min(block + self.map.blocks_to_segment_end(block));
            match self.read_run(block, end, kinds) {
                Ok(word) => {
                    visit(block, Ok(word))?;
                    block += u64::from(word.blocks());
                }
                Err(error) => {
                    visit(block, Err(DamagedRun { blocks: block..end, error }))?;
                    block = end;
                }
            }
        }
        Ok(())
    }

    /// The word of the run that begins at a block and ends at `end` at the latest.
    fn read_run(&self, block: u64, end: u64, kinds: &[BlockKind]) -> Result<BlockWord> {
        let at = self.map.block_at(block);
        let found = self.pmem.load_u64(at);
        let damage = |what| Error::corrupted(format!("the word of block {block} {what}"), at);
        let word = BlockWord::decode(found, at).ok_or_else(|| damage("is damaged"))?;
        let (code, blocks) = (word.code(), word.blocks());
        let mut known = [BlockKind::FREE, BATCH].iter().chain(kinds);
        if !known.any(|kind| kind.code() == code) || word != BlockWord::run(code, blocks) {
            return Err(damage("has a kind that this engine does not know"));
        }
        if u64::from(blocks) > end - block {
            return Err(damage("has a length that is not possible"));
        }
        Ok(word)
    }
}

/// Blocks of which it is not known where runs begin.
struct DamagedRun {
    blocks: Range<u64>,
    error: Error,
}
