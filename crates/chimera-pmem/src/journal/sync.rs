//! Making entries durable: operations that wait share a sync, the others have a clock.

use std::io;
use std::ops::Range;
use std::sync::MutexGuard;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use super::{Journal, SyncPolicy, lock, marks};
use crate::environment::{File, TaskStep};

/// How often to let others run before a sync that others may share: by yielding, never by sleeping.
const GATHER_ATTEMPTS: Range<u32> = 6..18;

/// Of fewer bytes of entries it takes longer to let go of their pages than it saves.
const LET_GO_BYTES_MIN: u64 = 64 << 10;

/// Whether a sync is running, and what went wrong.
#[derive(Debug, Default)]
pub(super) struct Syncing {
    is_running: bool,
    /// Threads that began to wait for it to end.
    waiting: usize,
    /// Threads that waited for the last one, with the one that made it.
    batch: usize,
    failure: Option<String>,
}

impl Journal {
    /// Called when the calling thread's operation is done, outside of all locks, before it is
    /// acknowledged: waits for as long as the policy says, and longer when syncs or checkpoints have
    /// fallen behind.
    ///
    /// # Errors
    /// When the journal or a data file could not be written or synced, now or earlier: the operation may be
    /// lost by a power failure, and so may all that follow.
    pub fn settle(&self) -> io::Result<()> {
        self.refuse_failure()?;
        match self.policy {
            SyncPolicy::Immediate => {
                // What the operation has written comes behind all that it saw. If it wrote nothing, all that
                // it saw has to be durable.
                let last = marks::with(&self.me, |marks| std::mem::take(&mut marks.last));
                self.sync_to(if last > 0 { last } else { self.tail_at() })?;
            }
            SyncPolicy::Group { max_delay } => self.keep_pace(max_delay)?,
        }
        let capacity = self.capacity();
        if self.free_bytes() < capacity / 8 {
            self.make_room(capacity / 4)?;
        } else if self.needs_checkpoint() {
            self.wake_checkpointer();
        }
        self.keep_budget()
    }

    /// Called instead of [`settle`](Self::settle) when the calling thread's operation is not acknowledged:
    /// what it has written is not what the next one waits for.
    pub fn forget(&self) {
        marks::with(&self.me, |marks| marks.last = 0);
    }

