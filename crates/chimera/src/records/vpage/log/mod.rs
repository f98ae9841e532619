//! [`LogPages`]: VPages of records of any size, one after the other (section 3.2.3).
//!
//! ```text
//! byte 0   flags word: of the block, in its first page; zero in the others
//! byte 8   the log: records, each a multiple of 8 bytes
//!
//! record   [set: 1 bit | key length: 15 | value length: 16 | check: 32]
//!          [check of place, version, key: 4 | check of place, value: 4] [version: 8] key value
//! ```
//! Keys and values are padded to 8 bytes each, so that every field of a value keeps its alignment. A
//! record larger than a page lies in a block whose flag `LARGE` makes it one page.
//!
//! # Invariants
//! 1. The first word of a record is stored once the rest of it is durable or, in the same line, stored:
//!    stores to one line reach media in order. From then on only the word's lowest bit, with the check,
//!    changes: so the log can be walked.
//! 2. The word that follows the log in a page that a session writes to is zero, durably: so the log ends
//!    there, whatever a crash leaves of a record that was on its way. A record in a page is written with
//!    a zero behind it; in a block that is one page all is zero behind the log.
//! 3. Places are not used again before no record of the page counts.
//!
//! Where the log of a page ends, and how much of it is deleted, is in the page itself in the paper; here it
//! follows from the log, and is looked for when a block is used again.

mod chunks;
mod clear;
mod lengths;
mod point;
mod walk;

use chimera_pmem::{Extent, Pmem};

use super::{
    Chunk, InsertPoint, POINTS, PageBuffers, Pages, Place, RecordHeader, Room, Scan, Scanned,
    Stored, Usage, damaged_word, sites, steps, value_checksum,
};
use crate::pool::{BlockMap, Location, Pool};
use crate::records::block_flags;
use crate::types::error::{Error, Result};
use chunks::chunk_span;
use lengths::{Entry, Lengths};

/// Where the log begins in a page.
const LOG_AT: u64 = 8;
/// From the start of a record to its header, and to its key.
const HEADER_AT: u64 = 8;
const KEY_AT: u64 = 24;
/// A page with less than one in so many of its bytes behind its log is full.
const FULL_PART: u64 = 4;
/// A value lies elsewhere for want of room in the page when that saves one in so many of the page's bytes:
/// without it the end of the page is lost, with it the header of a chunk less that of a record and the key.
const SPILL_PART: u64 = 16;
/// Bytes of a record of unknown size that are loaded ahead.
const LOADED_AHEAD: u64 = 256;

/// Bytes of a record.
#[inline(always)]
fn span(key_bytes: usize, value_bytes: usize) -> u64 {
    KEY_AT + (key_bytes.next_multiple_of(8) + value_bytes.next_multiple_of(8)) as u64
}

#[inline(always)]
fn span_of(lengths: Lengths) -> u64 {
    span(lengths.key_bytes as usize, lengths.beside_bytes as usize)
}

/// The pages of a pool with records of any size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPages {
    map: BlockMap,
    pages_per_block: u64,
    key_bytes_max: usize,
    /// Of a value that lies beside its key.
    beside_bytes_max: usize,
    spill_key_bytes_min: usize,
}

impl LogPages {
    /// Largest block: a location has 16 bits for a place in it.
    pub(crate) const BLOCK_BYTES_MAX: u64 = 8 * (u16::MAX as u64 - 1);

    /// Longest key, where pages have so many bytes.
    pub(crate) fn key_bytes_max(page_bytes: u64) -> usize {
        (page_bytes as usize - 64).min(4096)
    }

    /// Longest value.
    pub(crate) const VALUE_BYTES_MAX: usize = 1 << 30;

    /// Bytes of a record whose value lies beside its key.
    pub(crate) fn record_bytes(key_bytes: usize, value_bytes: usize) -> u64 {
        span(key_bytes, value_bytes)
    }

    /// The lengths at a place, when they are those of a record that lies in its block.
    #[inline(always)]
    fn lengths<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Option<Lengths> {
        let Some(Entry::Record { lengths, .. }) =
            Entry::decode(pool.pmem.load_u64(place.record_at))
        else {
            return None;
        };
        let is_inside = place.record_at + span_of(lengths) <= self.block_end(place);
        (is_inside && lengths.key_bytes as usize <= self.key_bytes_max).then_some(lengths)
    }

