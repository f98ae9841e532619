//! The journal: power-safe memory on ordinary files.
//!
//! The kernel writes back the pages of a shared mapping in any order, so nothing written through one
//! can be restored after a power loss. Here files are mapped privately instead. `flush` notes lines of
//! the calling thread; `fence` appends their content to a journal; the journal is synced, alone or
//! for many fences at once; a checkpoint writes lines of synced entries back to the
//! data files and frees the space. After a crash the longest prefix of entries without a gap is what happened.
//!
//! - `marks`: what a thread has flushed since its last fence.
//! - `entry`: one fence as bytes; `header`: which journal, and where its first entry lies; `mark`: beside the journal,
//!   which one is in use.
//! - `read`, `lines`: reading entries back, and the newest content of each line; `damage`: what is lost.
//! - `direct`: lines that go to their data file alone, as their place was empty; `taken`: places in which stores go there at
//!   once.
//! - `append`: from a fence to an entry; `sync`: making entries durable, for one and for many.
//! - `checkpoint`, `data_files`: writing lines back; `interval`: when, by the clock; `capacity`: how long the ring is.
//! - `give_back`: giving pages back whose content is in the data files; `budget`: how much memory pages may take, and waiting
//!   for it.
//!
//! Absent on purpose: any knowledge of what the lines mean.
//!
//! # Positions
//! A position counts the bytes of all entries ever written; the entry at position *p* lies at
//! *p* mod capacity in the ring of the file, and says *p*, so that an entry of an earlier lap is never
//! taken for a new one. `start <= durable <= tail`, and each of them only grows. The capacity changes while no entry is
//! pending.
//!
//! # Invariants
//! 1. The content of a line is read under the lock of the tail, into an entry that is whole before the
//!    lock is released. So entries follow each other without a gap, and a later entry never has an
//!    older content. A content newer than what was flushed is like a line that the processor evicted
//!    early. So every prefix is a state in which persistent memory could have been left.
//! 2. Data files are written with the content of synced entries at or behind `start` only, and `start`
//!    moves on only when the data files are synced. So replaying from `start` is exact at any moment. Lines whose place was
//!    empty are written ahead of their entry: see `direct`.
//! 3. The space of an entry is used again only when a `start` behind it is durable in both copies of
//!    the header.
//! 4. Behind the last entry lies an end mark, at any moment: see `entry`. So the end of a process leaves whole entries
//!    and an end mark behind them, and anything else is damage.
//! 5. The capacity changes only while `start` is the tail, under the lock of the tail. Before a header has the new one, the
//!    file is as long as that needs, and there is an end mark at the place of the tail in either ring. So whichever copy of
//!    the header a crash leaves in force, the journal is an empty one. See `capacity`.
//! 6. A page of the private mapping is given back only when every entry that names it is before a `start` that is in force,
//!    so its content is in a data file that was synced since. `pages` says why nobody sees a difference.
//! 7. After a failed sync or write nothing is appended, synced or checkpointed any more, and no page is given
//!    back: what the kernel did with the pages is not known.
//!
//! # Thread safety
//! Everything takes `&self` and may be called from any thread. `data_files` is held while no other lock is taken, and so is
//! `tail`, except for a change of the capacity. `checkpoint` is taken before `tail`, that
//! before `data_sync` and `file_sync`, and these before `syncing`, which no thread holds during a sync. The ring is stored to
//! under the lock of the tail only: so it may be mapped anew under that.

mod append;
mod budget;
mod capacity;
mod checkpoint;
mod damage;
mod data_files;
mod direct;
mod ends;
mod entry;
mod give_back;
mod header;
mod interval;
mod lines;
mod mark;
mod marks;
mod read;
mod sync;
mod taken;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use crate::environment::{Environment, File, Task, TaskStep};
use crate::mapping::Window;
use crate::pages::Pages;
pub use crate::pages::steps;
use append::{Ring, Tail};
use budget::Budget;
pub use budget::{MemoryLimits, PageFigures};
pub use capacity::first_capacity;
use checkpoint::Scratch;
pub use damage::Damage;
use data_files::DataFile;
pub use direct::Fenced;
use ends::Ends;
pub use header::OtherVersion;
use header::{DATA_AT, Header};
use interval::Interval;
pub use lines::Lines;
pub use mark::{Mark, MarkState};
pub use read::{Contents, NewLines, ReadData};
use sync::Syncing;
use taken::Taken;

/// When entries are synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before an operation is acknowledged; operations that wait at the same time share a sync.
    Immediate,
    /// In the background: a sync starts within `max_delay` of an acknowledged operation.
    Group {
        /// Longest time between an acknowledgement and the start of the sync that covers it.
        max_delay: Duration,
    },
}

/// What a journal has done, and what is left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JournalFigures {
    /// Bytes it holds now. It grows where it is found too small.
    pub capacity_bytes: u64,
    /// Bytes of entries appended since it was taken into use.
    pub appended_bytes: u64,
    /// Bytes of entries that no sync has covered yet.
    pub unsynced_bytes: u64,
    /// Bytes of entries that a checkpoint has yet to write back.
    pub pending_bytes: u64,
    /// Bytes of lines that went to their place alone: they have a checksum in an entry, or their place was new.
    pub direct_bytes: u64,
    /// Syncs that made entries durable.
    pub syncs: u64,
}

