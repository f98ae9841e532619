//! Runs of consecutive blocks: taken, freed, merged, used again, and given back when they are the last.
//!
//! The first word of a run's first block says how long the run is and what it is for (see
//! [`BlockWord`]). So the words of runs lead from the first block of a segment to its last used one, and
//! nothing else says what is free. The first cache line of a run belongs to the pool, all other bytes to
//! the engine.
//!
//! # Invariants
//! 1. Runs cover the used blocks without a gap and without an overlap. No run crosses the end of a segment,
//!    so the first block of each segment begins a run. The last run is not free.
//! 2. A word that begins a run is durable before the word that ended the blocks before it there, or the
//!    used-blocks word, lets a walk reach it. So is what the engine prepared in the run.
//! 3. The free list in DRAM holds what the words on media say. Both change under one lock.
//!
//! # Protocol
//! Each step ends with a fence. docs/DURABILITY.md says what a crash between two of them leaves.
//!
//! - **Take fresh blocks**: the word of the run, behind the used blocks, and what the engine prepares; the
//!   used-blocks word. If the run does not fit what is left of the segment, or the [reserve](super::reserve) needs that, the
//!   rest of the segment becomes a free run in the same steps.
//! - **Take from a free run**: the word of what stays free, and what the engine prepares; the word of the free
//!   run's first block.
//! - **Free**: one word, in the first block of the run or of the free run before it, covers the run and the
//!   free runs on both sides. Where no run in use is behind them, the used-blocks word takes its place: it
//!   gives all of them back.
//!
//! The order of the steps is necessary. A used-blocks word that is durable first would show blocks whose kind nothing
//! says. The word of a free run that is durable first would lead a walk to a word that is not there, or an engine to
//! bytes of the run's last use. Freeing fences before it releases the lock: otherwise another thread could take the
//! blocks and store to them while media still say that the old run is there.
//!
//! An engine takes runs, or single blocks ([`take_block`](Pool::take_block)), never both: a single block has no
//! word that a walk would find.

mod free_list;
mod holes;
pub(super) mod leftovers;
mod pieces;
mod release;
mod walk;

use std::ops::Range;

use chimera_pmem::{CACHE_LINE, Extent, Fenced, Pmem};

use super::block_word::{BlockKind, RUN_BLOCKS_MAX};
use super::reserve::{KINDS, Left, Purpose, Reserve};
use super::{BlockWord, Pool, store_used};
use crate::sync::atomic::Ordering;
use crate::sync::lock_relaxing;
use crate::types::error::{Error, Result};

pub(crate) use free_list::FreeList;
pub(super) use free_list::FreeRun;
pub(crate) use pieces::{BATCH, Piece, PieceOf};

/// The sites of runs.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// The word of a run of fresh blocks, behind the used ones.
        RUN_FRESH = "pool.run.fresh";
        /// The word of what stays free, of a free run or of a segment, when a run is taken.
        RUN_REST = "pool.run.rest";
        /// All that must be durable before a run is taken, with what the engine prepared.
        RUN_READY = "pool.run.ready";
        /// The number of used blocks, when a run is handed out or given back.
        RUN_USED = "pool.run.used";
        /// The word of a free run that is taken.
        RUN_TAKE = "pool.run.take";
        /// The word of a run that is freed.
        RUN_FREE = "pool.run.free";
        /// The words that a walk found after opening, written back once more.
        RUN_FOUND = "pool.run.found", may_be_clean;
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
    emptied: Fenced,
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

    /// When nothing was left in its blocks, of what was there before it was taken.
    pub(crate) fn emptied(&self) -> Fenced {
        self.emptied
    }

    /// Whether it was taken for this kind.
    pub(crate) fn is(&self, kind: BlockKind) -> bool {
        self.code == kind.code()
    }
}

/// What a walk found after opening.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundRun {
    /// A run in use.
    InUse(Run),
    /// Blocks behind a damaged word, up to the end of the segment or of the used blocks: where runs begin in
    /// them is not known. They are not used again.
    Damaged(Range<u64>),
}

/// What stores into a run, before it is taken, what a walk must find there.
type Prepare<'a> = Option<&'a dyn Fn(Extent)>;

/// A run that somebody asks for.
struct Wanted<'a> {
    purpose: Purpose,
    kind: BlockKind,
    blocks: u32,
    prepare: Prepare<'a>,
    /// A merge will replace it by one of its length.
    is_replaced: bool,
}

impl Wanted<'_> {
    /// It, where it begins with this block, of blocks that were empty then.
    fn run_at(&self, first: u64, emptied: Fenced) -> Run {
        Run { first, blocks: self.blocks, code: self.kind.code(), emptied }
    }

    /// The reserve once it is taken.
    fn lengthened(&self, reserve: Reserve) -> Reserve {
        let merge = if self.is_replaced { self.blocks } else { 0 };
        Reserve { merge: reserve.merge.max(merge), ..reserve }
    }
}

