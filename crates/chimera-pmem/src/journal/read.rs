//! Reading entries back: at open, when nothing in them is to be trusted, and for a checkpoint.

use std::collections::VecDeque;
use std::io;

use super::damage::Damage;
use super::entry::{
    DIRECT_LINES_MAX, Direct, END_MARK_BYTES, Entry, HEADER_BYTES, Says, bytes_max, end_mark,
    length, word,
};
use super::header::{DATA_AT, Header};
use super::lines::Lines;
use super::mark::MarkState;
use crate::CACHE_LINE;
use crate::environment::File;

/// Bytes that entries never fill: the end mark behind them, and the one that the next life begins with.
pub(super) const SPARE_BYTES: u64 = 2 * END_MARK_BYTES as u64;

/// Bytes to read at a time.
const CHUNK_BYTES: usize = 512 << 10;

/// The ring and its capacity are whole pages of so many bytes, or more.
const PAGE_BYTES: u64 = 4096;

/// Reads the data file of this number from a byte on. The superblock's file is number 0, then come the segments.
pub type ReadData<'a> = &'a dyn Fn(u16, u64, &mut [u8]) -> io::Result<()>;

/// Lines that lie in their place, and may not be durable there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewLines {
    /// Number of the data file.
    pub file: u16,
    /// Where they begin in it, in bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// A direct run of an entry.
struct FoundDirect {
    direct: Direct,
    /// Where the entry begins, and how many lines the entries before it have.
    position: u64,
    lines_before: usize,
}

/// What lies in a journal that was found.
#[derive(Debug)]
pub struct Contents {
    header: Header,
    lines: Lines,
    /// Of entries that no sync is known to cover.
    new_lines: Vec<NewLines>,
    /// Where its entries end.
    end: u64,
    /// Entries before it are durable, as a later one says.
    synced: u64,
    /// What some entries say of lines in their place is durable there, as only a later one says, which may be lost.
    is_placed: bool,
    damage: Option<Damage>,
    /// Everything that was written is there.
    is_all_there: bool,
}

impl Contents {
    /// Reads a journal: the longest prefix of its entries without a gap. `None` when the file never
    /// came into use, so that nothing is in it. [`damage`](Self::damage) says whether more should be there.
    ///
    /// Entries that were written at this start of the machine, `boot_id`, are all there, in the order in which they
    /// were written, up to an end mark. Of others a power loss may have taken those that were not durable. Lines that lie in
    /// their place are compared with what entries say of them, where no later entry says that they were durable.
    ///
    /// # Errors
    /// `InvalidData` when no header is whole; `Unsupported`, with an [`OtherVersion`](super::OtherVersion); what the
    /// file says.
    ///
    /// # Cost
    /// Reads the journal, and of the data files what entries after the last known sync have written there; memory for what
    /// it holds.
    pub fn read(file: &dyn File, boot_id: u64, data: ReadData<'_>) -> io::Result<Option<Self>> {
        let Some(header) = Header::read(file)? else { return Ok(None) };
        let mut lines = Lines::default();
        let mut new_lines = Vec::new();
        if header.is_closed {
            let (end, synced, is_placed) = (header.start, header.start, false);
            let (damage, is_all_there) = (None, false);
            let contents =
                Self { header, lines, new_lines, end, synced, is_placed, damage, is_all_there };
            return Ok(Some(contents));
        }
        let (mut end, mut synced, mut placed) = (header.start, header.start, header.placed);
        let (mut found, mut named) = (VecDeque::new(), 0);
        let mut walk = Walk::new(file, header, header.start, header.start + header.capacity);
        while let Some(entry) = walk.next()? {
            // Nothing is said of an entry before it is written.
            match entry.says() {
                Says::Synced(position) => synced = synced.max(position.min(end)),
                Says::Placed(position) => placed = placed.max(position.min(end)),
            }
            let known = placed.max(synced);
            while found.front().is_some_and(|found: &FoundDirect| found.position < known) {
                found.pop_front();
            }
            let (position, lines_before) = (end, lines.count());
            let direct = entry.direct();
            let direct = direct.filter(|_| position >= header.placed);
            let before = found.len();
            found.extend(direct.map(|direct| FoundDirect { direct, position, lines_before }));
            named += found.len() - before;
            end += entry.length();
            for (line, content) in entry.lines() {
                lines.push(line, content);
            }
        }
        let placed = synced.max(placed);
        found.retain(|found| found.position >= placed);
        let is_placed = named > found.len();
        let is_all_there = header.boot_id != 0 && header.boot_id == boot_id;
        if let Some(first) = first_that_differs(&found, header.journal_id, is_all_there, data)? {
            let FoundDirect { position, lines_before, .. } = found[first];
            end = position;
            lines.truncate(lines_before);
            found.retain(|found| found.position < position);
            walk.go_back(position);
        }
        new_lines.extend(found.iter().map(|found| found.direct.place()));
        let damage = walk.damage(is_all_there)?;
        lines.fold();
        Ok(Some(Self { header, lines, new_lines, end, synced, is_placed, damage, is_all_there }))
    }

