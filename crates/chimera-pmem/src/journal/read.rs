//! Reading entries back: at open, when nothing in them is to be trusted, and for a checkpoint.

use std::io;

use super::damaged;
use super::entry::{BYTES_MIN, Entry, HEADER_BYTES, bytes_max, length};
use super::header::{DATA_AT, Header};
use super::lines::Lines;
use crate::environment::File;

/// Bytes to read at a time.
const CHUNK_BYTES: usize = 512 << 10;

/// What lies in a journal that was found.
#[derive(Debug)]
pub struct Contents {
    header: Header,
    lines: Lines,
    /// Where its entries end.
    end: u64,
}

impl Contents {
    /// Reads a journal: the longest prefix of its entries without a gap. `None` when the file never
    /// came into use, so that nothing is in it.
    ///
    /// # Errors
    /// `InvalidData` when the journal is damaged; `Unsupported` for a later version; what the file
    /// says.
    ///
    /// # Cost
    /// Reads the journal; memory for what it holds.
    pub fn read(file: &dyn File) -> io::Result<Option<Self>> {
        let Some(header) = Header::read(file)? else { return Ok(None) };
        let mut lines = Lines::default();
        if header.is_closed {
            return Ok(Some(Self { header, lines, end: header.start }));
        }
        let mut walk = Walk::new(file, header, header.start, header.start + header.capacity);
        while let Some(entry) = walk.next()? {
            for (line, content) in entry.lines() {
                lines.push(line, content);
            }
        }
        let end = walk.position();
        walk.refuse_damage()?;
        lines.fold();
        Ok(Some(Self { header, lines, end }))
    }

    /// The pool it belongs to.
    pub fn pool_id(&self) -> u64 {
        self.header.pool_id
    }

    /// Whether its store was closed in order: the files alone hold everything.
    pub fn is_closed(&self) -> bool {
        self.header.is_closed
    }

    /// Bytes it has for entries.
    pub fn capacity(&self) -> u64 {
        self.header.capacity
    }

    /// What it holds.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Gives out what it holds.
    pub fn into_lines(self) -> Lines {
        self.lines
    }

    /// Makes what was read durable, before anything of it may reach the data files: they must not be
    /// ahead of the journal. After the end of a process it may be in the kernel's memory only; and after a sync that
    /// failed even pages that the kernel takes for clean may be, so all are written again.
    ///
    /// # Errors
    /// What the file says.
    pub fn make_durable(&self, file: &dyn File) -> io::Result<()> {
        let capacity = self.header.capacity;
        let mut chunk = Vec::new();
        let mut position = self.header.start;
        while position < self.end {
            let at = position % capacity;
            let count = (self.end - position).min(capacity - at).min(CHUNK_BYTES as u64);
            chunk.resize(count as usize, 0);
            file.read_at(DATA_AT + at, &mut chunk)?;
            file.write_at(DATA_AT + at, &chunk)?;
            position += count;
        }
        file.sync()
    }

    /// Empties the journal, once what it holds is durable in the data files. No entry that is in the
    /// file now, read or not, is ever replayed again.
    ///
    /// # Errors
    /// What the file says.
    ///
    /// # Durability
    /// Durable on return.
    pub fn empty(&self, file: &dyn File) -> io::Result<()> {
        // Entries behind a gap may have survived: their positions are left behind too.
        let start = self.header.start + self.header.capacity;
        Header { start, is_closed: false, ..self.header }.write(file)
    }
}

/// Reads the bytes at `position` of the ring.
fn read_ring(file: &dyn File, capacity: u64, position: u64, into: &mut [u8]) -> io::Result<()> {
    let at = position % capacity;
    let head = (capacity - at).min(into.len() as u64) as usize;
    let (head, rest) = into.split_at_mut(head);
    file.read_at(DATA_AT + at, head)?;
    if rest.is_empty() { Ok(()) } else { file.read_at(DATA_AT, rest) }
}

/// A walk over entries, one after the other.
pub(super) struct Walk<'a> {
    file: &'a dyn File,
    header: Header,
    /// Of the next entry.
    position: u64,
    /// Entries end here at the latest.
    end: u64,
    chunk: Vec<u8>,
    /// Position of the chunk.
    chunk_at: u64,
}

impl<'a> Walk<'a> {
    pub(super) fn new(file: &'a dyn File, header: Header, position: u64, end: u64) -> Self {
        Self { file, header, position, end, chunk: Vec::new(), chunk_at: position }
    }

    /// Of the next entry.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Makes `length` bytes at `position` lie in the chunk; `None` when they reach beyond the end.
    fn load(&mut self, position: u64, length: usize) -> io::Result<Option<usize>> {
        if length as u64 > self.end.saturating_sub(position) {
            return Ok(None);
        }
        let inside = position.checked_sub(self.chunk_at).map(|at| at as usize);
        if let Some(at) = inside.filter(|at| at + length <= self.chunk.len()) {
            return Ok(Some(at));
        }
        let count = (self.end - position).min(CHUNK_BYTES.max(length) as u64);
        self.chunk.resize(count as usize, 0);
        self.chunk_at = position;
        read_ring(self.file, self.header.capacity, position, &mut self.chunk)?;
        Ok(Some(0))
    }

    /// Where in the chunk the entry at `position` is, if there is one.
    fn find(&mut self, position: u64) -> io::Result<Option<std::ops::Range<usize>>> {
        let Some(at) = self.load(position, HEADER_BYTES)? else { return Ok(None) };
        let most = bytes_max(self.header.capacity);
        let Some(bytes) = length(&self.chunk[at..at + HEADER_BYTES], position, most) else {
            return Ok(None);
        };
        let Some(at) = self.load(position, bytes)? else { return Ok(None) };
        let is_entry = Entry::check(&self.chunk[at..at + bytes], self.header.journal_id).is_some();
        Ok(is_entry.then_some(at..at + bytes))
    }

    /// The next entry, or `None` where there is none that is whole.
    pub(super) fn next(&mut self) -> io::Result<Option<Entry<'_>>> {
        let Some(range) = self.find(self.position)? else { return Ok(None) };
        let entry = Entry::check(&self.chunk[range], self.header.journal_id);
        if let Some(entry) = &entry {
            self.position += entry.length();
        }
        Ok(entry)
    }

    /// Where the walk ended, a power loss may have left a gap; but not where a later entry says that
    /// the journal had been synced beyond.
    fn refuse_damage(mut self) -> io::Result<()> {
        let gap = self.position;
        let mut position = gap + 8;
        while position + BYTES_MIN as u64 <= self.end {
            if let Some(range) = self.find(position)? {
                let entry = Entry::check(&self.chunk[range], self.header.journal_id);
                if entry.is_some_and(|entry| entry.synced() > gap) {
                    let at = DATA_AT + gap % self.header.capacity;
                    return Err(damaged(format!(
                        "its entry at byte {at} was durable and is not whole"
                    )));
                }
            }
            position += 8;
        }
        Ok(())
    }
}
