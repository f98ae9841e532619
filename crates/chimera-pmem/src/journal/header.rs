//! [`Header`]: what a journal is and where its first entry lies, in two copies.

use std::fmt;
use std::io;

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::IntoBytes;

use super::damaged;
use super::entry::end_mark;
use crate::environment::File;
use crate::pages::PENDING_BYTES_MAX;

/// First word of both copies: "CHIMJRN1" in ASCII, little-endian.
const MAGIC: u64 = u64::from_le_bytes(*b"CHIMJRN1");
/// Version of the journal's format.
const VERSION: u64 = 4;
/// The one before it, whose entries say nothing of places that were taken.
const VERSION_3: u64 = 3;
/// The oldest one that is read: it has no direct runs.
const VERSION_MIN: u64 = 2;
/// Words of a copy.
const WORDS: usize = 10;
/// Where copies of versions 1 and 2 have their checksum, behind the words it is of.
const CHECKSUM_AT_OF_VERSION_1: usize = 7;
const CHECKSUM_AT_OF_VERSION_2: usize = 8;
/// Bytes from one copy to the other.
const COPY_STRIDE: u64 = 4096;
/// Where the entries begin.
pub(super) const DATA_AT: u64 = 2 * COPY_STRIDE;
/// Least and most bytes for entries.
pub(super) const CAPACITY_MIN: u64 = 16 << 10;
pub(super) const CAPACITY_MAX: u64 = 1 << 30;
const _: () = assert!(CAPACITY_MAX <= PENDING_BYTES_MAX);
/// Positions stay below this, which no number of writes reaches.
const POSITION_MAX: u64 = 1 << 62;

/// Word 6: whether the store was closed in order.
const CLOSED: u64 = 1;
const OPEN: u64 = 2;

/// What a journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The pool it belongs to.
    pub(super) pool_id: u64,
    /// Random: the seed of the entries' checksums.
    pub(super) journal_id: u64,
    /// Bytes for entries: a multiple of 4096.
    pub(super) capacity: u64,
    /// Position of the first entry that has not been written back. It only grows.
    pub(super) start: u64,
    /// The store was closed in order: there is no entry, and there never was one from `start` on.
    pub(super) is_closed: bool,
    /// The start of the machine in which all entries from `start` on were written; 0 when that is not known.
    pub(super) boot_id: u64,
    /// What entries before this position say of lines in their place was durable there.
    pub(super) placed: u64,
}

impl Header {
    pub(super) fn encode(&self) -> [u64; WORDS] {
        let state = if self.is_closed { CLOSED } else { OPEN };
        let mut words = [
            MAGIC,
            VERSION,
            self.pool_id,
            self.journal_id,
            self.capacity,
            self.start,
            state,
            self.boot_id,
            self.placed,
            0,
        ];
        words[WORDS - 1] = checksum(&words[..WORDS - 1]);
        words
    }

    /// `Ok(None)` when the copy is not valid.
    ///
    /// # Errors
    /// [`OtherVersion`] for an earlier or a later version.
    pub(super) fn decode(words: &[u64; WORDS]) -> io::Result<Option<Self>> {
        if words[0] != MAGIC {
            return Ok(None);
        }
        let is_version = |version, at: usize| words[1] == version && is_whole(words, at);
        if is_version(1, CHECKSUM_AT_OF_VERSION_1) {
            return Err(OtherVersion { found: 1 }.into());
        }
        let is_version_2 = is_version(2, CHECKSUM_AT_OF_VERSION_2);
        let is_since_3 = words[1] >= VERSION_3 && is_whole(words, WORDS - 1);
        if !is_version_2 && !is_since_3 {
            return Ok(None);
        }
        if words[1] > VERSION {
            return Err(OtherVersion { found: words[1] }.into());
        }
        let header = Self {
            pool_id: words[2],
            journal_id: words[3],
            capacity: words[4],
            start: words[5],
            is_closed: words[6] == CLOSED,
            boot_id: words[7],
            placed: if is_version_2 { 0 } else { words[8] },
        };
        let is_possible = (VERSION_MIN..=VERSION).contains(&words[1])
            && is_capacity(header.capacity)
            && header.start < POSITION_MAX
            && header.start.is_multiple_of(8)
            && (CLOSED..=OPEN).contains(&words[6]);
        Ok(is_possible.then_some(header))
    }

