//! The pool: superblock, segments, blocks, runs of blocks, and the opaque [`Location`].
//!
//! A pool is a directory with a file `superblock`, a file `lock`, and files `segment-000000`,
//! `segment-000001`, ... of equal length. All are mapped one after the other into one address space:
//! the superblock first. Nothing moves or goes away while the pool is open, but for storage behind blocks
//! that are not in use; segments without blocks in use are removed when it is closed. On an ordinary file system a
//! file `journal` may make it power-safe: see `journal`. On a DAX device the
//! same parts lie on the device itself, one after the other (see `device`).
//!
//! # Invariants
//! 1. A segment is in force once the superblock says so; a file beyond that number is the orphan of an
//!    interrupted growth and holds nothing.
//! 2. A block is handed out only when its storage is allocated; running out of space is an error
//!    before anything is half-written.
//!    The same holds for blocks that were in use already: opening for writing asks for their storage.
//! 3. For a single block the used-blocks word is flushed before the block is written, and durable with the
//!    first fence after that. So what is durable beyond it was never fenced: nothing live is there, and
//!    the session that is handed such a block again makes it blank.
//! 4. For a run of blocks the used-blocks word is durable before the run is handed out, and the run's own
//!    word before that. What the first word of a block beyond the used ones says does not count, and
//!    need not be zero: blocks that were given back keep theirs, see `runs`.

mod block_word;
mod blocks;
pub(crate) mod checked_word;
mod copies;
pub(crate) mod destroy;
mod device;
mod files;
mod growth;
mod journal;
mod location;
mod open;
mod options;
#[cfg_attr(not(test), allow(dead_code, reason = "only engines with runs use them"))]
pub(crate) mod runs;
mod segment;
#[cfg(test)]
pub(crate) mod small;
mod storage;
mod superblock;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use chimera_pmem::environment::Task;
use chimera_pmem::{Environment, Extent, Pmem};

#[allow(unused_imports, reason = "only engines with runs have kinds of blocks")]
pub(crate) use block_word::BlockKind;
pub(crate) use block_word::BlockWord;
pub(crate) use blocks::BlockMap;
pub use location::Location;
pub(crate) use open::NewPool;
pub(crate) use options::PoolOptions;
pub(crate) use superblock::{Closing, PoolGeometry, Superblock};

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::error::{Error, Result};
use files::PoolFiles;
pub(crate) use superblock::CLOSED_WORDS;
use superblock::ROOTS;

/// The sites of the pool.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// A copy of the superblock.
        SUPERBLOCK = "pool.superblock";
        /// The header of a new segment.
        SEGMENT_HEADER = "pool.segment_header";
        /// The superblock in force and the number of used blocks, written back once more after opening.
        FOUND = "pool.found", may_be_clean;
        /// Everything.
        SYNC = "pool.sync";
    }
}

/// The sites of single blocks, of engines that take them.
pub(crate) mod block_sites {
    chimera_pmem::sites! {
        /// Fresh blocks: the number of those handed out so far, and zeros on a device.
        USED_BLOCKS = "pool.used_blocks";
    }
}

/// Checks and comparisons that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The checksum of a superblock's copy.
        SUPERBLOCK_CHECK = "pool.step.superblock_check";
        /// That the copy with the higher sequence number is in force.
        SUPERBLOCK_NEWER = "pool.step.superblock_newer";
        /// The check of the number of used blocks.
        USED_BLOCKS_CHECK = "pool.step.used_blocks_check";
    }
}

/// Where the used-blocks word lies: in the page of the first superblock copy, apart from it.
const USED_BLOCKS_AT: u64 = 1024;
/// Where the two copies lie of the mark that says which journal is in use: in the pages of the superblock's copies,
/// apart from these.
const JOURNAL_MARK_AT: [u64; 2] = [2048, superblock::COPY_STRIDE + 2048];

/// An open pool.
pub(crate) struct Pool<P: Pmem> {
    pub(crate) pmem: P,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) map: BlockMap,
    pub(crate) read_only: bool,
    files: PoolFiles,
    /// Whether a journal makes the pool power-safe.
    is_journaled: bool,
    /// The pool is being made as a copy and lacks records.
    is_incomplete: AtomicBool,
    superblock: Mutex<Superblock>,
    /// Segments are added and storage is allocated under this.
    growth: Mutex<growth::Growth>,
    /// Blocks are handed out under this: never held for long.
    hand_out: Mutex<growth::HandOut>,
    /// Free runs of blocks. Runs are taken and freed under this, and `hand_out` may be locked meanwhile.
    free_runs: Mutex<runs::FreeList>,
    /// Blocks to keep ready ahead of use.
    ahead_blocks: u64,
    /// Storage is to be there before it is used, whatever that takes.
    keeps_storage: bool,
    /// It had been closed in order.
    was_clean: bool,
    /// What it said of itself then.
    closed_words: [u64; CLOSED_WORDS],
    background: OnceLock<Box<dyn Task>>,
    /// Blocks whose storage is allocated.
    ready: AtomicU64,
    /// Blocks handed out so far. Changes only under `hand_out`.
    used: AtomicU64,
}

impl<P: Pmem> Pool<P> {
    /// The superblock in force.
    pub(crate) fn superblock(&self) -> Superblock {
        self.lock_superblock().clone()
    }