/// What came of looking for fresh blocks.
enum Fresh {
    Taken(Run),
    /// Storage has to be allocated for the blocks before this one.
    NotReady(u64),
    /// These blocks have given their storage back.
    Holes(Range<u64>),
}

impl<P: Pmem> Pool<P> {
    /// Takes a run of consecutive blocks that leaves the [reserve](super::reserve): of free runs the shortest that is long
    /// enough, or one of the longest, else fresh blocks.
    /// Its bytes are zero, or what its last user left.
    ///
    /// `prepare` stores into the engine's bytes of the run what a walk must find there, and starts writing it
    /// back; it is durable before the run is taken. It is called once, under the lock of all runs, so it is short.
    ///
    /// # Errors
    /// `PoolFull` when no run is long enough and no fresh blocks are left, with nothing changed.
    ///
    /// # Durability
    /// The run, its kind and what was prepared are durable on return. A crash before leaves its blocks free, or
    /// the run taken and referred to by nothing: the engine frees those after
    /// [`recover_runs`](Self::recover_runs).
    ///
    /// # Cost
    /// 2 fences. A free run of this length: 1 line. A part of a free run: 2 lines. Fresh blocks: 3 lines; one
    /// more for each segment whose rest stays free. The lines that `prepare` flushes. Storage is allocated here only
    /// when the background task has fallen behind.
    pub(crate) fn take_run(
        &self,
        kind: BlockKind,
        blocks: u32,
        prepare: impl Fn(Extent),
    ) -> Result<Run> {
        self.take_run_for(Purpose::Put, kind, blocks, prepare)
    }

    /// As [`take_run`](Self::take_run), for another [purpose](super::reserve) than a put.
    ///
    /// # Errors
    /// As [`take_run`](Self::take_run).
    ///
    /// # Durability
    /// As [`take_run`](Self::take_run).
    ///
    /// # Cost
    /// As [`take_run`](Self::take_run).
    pub(crate) fn take_run_for(
        &self,
        purpose: Purpose,
        kind: BlockKind,
        blocks: u32,
        prepare: impl Fn(Extent),
    ) -> Result<Run> {
        self.take(&Wanted { purpose, kind, blocks, prepare: Some(&prepare), is_replaced: false })
    }

    /// As [`take_run`](Self::take_run), with nothing prepared: for bytes that mean nothing before something durable leads
    /// to them.
    ///
    /// # Errors
    /// As [`take_run`](Self::take_run).
    ///
    /// # Durability
    /// As [`take_run`](Self::take_run).
    ///
    /// # Cost
    /// As [`take_run`](Self::take_run); 1 fence for a free run of this length.
    pub(crate) fn take_bare_run(&self, kind: BlockKind, blocks: u32) -> Result<Run> {
        self.take_bare_run_for(Purpose::Put, kind, blocks)
    }

    /// As [`take_bare_run`](Self::take_bare_run), for another [purpose](super::reserve) than a put.
    ///
    /// # Errors
    /// As [`take_run`](Self::take_run).
    ///
    /// # Durability
    /// As [`take_run`](Self::take_run).
    ///
    /// # Cost
    /// As [`take_bare_run`](Self::take_bare_run).
    pub(crate) fn take_bare_run_for(
        &self,
        purpose: Purpose,
        kind: BlockKind,
        blocks: u32,
    ) -> Result<Run> {
        self.take(&Wanted { purpose, kind, blocks, prepare: None, is_replaced: false })
    }

    /// As [`take_bare_run_for`](Self::take_bare_run_for), of a run that a merge will replace by one of its length: from now on
    /// the reserve has as many blocks for a merge, at least.
    ///
    /// # Errors
    /// As [`take_run`](Self::take_run). The reserve is as it was then.
    ///
    /// # Durability
    /// As [`take_run`](Self::take_run).
    ///
    /// # Cost
    /// As [`take_bare_run`](Self::take_bare_run).
    pub(crate) fn take_replaced_run(
        &self,
        purpose: Purpose,
        kind: BlockKind,
        blocks: u32,
    ) -> Result<Run> {
        self.take(&Wanted { purpose, kind, blocks, prepare: None, is_replaced: true })
    }