/// A journal in use.
pub struct Journal {
    /// For the marks of threads.
    me: Weak<Self>,
    environment: Arc<dyn Environment>,
    policy: SyncPolicy,
    file: Arc<dyn File>,
    /// As in the file, but for `start`, the capacity and `placed`.
    header: Header,
    /// Bytes for entries. Changes under the locks of the checkpoint and of the tail.
    capacity: AtomicU64,
    /// Bytes for entries that it may have at most.
    capacity_max: AtomicU64,
    /// Bytes for entries that it has when it is closed, at most.
    capacity_closed: u64,
    tail: Mutex<Tail>,
    /// What the ring is mapped by. Changes under the lock of the tail. No other lock is taken while this one is held.
    mapped: Mutex<Weak<Window>>,
    /// Where the next entry goes. Changes under the lock of the same name.
    tail_at: AtomicU64,
    syncing: Mutex<Syncing>,
    ends: Ends,
    /// Everything before it is synced.
    durable: AtomicU64,
    /// Everything before it is synced, or is being synced.
    covered: AtomicU64,
    /// When the first operation was acknowledged that no sync covers yet, in nanoseconds; 0 for none.
    window: AtomicU64,
    checkpoint: Mutex<Scratch>,
    interval: Interval,
    /// One thread at a time syncs the file, and one the data files.
    file_sync: Mutex<()>,
    data_sync: Mutex<()>,
    /// What entries before it say of lines in their place is durable there, as both headers say. Changes under the lock of the
    /// checkpoint.
    placed: AtomicU64,
    /// Least bytes that are written to their place.
    direct_bytes_min: AtomicU64,
    /// Bytes of lines written to data files ahead of their entries.
    direct_bytes: AtomicU64,
    /// Where the first entry lies that has not been written back.
    start: AtomicU64,
    /// Syncs of the file that succeeded, those of checkpoints not among them.
    syncs: AtomicU64,
    data_files: Mutex<Vec<DataFile>>,
    /// Changes under the lock of the tail, but for being taken back.
    taken: Mutex<Taken>,
    has_taken: AtomicBool,
    takes_none: AtomicBool,
    /// One thread at a time takes places back. No other lock but that of `taken` and of the data files is taken meanwhile.
    taking_back: Mutex<()>,
    /// Of the memory that the data files are mapped into.
    pages: OnceLock<Arc<Pages>>,
    budget: Budget,
    /// Says beside the journal that it is in use.
    mark: OnceLock<Mutex<Mark>>,
    /// Says beside the journal where its last entry ended.
    kept_tail: OnceLock<mark::Tail>,
    has_failed: AtomicBool,
    syncer: OnceLock<Box<dyn Task>>,
    checkpointer: OnceLock<Box<dyn Task>>,
}

