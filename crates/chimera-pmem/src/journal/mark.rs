//! [`Mark`]: a word beside the journal that says which journal is in use, and how far it reached at least. Without it
//! nothing would contradict a journal that is blank, another one, or of an earlier moment.
//!
//! ```text
//! word 0   number of the change, which only grows
//!      1   journal id; 0 = no journal is in use
//!      2   position that the journal has reached: everything before it is durable in the data files; bit 63 is set while a
//!          loss of changes is not accepted
//!      3   XXH3 of words 0..2
//! ```
//!
//! In the line behind the first copy is the *tail*: two words, the position at which the last entry ended and the end mark
//! of that position. It is stored when an entry is whole, so after the end of a process no entry before it is missing.
//! Where it is damaged it says nothing.
//!
//! The mark lies in a data file, in two copies, in lines that nothing else touches. It is written past the journal and not
//! synced for its own sake: after the end of a process it is there, and after a power loss it may be an older one, which
//! demands less.

use std::io;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::IntoBytes;

#[cfg(doc)]
use super::Journal;
use super::damaged;
use super::entry::end_mark;
use crate::environment::File;
use crate::mapping::Window;

/// Words of a copy.
const WORDS: usize = 4;
/// In the word of the position: changes of a journal were lost, and nobody has accepted that.
const LOST: u64 = 1 << 63;
/// Bytes from the first copy to the tail.
const TAIL_FROM_COPY: u64 = 64;
/// What is mapped for the tail.
const PAGE: u64 = 4096;

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkState {
    /// No journal is in use.
    Unused,
    /// A journal is in use.
    Used {
        /// Which one.
        journal_id: u64,
        /// What it has reached, at least.
        position: u64,
        /// Where its last entry ended, as long as the machine runs on; no position more than `position` where that is not
        /// known.
        tail: u64,
    },
}

/// Where a mark is kept.
#[derive(Clone, Debug)]
pub struct Mark {
    file: Arc<dyn File>,
    copies: [u64; 2],
    number: u64,
    is_lost: bool,
}

impl Mark {
    /// Reads the mark at the bytes `copies` of `file`, and what it says. One whole copy is enough; where both are zero
    /// no mark was ever made, and it says nothing.
    ///
    /// # Errors
    /// `InvalidData` beside the mark when it is damaged; what the file says.
    pub fn read(
        file: Arc<dyn File>,
        copies: [u64; 2],
    ) -> io::Result<(Self, io::Result<Option<MarkState>>)> {
        let mut newest = None;
        let mut is_blank = true;
        for at in copies {
            let mut words = [0_u64; WORDS];
            file.read_at(at, words.as_mut_bytes())?;
            is_blank &= words == [0; WORDS];
            if words[3] == xxh3_64(words[..3].as_bytes()) {
                newest = newest.max(Some(words));
            }
        }
        let number = newest.map_or(0, |words| words[0]);
        let is_lost = newest.is_some_and(|words| words[2] & LOST != 0);
        let kept = match newest {
            Some([_, 0, ..]) => Ok(Some(MarkState::Unused)),
            Some([_, journal_id, position, _]) => {
                let position = position & !LOST;
                let tail = read_tail(&*file, copies[0], journal_id)?.unwrap_or_default();
                Ok(Some(MarkState::Used { journal_id, position, tail: tail.max(position) }))
            }
            None if is_blank => Ok(None),
            None => Err(damaged("what says which journal is in use is damaged".to_owned())),
        };
        Ok((Self { file, copies, number, is_lost }, kept))
    }

    /// Whether changes of a journal were lost, and nobody has [accepted](Journal::accept_loss) that.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whatever is kept from now on says so, too: changes of a journal were lost, or that is accepted.
    pub fn set_lost(&mut self, is_lost: bool) {
        self.is_lost = is_lost;
    }

    /// Says something else from now on.
    ///
    /// # Errors
    /// What the file says.
    ///
    /// # Durability
    /// When the file is synced next.
    pub fn keep(&mut self, kept: MarkState) -> io::Result<()> {
        self.number += 1;
        let (id, position) = match kept {
            MarkState::Unused => (0, 0),
            MarkState::Used { journal_id, position, .. } => (journal_id, position),
        };
        let lost = if self.is_lost { LOST } else { 0 };
        let mut words = [self.number, id, position | lost, 0];
        words[3] = xxh3_64(words[..3].as_bytes());
        self.copies.iter().try_for_each(|at| self.file.write_at(*at, words.as_bytes()))
    }

    /// Makes durable what it says.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// Where the tail of a journal is kept.
    ///
    /// # Errors
    /// When the page cannot be mapped.
    pub(super) fn tail(&self, journal_id: u64) -> io::Result<Tail> {
        let at = self.copies[0] + TAIL_FROM_COPY;
        let page = at / PAGE * PAGE;
        let map = |descriptor| Window::map(descriptor, page, PAGE, false);
        let window = self.file.descriptor().map(map).transpose()?;
        Ok(Tail { window, file: self.file.clone(), at, journal_id })
    }
}

/// Where the position is kept at which the last entry ended.
#[derive(Debug)]
pub(super) struct Tail {
    /// The page, mapped; it is written by `File::write_at` where there is nothing to map.
    window: Option<Window>,
    file: Arc<dyn File>,
    at: u64,
    journal_id: u64,
}

impl Tail {
    /// All entries before `position` are whole.
    ///
    /// # Cost
    /// Two words to a line that nobody else stores to, and a checksum of 8 bytes.
    pub(super) fn keep(&self, position: u64) -> io::Result<()> {
        let words = [position, end_mark(position, self.journal_id)];
        match &self.window {
            Some(window) => {
                window.store((self.at % PAGE) as usize, words.as_bytes());
                Ok(())
            }
            None => self.file.write_stored(self.at, words.as_bytes()),
        }
    }
}

/// The tail of a journal, where it is whole and of that one.
fn read_tail(file: &dyn File, copy: u64, journal_id: u64) -> io::Result<Option<u64>> {
    let mut words = [0_u64; 2];
    file.read_at(copy + TAIL_FROM_COPY, words.as_mut_bytes())?;
    let [position, check] = words;
    Ok((check == end_mark(position, journal_id)).then_some(position))
}
