//! Runs of consecutive blocks: taken, freed, merged, used again, and given back when they are the last.
//!
//! The first word of a run's first block says how long the run is and what it is for (see
//! [`BlockWord`]). So the words of runs lead from the first block of a segment to its last used one, and
//! nothing else says what is free. The first cache line of a run belongs to the pool, all other bytes to
//! the engine.
//!
//! # Invariants
//! 1. Runs cover the used blocks without a gap and without an overlap. No run crosses the end of a segment,
//!    so the first block of each segment begins a run.
//! 2. A word that begins a run is durable before the word that ended the blocks before it there, or the
//!    used-blocks word, lets a walk reach it.
//! 3. Beyond the used blocks each first word of a block is durably zero, or that of a single unnamed block
//!    whose user did not live to see its first fence. The one exception is the block right behind the used
//!    ones, while a run is handed out or given back; [`recover_runs`](Pool::recover_runs) makes it zero.
//! 4. The free list in DRAM holds what the words on media say. Both change under one lock.
//!
//! # Protocol
//! Each step ends with a fence. What a crash between two of them leaves is argued in docs/DURABILITY.md.
//!
//! - **Take fresh blocks**: the word of the run, in the block behind the used ones; the used-blocks word. If the
//!   run does not fit what is left of the segment, the rest of the segment becomes a free run first.
//! - **Take from a free run**: the word of what stays free; the word of the free run's first block.
//! - **Free**: one word, in the first block of the run or of the free run before it, covers the run and the
//!   free runs on both sides.
//! - **Give back** a free run behind which there is nothing: the words of its inner blocks become zero; the
//!   used-blocks word; the word of its first block becomes zero.
//!
//! # Single blocks beside runs
//! [`take_block`](Pool::take_block) stores no word in the block, so its block is a single unnamed one from
//! the first moment (invariant 3). An engine may use it beside runs if the first word of each such block
//! stays that of a single unnamed block with flags. What `take_block` has not made durable yet is made so
//! before a run is taken. A free run is never handed out by `take_block`.

mod free_list;
mod walk;

use std::ops::Range;

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::block_word::{BlockKind, RUN_BLOCKS_MAX};
use super::growth::HandOut;
use super::{BlockWord, Pool};
use crate::sync::atomic::Ordering;
use crate::sync::lock_relaxing;
use crate::types::error::{Error, Result};

pub(crate) use free_list::FreeList;
use free_list::FreeRun;

/// The sites of runs.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// The word of a run of fresh blocks, behind the used ones.
        RUN_FRESH = "pool.run.fresh";
        /// The number of used blocks, when a run is handed out or given back.
        RUN_USED = "pool.run.used";
        /// The word of what stays free when a part of a free run is taken.
        RUN_REST = "pool.run.rest";
        /// The word of a free run that is taken.
        RUN_TAKE = "pool.run.take";
        /// The flags of a run.
        RUN_FLAGS = "pool.run.flags";
        /// The word of a run that is freed.
        RUN_FREE = "pool.run.free";
        /// Zero, in the inner blocks of a free run that is about to be given back.
        RUN_INNER = "pool.run.inner";
        /// Zero, in the block behind the used ones.
        RUN_BEHIND = "pool.run.behind";
        /// The words that a walk found after opening, written back once more.
        RUN_FOUND = "pool.run.found", may_be_clean;
    }
}

/// Checks and steps of recovery that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The check of a run's word.
        RUN_CHECK = "pool.step.run_check";
        /// That the word behind the used blocks becomes zero after opening.
        RUN_BEHIND = "pool.step.run_behind";
    }
}

/// Bytes at the start of a run that belong to the pool.
const HEADER_BYTES: u64 = CACHE_LINE;

/// A run of consecutive blocks that an engine has. There is one value for each run, so a run is freed once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a run that is dropped stays in use until the pool is opened again"]
pub(crate) struct Run {
    first: u64,
    blocks: u32,
    code: u8,
}

impl Run {
    /// Its first block.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Its length in blocks.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Whether it was taken for this kind.
    pub(crate) fn is(&self, kind: BlockKind) -> bool {
        self.code == kind.code()
    }
}

/// What a walk found after opening.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundRun {
    /// A run in use, and its flags. Kind "unnamed" are single blocks.
    InUse(Run, u8),
    /// Blocks behind a damaged word, up to the end of the segment or of the used blocks: where runs begin in
    /// them is not known. They are not used again.
    Damaged(Range<u64>),
}

/// What came of looking for fresh blocks.
enum Fresh {
    Taken(u64),
    /// Storage has to be allocated for the blocks before this one.
    NotReady(u64),
}

