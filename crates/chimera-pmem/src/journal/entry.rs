//! An entry: what one fence made durable, as runs of consecutive lines.
//!
//! ```text
//! word 0   XXH3 of everything behind it, seeded by the journal's id
//!      1   position of the entry in the journal
//!      2   position up to which the journal was synced when the entry was written; with PLACED, before which whatever
//!          entries say of lines in their place is durable there
//!      3   low half: bytes of the entry, and PLACED in bit 31; then 16 bits each: number of runs, number of direct runs
//!      4.. one word per run: first line << 16 | number of lines
//!      ... three words per direct run: first line << 16 | number of lines;
//!          number of the data file << 48 | number of the first line in it; XXH3 of the lines, seeded by the journal's id,
//!          or 0 where the place was taken
//!      ... the lines of all runs but direct ones, 64 bytes each
//! ```
//!
//! The lines of a direct run were written to their data file before the entry was. What is stored to a place that was
//! [taken](super::taken) goes to its data file afterwards, and is in no entry. An entry with PLACED may have no runs.
//!
//! Behind the last entry is an *end mark*, in the place of the next entry's word 0. It is stored with the entry
//! before it, and word 0 takes its place as the last store of an entry.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::CACHE_LINE;

/// Bytes of an entry before its runs.
pub(super) const HEADER_BYTES: usize = 32;
/// Bytes of a run's word.
const RUN_BYTES: usize = 8;
/// Bytes of a direct run's words.
const DIRECT_BYTES: usize = 24;
/// Bytes of a line.
const LINE: usize = CACHE_LINE as usize;
/// Smallest entry.
pub(super) const BYTES_MIN: usize = HEADER_BYTES;
/// Bytes of an entry that says what is in its place, and nothing else.
pub(super) const PLACED_BYTES: u64 = HEADER_BYTES as u64;
/// In word 3.
const PLACED: u64 = 1 << 31;
/// Most lines in a run: its low 16 bits. Most runs of an entry of either kind, too.
const RUN_LINES_MAX: u64 = 0xffff;
/// Most lines in a direct run: as many are read and compared together.
pub(super) const DIRECT_LINES_MAX: u64 = 1024;
/// In the second word of a direct run: bits below the number of its file.
const FILE_SHIFT: u32 = 48;

/// Bytes of the end mark.
pub(super) const END_MARK_BYTES: usize = 8;

/// The word at `position` that says that no entry begins there yet. It is right at its own position of its own journal
/// only, and never zero.
pub(super) fn end_mark(position: u64, journal_id: u64) -> u64 {
    xxh3_64_with_seed(&position.to_le_bytes(), journal_id).max(1)
}

/// Most bytes of an entry in a journal of this capacity. Larger fences make several entries.
pub(super) fn bytes_max(capacity: u64) -> usize {
    (capacity / 8).min(256 << 10) as usize
}

/// Most bytes that the direct runs of an entry name there.
pub(super) fn direct_bytes_max(capacity: u64) -> u64 {
    let runs = (bytes_max(capacity) - HEADER_BYTES) / DIRECT_BYTES;
    runs as u64 * DIRECT_LINES_MAX * CACHE_LINE
}

/// Consecutive lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run {
    /// Number of the first line.
    pub(crate) first: u64,
    /// How many.
    pub(crate) count: u64,
}

/// Lines that were written to their data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direct {
    pub(super) run: Run,
    /// Number of the file, and of the first line in it.
    pub(super) file: u16,
    pub(super) line_in_file: u64,
    /// Of the lines; [`TAKEN`](Self::TAKEN) where they are written later.
    pub(super) checksum: u64,
}

impl Direct {
    /// Instead of a checksum: the place was taken, and lines are stored there until a sync.
    pub(super) const TAKEN: u64 = 0;

    /// What says that lines are these.
    pub(super) fn checksum_of(lines: &[u8], journal_id: u64) -> u64 {
        xxh3_64_with_seed(lines, journal_id).max(1)
    }

    pub(super) fn is_taken(&self) -> bool {
        self.checksum == Self::TAKEN
    }

    fn words(&self) -> [u64; 3] {
        let place = u64::from(self.file) << FILE_SHIFT | self.line_in_file;
        [self.run.first << 16 | self.run.count, place, self.checksum]
    }

