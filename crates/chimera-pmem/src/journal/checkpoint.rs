//! Writing lines of synced entries back to the data files, and freeing the entries' space.

use std::io;
use std::sync::atomic::Ordering;

use super::give_back::Giving;
use super::read::Walk;
use super::{Header, Journal, Lines, damaged, lock};
use crate::environment::TaskStep;
use crate::pages::steps;

/// What a checkpoint uses again and again. Its lock lets one checkpoint run at a time.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    lines: Lines,
    /// When the last one in the background began, in nanoseconds.
    pub(super) begun_ns: Option<u64>,
    giving: Giving,
}

impl Journal {
    /// Writes everything back that was fenced before the call.
    ///
    /// # Errors
    /// When the journal or a data file cannot be read, written or synced, now or earlier.
    ///
    /// # Durability
    /// The data files alone hold everything that was fenced before the call.
    pub fn checkpoint(&self) -> io::Result<()> {
        self.write_back_all(&mut lock(&self.checkpoint))
    }

    /// Waits until a checkpoint that is under way is over: it may write back what the caller waits for.
    pub fn wait_for_checkpoint(&self) {
        drop(lock(&self.checkpoint));
    }

    /// As [`checkpoint`](Self::checkpoint), also of the entry that is being appended: none that is pending afterwards has what
    /// memory held before the call.
    pub(crate) fn checkpoint_appended(&self) -> io::Result<()> {
        // Lines are read under this lock.
        drop(lock(&self.tail));
        self.checkpoint()
    }

    /// Writes everything back that was fenced before the call.
    pub(super) fn write_back_all(&self, scratch: &mut Scratch) -> io::Result<()> {
        // What was fenced may be missing, also where nothing is left to write back.
        self.refuse_failure()?;
        let target = self.tail_at();
        while self.start_at() < target {
            self.write_back(scratch)?;
        }
        Ok(())
    }

    /// Stops the background work, writes everything back and marks the journal as closed, with the storage that a new
    /// one has. Nothing may be fenced any more.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn close(&self) -> io::Result<()> {
        self.stop();
        self.close_with(&mut lock(&self.checkpoint))
    }

    /// Waits until there are `bytes` of room, a quarter of the ring at most, or makes it: the journal is found too small.
    #[cold]
    pub(super) fn make_room(&self, bytes: u64) -> io::Result<()> {
        let mut scratch = lock(&self.checkpoint);
        self.refuse_failure()?;
        if self.free_bytes() < bytes && self.may_grow() {
            self.grow(&mut scratch)?;
        }
        // Asked for of a longer ring, before it was trimmed: the caller looks again.
        let bytes = bytes.min(self.capacity() / 4);
        while self.free_bytes() < bytes {
            self.write_back(&mut scratch)?;
        }
        Ok(())
    }

    /// Whether a checkpoint should run in the background.
    pub(super) fn needs_checkpoint(&self) -> bool {
        self.free_bytes() < self.capacity() / 2
    }

    pub(super) fn wake_checkpointer(&self) {
        if let Some(task) = self.checkpointer.get() {
            task.wake();
        }
    }

    /// One step of the task that checkpoints in the background.
    pub(super) fn checkpoint_step(&self) -> TaskStep {
        if self.refuse_failure().is_err() {
            return TaskStep::Done;
        }
        let asks_every = self.ask();
        let mut scratch = lock(&self.checkpoint);
        let (pages_first, is_filling) = (self.wants_pages_back(), self.needs_checkpoint());
        let left = self.interval_left();
        let is_due = self.is_due_now() || left.is_some_and(|left| left.is_zero());
        if !pages_first && !is_filling && !is_due {
            let soonest = [asks_every, left].into_iter().flatten().min();
            return soonest.map_or(TaskStep::Wait, TaskStep::WaitAtMost);
        }
        // Where pages are written back for their memory alone, that frees the journal too: a longer one would help nobody.
        let done = if pages_first {
            self.give_pages_back(&mut scratch, self.budget.half())
        } else if is_filling && self.is_soon(&mut scratch) && self.may_grow() {
            self.grow(&mut scratch)
        } else {
            self.write_back(&mut scratch)
        };
        match done {
            Ok(()) => TaskStep::Again,
            Err(error) => {
                log::error!("no checkpoint: {error}");
                TaskStep::Done
            }
        }
    }

    /// Gives pages back until no more than `target` bytes are private, or no other page can be given back now: those of
    /// entries that are pending, then others.
    pub(super) fn give_pages_back(&self, scratch: &mut Scratch, target: u64) -> io::Result<()> {
        self.refuse_failure()?;
        let end = self.tail_at();
        while self.private_bytes() > target && self.start_at() < end {
            self.write_back(scratch)?;
        }
        if self.private_bytes() > target {
            self.sweep(target, &mut scratch.giving);
        }
        self.budget.looked_at(self.private_bytes());
        Ok(())
    }

    /// Writes the oldest entries back and frees their space. Pages that are written back are given back, where they take
    /// much memory.
    fn write_back(&self, scratch: &mut Scratch) -> io::Result<()> {
        self.refuse_failure()?;
        // All entries: the space of what follows is needed soon, too.
        self.sync_to(self.tail_at())?;
        self.write_back_synced(scratch).inspect_err(|error| self.fail(error))
    }

    /// Says durably that lines which entries before `position` name in their place were durable there: they change now, and are
    /// not what those say any more.
    fn say_placed(&self, position: u64) -> io::Result<()> {
        if self.placed.load(Ordering::Acquire) < position {
            self.placed.store(position, Ordering::Release);
            self.write_header(self.header_now())?;
        }
        Ok(())
    }

    /// From the journal, never from memory: memory is ahead of what is durable.
    fn write_back_synced(&self, scratch: &mut Scratch) -> io::Result<()> {
        let (start, end) = (self.start_at(), self.durable());
        let piece_bytes = self.budget.piece_bytes();
        let lines = &mut scratch.lines;
        lines.clear();
        let mut walk = Walk::new(&*self.file, self.header_now(), start, end);
        while walk.position() < end && lines.bytes() < piece_bytes {
            let Some(entry) = walk.next()? else {
                return Err(damaged("an entry that was written is no longer there".to_owned()));
            };
            for (line, content) in entry.lines() {
                lines.push(line, content);
            }
            // Of places that were taken the sync has said that they are durable.
            let direct = entry.direct().filter(|direct| !direct.is_taken());
            direct.for_each(|direct| lines.note_direct(direct.run.first, direct.run.count));
        }
        lines.fold();
        let begun_ns = self.environment.now_ns();
        if lines.touch_direct() && !self.skips(steps::PLACED) {
            self.say_placed(end)?;
        }
        self.write_to_files(lines)?;
        self.budget.written_back.fetch_add(lines.folded_bytes(), Ordering::Relaxed);
        let reached = walk.position();
        // Before the start moves on, so that the mark is never behind it.
        self.change_mark(self.kept(reached))?;
        self.write_header(Header { start: reached, ..self.header_now() })?;
        self.start.store(reached, Ordering::Release);
        if reached == end {
            self.renew_interval();
        }
        self.give_back_written(lines, &mut scratch.giving);
        let ns = self.environment.now_ns().saturating_sub(begun_ns);
        log::debug!("checkpoint of {} bytes: {} us", reached - start, ns / 1000);
        Ok(())
    }
}
