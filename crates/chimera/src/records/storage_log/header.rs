//! The words in front of the records of a run: one cache line.
//!
//! ```text
//! [sequence number] [state] [flushed up to] [batch] [sequence numbers up to] [0: 24]
//! each word   [number: 40 bits | check of number, place: 24]
//! ```
//! The state is `8-byte words before the tail * 2 + (1 if sealed)`. Of an open run the tail is where it was opened, or where
//! its records were last certified: up to there they are certain.

use chimera_pmem::{CACHE_LINE, Pmem, Site};

use crate::pool::Pool;
use crate::types::error::{Error, Result};

/// Bytes of the header.
pub(super) const HEADER_BYTES: u64 = CACHE_LINE;

/// From the start of the header to each word.
const SEQUENCE_AT: u64 = 0;
const STATE_AT: u64 = 8;
const FLUSHED_AT: u64 = 16;
const BATCH_AT: u64 = 24;
const HIGHEST_AT: u64 = 32;
/// Behind the last word.
const WORDS_END: u64 = 40;

const NUMBER_BITS: u32 = 40;
const NUMBER_MAX: u64 = (1 << NUMBER_BITS) - 1;
/// Higher than any sequence number that is ever given: nobody writes so much.
const SEQUENCE_MAX: u64 = NUMBER_MAX / 2;
/// Odd, without long rows of equal bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const PLACE_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// What is in force of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// From the start of the header to the end of the records that are certain.
    pub(super) tail: u64,
    pub(super) is_sealed: bool,
}

/// What a run says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Store-wide unique, and higher than those given before.
    pub(super) sequence: u64,
    pub(super) state: State,
    /// From the start of the header to the end of the records that are all in durable tables.
    pub(super) flushed: u64,
    /// Bytes that a session may have had pending when the run was opened.
    pub(super) batch_bytes: u64,
    /// At least one sequence number up to this was given to a run that is free by now; 0 for none.
    pub(super) highest: u64,
}

/// Where a run begins, for its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeaderAt(pub(super) u64);

impl State {
    fn encode(self) -> u64 {
        (self.tail / 8) << 1 | u64::from(self.is_sealed)
    }

    fn decode(number: u64) -> Self {
        Self { tail: (number >> 1) * 8, is_sealed: number & 1 != 0 }
    }
}

impl HeaderAt {
    /// Stores the header of a run that begins, without records, and starts writing it back.
    pub(super) fn begin<P: Pmem>(self, pool: &Pool<P>, sequence: u64, batch: u64, site: Site) {
        self.store(pool, FLUSHED_AT, 0, site);
        self.store(pool, HIGHEST_AT, 0, site);
        self.open(pool, sequence, batch, HEADER_BYTES, site);
    }

    /// Opens a run for records behind its tail, and starts writing that back. A crash leaves it sealed or open.
    pub(super) fn open<P: Pmem>(
        self,
        pool: &Pool<P>,
        sequence: u64,
        batch: u64,
        tail: u64,
        site: Site,
    ) {
        self.store(pool, BATCH_AT, batch, site);
        self.store(pool, SEQUENCE_AT, sequence, site);
        // The last of its line: whoever sees it sees the others.
        self.store(pool, STATE_AT, State { tail, is_sealed: false }.encode(), site);
        pool.pmem.flush(self.extent(pool), site);
    }

    /// Seals a run with records up to `tail`, and starts writing that back.
    pub(super) fn seal<P: Pmem>(self, pool: &Pool<P>, tail: u64, site: Site) {
        self.store(pool, STATE_AT, State { tail, is_sealed: true }.encode(), site);
        pool.pmem.flush(self.extent(pool), site);
    }

    /// Says of an open run that its records up to `tail` are certain, and starts writing that back.
    pub(super) fn certify<P: Pmem>(self, pool: &Pool<P>, tail: u64, site: Site) {
        self.store(pool, STATE_AT, State { tail, is_sealed: false }.encode(), site);
        pool.pmem.flush(self.extent(pool), site);
    }

    /// Says that all records up to `tail` are in durable tables, and starts writing that back.
    pub(super) fn mark_flushed<P: Pmem>(self, pool: &Pool<P>, tail: u64, site: Site) {
        self.store(pool, FLUSHED_AT, tail / 8, site);
        pool.pmem.flush(self.extent(pool), site);
    }