    /// The header of a file; `None` when the file never came into use: nothing is in it.
    ///
    /// # Errors
    /// `InvalidData` when it is damaged; [`OtherVersion`]; what the file says.
    pub(super) fn read(file: &dyn File) -> io::Result<Option<Self>> {
        let length = file.length()?;
        if length < DATA_AT {
            return Ok(None);
        }
        let words = [read_copy(file, 0)?, read_copy(file, COPY_STRIDE)?];
        let copies = [Self::decode(&words[0])?, Self::decode(&words[1])?];
        // Of two with one start, one says that the store was closed: the entries of its last life are
        // all before the start either way.
        let age = |header: &Self| (header.start, !header.is_closed, header.placed);
        let newest = copies.into_iter().flatten().max_by_key(age);
        let Some(header) = newest else {
            if is_blank(file, length)? {
                return Ok(None);
            }
            return Err(damaged(what_is_wrong(&words)));
        };
        if length < DATA_AT + header.capacity {
            let wanted = DATA_AT + header.capacity;
            return Err(damaged(format!("it has {length} bytes instead of {wanted}: it was cut")));
        }
        Ok(Some(header))
    }

    /// Writes the header of a journal that nothing else is in: before there is an end mark, without which a file that is being
    /// made is blank.
    ///
    /// # Durability
    /// Durable on return.
    pub(super) fn write_first(&self, file: &dyn File) -> io::Result<()> {
        file.write_at(0, self.encode().as_bytes())?;
        file.sync()
    }

    /// Puts a journal without entries in force: the end mark at its start, then the header.
    ///
    /// # Durability
    /// Durable on return.
    pub(super) fn begin(&self, file: &dyn File) -> io::Result<()> {
        self.mark_end(file)?;
        self.write(file)
    }

    /// Says that no entry begins at the start.
    ///
    /// # Durability
    /// When the file is synced next.
    pub(super) fn mark_end(&self, file: &dyn File) -> io::Result<()> {
        let mark = end_mark(self.start, self.journal_id).to_le_bytes();
        file.write_at(DATA_AT + self.start % self.capacity, &mark)
    }

    /// Writes both copies, one after the other, so that one of them is whole at any moment.
    ///
    /// # Durability
    /// Both copies are durable on return.
    ///
    /// # Cost
    /// Two syncs.
    pub(super) fn write(&self, file: &dyn File) -> io::Result<()> {
        let words = self.encode();
        for at in [0, COPY_STRIDE] {
            file.write_at(at, words.as_bytes())?;
            file.sync()?;
        }
        Ok(())
    }
}

/// A journal that another version of the format describes: inside an error of the kind `Unsupported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherVersion {
    /// The version it has.
    pub found: u64,
}

impl OtherVersion {
    /// The version that this program reads and writes.
    pub const SUPPORTED: u64 = VERSION;
}

impl fmt::Display for OtherVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found } = self;
        let todo = if *found < VERSION {
            "open and close the store once with the program that wrote it"
        } else {
            "use a newer program"
        };
        write!(
            f,
            "the journal has format version {found}, and this program reads {VERSION}: {todo}"
        )
    }
}

impl std::error::Error for OtherVersion {}

impl From<OtherVersion> for io::Error {
    fn from(other: OtherVersion) -> Self {
        Self::new(io::ErrorKind::Unsupported, other)
    }
}

/// Whether a journal may have so many bytes for entries.
pub(super) fn is_capacity(bytes: u64) -> bool {
    (CAPACITY_MIN..=CAPACITY_MAX).contains(&bytes) && bytes.is_multiple_of(4096)
}

fn checksum(words: &[u64]) -> u64 {
    xxh3_64(words.as_bytes())
}

/// Whether the word at `at` is the checksum of those before it.
fn is_whole(words: &[u64; WORDS], at: usize) -> bool {
    words[at] == checksum(&words[..at])
}

fn read_copy(file: &dyn File, at: u64) -> io::Result<[u64; WORDS]> {
    let mut words = [0; WORDS];
    file.read_at(at, words.as_mut_bytes())?;
    Ok(words)
}

/// Why neither copy is valid.
fn what_is_wrong(copies: &[[u64; WORDS]; 2]) -> String {
    let is_header = |words: &&[u64; WORDS]| words[0] == MAGIC && is_whole(words, WORDS - 1);
    match copies.iter().find(is_header) {
        Some(words) if !is_capacity(words[4]) => {
            format!("its header says {} bytes for entries, which no journal has", words[4])
        }
        Some(_) => "its header has words that no journal has".to_owned(),
        None => "neither copy of its header matches its checksum".to_owned(),
    }
}

/// Whether a file holds nothing but zeros: one that was being made.
fn is_blank(file: &dyn File, length: u64) -> io::Result<bool> {
    if length > DATA_AT + CAPACITY_MAX {
        return Ok(false);
    }
    let mut chunk = vec![0; 64 << 10];
    let mut at = 0;
    while at < length {
        let count = (length - at).min(chunk.len() as u64) as usize;
        file.read_at(at, &mut chunk[..count])?;
        if chunk[..count].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += count as u64;
    }
    Ok(true)
}
