//! From a fence to an entry.

use std::io;
use std::sync::atomic::Ordering;

use super::entry::{Place, Plan, bytes_max};
use super::header::DATA_AT;
use super::{Journal, lock, marks};
use crate::{CACHE_LINE, Extent};

/// What the writer of entries uses again and again.
#[derive(Debug, Default)]
pub(super) struct Tail {
    plan: Plan,
    buffer: Vec<u8>,
}

impl Journal {
    /// Notes that the calling thread has flushed the lines of `range`.
    #[inline]
    pub(crate) fn mark(&self, range: Extent) {
        let lines = range.lines();
        if lines.is_empty() {
            return;
        }
        let run = marks::Run { first: lines.start, count: lines.end - lines.start };
        marks::with(&self.me, |marks| marks.runs.push(run));
    }

    /// Appends the lines that the calling thread has flushed since it was here last. `read` copies the
    /// content of a line, given its offset.
    ///
    /// A failure is kept for [`settle`](Self::settle) to report.
    ///
    /// # Cost
    /// One lock, a checksum and two copies of the lines. Waits for a checkpoint when the journal is
    /// full.
    pub(crate) fn append(&self, read: impl Fn(u64, &mut [u8])) {
        marks::with(&self.me, |marks| {
            if marks.runs.is_empty() {
                return;
            }
            marks::join(&mut marks.runs);
            match self.append_runs(&marks.runs, &read) {
                Ok(end) => marks.last = marks.last.max(end),
                Err(error) => self.fail(&error),
            }
            marks.runs.clear();
        });
    }

    /// Where the last entry ended.
    fn append_runs(
        &self,
        mut runs: &[marks::Run],
        read: &impl Fn(u64, &mut [u8]),
    ) -> io::Result<u64> {
        let most = bytes_max(self.header.capacity);
        let mut cut = 0;
        let mut end = 0;
        while !runs.is_empty() {
            let mut tail = lock(&self.tail);
            let before = (runs, cut);
            tail.plan.take(&mut runs, &mut cut, most);
            let bytes = tail.plan.bytes() as u64;
            if self.has_failed.load(Ordering::Acquire) {
                return Ok(end);
            }
            if bytes > self.free_bytes() {
                drop(tail);
                (runs, cut) = before;
                self.make_room(bytes)?;
                continue;
            }
            end = self.write_entry(&mut tail, read)?;
        }
        Ok(end)
    }

    /// Writes the entry that is planned behind the last one, for which there is room; where it ends.
    fn write_entry(&self, tail: &mut Tail, read: &impl Fn(u64, &mut [u8])) -> io::Result<u64> {
        let Tail { plan, buffer } = tail;
        let position = self.tail_at.load(Ordering::Relaxed);
        let place = Place { journal_id: self.header.journal_id, position, synced: self.durable() };
        plan.encode(buffer, place, |line, into| read(line * CACHE_LINE, into));
        let at = position % self.header.capacity;
        let end = position + buffer.len() as u64;
        let head = (self.header.capacity - at).min(buffer.len() as u64) as usize;
        let (head, rest) = buffer.split_at(head);
        self.write_ring(at, head)?;
        self.write_ring(0, rest)?;
        self.tail_at.store(end, Ordering::Release);
        Ok(end)
    }

    fn write_ring(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match &self.ring {
            _ if bytes.is_empty() => Ok(()),
            Some(ring) => {
                ring.store(at as usize, bytes);
                Ok(())
            }
            None => self.file.write_at(DATA_AT + at, bytes),
        }
    }

    /// Room behind the last entry.
    pub(super) fn free_bytes(&self) -> u64 {
        self.header.capacity.saturating_sub(self.pending_bytes())
    }
}
