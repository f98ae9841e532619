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
//! 3. There are two used-blocks words, one in the page of each copy of the superblock. Both are stored and flushed
//!    before the same fence; whatever is said here of the word holds for each of them alone.
//! 4. What the engine prepares in a single block is durable before the used-blocks word says that the block is in use,
//!    and that is durable before the block is handed out. So a block in use never shows what it held before.
//! 5. For a run of blocks the used-blocks word is durable before the run is handed out, and the run's own
//!    word before that. What the first word of a block beyond the used ones says does not count, and
//!    need not be zero: blocks that were given back keep theirs, see `runs`.
//!
//! # Why two used-blocks words are as good as one
//! Recovery takes the higher word. A crash before the fence leaves each word as it was after some store since the last
//! fence. The higher word is one of these, so the pool is as a crash could have left it with one word:
//! - For a single block, the block may be in use. What the engine prepared in it was durable before.
//! - For a fresh run, what the run's word says was durable before either used-blocks word was stored.
//! - For blocks that are given back, one word may say the lower number and the other the higher one. The blocks are in
//!   use then, as they were: none behind the lower number is handed out before the fence has made both words low.
//!
//! Where one word is damaged, the other is enough by the same argument, also during a change. Where both are, the pool
//! is refused. The lower word would be right after a crash, too. The higher one is taken because it hides no record
//! where the medium has lost a store to the other.

mod ahead;
mod block_word;
mod blocks;
pub(crate) mod checked_word;
mod closing;
mod comparison;
mod copies;
pub(crate) mod destroy;
mod device;
mod files;
mod growth;
mod journal;
mod leftovers;
mod location;
mod losses;
mod new_blocks;
mod open;
mod options;
mod orphan;
mod outline;
mod reserve;
pub(crate) mod runs;
mod segment;
#[cfg(test)]
pub(crate) mod small;
mod storage;
mod superblock;
mod write_back;

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use chimera_pmem::environment::{OpenMode, Task};
use chimera_pmem::{Environment, Extent, Pmem, Site};

use ahead::Ahead;
pub(crate) use block_word::BlockKind;
pub(crate) use block_word::BlockWord;
pub(crate) use blocks::BlockMap;
pub(crate) use comparison::{Compared, Sums};
pub use location::Location;
pub(crate) use losses::Held;
use losses::LossLog;
pub(crate) use open::NewPool;
pub(crate) use options::PoolOptions;
pub use outline::StoreOutline;
pub(crate) use reserve::{Purpose, Reserve};
pub(crate) use superblock::{Closing, PoolGeometry, Superblock};

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::check::Damage;
use crate::types::error::{Error, Result};
use crate::types::losses::Losses;
use crate::types::totals::Totals;
use files::PoolFiles;
/// Where in the pool the engine's area begins, in the first copy of the superblock.
pub(crate) use superblock::AREA_BYTE as AREA_AT;
pub(crate) use superblock::CLOSED_WORDS;
/// Where in the pool the totals begin, in the first copy of the superblock.
pub(crate) use superblock::TOTALS_BYTE as TOTALS_AT;

/// The sites of the pool.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// A copy of the superblock.
        SUPERBLOCK = "pool.superblock";
        /// The header of a new segment.
        SEGMENT_HEADER = "pool.segment_header";
        /// The superblock in force and the number of used blocks, written back once more after opening; the words of that
        /// number where they differ.
        FOUND = "pool.found", may_be_clean;
        /// Everything.
        SYNC = "pool.sync";
    }
}

/// The sites of single blocks, of engines that take them.
pub(crate) mod block_sites {
    chimera_pmem::sites! {
        /// What the engine prepared in a fresh block, before the block is in use.
        BLOCK_READY = "pool.block_ready";
        /// Fresh blocks: the number of those handed out so far, and zeros on a device.
        USED_BLOCKS = "pool.used_blocks";
    }
}

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The checksum of a superblock's copy.
        SUPERBLOCK_CHECK = "pool.step.superblock_check";
        /// The check of the number of used blocks.
        USED_BLOCKS_CHECK = "pool.step.used_blocks_check";
    }
}

