//! VPages (Viper, sections 3.2.2 and 3.2.3): pages of records, and the steps of which engines make their
//! protocols.
//!
//! - `slotted`: records of one size, in slots, with a bitset;
//! - `log`: records of any size, one after the other, each with its lengths in front.
//!
//! What both have in common is here: places, versions, checksums, and the trait [`Pages`]. A step says
//! what it flushes; fences are the caller's unless it says so.

mod checksum;
mod header;
mod log;
mod place;
mod slotted;

use chimera_pmem::{Extent, Pmem};

use crate::pool::{Location, Pool};
use crate::types::error::{Error, Result};
pub(crate) use checksum::{key_checksum, value_checksum};
pub(crate) use header::{RECORD_HEADER_BYTES, RecordHeader, VERSION_MAX};
pub(crate) use log::LogPages;
pub(crate) use place::Place;
pub(crate) use slotted::{PageLayout, SlottedPages};

/// The sites of pages.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// A record with its header, before it counts.
        RECORD = "vpage.record";
        /// The word that makes a record count.
        COMMIT = "vpage.commit";
        /// The word of a record that is deleted or has been replaced.
        RETIRE = "vpage.retire", unread;
        /// A word of a value, in place.
        VALUE_WORD = "vpage.value_word", in_place;
        /// What others left in a page, before it is used again.
        REUSE = "vpage.reuse", may_be_clean;
        /// Pages of a block that is made free.
        BLOCK_RESET = "vpage.block_reset";
    }
}

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The check of the word that makes records count.
        COMMIT_CHECK = "vpage.step.commit_check";
        /// The checksum of a key and its version, at recovery.
        KEY_CHECK = "vpage.step.key_check";
        /// The checksum of a value, at recovery.
        VALUE_CHECK = "vpage.step.value_check";
        /// The checksums of a record that is read.
        READ_CHECK = "vpage.step.read_check";
        /// The check of the lengths in a log, at recovery.
        LENGTHS_CHECK = "vpage.step.lengths_check";
        /// Storing a zero behind a record in a log.
        END = "vpage.step.end";
        /// Flushing it with the record.
        END_FLUSH = "vpage.step.end_flush";
        /// Clearing what lies behind a log before a session writes there.
        CLEAR_REST = "vpage.step.clear_rest";
        /// Making all pages of a block empty whose pages are about to begin elsewhere.
        CLEAR_HEADS = "vpage.step.clear_heads";
        /// Making durable that records are gone before their chunks are, or before nothing leads to them.
        CHUNKS_LAST = "vpage.step.chunks_last";
    }
}

/// Kinds of pages that a session writes to.
pub(crate) const POINTS: usize = 2;

/// What of a block holds no record that counts, in units.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub(crate) free: u32,
    /// Of these, what is worth to be filled while there are fresh blocks, and after that.
    pub(crate) fillable: u32,
    pub(crate) fillable_if_starved: u32,
}

/// What the pages of a block hold, in bytes where nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) pages: u64,
    /// Pages with something that counts, and pages with a damaged word.
    pub(crate) pages_filled: u64,
    pub(crate) pages_damaged: u64,
    pub(crate) live_records: u64,
    /// What counts, with its headers.
    pub(crate) live_bytes: u64,
    /// What neither counts nor is room.
    pub(crate) dead_bytes: u64,
    pub(crate) room_bytes: u64,
}

/// Where the next record of a session goes. Which fields mean something depends on the pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InsertPoint {
    pub(crate) block: Option<u64>,
    /// The block was in use before.
    pub(crate) is_reused: bool,
    pub(crate) pages_left: u64,
    pub(crate) page: u64,
    pub(crate) page_at: u64,
    /// Slotted: a word of the bitset, and the free slots in it, known to be durably free.
    pub(crate) word: u32,
    pub(crate) free: u64,
    /// Log: from the start of the page to where the log ends, and to where it must.
    pub(crate) tail: u64,
    pub(crate) end: u64,
    /// Log: what was free in the pages of the block when the session went on from them; none once it has
    /// left something behind that does not count.
    pub(crate) left: Option<Room>,
}