    fn take(&self, wanted: &Wanted<'_>) -> Result<Run> {
        let blocks = wanted.blocks;
        assert!(blocks > 0, "a run has at least one block");
        let most = self.run_blocks_max();
        if blocks > most {
            let reason = format!("{blocks} blocks in a row are more than the {most} of a segment");
            return Err(Error::PoolFull { reason });
        }
        loop {
            let mut free = lock_relaxing(&self.free_runs, &*self.environment);
            self.remove_leftovers(&mut free)?;
            if let Some(run) = self.take_found(&mut free, wanted) {
                return Ok(run);
            }
            match self.take_fresh(&mut free, wanted)? {
                Fresh::Taken(run) => return Ok(run),
                Fresh::Holes(blocks) => self.fill(&mut free, blocks)?,
                Fresh::NotReady(end) => {
                    drop(free);
                    self.grow_beyond(end - 1)?;
                }
            }
        }
    }

    /// Takes a part of a free run. `None` where there is none, or no storage for it: blocks that are ready have some.
    fn take_found(&self, free: &mut FreeList, wanted: &Wanted<'_>) -> Option<Run> {
        let reserve = self.lock_hand_out().reserve;
        let found = self.find_free(free, wanted)?;
        let run = wanted.run_at(found.0, free.emptied(found));
        // The word of what stays free is stored, too.
        let end = run.first + u64::from(run.blocks);
        let stored = run.first..(end + 1).min(found.0 + u64::from(found.1));
        if let Err(error) = self.fill(free, stored) {
            log::debug!("a free run is passed over: {error}");
            self.lock_hand_out().reserve = reserve;
            return None;
        }
        self.take_new_of_run(run.first..end, run.emptied);
        self.take_free(free, found, &run, wanted.prepare);
        Some(run)
    }

    /// The shortest free run that is long enough, or one of the longest where the reserve needs that. The reserve has only the
    /// longest free runs, so where it needs the shortest all that are longer are among them. Where a run is found, the reserve
    /// is lengthened as that run needs.
    fn find_free(&self, free: &FreeList, wanted: &Wanted<'_>) -> Option<FreeRun> {
        let shortest = free.best_fit(wanted.blocks)?;
        if self.may_take_free(free, shortest, wanted) {
            return Some(shortest);
        }
        let longest: Vec<_> = free.longest().take(KINDS).collect();
        let mut others = longest.into_iter().rev().filter(|run| run.1 >= wanted.blocks);
        others.find(|found| self.may_take_free(free, *found, wanted))
    }