/// Where the used-blocks words lie: in the page of each superblock copy, apart from it.
const USED_BLOCKS_AT: [u64; 2] = [1024, superblock::COPY_STRIDE + 1024];
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
    hand_out: Mutex<growth::AllocationLimits>,
    /// Free runs of blocks. Runs are taken and freed under this, and `hand_out` may be locked meanwhile.
    free_runs: Mutex<runs::FreeList>,
    /// Runs of records of batches, as opening found them.
    batch_runs: Mutex<Vec<runs::Run>>,
    /// What to keep ready ahead of use.
    ahead: Ahead,
    /// Storage is to be there before it is used, whatever that takes.
    keeps_storage: bool,
    /// With a journal: storage was asked for when runs were found.
    has_asked_for_storage: AtomicBool,
    /// No block was handed out since next to nothing was to be kept ready.
    keeps_least_ready: AtomicBool,
    /// Memory has room for so many blocks.
    blocks_in_memory: u64,
    /// It had been closed in order.
    was_clean: bool,
    /// The engine may have changed what it found.
    has_changes: AtomicBool,
    /// What it said of itself then.
    closed_words: [u64; CLOSED_WORDS],
    closed_totals: Option<Totals>,
    /// Its journal had lost changes, and it is salvaged.
    has_lost_journal: bool,
    /// Its journal was not closed: a life that was lost may have left something in free space.
    has_leftovers: bool,
    /// What salvage has left out.
    losses: LossLog,
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

    /// The path at which the directory of the pool's files was found, for messages; none on a device and in
    /// anonymous memory.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.files.is_in_directory().then_some(&*self.files.path)
    }

    /// Puts a file with this content, made under the name `new`, in place of the one that `name` names. The pool is
    /// one of files.
    ///
    /// # Errors
    /// As the system says.
    ///
    /// # Durability
    /// None.
    pub(crate) fn replace_file(&self, new: &str, name: &str, content: &[u8]) -> io::Result<()> {
        let (new, name) = (Path::new(new), Path::new(name));
        let file = match self.files.open(new, OpenMode::CreateNew) {
            // Left by a process that was killed here.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.files.remove(new)?;
                self.files.open(new, OpenMode::CreateNew)?
            }
            other => other?,
        };
        file.write_at(0, content)?;
        drop(file);
        self.files.replace(new, name)
    }

    /// Removes a file beside those of the pool, which is one of files.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        self.files.remove(Path::new(name))
    }

    /// Whether the files that the pool consists of are all where others can find them.
    ///
    /// # Errors
    /// `Removed` when one was removed or replaced since the pool was opened.
    ///
    /// # Cost
    /// One system call for each file, and one.
    pub(crate) fn check_in_place(&self) -> Result<()> {
        if self.read_only { Ok(()) } else { self.files.check_in_place(None) }
    }

    /// Whether nobody can open it again.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.files.is_without_files()
    }

    /// Notes that what lies at byte `at` is left out, because it is damaged and the pool is salvaged. How many records it led
    /// to is not known.
    #[cold]
    pub(crate) fn note_loss(&self, at: u64, what: &str) {
        self.note_loss_of(Held::Unknown, at, what);
    }

    /// As [`note_loss`](Self::note_loss), where it is known what lay there.
    #[cold]
    pub(crate) fn note_loss_of(&self, held: Held, at: u64, what: &str) {
        self.losses.note(&*self.environment, at, what, held);
    }

    /// As [`note_loss`](Self::note_loss), of damage that was found as an error; of another error at byte `otherwise`.
    #[cold]
    pub(crate) fn note_lost(&self, error: &Error, otherwise: u64) {
        self.note_lost_of(Held::Unknown, error, otherwise);
    }

    /// As [`note_lost`](Self::note_lost), where it is known what lay there.
    #[cold]
    pub(crate) fn note_lost_of(&self, held: Held, error: &Error, otherwise: u64) {
        self.losses.note_error(&*self.environment, error, otherwise, held);
    }

    /// What was left out so far.
    pub(crate) fn losses(&self) -> Losses {
        self.losses.report(&*self.environment)
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

    /// Whether the pool had been closed in order when it was opened.
    pub(crate) fn was_clean(&self) -> bool {
        self.was_clean
    }

    /// Stores the superblock in the copy that is not in force, with what `change` makes of it.
    ///
    /// # Durability
    /// The new superblock is durable on return; a crash before leaves the old one.
    ///
    /// # Cost
    /// 2 lines and those of the engine's area, which are 1 for up to 3 words; 1 fence.
    pub(crate) fn change_superblock(&self, change: impl FnOnce(&mut Superblock)) {
        let mut superblock = self.lock_superblock();
        change(&mut superblock);
        superblock.sequence = superblock.sequence.wrapping_add(1);
        store_superblock(&self.pmem, &superblock);
    }

    /// What is wrong now with the parts of the superblock that there are two of.
    pub(crate) fn damages(&self) -> Vec<Damage> {
        let (superblock, _unchanged) = (self.lock_superblock(), self.lock_hand_out());
        let word = |at| self.pmem.load_u64(at);
        let mut damages = copies::damages_of_numbers(&word);
        // Of a pool that was not closed in order an update may have been interrupted.
        if !self.read_only || superblock.closing == Closing::Clean {
            damages.extend(copies::damages_of_copies(&word));
        }
        damages
    }

    /// What the engine said of the store when it was closed in order; zeros otherwise.
    pub(crate) fn closed_words(&self) -> [u64; CLOSED_WORDS] {
        self.closed_words
    }

    /// What the store held when it was closed in order, if it was, and no opening for writing has ended since.
    pub(crate) fn closed_totals(&self) -> Option<Totals> {
        self.closed_totals
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
}

/// The copy that a superblock's sequence number selects.
fn copy_of<P: Pmem>(pmem: &P, superblock: &Superblock) -> Extent {
    let at = superblock.sequence % 2 * superblock::COPY_STRIDE;
    let bytes = 8 * superblock.words_used() as u64;
    pmem.check(at, bytes).expect("the superblock is mapped")
}

/// Stores the superblock of a new pool and that no block is in use, durably. What creations that were interrupted have
/// left is overwritten; none of it is a pool, nor is this one before its superblock was changed for the first time.
fn store_new<P: Pmem>(pmem: &P, superblock: &Superblock) {
    let words = superblock.encode();
    for (index, word) in words.into_iter().enumerate() {
        pmem.store_u64(8 * index as u64, word, sites::SUPERBLOCK);
    }
    // From the last word to the first, so that a line which is not zero begins as one of a copy does.
    for index in (0..superblock::WORDS as u64).rev() {
        pmem.store_u64(superblock::COPY_STRIDE + 8 * index, 0, sites::SUPERBLOCK);
    }
    for start in [0, superblock::COPY_STRIDE] {
        let copy = pmem.check(start, 8 * superblock::WORDS as u64);
        pmem.flush(copy.expect("the superblock is mapped"), sites::SUPERBLOCK);
    }
    store_used(pmem, 0, sites::SUPERBLOCK);
    pmem.fence(sites::SUPERBLOCK);
}

/// Stores the number of used blocks in both of its words and starts writing them back.
#[inline]
fn store_used<P: Pmem>(pmem: &P, used: u64, site: Site) {
    for at in USED_BLOCKS_AT {
        pmem.store_u64(at, checked_word::encode_at(used as u32, at), site);
        pmem.flush(Extent::new_checked(at, 8), site);
    }
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