    /// What is damaged, if anything is: entries are lost then.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Whether it was in use with this mark as the pool kept it, and reaches as far. Where the data files may hold more
    /// than it does, or have nothing to do with it, it holds nothing from now on.
    ///
    /// # Errors
    /// What contradicts the mark.
    pub fn compare(&mut self, kept: MarkState) -> Result<(), Damage> {
        let Self { header, end, .. } = self;
        let at = DATA_AT + *end % header.capacity;
        let (what, bytes, is_useless) = match kept {
            MarkState::Unused if *end > header.start => {
                ("it holds changes of an earlier moment: none was in use", 0, true)
            }
            MarkState::Used { journal_id, .. } if journal_id != header.journal_id => {
                ("it belongs to another pool, or is not the one that was in use last", 0, true)
            }
            MarkState::Used { position, .. } if *end < position => {
                ("it is of an earlier moment than the other files", position - *end, true)
            }
            MarkState::Used { tail, .. } if self.is_all_there && *end < tail => (
                "it ends before entries that were written, and no power was lost",
                tail - *end,
                false,
            ),
            MarkState::Unused | MarkState::Used { .. } => return Ok(()),
        };
        if is_useless {
            self.lines = Lines::default();
            self.new_lines.clear();
        }
        Err(Damage { what: what.to_owned(), at, entries: u64::from(bytes > 0), bytes })
    }

