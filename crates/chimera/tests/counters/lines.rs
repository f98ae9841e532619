//! Which lines an operation on records of any size must flush, after docs/FORMAT.md: a model that knows
//! sizes only.

use std::collections::BTreeSet;

/// Bytes of a page and of a block, as they are by default.
pub(crate) const PAGE: u64 = 4096;
pub(crate) const BLOCK: u64 = 6 * PAGE;

/// Lines flushed, and flushes of lines that the same operation had flushed before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flushes {
    pub(crate) lines: u64,
    pub(crate) again: u64,
}

impl std::ops::AddAssign for Flushes {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.again += other.again;
    }
}

/// The lines of one operation.
#[derive(Default)]
pub(crate) struct Once {
    seen: BTreeSet<u64>,
    flushes: Flushes,
}

impl Once {
    /// `bytes` at `at` are flushed.
    pub(crate) fn flush(&mut self, at: u64, bytes: u64) -> &mut Self {
        for line in at / 64..(at + bytes).div_ceil(64) {
            let is_new = self.seen.insert(line);
            self.flushes.lines += u64::from(is_new);
            self.flushes.again += u64::from(!is_new);
        }
        self
    }

    /// A record that comes into force: all but the line of its lengths, with the zero behind it, then this
    /// line.
    pub(crate) fn record(&mut self, at: u64, bytes: u64) -> &mut Self {
        let (next_line, end) = ((at + 1).next_multiple_of(64), at + with_end(at, bytes));
        if next_line < end {
            self.flush(next_line, end - next_line);
        }
        self.flush(at, 8)
    }

    /// The word that says whether a record counts.
    pub(crate) fn retire(&mut self, at: u64) -> &mut Self {
        self.flush(at, 8)
    }

    pub(crate) fn flushes(&self) -> Flushes {
        self.flushes
    }
}

/// Fences of a record that comes into force.
pub(crate) fn fences(at: u64, bytes: u64) -> u64 {
    touched(at, with_end(at, bytes)).min(2)
}

/// Bytes of a record and of the zero behind it, where its page has room for one.
fn with_end(at: u64, bytes: u64) -> u64 {
    let is_ended = bytes + 8 <= PAGE && at % PAGE + bytes < PAGE;
    bytes + if is_ended { 8 } else { 0 }
}

/// Lines that a range touches.
pub(crate) fn touched(at: u64, bytes: u64) -> u64 {
    (at + bytes).div_ceil(64) - at / 64
}

fn padded(bytes: usize) -> u64 {
    bytes.next_multiple_of(8) as u64
}

/// Bytes of a record whose value lies beside its key.
pub(crate) fn span(key: usize, value: usize) -> u64 {
    24 + padded(key) + padded(value)
}

/// Bytes of a chunk.
pub(crate) fn chunk_span(bytes: u64) -> u64 {
    40 + bytes.next_multiple_of(8)
}

/// Pages, or blocks that are one page, as one session fills them: places are counted from the first one,
/// and each begins where a line does.
pub(crate) struct Log {
    length: u64,
    page: u64,
    tail: u64,
}

impl Log {
    /// Pages of so many bytes, all of them empty.
    pub(crate) fn new(length: u64) -> Self {
        Self { length, page: 0, tail: 8 }
    }

    /// A place for so many bytes.
    pub(crate) fn take(&mut self, bytes: u64) -> u64 {
        if self.tail + bytes > self.length {
            self.next_page();
        }
        let at = self.page * self.length + self.tail;
        self.tail += bytes;
        at
    }

    pub(crate) fn next_page(&mut self) {
        (self.page, self.tail) = (self.page + 1, 8);
    }

    /// Bytes left in the page.
    pub(crate) fn left(&self) -> u64 {
        self.length - self.tail
    }

    /// Pages begun.
    pub(crate) fn pages(&self) -> u64 {
        self.page + 1
    }
}