    /// Where the block of a place ends.
    #[inline(always)]
    fn block_end(&self, place: &Place) -> u64 {
        place.page_at - place.page * self.map.page_bytes + self.map.block_bytes
    }

    #[inline(always)]
    fn key_extent<P: Pmem>(pool: &Pool<P>, place: &Place, key_bytes: usize) -> Extent {
        pool.extent(place.record_at + KEY_AT, key_bytes as u64)
    }

    /// What lies beside a key.
    #[inline(always)]
    fn beside_extent<P: Pmem>(pool: &Pool<P>, place: &Place, lengths: Lengths) -> Extent {
        let at = Self::value_at(place, lengths.key_bytes as usize);
        pool.extent(at, u64::from(lengths.beside_bytes))
    }

    /// Where a value begins.
    #[inline(always)]
    fn value_at(place: &Place, key_bytes: usize) -> u64 {
        place.record_at + KEY_AT + key_bytes.next_multiple_of(8) as u64
    }
}

impl Pages for LogPages {
    fn of<P: Pmem>(pool: &Pool<P>) -> Result<Self> {
        let geometry = pool.superblock().geometry;
        let key_bytes_max = Self::key_bytes_max(pool.map.page_bytes);
        let whole = pool.map.block_bytes - LOG_AT;
        if pool.map.block_bytes > Self::BLOCK_BYTES_MAX {
            return Err(Error::corrupted("the superblock's blocks are too large for logs", 56));
        }
        let beside = whole - span(key_bytes_max, 0);
        Ok(Self {
            map: pool.map,
            pages_per_block: u64::from(geometry.pages_per_block),
            key_bytes_max,
            beside_bytes_max: beside.min(u64::from(lengths::VALUE_BYTES_MAX)) as usize & !7,
            spill_key_bytes_min: (chunk_span(0) - span(0, 0) + pool.map.page_bytes / SPILL_PART)
                as usize,
        })
    }

    // ---- facts ---------------------------------------------------------------------------------

    #[inline(always)]
    fn place_of(&self, location: Location) -> Place {
        Place::of(&self.map, location, |slot| 8 * u64::from(slot))
    }

    #[inline(always)]
    fn pages_per_block(&self) -> u64 {
        self.pages_per_block
    }

    #[inline(always)]
    fn is_checked(&self) -> bool {
        true
    }

    fn units_per_block(&self) -> u32 {
        (self.map.block_bytes / 8) as u32
    }

    /// A page whose records were deleted is used again once its block holds none.
    const REUSED_AT_PART: u32 = 1;
    const FLAGS: [u32; POINTS] = [0, block_flags::LARGE];
    const KINDS: u32 = block_flags::LARGE;
    const IS_LOG: bool = true;

    #[inline(always)]
    fn point_of(&self, key_bytes: usize, value_bytes: usize) -> usize {
        usize::from(LOG_AT + span(key_bytes, value_bytes) > self.map.page_bytes)
    }

    fn units_of(&self, key_bytes: usize, value_bytes: usize) -> u32 {
        (span(key_bytes, value_bytes) / 8) as u32
    }

    fn units_at<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> u32 {
        self.lengths(pool, place).map_or(0, |lengths| (span_of(lengths) / 8) as u32)
    }

    fn first_page(&self, which: usize, chance: u64) -> (u64, u64) {
        if which == 0 { (chance % self.pages_per_block, self.pages_per_block - 1) } else { (0, 0) }
    }

    fn capacities(&self) -> (u32, u32) {
        (0, 0)
    }

