//! Lines that are new in their place: written once, to their data file, ahead of the entry that names them.
//!
//! What lies where nothing was need not pass the journal. Nobody can reach it before something else says that it is there, and
//! that passes the journal. So its entry has a checksum in place of the lines. The content goes to the data file when the
//! thread fences, so the end of the process does not lose it. A [sync](super::sync) syncs the data file, then the journal.
//!
//! # Invariants
//! 1. **Nothing is overwritten.** In no state that a crash can bring back do the lines mean anything: they were
//!    [emptied](Fenced) by an entry before a `start` that is in force.
//! 2. **An entry that is durable has its lines.** A later entry that says how far the journal was synced says so of the lines,
//!    too. Recovery compares the checksums of all others. The first one that differs ends the journal, as an entry does that is
//!    not whole.
//! 3. **No older content goes over it.** Whoever emptied a line stores nothing to it until it has another use, and that begins
//!    behind a `start` in force. Nobody has flushed it then and not fenced: so no pending entry before the direct one names it,
//!    and no later one has what was there. Where others may still flush a line there, as they have just seen what is gone
//!    now, the place is *shared*: pages of it that a pending entry of others names pass the journal. An entry that is not seen
//!    when that is looked at reads its lines later, when all that is new has been stored. An entry of lines *beside* new ones is
//!    none of others: none of its lines is new later.
//! 4. **A newer one does not hide it.** What is stored to the line later passes the journal. Before a checkpoint writes that over
//!    the line, the headers say that the lines of all entries so far were durable: nobody compares them any more.
//! 5. Lines that no recovered entry names may be there nevertheless, like lines that a processor evicted early. The engine must not
//!    be able to reach them.
//!
//! A sync of two files takes longer than one of one. So where each operation waits for a sync, only what is [large] is written
//! to its place.
//!
//! [large]: IMMEDIATE_BYTES_MIN

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use super::entry::{DIRECT_LINES_MAX, Direct, Run};
use super::marks::NewRuns;
use super::sync::cannot_sync;
use super::{Journal, SyncPolicy, lock, marks};
use crate::environment::File;
use crate::pages::steps;
use crate::{CACHE_LINE, Extent};

/// Least bytes that are written to their place. Fewer pass the journal: on a fast device a system call takes longer than to
/// copy them, and the checkpoint's copy is made in the background.
const GROUP_BYTES_MIN: u64 = 4096;
/// The same where an operation waits for a sync.
const IMMEDIATE_BYTES_MIN: u64 = 256 << 10;

/// Least bytes that are written to their place, unless something else is [said](Journal::write_new_from).
pub(super) fn bytes_min(policy: SyncPolicy) -> u64 {
    match policy {
        SyncPolicy::Immediate => IMMEDIATE_BYTES_MIN,
        SyncPolicy::Group { .. } => GROUP_BYTES_MIN,
    }
}

/// How much was fenced at a moment, in all threads together: whatever was durable then. Nothing of what is fenced later is
/// before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fenced(pub(super) u64);

/// A part of a data file for lines.
pub(super) struct Target {
    pub(super) number: u16,
    pub(super) file: Arc<dyn File>,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// It has lines that no sync has covered.
    pub(super) unsynced: Arc<AtomicBool>,
}

impl Journal {
    /// Lines are written to their place ahead of their entry from so many bytes on, at least a line.
    pub fn write_new_from(&self, bytes: u64) {
        self.direct_bytes_min.store(bytes.max(CACHE_LINE), Ordering::Relaxed);
    }

    /// Whether so many bytes may be written to their place: fewer pass the journal wherever they lie.
    #[inline]
    pub fn writes_new(&self, bytes: u64) -> bool {
        bytes >= self.direct_bytes_min.load(Ordering::Relaxed)
    }

    /// How much was fenced so far.
    pub(crate) fn fenced(&self) -> Fenced {
        Fenced(self.tail_at())
    }

    /// Least bytes that are written to their place.
    pub fn new_bytes_min(&self) -> u64 {
        self.direct_bytes_min.load(Ordering::Relaxed)
    }

    /// Whether all that was fenced then lies in the data files: no crash brings back what was there before.
    pub fn is_written_back(&self, fenced: Fenced) -> bool {
        self.start_at() >= fenced.0 || self.skips(steps::EMPTIED)
    }

    /// As [`mark`](Self::mark), of lines that mean nothing before something else leads to them, and whose place was empty when
    /// `emptied` was fenced. A place is shared where others may have flushed lines of it since.
    pub(crate) fn mark_new(&self, range: Extent, emptied: Fenced, is_shared: bool) {
        let (first, end) = (range.offset().div_ceil(CACHE_LINE), range.end() / CACHE_LINE);
        let is_long = self.writes_new(end.saturating_sub(first) * CACHE_LINE);
        if !is_long || !self.is_written_back(emptied) {
            return if is_shared { self.mark_beside_new(range) } else { self.mark(range) };
        }
        // Lines at both ends that others may have a part in.
        let lines = range.lines();
        marks::with(&self.me, |marks| {
            let ends = [lines.start..first, end..lines.end];
            let ends = ends.into_iter().filter(|lines| !lines.is_empty());
            let ends = ends.map(|l| Run { first: l.start, count: l.end - l.start });
            if is_shared { &mut marks.beside } else { &mut marks.runs }.extend(ends);
            marks.new.flushed.push(Run { first, count: end - first });
            marks.new.is_shared |= is_shared;
        });
    }