/// What reading a page found.
pub(crate) enum Scanned<'a> {
    /// A record that counts, with its parts: the value is empty where it was not asked for, and none where
    /// a part of it cannot be found.
    Record { place: Place, header: RecordHeader, key: &'a [u8], value: Option<&'a [u8]> },
    /// Something that is not as it must be.
    Damage { at: u64, what: &'static str },
}

/// Bytes beside the key of a record whose value lies elsewhere: they tell where.
pub(crate) const DESCRIPTOR_BYTES: usize = 24;

/// What is stored with a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) value: &'a [u8],
    /// What lies beside the key: the value, or the descriptor of its chunks.
    pub(crate) beside: &'a [u8],
    /// The chunks, if there are any.
    pub(crate) chunks: &'a [Extent],
}

/// A part of a value that no block has room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    /// Of the record.
    pub(crate) record: &'a Place,
    /// Of the value: a random number.
    pub(crate) name: u64,
    /// The chunk after this one, and how many there are after it.
    pub(crate) next: Option<Location>,
    pub(crate) position: u32,
    pub(crate) bytes: &'a [u8],
}

/// Whether a place, a header and a key belong together.
pub(crate) type IsSound<'a> = dyn Fn(&Place, &RecordHeader, &[u8]) -> bool + 'a;

/// How to read the pages of a block.
pub(crate) struct Scan<'a> {
    /// The block's.
    pub(crate) flags: u32,
    /// Take what is found by, or behind, a damaged word as it is.
    pub(crate) salvage: bool,
    /// Values are asked for.
    pub(crate) values: bool,
    pub(crate) is_sound: &'a IsSound<'a>,
}

/// Buffers for reading pages.
#[derive(Default)]
pub(crate) struct PageBuffers {
    page: Vec<u8>,
    value: Vec<u8>,
}

