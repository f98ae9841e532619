//! From a fence to an entry.

use std::io;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};

use super::entry::{END_MARK_BYTES, Left, PLACED_BYTES, Place, Plan, Run, Says, bytes_max};
use super::header::DATA_AT;
use super::{Journal, lock, marks, read};
use crate::environment::File;
use crate::mapping::Window;
use crate::pages::Pages;
use crate::{CACHE_LINE, Extent};

/// What the writer of entries uses again and again.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) plan: Plan,
    buffer: Vec<u8>,
    pub(super) ring: Ring,
}

impl Tail {
    pub(super) fn new(ring: Ring) -> Self {
        Self { plan: Plan::default(), buffer: Vec::new(), ring }
    }
}

/// Where entries are written to.
#[derive(Debug)]
pub(super) struct Ring {
    file: Arc<dyn File>,
    capacity: u64,
    /// The ring, mapped; entries are written by `File::write_at` where there is nothing to map.
    window: Option<Arc<Window>>,
}

impl Ring {
    /// Maps the ring of a file that is long enough.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub(super) fn map(file: &Arc<dyn File>, capacity: u64) -> io::Result<Self> {
        // A copy of a journal may have holes. A write to one through a mapping would be a SIGBUS on a full
        // device; without a mapping it is an error.
        let has_storage = file.allocate(0, DATA_AT + capacity).is_ok();
        let descriptor = file.descriptor().filter(|_| has_storage);
        let map = |descriptor| Window::map(descriptor, DATA_AT, capacity, false);
        let window = descriptor.map(map).transpose()?.map(Arc::new);
        Ok(Self { file: file.clone(), capacity, window })
    }

    /// The ring of a file that nobody stores to any more: through no mapping.
    pub(super) fn unmapped(file: &Arc<dyn File>, capacity: u64) -> Self {
        Self { file: file.clone(), capacity, window: None }
    }

    /// What it is mapped by.
    pub(super) fn window(&self) -> Weak<Window> {
        self.window.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// Writes bytes at a position, around the end of the ring where they meet it.
    fn write(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let at = position % self.capacity;
        let head = (self.capacity - at).min(bytes.len() as u64) as usize;
        let (head, rest) = bytes.split_at(head);
        self.write_at(at, head)?;
        self.write_at(0, rest)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match &self.window {
            _ if bytes.is_empty() => Ok(()),
            Some(window) => {
                window.store(at as usize, bytes);
                Ok(())
            }
            None => self.file.write_at(DATA_AT + at, bytes),
        }
    }
}

impl Journal {
    /// Notes that the calling thread has flushed the lines of `range`.
    #[inline]
    pub(crate) fn mark(&self, range: Extent) {
        let lines = range.lines();
        if lines.is_empty() {
            return;
        }
        let run = Run { first: lines.start, count: lines.end - lines.start };
        marks::with(&self.me, |marks| marks.runs.push(run));
    }

    /// As [`mark`](Self::mark), of lines beside new ones.
    #[inline]
    pub(crate) fn mark_beside_new(&self, range: Extent) {
        let lines = range.lines();
        if !lines.is_empty() {
            let run = Run { first: lines.start, count: lines.end - lines.start };
            marks::with(&self.me, |marks| marks.beside.push(run));
        }
    }

    /// Appends the lines that the calling thread has flushed since it was here last. `read` copies the
    /// content of a line, given its offset.
    ///
    /// A failure is kept for [`settle`](Self::settle) to report.
    ///
    /// # Cost
    /// One lock, a checksum and two copies of the lines. Waits for a checkpoint when the journal is
    /// full, and when pages take far more memory than they may.
    pub(crate) fn append(&self, read: impl Fn(u64, &mut [u8])) {
        marks::with(&self.me, |marks| {
            if marks.is_empty() {
                return;
            }
            match self.append_marks(marks, &read) {
                Ok(end) => marks.last = marks.last.max(end),
                Err(error) => self.fail(&error),
            }
            marks.clear();
        });
    }