    /// Whether a part of a free run may be taken. The reserve is as long as this needs, then.
    fn may_take_free(&self, free: &FreeList, found: FreeRun, wanted: &Wanted<'_>) -> bool {
        let mut limits = self.lock_hand_out();
        let used_blocks = self.used.load(Ordering::Acquire);
        let rest = (found.0 + u64::from(wanted.blocks), found.1 - wanted.blocks);
        let left = Left { without: Some(found), rests: &[rest], used_blocks };
        let reserve = wanted.lengthened(limits.reserve);
        let may = self.leaves_reserve(free, (reserve, limits.blocks_max), wanted.purpose, left);
        if may {
            limits.reserve = reserve;
        }
        may
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

    /// Frees a run: merges it with free neighbours, or gives all of them back where no run in use is behind
    /// them, so that the pool can shrink. Nothing durable refers to the run any more.
    ///
    /// # Errors
    /// `Corrupted` when the run's word is not what the pool wrote; the run then stays in use.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the run in use as it was, or free.
    ///
    /// # Cost
    /// 1 fence. 1 line; 2 where blocks are given back.
    #[expect(clippy::needless_pass_by_value, reason = "a run is freed once")]
    pub(crate) fn free_run(&self, run: Run) -> Result<()> {
        let Run { first, blocks, code, .. } = run;
        let mut free = lock_relaxing(&self.free_runs, &*self.environment);
        let at = self.map.block_at(first);
        let found = BlockWord::decode(self.pmem.load_u64(at), at);
        if found != Some(BlockWord::run(code, blocks)) {
            return Err(Error::corrupted(format!("the word of block {first} is damaged"), at));
        }
        if first + u64::from(blocks) == self.used_blocks() {
            self.give_back_runs(&mut free, first);
        } else {
            let neighbours = self.free_neighbours(&free, (first, blocks));
            let neighbours = || neighbours.into_iter().flatten();
            let merged = neighbours().fold((first, blocks), |(first, blocks), neighbour| {
                (first.min(neighbour.0), blocks + neighbour.1)
            });
            self.store_block_word(merged.0, free_word(merged.1), sites::RUN_FREE);
            self.pmem.fence(sites::RUN_FREE);
            neighbours().for_each(|neighbour| free.remove(neighbour));
            free.insert_emptied(merged, self.pmem.fenced());
        }
        self.pmem.withdrawn(self.extent(at, u64::from(blocks) * self.map.block_bytes));
        Ok(())
    }

    /// Gives back all blocks from this one on, in which nothing is in use, and the free runs before them.
    fn give_back_runs(&self, free: &mut FreeList, mut first: u64) {
        while let Some(before) = free.ending_at(first) {
            free.remove(before);
            first = before.0;
        }
        let mut handing_out = self.lock_hand_out();
        store_used(&self.pmem, first, sites::RUN_USED);
        self.pmem.fence(sites::RUN_USED);
        handing_out.fresh_emptied = self.pmem.fenced();
        self.used.store(first, Ordering::Release);
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

    /// Takes a run, which is the first part of a free one, or all of it.
    fn take_free(&self, free: &mut FreeList, found: FreeRun, run: &Run, prepare: Prepare<'_>) {
        let rest = (run.first + u64::from(run.blocks), found.1 - run.blocks);
        if rest.1 > 0 {
            // While the word of the first block covers it.
            self.store_block_word(rest.0, free_word(rest.1), sites::RUN_REST);
        }
        if let Some(prepare) = prepare {
            prepare(self.run_bytes(run));
        }
        if rest.1 > 0 || prepare.is_some() {
            self.pmem.fence(sites::RUN_READY);
        }
        self.store_block_word(run.first, BlockWord::run(run.code, run.blocks), sites::RUN_TAKE);
        self.pmem.fence(sites::RUN_TAKE);
        free.remove(found);
        if rest.1 > 0 {
            free.insert_emptied(rest, run.emptied);
        }
    }

    /// Where fresh blocks are taken, and what is skipped: the rests of segments that are too short, or that the reserve needs.
    fn find_fresh(
        &self,
        free: &FreeList,
        limits: (Reserve, u64),
        wanted: &Wanted<'_>,
        emptied: Fenced,
    ) -> Option<(Run, Vec<FreeRun>)> {
        let (mut first, mut gaps) = (self.used.load(Ordering::Acquire), Vec::new());
        // The runs of a reserve need no more segments.
        for _ in 0..=KINDS {
            let end = first + u64::from(wanted.blocks);
            if end > limits.1 {
                break;
            }
            let left = self.map.blocks_to_segment_end(first);
            let would_be = Left { without: None, rests: &gaps, used_blocks: end };
            if left >= u64::from(wanted.blocks)
                && self.leaves_reserve(free, limits, wanted.purpose, would_be)
            {
                return Some((wanted.run_at(first, emptied), gaps));
            }
            // A longer one is no run.
            let Some(gap) = u32::try_from(left).ok().filter(|left| *left <= RUN_BLOCKS_MAX) else {
                break;
            };
            gaps.push((first, gap));
            first += left;
        }
        None
    }

    /// Takes the run that begins behind the used blocks, or in a later segment.
    fn take_fresh(&self, free: &mut FreeList, wanted: &Wanted<'_>) -> Result<Fresh> {
        let mut limits = self.lock_hand_out();
        let (all, reserve) = (limits.blocks_max, wanted.lengthened(limits.reserve));
        let emptied = limits.fresh_emptied;
        let Some((run, gaps)) = self.find_fresh(free, (reserve, all), wanted, emptied) else {
            let (blocks, all) = (wanted.blocks, all + limits.held);
            let reason = format!("no {blocks} blocks in a row are free, of {all} that it may have");
            return Err(Error::PoolFull { reason });
        };
        let end = run.first + u64::from(run.blocks);
        let ready = self.ready.load(Ordering::Acquire);
        // What is held keeps its storage.
        if ready < end + limits.held {
            return Ok(Fresh::NotReady(end + limits.held));
        }
        let words = gaps.iter().map(|gap| gap.0..gap.0 + 1);
        let mut stored = words.chain(std::iter::once(run.first..end));
        if let Some(blocks) = stored.find(|blocks| free.holes.has_any(blocks)) {
            return Ok(Fresh::Holes(blocks));
        }
        self.take_new(run.first..end, ready, emptied);
        for gap in &gaps {
            self.store_block_word(gap.0, free_word(gap.1), sites::RUN_REST);
        }
        self.store_block_word(run.first, BlockWord::run(run.code, run.blocks), sites::RUN_FRESH);
        if let Some(prepare) = wanted.prepare {
            prepare(self.run_bytes(&run));
        }
        self.pmem.fence(sites::RUN_READY);
        store_used(&self.pmem, end, sites::RUN_USED);
        self.pmem.fence(sites::RUN_USED);
        self.used.store(end, Ordering::Release);
        limits.reserve = reserve;
        for gap in gaps {
            free.insert_emptied(gap, emptied);
        }
        drop(limits);
        self.note_handed_out(end, ready);
        Ok(Fresh::Taken(run))
    }
}

/// The word of a free run.
fn free_word(blocks: u32) -> BlockWord {
    BlockWord::run(BlockKind::FREE.code(), blocks)
}

#[cfg(test)]
mod tests;