impl Journal {
    /// Makes `file`, which is empty, a journal of `capacity` bytes, for use at this start of the machine. The id of a
    /// journal is random and not 0.
    ///
    /// # Errors
    /// `InvalidInput` for a capacity that is not a multiple of 4096 from 16 KiB to 1 GiB; what the
    /// file says.
    ///
    /// # Durability
    /// The file's content is durable on return; its name is the caller's to make so.
    pub fn format(
        file: &dyn File,
        pool_id: u64,
        journal_id: u64,
        capacity: u64,
        boot_id: u64,
    ) -> io::Result<()> {
        if !header::is_capacity(capacity) {
            let text = "a journal has a multiple of 4096 bytes, from 16 KiB to 1 GiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        file.allocate(0, DATA_AT + capacity)?;
        let (start, placed, is_closed) = (0, 0, false);
        let header = Header { pool_id, journal_id, capacity, start, is_closed, boot_id, placed };
        Header { is_closed: true, ..header }.write_first(file)?;
        header.begin(file)
    }

    /// Takes a journal into use that holds nothing: [formatted](Self::format) or
    /// [emptied](Contents::empty). It grows to `capacity_max` bytes where they are needed, and to none where it has as
    /// many. When it is closed it has no more than it [begins](first_capacity) with.
    ///
    /// # Errors
    /// `InvalidData` when it is damaged; what the file says.
    pub fn open(
        file: Arc<dyn File>,
        capacity_max: u64,
        policy: SyncPolicy,
        environment: Arc<dyn Environment>,
    ) -> io::Result<Arc<Self>> {
        let header = Header::read(&*file)?.filter(|header| !header.is_closed);
        let header = header.ok_or_else(|| damaged("it is not ready for use".to_owned()))?;
        capacity::cut(&*file, header.capacity);
        let ring = Ring::map(&file, header.capacity)?;
        let start = || AtomicU64::new(header.start);
        Ok(Arc::new_cyclic(|me| Self {
            me: me.clone(),
            environment,
            policy,
            file,
            header,
            capacity: AtomicU64::new(header.capacity),
            capacity_max: AtomicU64::new(capacity_max),
            capacity_closed: first_capacity(capacity_max).min(header.capacity),
            mapped: Mutex::new(ring.window()),
            tail: Mutex::new(Tail::new(ring)),
            tail_at: start(),
            syncing: Mutex::default(),
            ends: Ends::default(),
            durable: start(),
            covered: start(),
            window: AtomicU64::new(0),
            checkpoint: Mutex::default(),
            interval: Interval::default(),
            file_sync: Mutex::default(),
            data_sync: Mutex::default(),
            placed: AtomicU64::new(header.placed),
            direct_bytes_min: AtomicU64::new(direct::bytes_min(policy)),
            direct_bytes: AtomicU64::new(0),
            start: start(),
            syncs: AtomicU64::new(0),
            data_files: Mutex::default(),
            taken: Mutex::default(),
            has_taken: AtomicBool::new(false),
            takes_none: AtomicBool::new(false),
            taking_back: Mutex::default(),
            pages: OnceLock::new(),
            budget: Budget::default(),
            mark: OnceLock::new(),
            kept_tail: OnceLock::new(),
            has_failed: AtomicBool::new(false),
            syncer: OnceLock::new(),
            checkpointer: OnceLock::new(),
        }))
    }

    /// Says in `mark`, from now on, that this journal is in use, before anything is appended.
    ///
    /// # Errors
    /// What the mark's file says.
    ///
    /// # Durability
    /// When the mark's file is synced next, which has to be before anything appended is.
    pub fn keep_mark(&self, mut mark: Mark) -> io::Result<()> {
        let tail = mark.tail(self.header.journal_id)?;
        tail.keep(self.tail_at())?;
        self.kept_tail.get_or_init(|| tail);
        mark.keep(self.kept(self.start_at()))?;
        self.mark.get_or_init(|| Mutex::new(mark));
        Ok(())
    }

    /// The mark says no more that changes were lost.
    ///
    /// # Errors
    /// What the file of the mark says.
    ///
    /// # Durability
    /// Durable on return.
    pub fn accept_loss(&self) -> io::Result<()> {
        let Some(mark) = self.mark.get() else { return Ok(()) };
        let mut mark = lock(mark);
        mark.set_lost(false);
        mark.keep(self.kept(self.start_at()))?;
        mark.sync()
    }

    fn kept(&self, position: u64) -> MarkState {
        MarkState::Used { journal_id: self.header.journal_id, position, tail: position }
    }

    fn change_mark(&self, kept: MarkState) -> io::Result<()> {
        self.mark.get().map_or(Ok(()), |mark| lock(mark).keep(kept))
    }

    /// Starts what runs in the background: syncs, where the policy has them there, and checkpoints.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn start(self: &Arc<Self>) -> io::Result<()> {
        let (syncing, checkpointing) = (self.me.clone(), self.me.clone());
        let sync = move || syncing.upgrade().map_or(TaskStep::Done, |journal| journal.sync_step());
        let checkpoint = move || {
            checkpointing.upgrade().map_or(TaskStep::Done, |journal| journal.checkpoint_step())
        };
        if let SyncPolicy::Group { .. } = self.policy {
            let task = self.environment.spawn("chimera-sync", Box::new(sync))?;
            self.syncer.get_or_init(|| task);
        }
        let task = self.environment.spawn("chimera-checkpoint", Box::new(checkpoint))?;
        self.checkpointer.get_or_init(|| task);
        // What was synced meanwhile found nobody to wake.
        self.wake_checkpointer();
        Ok(())
    }

    /// Stops what runs in the background.
    pub fn stop(&self) {
        for task in [self.syncer.get(), self.checkpointer.get()].into_iter().flatten() {
            task.stop();
        }
    }

    /// Bytes of entries that a checkpoint has yet to write back.
    pub fn pending_bytes(&self) -> u64 {
        // In this order: both only grow.
        let start = self.start_at();
        self.tail_at() - start
    }

    /// What the journal has done since it was taken into use, and what is left to do.
    pub fn figures(&self) -> JournalFigures {
        // In this order: all three only grow, and none overtakes the next.
        let start = self.start_at();
        let durable = self.durable();
        let tail = self.tail_at();
        JournalFigures {
            capacity_bytes: self.capacity(),
            appended_bytes: tail - self.header.start,
            unsynced_bytes: tail - durable,
            pending_bytes: tail - start,
            direct_bytes: self.direct_bytes.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
        }
    }

    fn tail_at(&self) -> u64 {
        self.tail_at.load(Ordering::Acquire)
    }

    fn start_at(&self) -> u64 {
        self.start.load(Ordering::Acquire)
    }

    fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("policy", &self.policy)
            .field("start", &self.start)
            .field("durable", &self.durable)
            .field("tail", &self.tail_at)
            .finish_non_exhaustive()
    }
}

/// What is wrong with a journal.
fn damaged(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Locks a mutex, whether or not a thread panicked while holding it: its data are whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