/// Pages of one kind.
pub(crate) trait Pages: Copy + Send + Sync + 'static {
    /// The pages of a pool, as its superblock says.
    ///
    /// # Errors
    /// `Corrupted` when the superblock cannot be right.
    fn of<P: Pmem>(pool: &Pool<P>) -> Result<Self>;

    // ---- facts ---------------------------------------------------------------------------------

    /// The place of a location that [`Place::location`] made.
    fn place_of(&self, location: Location) -> Place;

    /// Pages of a block.
    fn pages_per_block(&self) -> u64;

    /// Whether records have headers with checksums and versions.
    fn is_checked(&self) -> bool;

    /// Units of room in a block: what [`free_units`](Self::free_units) counts.
    fn units_per_block(&self) -> u32;

    /// A block nobody fills is worth filling again once one in so many of its units has become free.
    const REUSED_AT_PART: u32;

    /// Whether pages are logs: behind the last record there must be a zero, and pages are made empty when
    /// they are used again, which readers must notice.
    const IS_LOG: bool;

    /// Flags of blocks for each kind of page.
    const FLAGS: [u32; POINTS];

    /// All flags that tell the kinds of pages apart.
    const KINDS: u32;

    /// Which kind of page a record goes to.
    fn point_of(&self, key_bytes: usize, value_bytes: usize) -> usize;

    /// Units that a record takes.
    fn units_of(&self, key_bytes: usize, value_bytes: usize) -> u32;

    /// Units that the record at `place` takes there.
    fn units_at<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> u32;

    /// Where in a fresh block of a kind to begin, and how many pages come after that.
    fn first_page(&self, which: usize, chance: u64) -> (u64, u64);

    /// Records of a page and of a block, where that is known.
    fn capacities(&self) -> (u32, u32);

    /// # Errors
    /// `KeySize` when these pages take no such key.
    fn check_key(&self, key: &[u8]) -> Result<()>;

    /// # Errors
    /// `ValueSize` when these pages take no such value.
    fn check_value(&self, value: &[u8]) -> Result<()>;

    /// Bytes of every value, where they are all alike.
    fn fixed_value_bytes(&self) -> Option<usize>;

    // ---- reading -------------------------------------------------------------------------------

    /// The start of a record, up to the end of a key of this length as far as that is known to lie in
    /// the pool: for loading it ahead of use.
    fn head<P: Pmem>(&self, pool: &Pool<P>, place: &Place, key_bytes: usize) -> Extent;

    /// As [`head`](Self::head), with the value as far as its size is known.
    fn whole<P: Pmem>(&self, pool: &Pool<P>, place: &Place, key_bytes: usize) -> Extent;

    /// Whether the record at `place` has this key.
    fn key_is<P: Pmem>(&self, pool: &Pool<P>, place: &Place, key: &[u8]) -> bool;

    /// Reads a key; `false` when what is there is no record.
    fn read_key<P: Pmem>(&self, pool: &Pool<P>, place: &Place, into: &mut Vec<u8>) -> bool;

    /// Reads a value; `false` when what is there is no record.
    fn read_value<P: Pmem>(&self, pool: &Pool<P>, place: &Place, into: &mut Vec<u8>) -> bool;

    /// Whether the value at `place`, whose key's lock the caller holds, is this one.
    fn value_is<P: Pmem>(&self, pool: &Pool<P>, place: &Place, value: &[u8]) -> bool;

    /// Bytes of the value at `place`, whose key's lock the caller holds.
    fn value_bytes<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> usize;

    /// Offset in the pool of the word with bytes `at..at + 8` of a value, if one word has them.
    fn value_word<P: Pmem>(&self, pool: &Pool<P>, place: &Place, at: usize) -> Option<u64>;

    /// Where that word will be, as far as can be told without reading: to start loading it.
    fn expected_word(&self, place: &Place, key_bytes: usize, at: usize) -> Option<u64>;

    /// The header of a record, where there is one.
    fn header<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> RecordHeader;

    // ---- writing -------------------------------------------------------------------------------

    /// Whether a value is too long to lie beside its key.
    fn is_elsewhere(&self, value_bytes: usize) -> bool;

    /// A key of so many bytes is worth storing at the end of a page that has no room for its value.
    fn spill_key_bytes_min(&self) -> usize;

    /// Bytes of a value that a chunk at the point can take.
    fn room_for_chunk(&self, point: &InsertPoint) -> usize;

    /// Writes a chunk at the point, which has room for it, and flushes it. Returns where it is.
    fn write_chunk<P: Pmem>(
        &self,
        pool: &Pool<P>,
        point: &mut InsertPoint,
        chunk: &Chunk<'_>,
    ) -> (Location, Extent);

    /// Blocks of the chunks of the record at `place`, and the units they take there.
    fn chunks<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Vec<(u64, u32)>;

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

    /// Flushes a header alone, but for what [`commit`](Self::commit) flushes. Whether there was more: then
    /// a fence must follow.
    fn flush_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> bool;

    /// As [`flush_header`](Self::flush_header), for the whole record.
    fn flush_record<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> bool;

    /// Whether a record counts.
    ///
    /// # Errors
    /// `Corrupted` when the word that says so is damaged.
    fn is_set<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Result<bool>;

    /// Makes a record count, which is durable: 1 line, 1 fence.
    ///
    /// # Errors
    /// `Corrupted`, with nothing changed, when the word that says so is damaged.
    fn commit<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> Result<()>;

    /// Makes a record not count any more, durably: 1 line, 1 fence. Calls `retired` with the units that
    /// become free once that can be seen and before it is durable: what is atomic there need not wait
    /// for the fence.
    ///
    /// # Errors
    /// `Corrupted`, with nothing changed, when the word that says so is damaged.
    fn retire<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        retired: impl FnOnce(u32),
    ) -> Result<()>;

    /// Starts loading the line that [`retire`](Self::retire) changes.
    fn prefetch_retire<P: Pmem>(&self, pool: &Pool<P>, place: &Place);

    // ---- where a session goes on ---------------------------------------------------------------

    /// The place for a record, if it fits where the session is.
    fn room(&self, point: &InsertPoint, key_bytes: usize, value_bytes: usize) -> Option<Place>;

    /// The place that [`room`](Self::room) gave is in use.
    fn consume(&self, point: &mut InsertPoint, key_bytes: usize, value_bytes: usize);

    /// The session goes on from the page where the point is.
    fn leave_page(&self, _point: &mut InsertPoint) {}

    /// The room in the block of a point that has gone through it, where that is known without looking: as
    /// it was when the session came by.
    fn room_left(&self, _point: &InsertPoint) -> Option<Room> {
        None
    }

    /// Goes on within the page; `false` when there is nothing more in it.
    fn advance_in_page(&self, point: &mut InsertPoint) -> bool;

    /// Looks at where the point is now, in a page or a part of it, and makes it ready for records.
    fn enter<P: Pmem>(&self, pool: &Pool<P>, which: usize, point: &mut InsertPoint);

    /// Nothing more goes to where the point is now.
    fn abandon(&self, point: &mut InsertPoint);

    /// Starts loading lines that the session comes to soon, after a record of this size.
    fn prefetch_next<P: Pmem>(
        &self,
        pool: &Pool<P>,
        point: &InsertPoint,
        key_bytes: usize,
        value_bytes: usize,
    );

    /// Starts loading the lines that the next record shares with the one before.
    fn prefetch_shared<P: Pmem>(&self, pool: &Pool<P>, point: &InsertPoint);

    // ---- whole blocks --------------------------------------------------------------------------

    /// Whether a block of the pool, flags aside, is as a fresh one.
    fn is_blank<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool;

    /// Makes no record of a block count, durably, whatever is there.
    fn clear_block<P: Pmem>(&self, pool: &Pool<P>, block: u64);

    /// Makes durable that no record of a block counts: its kind may change after that.
    fn persist_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64);

    /// Units of a block that emptying it would gain: in a log those of what was deleted, not what is behind it.
    fn gain<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32;

    /// Records of a block that count; those of damaged words do not.
    fn live_records<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32;

    /// Places of the records that count and have a part in a block, as far as nothing is damaged before.
    fn places<P: Pmem>(&self, pool: &Pool<P>, block: u64, into: &mut Vec<Place>);

    /// Whether no record of a block counts, and nothing in it is damaged.
    fn is_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool;

    /// Whether a block has a place for a record of so many units.
    fn has_room<P: Pmem>(&self, pool: &Pool<P>, block: u64, units: u32) -> bool;

    /// What of a block holds no record that counts; what is damaged is no room.
    fn room_in<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Room;

    /// What the pages of a block hold.
    fn usage<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Usage;

    /// Hands the records of a block to `visit`. The room in it, as [`room_in`](Self::room_in) tells.
    fn scan<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        block: u64,
        buffers: &mut PageBuffers,
        visit: &mut impl FnMut(Scanned<'_>),
    ) -> Room;

    /// Number of a page among all pages.
    #[inline(always)]
    fn page_number(&self, block: u64, page: u64) -> u64 {
        block * self.pages_per_block() + page
    }

    /// Offsets of the pages of a block, with their numbers.
    fn pages_of<P: Pmem>(
        &self,
        pool: &Pool<P>,
        block: u64,
    ) -> impl Iterator<Item = (u64, u64)> + use<Self, P> {
        let start = pool.map.block_at(block);
        let page_bytes = pool.map.page_bytes;
        (0..self.pages_per_block()).map(move |page| (page, start + page * page_bytes))
    }
}

#[cold]
fn damaged_word(at: u64) -> Error {
    Error::corrupted("the word that tells which records count is damaged", at)
}