    fn of(words: [u64; 3]) -> Self {
        let [run, place, checksum] = words;
        let run = Run { first: run >> 16, count: run & RUN_LINES_MAX };
        let line_in_file = place & ((1 << FILE_SHIFT) - 1);
        Self { run, file: (place >> FILE_SHIFT) as u16, line_in_file, checksum }
    }
}

/// What a thread has flushed and no entry holds yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left<'a> {
    pub(super) direct: &'a [Direct],
    pub(super) runs: &'a [Run],
    /// Lines of the first run that an entry holds.
    pub(super) cut: u64,
}

impl Left<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.direct.is_empty() && self.runs.is_empty()
    }
}

/// The runs of the next entry, taken from a list of them.
#[derive(Debug, Default)]
pub(super) struct Plan {
    direct: Vec<Direct>,
    runs: Vec<Run>,
    /// For [`leave_out`](Self::leave_out): no put allocates memory.
    spare: Vec<Run>,
    lines: usize,
}

impl Plan {
    /// Takes as many runs off the front of `from` as an entry of `bytes_max` holds, cutting the last
    /// one where needed.
    pub(super) fn take(&mut self, from: &mut Left<'_>, bytes_max: usize) {
        self.runs.clear();
        self.lines = 0;
        let mut room = bytes_max - HEADER_BYTES;
        let count = from.direct.len().min(room / DIRECT_BYTES);
        let (direct, rest) = from.direct.split_at(count);
        self.direct.clear();
        self.direct.extend_from_slice(direct);
        from.direct = rest;
        room -= count * DIRECT_BYTES;
        while let Some(run) = from.runs.first() {
            let Some(fits) = room.checked_sub(RUN_BYTES + LINE) else { break };
            let left = run.count - from.cut;
            let count = left.min((fits / LINE) as u64 + 1).min(RUN_LINES_MAX);
            self.runs.push(Run { first: run.first + from.cut, count });
            self.lines += count as usize;
            room -= RUN_BYTES + count as usize * LINE;
            if count < left {
                from.cut += count;
            } else {
                from.cut = 0;
                from.runs = &from.runs[1..];
            }
        }
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.direct.is_empty()
    }

    /// Leaves out the lines for which `is_left_out` says so of their page, of so many lines each; how many.
    pub(super) fn leave_out(&mut self, page_lines: u64, is_left_out: impl Fn(u64) -> bool) -> u64 {
        let count = leave_out(&mut self.runs, &mut self.spare, page_lines, is_left_out);
        self.lines -= count as usize;
        count
    }

    /// All runs, direct ones too.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().chain(self.direct.iter().map(|direct| &direct.run))
    }

    /// Bytes of the entry.
    pub(super) fn bytes(&self) -> usize {
        let runs = self.runs.len() * RUN_BYTES + self.direct.len() * DIRECT_BYTES;
        HEADER_BYTES + runs + self.lines * LINE
    }

    /// Writes the entry and the end mark behind it into `buffer`; `read` copies the content of a line, given its
    /// number.
    pub(super) fn encode(
        &self,
        buffer: &mut Vec<u8>,
        place: Place,
        mut read: impl FnMut(u64, &mut [u8]),
    ) {
        let bytes = self.bytes();
        // Every byte is overwritten below: what an earlier entry left needs no clearing.
        buffer.resize(bytes + END_MARK_BYTES, 0);
        let (said, placed) = match place.says {
            Says::Synced(position) => (position, 0),
            Says::Placed(position) => (position, PLACED),
        };
        let runs = (self.runs.len() as u64) << 32 | (self.direct.len() as u64) << 48;
        let counts = bytes as u64 | placed | runs;
        for (index, word) in [0, place.position, said, counts].into_iter().enumerate() {
            put(buffer, 8 * index, word);
        }
        let mut at = HEADER_BYTES;
        for run in &self.runs {
            put(buffer, at, run.first << 16 | run.count);
            at += RUN_BYTES;
        }
        for word in self.direct.iter().flat_map(Direct::words) {
            put(buffer, at, word);
            at += 8;
        }
        for line in self.runs.iter().flat_map(|run| run.first..run.first + run.count) {
            read(line, &mut buffer[at..at + LINE]);
            at += LINE;
        }
        let checksum = xxh3_64_with_seed(&buffer[8..bytes], place.journal_id);
        put(buffer, 0, checksum);
        put(buffer, bytes, end_mark(place.position + bytes as u64, place.journal_id));
    }
}