    /// As [`settle`](Self::settle), for an operation that only read. Where acknowledged means durable, a
    /// read must not return what a power loss could take back.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn settle_read(&self) -> io::Result<()> {
        if self.policy != SyncPolicy::Immediate || self.has_failed.load(Ordering::Acquire) {
            // After a failure reads go on.
            return Ok(());
        }
        self.sync_to(self.tail_at())
    }

    /// Makes everything durable that was fenced before the call.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn sync(&self) -> io::Result<()> {
        self.refuse_failure()?;
        self.sync_to(self.tail_at())
    }

    /// Waits until everything before `position` is durable. The first thread that comes syncs for all
    /// that have appended by then.
    pub(super) fn sync_to(&self, position: u64) -> io::Result<()> {
        if self.durable() >= position {
            return Ok(());
        }
        let mut syncing = lock(&self.syncing);
        loop {
            if let Some(reason) = &syncing.failure {
                return Err(io::Error::other(reason.clone()));
            }
            if self.durable() >= position {
                return Ok(());
            }
            if syncing.is_running {
                syncing.waiting += 1;
                let count = self.ends.count();
                drop(syncing);
                self.ends.wait_for_another(count);
                if self.durable() >= position {
                    return Ok(());
                }
                syncing = lock(&self.syncing);
                continue;
            }
            syncing.is_running = true;
            drop(self.gather(syncing));
            // In this order: an operation that is acknowledged later opens a window of its own.
            self.window.store(0, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let target = self.tail_at();
            self.covered.store(target, Ordering::SeqCst);
            self.let_go_of_entries(self.durable()..target);
            let done = self.sync_both(target);
            if let Ok(end) = done {
                self.durable.fetch_max(end, Ordering::AcqRel);
                self.covered.fetch_max(end, Ordering::SeqCst);
                self.syncs.fetch_add(1, Ordering::Relaxed);
                self.begin_interval();
            }
            syncing = lock(&self.syncing);
            syncing.is_running = false;
            syncing.batch = 1 + std::mem::take(&mut syncing.waiting);
            self.ends.add_one();
            drop(syncing);
            self.ends.wake_all();
            syncing = lock(&self.syncing);
        }
    }

    /// Syncs the data files with what entries say is in its place, then the journal, which has entries up to `target`; up to where
    /// it is durable then.
    fn sync_both(&self, target: u64) -> io::Result<u64> {
        let taken = self.end_taken().inspect_err(|error| self.fail(error))?;
        self.sync_new()?;
        let said = taken.map(|position| self.say_in_place(position)).transpose();
        let said = said.inspect_err(|error| self.fail(error))?;
        self.sync_file(|file| file.sync().map_err(|error| cannot_sync(&error)))?;
        // Entries between the two are of operations that are acknowledged later.
        Ok(if taken == Some(target) { said.unwrap_or(target) } else { target })
    }

    /// Takes the pages of entries that are about to be synced out of the page tables, all at once. Else the kernel does so page
    /// by page when it writes them, and interrupts the other processors for each. That took a fifth of a writer's time.
    fn let_go_of_entries(&self, entries: Range<u64>) {
        let length = entries.end - entries.start;
        if length < LET_GO_BYTES_MIN {
            return;
        }
        let Some(window) = lock(&self.mapped).upgrade() else { return };
        let ring_bytes = window.length() as u64;
        let at = entries.start % ring_bytes;
        let head = length.min(ring_bytes - at);
        let done = window.let_go(at as usize, head as usize);
        let done = done.and_then(|()| window.let_go(0, (length - head).min(at) as usize));
        // Nothing is lost: the sync takes longer.
        done.unwrap_or_else(|error| log::debug!("pages of the journal stay mapped: {error}"));
    }

    /// Syncs the journal's file as `sync` does, one thread at a time. The kernel tells one of two who sync a file at once that
    /// pages could not be written, and the other one nothing: so nobody syncs after a failure, and none is under way
    /// when one is kept.
    pub(super) fn sync_file(
        &self,
        sync: impl FnOnce(&dyn File) -> io::Result<()>,
    ) -> io::Result<()> {
        let _one = lock(&self.file_sync);
        self.refuse_failure()?;
        sync(&*self.file).inspect_err(|error| self.fail(error))
    }

    /// Gives the threads that shared the last sync a moment to append for this one. They have just been
    /// woken, and would otherwise need a sync of their own.
    fn gather<'a>(&'a self, mut syncing: MutexGuard<'a, Syncing>) -> MutexGuard<'a, Syncing> {
        for attempt in GATHER_ATTEMPTS {
            if syncing.waiting + 1 >= syncing.batch {
                break;
            }
            drop(syncing);
            self.environment.relax(attempt);
            syncing = lock(&self.syncing);
        }
        syncing
    }

    /// Notes an acknowledged operation for the next sync. Waits while a whole window is behind: the
    /// sync of the one before is still running, or has not even been started.
    fn keep_pace(&self, max_delay: Duration) -> io::Result<()> {
        // Either the thread that starts a sync sees this operation's entries, or the window that it has
        // closed is seen here.
        fence(Ordering::SeqCst);
        // In this order: both only grow.
        let covered = self.covered.load(Ordering::SeqCst);
        let tail = self.tail_at();
        if tail == covered {
            return Ok(());
        }
        let now = self.environment.now_ns().max(1);
        let opened = self.window.load(Ordering::SeqCst);
        if opened == 0 {
            let mine = self.window.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
            if mine.is_ok() {
                self.wake_syncer();
            }
            return Ok(());
        }
        if now < opened {
            // Another thread has looked at the clock later. Or the clock went back: the window begins anew, so that it
            // ends.
            let _ = self.window.compare_exchange(opened, now, Ordering::SeqCst, Ordering::SeqCst);
        }
        let age = Duration::from_nanos(now.saturating_sub(opened));
        let is_large = tail - covered >= self.capacity() / 4;
        if age >= max_delay || is_large {
            if self.durable() < covered {
                return self.sync_to(covered);
            }
            if is_large || age >= max_delay * 2 {
                return self.sync_to(tail);
            }
        }
        Ok(())
    }

    /// One step of the task that syncs in the background.
    pub(super) fn sync_step(&self) -> TaskStep {
        let SyncPolicy::Group { max_delay } = self.policy else { return TaskStep::Done };
        if self.has_failed.load(Ordering::Acquire) {
            return TaskStep::Done;
        }
        let opened = self.window.load(Ordering::SeqCst);
        if opened == 0 {
            return TaskStep::Wait;
        }
        // A clock that went back does not say how old the window is: old enough.
        let age = self.environment.now_ns().checked_sub(opened);
        let age = age.map_or(max_delay, Duration::from_nanos);
        if let Some(left) = max_delay.checked_sub(age).filter(|left| !left.is_zero()) {
            return TaskStep::WaitAtMost(left);
        }
        if let Err(error) = self.sync_to(self.tail_at()) {
            log::error!("the journal: {error}");
        } else {
            self.close_window(opened);
        }
        TaskStep::Again
    }

    /// Closes the window that began at `opened`, where no sync has done so: another one had covered its operations
    /// before they opened it. What no sync has covered gets a window of its own.
    fn close_window(&self, opened: u64) {
        let closed = self.window.compare_exchange(opened, 0, Ordering::SeqCst, Ordering::SeqCst);
        // As in `sync_to`: a thread that saw the window open before, and has appended, gets another one.
        fence(Ordering::SeqCst);
        if closed.is_ok() && self.tail_at() != self.covered.load(Ordering::SeqCst) {
            let now = self.environment.now_ns().max(1);
            let _ = self.window.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    fn wake_syncer(&self) {
        if let Some(task) = self.syncer.get() {
            task.wake();
        }
    }

    /// Ends the journal's use: nothing more is written.
    #[cold]
    pub(super) fn fail(&self, error: &io::Error) {
        self.take_back_for_ever();
        self.fail_at_once(error);
    }

    /// As [`fail`](Self::fail), where nobody may be waited for.
    #[cold]
    pub(super) fn fail_at_once(&self, error: &io::Error) {
        lock(&self.syncing).failure.get_or_insert_with(|| error.to_string());
        self.has_failed.store(true, Ordering::Release);
        self.ends.add_one();
        self.ends.wake_all();
    }

    pub(super) fn refuse_failure(&self) -> io::Result<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let reason = lock(&self.syncing).failure.clone();
        Err(io::Error::other(reason.unwrap_or_default()))
    }

    /// How many threads wait for a sync to end.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        lock(&self.syncing).waiting
    }
}

pub(super) fn cannot_sync(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot sync: {error}"))
}
