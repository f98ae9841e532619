//! [`Codec`]: where key, value and header of a record lie; reading, comparing, writing and flushing them.

use chimera_pmem::{Extent, Pmem};

use super::{Place, Record};
use crate::pool::{Location, Pool};
use crate::records::checksum::Summed;
use crate::records::header::RecordHeader;
use crate::records::unchecked_word::UncheckedWord;
use crate::types::error::Result;

/// What is stored with a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) value: &'a [u8],
    /// What lies beside the key: the value, or the descriptor of its chunks.
    pub(crate) beside: &'a [u8],
    /// The chunks, if there are any.
    pub(crate) chunks: &'a [Extent],
    /// A word of the value that its checksum leaves out.
    pub(crate) unchecked: UncheckedWord,
}

impl Stored<'_> {
    /// The checksum of the value, of which this is the sum, in a record at `record_at`.
    #[inline(always)]
    pub(super) fn value_checksum(&self, record_at: u64, value: Summed<'_>) -> u32 {
        self.unchecked.checksum(record_at, value).expect("a word of the value")
    }
}

/// The form of records in pages of one kind.
pub(crate) trait Codec: Copy + Send + Sync + 'static {
    /// The place of a location that [`Place::location`] made.
    fn place_of(&self, location: Location) -> Place;

    /// Whether records have headers with checksums and versions.
    fn is_checked(&self) -> bool;

    /// # Errors
    /// `KeySize` when these pages take no such key.
    fn check_key(&self, key: &[u8]) -> Result<()>;

    /// # Errors
    /// `ValueSize` when these pages take no such value.
    fn check_value(&self, value: &[u8]) -> Result<()>;

    /// Bytes of every value, where they are all alike.
    fn fixed_value_bytes(&self) -> Option<usize>;

    /// Units of room that a record takes.
    fn units_of(&self, key_bytes: usize, beside_bytes: usize) -> u32;

    // ---- loading ahead -------------------------------------------------------------------------

    /// The start of a record, up to the end of a key of this length as far as that is known to lie in
    /// the pool: for loading it ahead of use.
    fn head<P: Pmem>(&self, pool: &Pool<P>, place: &Place, key_bytes: usize) -> Extent;

    /// As [`head`](Self::head), with the value as far as its size is known.
    fn whole<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent;

    /// Starts loading what of a record that is about to be read cannot be loaded before its first word is known.
    fn prefetch_unknown<P: Pmem>(&self, pool: &Pool<P>, place: &Place);

    /// Where the word with bytes `at..at + 8` of a value will be, as far as can be told without reading.
    fn expected_word(&self, place: &Place, key_bytes: usize, at: usize) -> Option<u64>;

    // ---- reading -------------------------------------------------------------------------------

    /// The record at a place; none when no record of this form can lie there.
    ///
    /// # Cost
    /// Up to three loads, from the lines of [`head`](Self::head).
    fn decode<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Option<Record>;

    /// Whether the record has this key.
    fn key_is<P: Pmem>(&self, pool: &Pool<P>, record: &Record, key: &[u8]) -> bool;

    /// Reads the key.
    fn read_key<P: Pmem>(&self, pool: &Pool<P>, record: &Record, into: &mut Vec<u8>);

    /// Reads the value, with its sum; none when a part of it cannot be found.
    fn read_value<'v, P: Pmem>(
        &self,
        pool: &Pool<P>,
        record: &Record,
        into: &'v mut Vec<u8>,
    ) -> Option<Summed<'v>>;

    /// Reads the value without its sum, which is faster; `false` when a part of it cannot be found.
    fn copy_value<P: Pmem>(&self, pool: &Pool<P>, record: &Record, into: &mut Vec<u8>) -> bool;

    /// Whether the value, whose key's lock the caller holds, is this one.
    fn value_is<P: Pmem>(&self, pool: &Pool<P>, record: &Record, value: &[u8]) -> bool;

    /// Bytes of the value, whose key's lock the caller holds.
    fn value_bytes<P: Pmem>(&self, pool: &Pool<P>, record: &Record) -> Option<usize>;

    /// Offset in the pool of the word with bytes `at..at + 8` of a value, if one word has them.
    fn value_word<P: Pmem>(&self, pool: &Pool<P>, record: &Record, at: usize) -> Option<u64>;

    // ---- writing -------------------------------------------------------------------------------

    /// Copies key and value to a place. Returns the value's checksum, where there is one.
    fn write_body<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> u32;

    /// Stores the header that completes a record, where there is one.
    fn write_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place, header: &RecordHeader);

    /// Flushes a header alone, but for what [`commit`](super::Commit::commit) flushes. Whether there was more:
    /// then a fence must follow.
    fn flush_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> bool;

    /// As [`flush_header`](Self::flush_header), for the whole record.
    fn flush_record<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> bool;
}