/// Leaves out of runs the lines for which `is_left_out` says so of their page, of so many lines each; how many. `spare` is used
/// again and again.
pub(super) fn leave_out(
    runs: &mut Vec<Run>,
    spare: &mut Vec<Run>,
    page_lines: u64,
    is_left_out: impl Fn(u64) -> bool,
) -> u64 {
    let mut left_out = 0;
    spare.clear();
    for run in &*runs {
        let (mut first, end) = (run.first, run.first + run.count);
        while first < end {
            let page = first / page_lines;
            let count = end.min((page + 1) * page_lines) - first;
            match spare.last_mut() {
                _ if is_left_out(page) => left_out += count,
                Some(last) if last.first + last.count == first => last.count += count,
                _ => spare.push(Run { first, count }),
            }
            first += count;
        }
    }
    std::mem::swap(runs, spare);
    left_out
}

/// What an entry says about itself beside its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) journal_id: u64,
    pub(super) position: u64,
    pub(super) says: Says,
}

/// What an entry says of those before it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Says {
    /// Those before this position are durable.
    Synced(u64),
    /// What those before this position say of lines in their place is durable there.
    Placed(u64),
}

/// The length of the entry that begins with `header`, if one can begin like that at `position`.
pub(super) fn length(header: &[u8], position: u64, bytes_max: usize) -> Option<usize> {
    let counts = word(header, 24)?;
    let bytes = (counts & (PLACED - 1)) as usize;
    let is_possible = word(header, 8)? == position
        && (BYTES_MIN..=bytes_max).contains(&bytes)
        && bytes.is_multiple_of(8);
    is_possible.then_some(bytes)
}

/// An entry that was read and checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    bytes: &'a [u8],
    runs: usize,
    direct: usize,
}

impl<'a> Entry<'a> {
    /// The entry that `bytes` are, if they are one: their length is right already.
    pub(super) fn check(bytes: &'a [u8], journal_id: u64) -> Option<Self> {
        let counts = word(bytes, 24)? >> 32;
        let (runs, direct) = (counts as u16 as usize, (counts >> 16) as usize);
        if word(bytes, 0)? != xxh3_64_with_seed(bytes.get(8..)?, journal_id) {
            return None;
        }
        let entry = Self { bytes, runs, direct };
        let table = entry.lines_at();
        let says_placed = word(bytes, 24)? & PLACED > 0;
        if runs + direct == 0 && !says_placed || table > bytes.len() {
            return None;
        }
        let lines: u64 = entry.runs().map(|run| run.count).sum();
        let is_whole = entry.runs().all(|run| run.count > 0)
            && entry.direct().all(|direct| (1..=DIRECT_LINES_MAX).contains(&direct.run.count))
            && lines.checked_mul(CACHE_LINE)? == (bytes.len() - table) as u64;
        is_whole.then_some(entry)
    }

    /// Where its lines begin.
    fn lines_at(&self) -> usize {
        HEADER_BYTES + self.runs * RUN_BYTES + self.direct * DIRECT_BYTES
    }

    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// What it says of those before it.
    pub(super) fn says(&self) -> Says {
        let [said, counts] = [16, 24].map(|at| word(self.bytes, at).unwrap_or_default());
        if counts & PLACED > 0 { Says::Placed(said) } else { Says::Synced(said) }
    }

    fn runs(&self) -> impl Iterator<Item = Run> + use<'a> {
        let table = &self.bytes[HEADER_BYTES..HEADER_BYTES + self.runs * RUN_BYTES];
        table.chunks_exact(RUN_BYTES).map(|run| {
            let run = word(run, 0).unwrap_or_default();
            Run { first: run >> 16, count: run & RUN_LINES_MAX }
        })
    }

    /// Its direct runs.
    pub(super) fn direct(&self) -> impl Iterator<Item = Direct> + use<'a> {
        let table_at = HEADER_BYTES + self.runs * RUN_BYTES;
        let table = &self.bytes[table_at..self.lines_at()];
        table
            .chunks_exact(DIRECT_BYTES)
            .map(|words| Direct::of([0, 8, 16].map(|at| word(words, at).unwrap_or_default())))
    }

    /// Its lines, with their numbers; not those of direct runs.
    pub(super) fn lines(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let content = self.bytes[self.lines_at()..].chunks_exact(LINE);
        self.runs().flat_map(|run| run.first..run.first + run.count).zip(content)
    }
}

fn put(buffer: &mut [u8], at: usize, word: u64) {
    buffer[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// The word at `at`, if it is there.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}