    /// Says up to where sequence numbers were given, and starts writing that back.
    pub(super) fn mark_highest<P: Pmem>(self, pool: &Pool<P>, sequence: u64, site: Site) {
        self.store(pool, HIGHEST_AT, sequence, site);
        pool.pmem.flush(self.extent(pool), site);
    }

    /// Starts writing back what was found.
    pub(super) fn flush<P: Pmem>(self, pool: &Pool<P>, site: Site) {
        pool.pmem.flush(self.extent(pool), site);
    }

    /// The header of a run of so many bytes.
    ///
    /// # Errors
    /// `Corrupted` when a word is damaged, or says what cannot be.
    pub(super) fn load<P: Pmem>(self, pool: &Pool<P>, bytes: u64) -> Result<Header> {
        let word = |at: u64| decode(pool.pmem.load_u64(self.0 + at), self.0 + at);
        let read = || {
            Some(Header {
                sequence: word(SEQUENCE_AT)?,
                state: State::decode(word(STATE_AT)?),
                flushed: word(FLUSHED_AT)? * 8,
                batch_bytes: word(BATCH_AT)?,
                highest: word(HIGHEST_AT)?,
            })
        };
        let damaged = || Error::corrupted("the header of a run of the log is damaged", self.0);
        let header = read().ok_or_else(damaged)?;
        let tail = header.state.tail;
        let is_possible = (HEADER_BYTES..=bytes).contains(&tail)
            && header.flushed <= tail
            && header.sequence.max(header.highest) <= SEQUENCE_MAX;
        if is_possible { Ok(header) } else { Err(damaged()) }
    }

    fn store<P: Pmem>(self, pool: &Pool<P>, at: u64, number: u64, site: Site) {
        pool.pmem.store_u64(self.0 + at, encode(number, self.0 + at), site);
    }

    fn extent<P: Pmem>(self, pool: &Pool<P>) -> chimera_pmem::Extent {
        pool.extent(self.0, WORDS_END)
    }
}

/// The word of a number at a place; never 0, so that a header which lost its bytes is damaged.
fn encode(number: u64, at: u64) -> u64 {
    debug_assert!(number <= NUMBER_MAX, "as many bits as there are");
    let mixed = number.wrapping_mul(FACTOR).wrapping_add((at | 1).wrapping_mul(PLACE_FACTOR));
    number | (mixed >> NUMBER_BITS | 1) << NUMBER_BITS
}

/// The number of a word, unless the word is damaged.
fn decode(word: u64, at: u64) -> Option<u64> {
    let number = word & NUMBER_MAX;
    (encode(number, at) == word).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_where_they_were_stored() {
        for at in [0, 64, 8256, 1 << 40] {
            for number in [0, 1, 77, 0x55_5555_5555, NUMBER_MAX] {
                let word = encode(number, at);
                assert_eq!(decode(word, at), Some(number));
                assert_eq!(decode(word, at + 8), None, "another place");
            }
        }
        for state in [(HEADER_BYTES, false), (1 << 33, true), (4096, true)] {
            let state = State { tail: state.0, is_sealed: state.1 };
            assert_eq!(State::decode(state.encode()), state);
        }
    }

    /// Computed from docs/FORMAT.md by other means.
    #[test]
    fn stores_of_this_format_have_these_words() {
        assert_eq!(encode(0, 8256), 0xb0ff_b900_0000_0000);
        assert_eq!(encode(77, 8256), 0x47af_5700_0000_004d);
        assert_eq!(encode((1 << 39) - 1, 8264), 0x6f4e_417f_ffff_ffff);
        assert_eq!(encode(1, (1 << 40) + 64), 0x895d_b900_0000_0001);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for number in [0, 1, 2, 77, 0x55_5555_5555, NUMBER_MAX] {
            for bit in 0..64 {
                assert_eq!(decode(encode(number, 8256) ^ 1 << bit, 8256), None, "bit {bit}");
            }
        }
        for at in (0..1 << 20).step_by(8) {
            assert_ne!(encode(0, at), 0, "a number at {at}");
        }
    }
}