    /// Writes new lines to their data files; `read` copies the content of one. What may not be there goes to `beside`.
    pub(super) fn write_new(
        &self,
        new: &mut NewRuns,
        beside: &mut Vec<Run>,
        read: &impl Fn(u64, &mut [u8]),
    ) -> io::Result<()> {
        self.leave_taken_places(new);
        if new.is_shared {
            // As in `Pages::fence_entry`: either the entry is seen that names a page, or it sees what was stored.
            fence(Ordering::SeqCst);
            new.flushed = self.leave_named(&new.flushed, self.start_at(), beside);
        }
        let NewRuns { flushed, written, content, .. } = new;
        for run in flushed {
            let (mut first, end) = (run.first, run.first + run.count);
            while first < end {
                let count = (end - first).min(DIRECT_LINES_MAX);
                let Target { number, file, offset, length, unsynced } =
                    self.target(first * CACHE_LINE, count * CACHE_LINE)?;
                content.resize(length as usize, 0);
                for (line, into) in (first..).zip(content.chunks_exact_mut(CACHE_LINE as usize)) {
                    read(line * CACHE_LINE, into);
                }
                file.write_at(offset, content)?;
                // Behind the write: a sync that sees it unset would not cover the lines. Before their entry: a sync that
                // covers that sees it.
                unsynced.store(true, Ordering::SeqCst);
                let run = Run { first, count: length / CACHE_LINE };
                let checksum = Direct::checksum_of(content, self.header.journal_id);
                let line_in_file = offset / CACHE_LINE;
                written.push(Direct { run, file: number, line_in_file, checksum });
                self.direct_bytes.fetch_add(length, Ordering::Relaxed);
                first += run.count;
            }
        }
        Ok(())
    }

    /// The parts of runs whose pages no entry of others behind `since` names, as far as they are long enough. The others go to
    /// `named`.
    fn leave_named(&self, all: &[Run], since: u64, named: &mut Vec<Run>) -> Vec<Run> {
        let mut parts: Vec<(bool, Run)> = Vec::new();
        for run in all {
            let (mut first, end) = (run.first, run.first + run.count);
            while first < end {
                let (next, is_named) = self.page_of(first, since);
                let count = next.min(end) - first;
                match parts.last_mut() {
                    Some((before, part))
                        if *before == is_named && part.first + part.count == first =>
                    {
                        part.count += count;
                    }
                    _ => parts.push((is_named, Run { first, count })),
                }
                first += count;
            }
        }
        let is_long = |run: &Run| self.writes_new(run.count * CACHE_LINE);
        let (unnamed, others): (Vec<_>, _) =
            parts.into_iter().partition(|(is_named, run)| !is_named && is_long(run));
        named.extend(others.into_iter().map(|(_, run)| run));
        unnamed.into_iter().map(|(_, run)| run).collect()
    }

    /// The first line behind the page of a line, and whether an entry of others behind `since` may name that page.
    fn page_of(&self, line: u64, since: u64) -> (u64, bool) {
        let Some(pages) = self.pages.get() else { return (line + 1, true) };
        let page_lines = pages.page_bytes() / CACHE_LINE;
        let is_named = pages.is_named_by_others(line / page_lines, since);
        ((line / page_lines + 1) * page_lines, is_named && !pages.skips(steps::UNNAMED))
    }

    /// Makes lines durable that were written to their place before the call.
    pub(super) fn sync_new(&self) -> io::Result<()> {
        if self.skips(steps::DIRECT_SYNC) {
            return Ok(());
        }
        for file in self.take_unsynced() {
            self.sync_data_file(&*file)?;
        }
        Ok(())
    }

    /// Syncs a data file.
    ///
    /// # Errors
    /// When it cannot be synced, now or earlier: nothing more is written then.
    pub(crate) fn sync_data_file(&self, file: &dyn File) -> io::Result<()> {
        self.sync_data(|| file.sync().map_err(|error| cannot_sync(&error)))
    }

    /// Syncs data files as `sync` does, one thread at a time and none after a failure, as
    /// [`sync_file`](Self::sync_file) does and for the same reason.
    pub(super) fn sync_data(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let _one = lock(&self.data_sync);
        self.refuse_failure()?;
        sync().inspect_err(|error| self.fail(error))
    }

    pub(super) fn skips(&self, step: crate::Site) -> bool {
        self.pages.get().is_some_and(|pages| pages.skips(step))
    }
}