    /// Where the last entry ended.
    fn append_marks(
        &self,
        marks: &mut marks::Marks,
        read: &impl Fn(u64, &mut [u8]),
    ) -> io::Result<u64> {
        if !marks.new.is_empty() && !self.has_failed.load(Ordering::Acquire) {
            self.write_new(&mut marks.new, &mut marks.beside, read)?;
        }
        let is_apart = marks.gather();
        let marks::Marks { runs, new, others, .. } = marks;
        let left = Left { direct: new.written(), runs, cut: 0 };
        self.append_runs(left, is_apart.then_some(others), read)
    }

    /// Where the last entry ended. `others` are the lines that are neither new nor beside such, where not all are.
    fn append_runs(
        &self,
        mut left: Left<'_>,
        others: Option<&[Run]>,
        read: &impl Fn(u64, &mut [u8]),
    ) -> io::Result<u64> {
        let mut end = 0;
        while !left.is_empty() {
            self.bound_pages()?;
            let mut tail = lock(&self.tail);
            let before = left;
            tail.plan.take(&mut left, bytes_max(self.capacity()));
            let left_out = self.leave_taken_out(&mut tail.plan);
            let bytes = if tail.plan.is_empty() { 0 } else { tail.plan.bytes() as u64 };
            if self.has_failed.load(Ordering::Acquire) {
                return Ok(end);
            }
            if bytes > self.free_bytes() {
                drop(tail);
                left = before;
                self.make_room(bytes)?;
                continue;
            }
            self.direct_bytes.fetch_add(left_out, Ordering::Relaxed);
            if bytes > 0 {
                end = self.write_entry(&mut tail, others, Says::Synced(self.durable()), read)?;
            }
        }
        Ok(end)
    }

    /// Writes the entry that is planned behind the last one, for which there is room; where it ends.
    ///
    /// The pages of its lines are named before the lines are read: see `pages`. Word 0 goes last, over the end
    /// mark of the entry before. So a process that is killed here leaves a whole entry or none, and an end mark behind
    /// the last one either way.
    pub(super) fn write_entry(
        &self,
        tail: &mut Tail,
        others: Option<&[Run]>,
        says: Says,
        read: &impl Fn(u64, &mut [u8]),
    ) -> io::Result<u64> {
        let Tail { plan, buffer, ring } = tail;
        let position = self.tail_at.load(Ordering::Relaxed);
        let place = Place { journal_id: self.header.journal_id, position, says };
        if let Some(pages) = self.pages.get() {
            let (end, reached) = (position + plan.bytes() as u64, self.start_at());
            let bytes = |run: &Run| (run.first * CACHE_LINE, run.count * CACHE_LINE);
            let name = |(at, length)| pages.name(at, length, end);
            let beside = |(at, length)| pages.name_beside_new(at, length, end, reached);
            match others {
                None => plan.runs().for_each(|run| name(bytes(run))),
                Some(others) => {
                    plan.runs().for_each(|run| beside(bytes(run)));
                    for run in others {
                        name(bytes(run));
                    }
                }
            }
            Pages::fence_entry();
        }
        plan.encode(buffer, place, |line, into| read(line * CACHE_LINE, into));
        let end = position + (buffer.len() - END_MARK_BYTES) as u64;
        let (first, rest) = buffer.split_at(8);
        ring.write(position + 8, rest)?;
        // The kernel has what a killed process stored, in the order in which it was stored.
        fence(Ordering::Release);
        ring.write(position, first)?;
        if let Some(tail) = self.kept_tail.get() {
            fence(Ordering::Release);
            tail.keep(end)?;
        }
        self.tail_at.store(end, Ordering::Release);
        Ok(end)
    }

    /// Room behind the last entry; behind the end marks of this life and of the next, and two entries that say what is in its
    /// place: that of the sync under way, and that of the next one, for a place that is taken meanwhile. Before it there is no
    /// other, as whoever takes a place needs room beside that.
    pub(super) fn free_bytes(&self) -> u64 {
        let spare = read::SPARE_BYTES + 2 * PLACED_BYTES;
        (self.capacity() - spare).saturating_sub(self.pending_bytes())
    }
}