    /// What a mark would say of it.
    pub fn as_kept(&self) -> MarkState {
        let Header { journal_id, start, .. } = self.header;
        MarkState::Used { journal_id, position: start, tail: start }
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

    /// Where its entries end.
    #[cfg(test)]
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// What it holds, but for what lies in its place.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// What lies in its place in the data files, and may not be durable there. Before the journal is [made
    /// durable](Self::make_durable) this is to be written again and synced: after a sync that failed even pages that the kernel
    /// takes for clean may not be durable.
    pub fn new_lines(&self) -> &[NewLines] {
        &self.new_lines
    }

    /// Gives out what it holds.
    pub fn into_lines(self) -> Lines {
        self.lines
    }

    /// Makes what was read durable, before anything of it may reach the data files: they must not be
    /// ahead of the journal. What [lies there](Self::new_lines) is durable, so that nobody has to look at it again.
    ///
    /// After the end of a process it may be in the kernel's memory only; and after a sync that failed even pages that the
    /// kernel takes for clean may be, so they are written again. Not those before the last sync that succeeded: an entry
    /// behind it says where that was, and none is appended after one that failed.
    ///
    /// # Errors
    /// What the file says.
    pub fn make_durable(&self, file: &dyn File) -> io::Result<()> {
        let capacity = self.header.capacity;
        let mut chunk = Vec::new();
        // From the beginning of the page that the last sync ended in.
        let synced = self.synced - self.synced % PAGE_BYTES;
        let mut position = self.header.start.max(synced);
        while position < self.end {
            let at = position % capacity;
            let count = (self.end - position).min(capacity - at).min(CHUNK_BYTES as u64);
            chunk.resize(count as usize, 0);
            file.read_at(DATA_AT + at, &mut chunk)?;
            file.write_at(DATA_AT + at, &chunk)?;
            position += count;
        }
        file.sync()?;
        // Also where an entry said so that lies behind the end: the next mark may be written over it.
        if self.new_lines.is_empty() && !self.is_placed {
            return Ok(());
        }
        Header { placed: self.end, ..self.header }.write(file)
    }

    /// Empties the journal, once what it holds is durable in the data files, for use at this start of the machine. No
    /// entry that is in the file now, read or not, is ever replayed again. One that was closed in order has no more than
    /// `capacity_max` bytes from then on.
    ///
    /// # Errors
    /// What the file says.
    ///
    /// # Durability
    /// Durable on return.
    pub fn empty(&self, file: &dyn File, boot_id: u64, capacity_max: u64) -> io::Result<()> {
        // Entries behind a gap may have survived: their positions are left behind too. The new end mark lies behind the
        // old one, so that the old header is right until the new one is in force.
        let start = self.end + self.header.capacity + END_MARK_BYTES as u64;
        // Of one that is closed no end mark matters until then.
        let is_longer = self.header.is_closed && self.header.capacity > capacity_max;
        let capacity = if is_longer { capacity_max } else { self.header.capacity };
        if self.header.is_closed && self.header.start == 0 {
            // The process that made it may have ended before its header was durable.
            self.header.write_first(file)?;
        }
        Header { start, is_closed: false, boot_id, capacity, ..self.header }.begin(file)
    }
}

impl Direct {
    fn place(&self) -> NewLines {
        let (offset, length) = (self.line_in_file * CACHE_LINE, self.run.count * CACHE_LINE);
        NewLines { file: self.file, offset, length }
    }
}

/// The first direct run whose lines are not what its entry says. Those of a place that was taken may be any, unless
/// everything is there that was stored.
///
/// # Errors
/// What a file says, but that it is not there or ends before.
fn first_that_differs(
    found: &VecDeque<FoundDirect>,
    journal_id: u64,
    is_all_there: bool,
    data: ReadData<'_>,
) -> io::Result<Option<usize>> {
    let mut content = vec![0; (DIRECT_LINES_MAX * CACHE_LINE) as usize];
    for (index, FoundDirect { direct, .. }) in found.iter().enumerate() {
        if direct.is_taken() {
            if is_all_there {
                continue;
            }
            return Ok(Some(index));
        }
        let NewLines { file, offset, length } = direct.place();
        let content = &mut content[..length as usize];
        match data(file, offset, content) {
            Ok(()) if Direct::checksum_of(content, journal_id) == direct.checksum => {}
            Err(error) if !is_missing(&error) => return Err(error),
            Ok(()) | Err(_) => return Ok(Some(index)),
        }
    }
    Ok(None)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
}

/// Reads the bytes at `position` of the ring.
fn read_ring(file: &dyn File, capacity: u64, position: u64, into: &mut [u8]) -> io::Result<()> {
    let at = position % capacity;
    let head = (capacity - at).min(into.len() as u64) as usize;
    let (head, rest) = into.split_at_mut(head);
    file.read_at(DATA_AT + at, head)?;
    file.read_at(DATA_AT, rest)
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
    /// The next entry names lines that are not there.
    has_lost_lines: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(file: &'a dyn File, header: Header, position: u64, end: u64) -> Self {
        let (chunk, has_lost_lines) = (Vec::new(), false);
        Self { file, header, position, end, chunk, chunk_at: position, has_lost_lines }
    }

    /// Of the next entry.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The entry at `position` names lines that are not in their place: so entries end before it.
    fn go_back(&mut self, position: u64) {
        self.position = position;
        self.has_lost_lines = true;
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

    /// The word at `position`, where there is one.
    fn word(&mut self, position: u64) -> io::Result<Option<u64>> {
        let at = self.load(position, 8)?;
        Ok(at.and_then(|at| word(&self.chunk, at)))
    }

    fn is_end_mark(&mut self, position: u64) -> io::Result<bool> {
        Ok(self.word(position)? == Some(end_mark(position, self.header.journal_id)))
    }

    /// Where the walk ended, a power loss may have left a gap; but not where a later entry says that
    /// the journal had been synced beyond. Where all that was written is there, only an end mark is an end, and no
    /// entry lies behind it.
    fn damage(mut self, is_all_there: bool) -> io::Result<Option<Damage>> {
        let gap = self.position;
        let is_end = is_all_there && self.is_end_mark(gap)?;
        let (mut entries, mut end, mut was_durable) = (0, gap, false);
        let mut position = gap + 8;
        while position < self.end {
            position += match self.find(position)? {
                Some(range) => {
                    let length = range.len() as u64;
                    let entry = Entry::check(&self.chunk[range], self.header.journal_id);
                    let says = entry.map(|entry| entry.says());
                    was_durable |= matches!(says, Some(Says::Synced(synced)) if synced > gap);
                    entries += 1;
                    end = position + length;
                    length
                }
                None => 8,
            };
        }
        let at = DATA_AT + gap % self.header.capacity;
        let what = match is_all_there {
            true if self.has_lost_lines => format!(
                "what its entry at byte {at} says of the other files is not there, and no power was lost"
            ),
            true if !is_end => {
                format!("its entry at byte {at} is not whole, and no power was lost")
            }
            true if entries > 0 => format!("it ends at byte {at}, and has entries behind that"),
            false if was_durable => format!("its entry at byte {at} was durable and is not whole"),
            _ => return Ok(None),
        };
        let bytes = self.lost_bytes(gap, end)?;
        // Those behind the gap, and the one at it, unless an end mark says that none is there.
        let entries = entries + u64::from(!is_end);
        Ok(Some(Damage { what, at, entries, bytes }))
    }

    /// Bytes of entries from `gap` on, the last whole one of which ends at `end`.
    fn lost_bytes(&mut self, gap: u64, end: u64) -> io::Result<u64> {
        let mut position = end;
        while position < self.end {
            if self.is_end_mark(position)? {
                return Ok(position - gap);
            }
            position += 8;
        }
        let header = self.load(gap, HEADER_BYTES)?.map(|at| &self.chunk[at..at + HEADER_BYTES]);
        let most = bytes_max(self.header.capacity);
        let first = header.and_then(|header| length(header, gap, most)).unwrap_or_default();
        Ok((end - gap).max(first as u64))
    }
}