impl<P: Pmem> Pool<P> {
    /// Takes a run of consecutive blocks: of free runs the shortest that is long enough, else fresh blocks.
    /// Its bytes are zero, or what its last user left.
    ///
    /// # Errors
    /// `PoolFull` when no run is long enough and no fresh blocks are left, with no run in use changed.
    ///
    /// # Durability
    /// The run and its kind are durable on return. A crash before leaves its blocks free, or the run taken
    /// and referred to by nothing: the engine frees those after [`recover_runs`](Self::recover_runs).
    ///
    /// # Cost
    /// A free run of this length: 1 line, 1 fence. A part of a free run, or fresh blocks: 2 lines, 2 fences.
    /// Twice that where the run does not fit the rest of a segment; 1 line and 1 fence more after
    /// [`take_block`](Self::take_block). Storage is allocated here only when the background task has fallen
    /// behind.
    pub(crate) fn take_run(&self, kind: BlockKind, blocks: u32) -> Result<Run> {
        assert!(blocks > 0, "a run has at least one block");
        let most = self.run_blocks_max();
        if blocks > most {
            let reason = format!("{blocks} blocks in a row are more than the {most} of a segment");
            return Err(Error::PoolFull { reason });
        }
        let run = |first| Run { first, blocks, code: kind.code() };
        loop {
            let mut free = lock_relaxing(&self.free_runs, &*self.environment);
            if let Some(found) = free.best_fit(blocks) {
                self.take_free(&mut free, found, kind, blocks);
                return Ok(run(found.0));
            }
            match self.take_fresh(&mut free, kind, blocks)? {
                Fresh::Taken(first) => return Ok(run(first)),
                Fresh::NotReady(end) => {
                    drop(free);
                    self.grow_beyond(end - 1)?;
                }
            }
        }
    }

    /// Longest run there can be, in blocks.
    pub(crate) fn run_blocks_max(&self) -> u32 {
        self.map.blocks_per_segment.min(u64::from(RUN_BLOCKS_MAX)) as u32
    }

    /// The engine's bytes of a run: all but its first cache line.
    pub(crate) fn run_bytes(&self, run: &Run) -> Extent {
        let bytes = u64::from(run.blocks) * self.map.block_bytes;
        self.extent(self.map.block_at(run.first) + HEADER_BYTES, bytes - HEADER_BYTES)
    }