    fn lock_superblock(&self) -> MutexGuard<'_, Superblock> {
        lock_relaxing(&self.superblock, &*self.environment)
    }

    /// The directory of the pool's files; none on a device and in anonymous memory.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.files.is_in_directory().then_some(&*self.files.path)
    }

    /// Whether nobody can open it again.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.files.is_without_files()
    }

    /// Blocks handed out so far.
    pub(crate) fn used_blocks(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Blocks whose storage is allocated.
    pub(crate) fn ready_blocks(&self) -> u64 {
        self.ready.load(Ordering::Acquire)
    }

    /// A range that the program computed itself from checked numbers. Every access to it through the seam is
    /// checked, so it is not checked here.
    #[expect(clippy::unused_self, reason = "a range of this pool")]
    #[inline(always)]
    pub(crate) fn extent(&self, at: u64, length: u64) -> Extent {
        Extent::new_checked(at, length)
    }

    /// Whether a process that was killed may have left stores that can be seen and are not durable. Whoever
    /// opens the pool for writing writes back what it finds, before it relies on it. A journal's replay has
    /// done so, and so has whoever closed the pool in order. Where no store survives a power loss anyway there
    /// is nothing to write back.
    pub(crate) fn may_hold_undurable(&self) -> bool {
        let keeps_stores = !self.is_journaled && self.pmem.medium().is_persistent_memory();
        keeps_stores && !self.read_only && !self.was_clean
    }

    /// Stores the superblock in the copy that is not in force, with what `change` makes of it.
    ///
    /// # Durability
    /// The new superblock is durable on return; a crash before leaves the old one.
    ///
    /// # Cost
    /// 2 lines and those of the engine's area, which are 1 for up to 6 words; 1 fence.
    pub(crate) fn change_superblock(&self, change: impl FnOnce(&mut Superblock)) {
        let mut superblock = self.lock_superblock();
        change(&mut superblock);
        superblock.sequence = superblock.sequence.wrapping_add(1);
        store_superblock(&self.pmem, &superblock);
    }

    /// What the engine said of the store when it was closed in order; zeros otherwise.
    pub(crate) fn closed_words(&self) -> [u64; CLOSED_WORDS] {
        self.closed_words
    }

    /// Replaces roots of the engine atomically: with what `change` makes of them. What they lead to must be
    /// durable. Both copies of the superblock say so on return, so that either one alone is enough.
    ///
    /// # Durability
    /// The new roots are durable on return; a crash before leaves the old ones or the new ones.
    ///
    /// # Cost
    /// As twice [`change_superblock`](Self::change_superblock).
    #[cfg_attr(not(test), allow(dead_code, reason = "only engines with roots replace them"))]
    pub(crate) fn replace_roots(&self, change: impl FnOnce(&mut [u64; ROOTS])) {
        self.change_superblock(|superblock| change(&mut superblock.roots));
        self.change_superblock(|_| {});
    }

    /// Makes everything stored so far survive what the medium can.
    ///
    /// # Errors
    /// When the medium fails.
    pub(crate) fn sync(&self) -> Result<()> {
        let failed =
            |error| Error::Io { action: "sync", path: self.files.path.clone(), source: error };
        self.pmem.sync(sites::SYNC).map_err(failed)
    }

    /// The pool has all its records: it may be closed in order.
    pub(crate) fn complete(&self) {
        self.is_incomplete.store(false, Ordering::Release);
    }

    /// Marks the pool as closed in order, after everything else is durable. One that lacks records stays
    /// marked as such.
    ///
    /// # Errors
    /// When the medium fails; the pool then stays marked as open.
    #[cfg_attr(not(test), allow(dead_code, reason = "for engines with nothing to say"))]
    pub(crate) fn close(&self) -> Result<()> {
        self.close_with([0; CLOSED_WORDS])
    }

    /// As [`close`](Self::close), with words that are in force until the pool is opened again.
    pub(crate) fn close_with(&self, closed_words: [u64; CLOSED_WORDS]) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        self.stop_background();
        if self.is_incomplete.load(Ordering::Acquire) {
            return Ok(());
        }
        self.sync()?;
        let Superblock { segments, closing, .. } = self.superblock();
        let needed = self.segments_needed(segments);
        if let Some(journal) = self.pmem.journal().filter(|_| needed < segments) {
            // From here on no entry names a byte of a segment that is about to go.
            let failed = Error::io("write back the journal of", &self.files.path);
            journal.checkpoint().map_err(failed)?;
        }
        self.change_superblock(|superblock| {
            superblock.segments = needed;
            superblock.closing = Closing::Clean;
            superblock.set_closed_words(closed_words);
        });
        self.sync()?;
        if closing == Closing::Incomplete || needed < segments {
            // In the other copy, too: either one alone must be enough.
            self.change_superblock(|_| {});
            self.sync()?;
        }
        self.close_journal()?;
        (needed..segments).try_for_each(|segment| self.files.remove_segment(segment))
    }

    /// Of `segments` segments those that blocks in use lie in; all where they are not files.
    fn segments_needed(&self, segments: u64) -> u64 {
        if self.files.device.is_some() || self.files.is_without_files() {
            return segments;
        }
        self.used_blocks().div_ceil(self.map.blocks_per_segment).max(1).min(segments)
    }
}

/// The copy that a superblock's sequence number selects.
fn copy_of<P: Pmem>(pmem: &P, superblock: &Superblock) -> Extent {
    let at = superblock.sequence % 2 * superblock::COPY_STRIDE;
    let bytes = 8 * superblock.words_used() as u64;
    pmem.check(at, bytes).expect("the superblock is mapped")
}

/// Stores a superblock in the copy its sequence number selects, durably.
fn store_superblock<P: Pmem>(pmem: &P, superblock: &Superblock) {
    let copy = copy_of(pmem, superblock);
    let words = superblock.encode();
    for (index, word) in words[..superblock.words_used()].iter().enumerate() {
        pmem.store_u64(copy.offset() + 8 * index as u64, *word, sites::SUPERBLOCK);
    }
    pmem.flush(copy, sites::SUPERBLOCK);
    pmem.fence(sites::SUPERBLOCK);
}

#[cfg(test)]
pub(crate) mod tests;