    #[inline(always)]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        let (found, most) = (key.len(), self.key_bytes_max);
        if (1..=most).contains(&found) { Ok(()) } else { Err(Error::KeyLength { found, most }) }
    }

    #[inline(always)]
    fn check_value(&self, value: &[u8]) -> Result<()> {
        let (found, most) = (value.len(), Self::VALUE_BYTES_MAX);
        if found <= most { Ok(()) } else { Err(Error::ValueLength { found, most }) }
    }

    #[inline(always)]
    fn fixed_value_bytes(&self) -> Option<usize> {
        None
    }

    // ---- reading -------------------------------------------------------------------------------

    #[inline(always)]
    fn head<P: Pmem>(&self, pool: &Pool<P>, place: &Place, key_bytes: usize) -> Extent {
        pool.extent(place.record_at, KEY_AT + key_bytes as u64)
    }

    #[inline(always)]
    fn whole<P: Pmem>(&self, pool: &Pool<P>, place: &Place, _key_bytes: usize) -> Extent {
        pool.extent(place.record_at, LOADED_AHEAD)
    }

    #[inline(always)]
    fn key_is<P: Pmem>(&self, pool: &Pool<P>, place: &Place, key: &[u8]) -> bool {
        let lengths = self.lengths(pool, place);
        lengths.is_some_and(|lengths| lengths.key_bytes as usize == key.len())
            && pool.pmem.compare(Self::key_extent(pool, place, key.len()), key)
    }

    fn read_key<P: Pmem>(&self, pool: &Pool<P>, place: &Place, into: &mut Vec<u8>) -> bool {
        let Some(lengths) = self.lengths(pool, place) else { return false };
        let key_bytes = lengths.key_bytes as usize;
        into.resize(key_bytes, 0);
        pool.pmem.read(Self::key_extent(pool, place, key_bytes), into);
        true
    }

    #[inline(always)]
    fn read_value<P: Pmem>(&self, pool: &Pool<P>, place: &Place, into: &mut Vec<u8>) -> bool {
        let Some(lengths) = self.lengths(pool, place) else { return false };
        if lengths.is_elsewhere {
            return self.read_pieces(pool, place, lengths, into);
        }
        into.resize(lengths.beside_bytes as usize, 0);
        pool.pmem.read(Self::beside_extent(pool, place, lengths), into);
        true
    }

    fn value_is<P: Pmem>(&self, pool: &Pool<P>, place: &Place, value: &[u8]) -> bool {
        let Some(lengths) = self.lengths(pool, place) else { return false };
        if lengths.is_elsewhere {
            return self.pieces_are(pool, place, lengths, value);
        }
        lengths.beside_bytes as usize == value.len()
            && pool.pmem.compare(Self::beside_extent(pool, place, lengths), value)
    }

    fn value_bytes<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> usize {
        let Some(lengths) = self.lengths(pool, place) else { return 0 };
        if lengths.is_elsewhere {
            return Self::described_bytes(pool, place, lengths).unwrap_or_default();
        }
        lengths.beside_bytes as usize
    }

    #[inline]
    fn value_word<P: Pmem>(&self, pool: &Pool<P>, place: &Place, at: usize) -> Option<u64> {
        let lengths = self.lengths(pool, place)?;
        let end = at.checked_add(8).filter(|_| at.is_multiple_of(8))?;
        if lengths.is_elsewhere {
            // All chunks but the last have whole words.
            return (end <= Self::described_bytes(pool, place, lengths)?)
                .then(|| self.piece_byte(pool, place, lengths, at))?;
        }
        let value_at = Self::value_at(place, lengths.key_bytes as usize);
        (end <= lengths.beside_bytes as usize).then_some(value_at + at as u64)
    }

    #[inline]
    fn expected_word(&self, place: &Place, key_bytes: usize, at: usize) -> Option<u64> {
        let word_at = Self::value_at(place, key_bytes).checked_add(at as u64)?;
        let is_likely = at.is_multiple_of(8) && word_at < self.block_end(place);
        is_likely.then_some(word_at)
    }

    #[inline(always)]
    fn header<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> RecordHeader {
        let first = pool.pmem.load_u64(place.record_at + HEADER_AT);
        RecordHeader::from_words(first, pool.pmem.load_u64(place.record_at + HEADER_AT + 8))
    }

    // ---- writing -------------------------------------------------------------------------------

    #[inline(always)]
    fn is_elsewhere(&self, value_bytes: usize) -> bool {
        value_bytes > self.beside_bytes_max
    }

    #[inline(always)]
    fn spill_key_bytes_min(&self) -> usize {
        self.spill_key_bytes_min
    }

    fn room_for_chunk(&self, point: &InsertPoint) -> usize {
        Self::room_for_chunk(point)
    }

    fn write_chunk<P: Pmem>(
        &self,
        pool: &Pool<P>,
        point: &mut InsertPoint,
        chunk: &Chunk<'_>,
    ) -> (Location, Extent) {
        Self::write_chunk(pool, point, chunk)
    }

    fn chunks<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Vec<(u64, u32)> {
        let mut chunks = Vec::new();
        if let Some(lengths) = self.lengths(pool, place).filter(|lengths| lengths.is_elsewhere) {
            self.for_pieces(pool, place, lengths, |piece| {
                let units = chunk_span(piece.length as u64) / 8;
                chunks.push((piece.place.block, units as u32));
                true
            });
        }
        chunks
    }

    #[inline(always)]
    fn write_body<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> u32 {
        pool.pmem.copy(Self::key_extent(pool, place, key.len()), key, sites::RECORD);
        let value_at = Self::value_at(place, key.len());
        let beside = pool.extent(value_at, stored.beside.len() as u64);
        pool.pmem.copy(beside, stored.beside, sites::RECORD);
        let bytes = span(key.len(), stored.beside.len());
        if self.with_end(place, bytes) > bytes && !pool.pmem.skips(steps::END) {
            pool.pmem.store_u64(place.record_at + bytes, 0, sites::RECORD);
        }
        value_checksum(place.record_at, stored.value)
    }

    #[inline(always)]
    fn write_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place, header: &RecordHeader) {
        let at = place.record_at + HEADER_AT;
        pool.pmem.store_u64(at, header.first_word(), sites::RECORD);
        pool.pmem.store_u64(at + 8, header.version, sites::RECORD);
    }

    fn flush_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> bool {
        Self::flush_behind_first_line(pool, place, KEY_AT)
    }

    #[inline(always)]
    fn flush_record<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> bool {
        let bytes = span(key.len(), stored.beside.len());
        let is_end_flushed = !pool.pmem.skips(steps::END_FLUSH);
        let bytes = if is_end_flushed { self.with_end(place, bytes) } else { bytes };
        Self::flush_behind_first_line(pool, place, bytes)
    }

    fn is_set<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Result<bool> {
        match Entry::decode(pool.pmem.load_u64(place.record_at)) {
            Some(Entry::Record { is_set, .. }) => Ok(is_set),
            Some(Entry::End | Entry::Chunk { .. }) => Ok(false),
            None => Err(damaged_word(place.record_at)),
        }
    }

    #[inline(always)]
    fn commit<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> Result<()> {
        let at = place.record_at;
        if pool.pmem.load_u64(at) != 0 && !pool.pmem.skips(steps::COMMIT_CHECK) {
            return Err(damaged_word(at));
        }
        let rest = pool.extent(at + HEADER_AT, span(key.len(), stored.beside.len()) - HEADER_AT);
        if stored.chunks.is_empty() {
            let word = Entry::record(key.len(), stored.beside.len());
            pool.pmem.publish(at, word, &[rest], sites::COMMIT);
        } else {
            let depends_on = [&[rest], stored.chunks].concat();
            let word = Entry::record_of_chunks(key.len());
            pool.pmem.publish(at, word, &depends_on, sites::COMMIT);
        }
        pool.pmem.flush(pool.extent(at, 8), sites::COMMIT);
        pool.pmem.fence(sites::COMMIT);
        Ok(())
    }

    #[inline(always)]
    fn retire<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        retired: impl FnOnce(u32),
    ) -> Result<()> {
        let at = place.record_at;
        let mut found = pool.pmem.load_u64(at);
        loop {
            let Some(Entry::Record { lengths, .. }) = Entry::decode(found) else {
                return Err(damaged_word(at));
            };
            match pool.pmem.cas_u64(at, found, Entry::retired(found), sites::RETIRE) {
                Ok(_) => {
                    retired((span_of(lengths) / 8) as u32);
                    break;
                }
                Err(now) => found = now,
            }
        }
        pool.pmem.flush(pool.extent(at, 8), sites::RETIRE);
        pool.pmem.fence(sites::RETIRE);
        Ok(())
    }

    #[inline(always)]
    fn prefetch_retire<P: Pmem>(&self, pool: &Pool<P>, place: &Place) {
        pool.pmem.prefetch_write(pool.extent(place.record_at, 8));
    }

    // ---- where a session goes on ---------------------------------------------------------------

    #[inline(always)]
    fn room(&self, point: &InsertPoint, key_bytes: usize, value_bytes: usize) -> Option<Place> {
        (point.tail + span(key_bytes, value_bytes) <= point.end).then(|| Place {
            block: point.block.unwrap_or_default(),
            page: point.page,
            slot: (point.tail / 8) as u32,
            page_at: point.page_at,
            record_at: point.page_at + point.tail,
        })
    }

    #[inline(always)]
    fn consume(&self, point: &mut InsertPoint, key_bytes: usize, value_bytes: usize) {
        point.tail += span(key_bytes, value_bytes);
    }

    fn leave_page(&self, point: &mut InsertPoint) {
        Self::leave_page(point);
    }

    fn room_left(&self, point: &InsertPoint) -> Option<Room> {
        point.left.filter(|_| point.pages_left == 0)
    }

    fn advance_in_page(&self, _point: &mut InsertPoint) -> bool {
        false
    }

    fn enter<P: Pmem>(&self, pool: &Pool<P>, which: usize, point: &mut InsertPoint) {
        self.enter(pool, which, point);
    }

    fn abandon(&self, point: &mut InsertPoint) {
        point.tail = point.end;
    }

    #[inline(always)]
    fn prefetch_next<P: Pmem>(
        &self,
        pool: &Pool<P>,
        point: &InsertPoint,
        key_bytes: usize,
        value_bytes: usize,
    ) {
        // The lines of this page were loaded when the session came to it. Before it comes to the next one,
        // it has gone past each of them.
        if point.pages_left > 0 {
            let last = self.pages_per_block - 1;
            let bytes = self.map.page_bytes;
            let next = if point.page < last {
                point.page_at + bytes
            } else {
                point.page_at - last * bytes
            };
            let length = span(key_bytes, value_bytes);
            pool.pmem.prefetch_write(pool.extent(next + point.tail, length));
        }
    }

    #[inline(always)]
    fn prefetch_shared<P: Pmem>(&self, pool: &Pool<P>, point: &InsertPoint) {
        if point.tail < point.end {
            pool.pmem.prefetch_write(pool.extent(point.page_at + point.tail, 8));
        }
    }

    // ---- whole blocks --------------------------------------------------------------------------

    fn is_blank<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool {
        // What else there may be is cleared when a session comes to it.
        let mut parts = self.parts(pool, block, 0);
        parts.all(|part| pool.pmem.load_u64(part.at + LOG_AT) == 0)
    }

    fn clear_block<P: Pmem>(&self, pool: &Pool<P>, block: u64) {
        for part in self.parts_of(pool, block) {
            self.persist_retired(pool, part);
        }
        // First that its pages are empty: that their records were retired may not be durable yet.
        Self::clear_heads(pool, self.parts_of(pool, block), sites::BLOCK_RESET);
        pool.pmem.withdrawn(pool.extent(self.map.block_at(block), self.map.block_bytes));
        if pool.pmem.skips(steps::CLEAR_HEADS) {
            return;
        }
        // In a block that is one page, other pages begin inside of records.
        if !matches!(block_flags::read(pool, block), Ok(flags) if flags & block_flags::LARGE == 0) {
            Self::clear_heads(pool, self.parts(pool, block, 0), sites::BLOCK_RESET);
        }
    }

    fn persist_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64) {
        self.clear_block(pool, block);
    }

    fn gain<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32 {
        (self.dead_bytes(pool, block) / 8) as u32
    }

    fn live_records<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32 {
        self.parts_of(pool, block).map(|part| self.walk(pool, part).live_records).sum()
    }

    fn places<P: Pmem>(&self, pool: &Pool<P>, block: u64, into: &mut Vec<Place>) {
        for part in self.parts_of(pool, block) {
            self.for_entries(pool, part, |at, entry| match entry {
                Entry::Record { is_set: true, .. } => into.push(part.place(block, at)),
                Entry::Chunk { .. } => {
                    let record = self.record_of_chunk(pool, part.at + at);
                    into.extend(record.filter(|(_, counts)| *counts).map(|(place, _)| place));
                }
                _ => {}
            });
        }
    }

    fn is_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool {
        let mut parts = self.parts_of(pool, block).map(|part| self.walk(pool, part));
        // What is in a block with damaged flags cannot be told.
        block_flags::read(pool, block).is_ok()
            && parts.all(|walked| walked.tail.is_some() && walked.live_bytes == 0)
    }

    fn has_room<P: Pmem>(&self, pool: &Pool<P>, block: u64, units: u32) -> bool {
        let need = 8 * u64::from(units);
        self.parts_of(pool, block).any(|part| Self::room_of(part, self.walk(pool, part)) >= need)
    }

    fn room_in<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Room {
        Self::room_from(self.parts_of(pool, block).map(|part| (part, self.walk(pool, part))))
    }

    fn usage<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Usage {
        self.usage_of(pool, block)
    }

    fn scan<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        block: u64,
        buffers: &mut PageBuffers,
        visit: &mut impl FnMut(Scanned<'_>),
    ) -> Room {
        let parts = self.parts(pool, block, scan.flags);
        Self::room_from(parts.map(|part| {
            let walked = self.scan_part(pool, scan, block, part, buffers, visit);
            (part, walked)
        }))
    }
}