    /// Makes these the flags of a run, for the engine to find after opening.
    ///
    /// # Durability
    /// Durable on return; a crash before leaves the old flags.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(crate) fn set_run_flags(&self, run: &Run, flags: u8) {
        let word = BlockWord::run(run.code, run.blocks, flags);
        self.store_block_word(run.first, word, sites::RUN_FLAGS);
        self.pmem.fence(sites::RUN_FLAGS);
    }

    /// Frees a run: merges it with free neighbours, and gives back what is then free behind the last run, so
    /// that the pool can shrink. Nothing durable refers to the run any more.
    ///
    /// # Errors
    /// `Corrupted` when the run's word is not what the pool wrote; the run then stays in use.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the run in use as it was, or free.
    ///
    /// # Cost
    /// 1 line, 1 fence. To give back a run of *n* blocks: *n* + 1 lines and 3 fences more, 2 of one block.
    #[expect(clippy::needless_pass_by_value, reason = "a run is freed once")]
    pub(crate) fn free_run(&self, run: Run) -> Result<()> {
        let Run { first, blocks, code } = run;
        let mut free = lock_relaxing(&self.free_runs, &*self.environment);
        let at = self.map.block_at(first);
        let found = BlockWord::decode(self.pmem.load_u64(at));
        if found.is_none_or(|word| (word.code(), word.blocks()) != (code, blocks)) {
            return Err(Error::corrupted(format!("the word of block {first} is damaged"), at));
        }
        let neighbours = self.free_neighbours(&free, (first, blocks));
        let neighbours = || neighbours.into_iter().flatten();
        let merged = neighbours().fold((first, blocks), |(first, blocks), neighbour| {
            (first.min(neighbour.0), blocks + neighbour.1)
        });
        self.store_block_word(merged.0, free_word(merged.1), sites::RUN_FREE);
        self.pmem.fence(sites::RUN_FREE);
        neighbours().for_each(|neighbour| free.remove(neighbour));
        free.insert(merged);
        self.pmem.withdrawn(self.extent(at, u64::from(blocks) * self.map.block_bytes));
        self.give_back_tail(&mut free);
        Ok(())
    }

    /// The free runs before and behind a run that can be one with it.
    fn free_neighbours(&self, free: &FreeList, (first, blocks): FreeRun) -> [Option<FreeRun>; 2] {
        // No run crosses the end of a segment, nor is longer than a word can say.
        let is_inside = |block: u64| !block.is_multiple_of(self.map.blocks_per_segment);
        let end = first + u64::from(blocks);
        let before = free.ending_at(first).filter(|_| is_inside(first));
        let behind = free.starting_at(end).filter(|_| is_inside(end));
        let mut room = RUN_BLOCKS_MAX - blocks;
        [before, behind].map(|neighbour| {
            let neighbour = neighbour.filter(|neighbour| neighbour.1 <= room)?;
            room -= neighbour.1;
            Some(neighbour)
        })
    }

    /// Takes the first `blocks` blocks of a free run that has as many.
    fn take_free(&self, free: &mut FreeList, found: FreeRun, kind: BlockKind, blocks: u32) {
        let (first, length) = found;
        let rest = (first + u64::from(blocks), length - blocks);
        if rest.1 > 0 {
            // While the word of the first block covers it.
            self.store_block_word(rest.0, free_word(rest.1), sites::RUN_REST);
            self.pmem.fence(sites::RUN_REST);
        }
        self.store_block_word(first, BlockWord::run(kind.code(), blocks, 0), sites::RUN_TAKE);
        self.pmem.fence(sites::RUN_TAKE);
        free.remove(found);
        if rest.1 > 0 {
            free.insert(rest);
        }
    }

    fn take_fresh(&self, free: &mut FreeList, kind: BlockKind, blocks: u32) -> Result<Fresh> {
        self.give_back_tail(free);
        let mut handing_out = lock_relaxing(&self.hand_out, &*self.environment);
        let used = self.used.load(Ordering::Acquire);
        let left = self.map.blocks_to_segment_end(used);
        let first = if left < u64::from(blocks) { used + left } else { used };
        let end = first + u64::from(blocks);
        let all = handing_out.unreserved_blocks;
        if end > all {
            let reason = format!("no {blocks} blocks in a row are free, of {all} that it may have");
            return Err(Error::PoolFull { reason });
        }
        let ready = self.ready.load(Ordering::Acquire);
        if ready < end {
            return Ok(Fresh::NotReady(end));
        }
        if first > used {
            let gap = (first - used) as u32;
            self.hand_out_run(&mut handing_out, used, free_word(gap));
            free.insert((used, gap));
        }
        self.hand_out_run(&mut handing_out, first, BlockWord::run(kind.code(), blocks, 0));
        drop(handing_out);
        self.note_handed_out(end, ready);
        Ok(Fresh::Taken(first))
    }

    /// Hands out the run of fresh blocks that begins at `first`, right behind the used ones.
    fn hand_out_run(&self, handing_out: &mut HandOut, first: u64, word: BlockWord) {
        if !handing_out.is_durable {
            // Else a crash could leave the run's word further behind the used blocks.
            self.store_used(first, sites::RUN_USED);
            self.pmem.fence(sites::RUN_USED);
            handing_out.is_durable = true;
        }
        self.store_block_word(first, word, sites::RUN_FRESH);
        self.pmem.fence(sites::RUN_FRESH);
        let used = first + u64::from(word.blocks());
        self.store_used(used, sites::RUN_USED);
        self.pmem.fence(sites::RUN_USED);
        self.used.store(used, Ordering::Release);
    }

    /// Gives back the free runs behind which there is nothing.
    fn give_back_tail(&self, free: &mut FreeList) {
        while let Some(last) = free.ending_at(self.used_blocks()) {
            let (first, blocks) = last;
            let end = first + u64::from(blocks);
            if blocks > 1 {
                // While the word of the first block covers them.
                for block in first + 1..end {
                    self.store_block_word(block, BlockWord::single(0), sites::RUN_INNER);
                }
                self.pmem.fence(sites::RUN_INNER);
            }
            let mut handing_out = lock_relaxing(&self.hand_out, &*self.environment);
            if self.used.load(Ordering::Acquire) != end {
                return;
            }
            free.remove(last);
            self.store_used(first, sites::RUN_USED);
            self.pmem.fence(sites::RUN_USED);
            handing_out.is_durable = true;
            // Nobody is handed the block before.
            self.store_block_word(first, BlockWord::single(0), sites::RUN_BEHIND);
            self.pmem.fence(sites::RUN_BEHIND);
            self.used.store(first, Ordering::Release);
        }
    }
}

/// The word of a free run.
fn free_word(blocks: u32) -> BlockWord {
    BlockWord::run(BlockKind::FREE.code(), blocks, 0)
}

#[cfg(test)]
mod tests;
