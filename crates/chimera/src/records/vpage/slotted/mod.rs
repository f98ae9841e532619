//! [`SlottedPages`]: VPages of fixed-size records (section 3.2.2).
//!
//! ```text
//! byte 0   flags word: of the block, in its first page; zero in the others
//! byte 8   bitset: one bit per slot; a set bit means a record
//!          padding, chosen so that records touch the fewest lines
//! slots    [check of place, version, key: 4 | check of place, value: 4 | version: 8] key value
//! ```
//! The part in brackets is there in the checked layout only. Keys and values are padded to 8 bytes
//! each, so that every field of a value keeps its alignment.
//!
//! In the checked layout the flags and each 32 bits of the bitset have a check in the upper half of
//! their word, changed together with them by one swap. The published layout has bits only, 64 to a
//! word.
//!
//! The version lock of the paper's page header lives in DRAM, where a crash cannot leave it set.

mod layout;
mod scan;

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::{
    Chunk, InsertPoint, POINTS, PageBuffers, PageMap, PageParameters, Pages, Place,
    RECORD_HEADER_BYTES, RecordHeader, Room, Scan, Scanned, Stored, Usage, damaged_word, sites,
    steps, value_checksum,
};
use crate::pool::{Location, Pool};
use crate::types::error::{Error, Result};
pub(crate) use layout::PageLayout;

/// The pages of a pool with fixed-size records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlottedPages {
    map: PageMap,
    layout: PageLayout,
    pages_per_block: u64,
    key_bytes: usize,
    value_bytes: usize,
}

impl SlottedPages {
    #[inline(always)]
    fn key<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent {
        pool.extent(place.record_at + u64::from(self.layout.key_at), self.key_bytes as u64)
    }

    #[inline(always)]
    fn value<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent {
        pool.extent(place.record_at + u64::from(self.layout.value_at), self.value_bytes as u64)
    }

    /// The whole of a slot.
    #[inline(always)]
    fn slot<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent {
        pool.extent(place.record_at, u64::from(self.layout.slot_bytes))
    }

    /// The bits of word `word` of a page's bitset.
    ///
    /// # Errors
    /// `Corrupted` when the word is damaged.
    #[inline(always)]
    fn bits<P: Pmem>(&self, pool: &Pool<P>, page_at: u64, word: u32) -> Result<u64> {
        let at = page_at + PageLayout::bitset_at(word);
        let found = pool.pmem.load_u64(at);
        match self.layout.decode_bits(word, found) {
            Some(bits) => Ok(bits),
            None if pool.pmem.skips(steps::COMMIT_CHECK) => {
                Ok(found & self.layout.bits_of_word(word))
            }
            None => Err(damaged_word(at)),
        }
    }

    /// The words of a block's bitsets: page and word.
    fn words<P: Pmem>(
        &self,
        pool: &Pool<P>,
        block: u64,
    ) -> impl Iterator<Item = (u64, u32)> + use<P> {
        let words = self.layout.bitset_words;
        let pages = self.pages_of(pool, block);
        pages.flat_map(move |(_, page_at)| (0..words).map(move |word| (page_at, word)))
    }

    /// Makes durable that bits of a word, which others cleared, are clear: 1 line, 1 fence.
    fn persist_bits<P: Pmem>(pool: &Pool<P>, page_at: u64, word: u32) {
        Self::flush_bits(pool, page_at, word);
        pool.pmem.fence(sites::REUSE);
    }

    fn flush_bits<P: Pmem>(pool: &Pool<P>, page_at: u64, word: u32) {
        pool.pmem.flush(pool.extent(page_at + PageLayout::bitset_at(word), 8), sites::REUSE);
    }

    /// Free slots of a block; those of damaged words do not count.
    fn free_slots<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32 {
        let free = |(page_at, word)| {
            let bits = self.bits(pool, page_at, word).unwrap_or(u64::MAX);
            (!bits & self.layout.bits_of_word(word)).count_ones()
        };
        self.words(pool, block).map(free).sum()
    }

    fn slots_per_block(&self) -> u32 {
        self.layout.slots * self.pages_per_block as u32
    }
}

impl Pages for SlottedPages {
    fn of<P: Pmem>(pool: &Pool<P>, parameters: &PageParameters) -> Result<Self> {
        let PageParameters { geometry, layout, key_bytes, value_bytes } = *parameters;
        let layout = PageLayout::new(&geometry, layout, key_bytes, value_bytes)
            .ok_or_else(|| Error::corrupted("the superblock's records do not fit a page", 56))?;
        Ok(Self {
            map: PageMap::new(pool.map, geometry.page_bytes),
            layout,
            pages_per_block: u64::from(geometry.pages_per_block),
            key_bytes: key_bytes as usize,
            value_bytes: value_bytes as usize,
        })
    }

    fn takes(parameters: &PageParameters) -> bool {
        !parameters.is_variable()
    }

    const NEEDS_RESERVE: bool = false;

    #[inline(always)]
    fn map(&self) -> &PageMap {
        &self.map
    }

    // ---- facts ---------------------------------------------------------------------------------

    #[inline(always)]
    fn place_of(&self, location: Location) -> Place {
        Place::of(&self.map, location, |slot| self.layout.slot_at(slot))
    }

    #[inline(always)]
    fn pages_per_block(&self) -> u64 {
        self.pages_per_block
    }

    #[inline(always)]
    fn is_checked(&self) -> bool {
        self.layout.checked
    }

    fn units_per_block(&self) -> u32 {
        self.slots_per_block()
    }

    /// Refilling fewer costs more flushes and scattered writes than the space is worth.
    const REUSED_AT_PART: u32 = 4;
    const FLAGS: [u32; POINTS] = [0; POINTS];
    const KINDS: u32 = 0;
    const IS_LOG: bool = false;

    #[inline(always)]
    fn point_of(&self, _key_bytes: usize, _value_bytes: usize) -> usize {
        0
    }

    fn units_of(&self, _key_bytes: usize, _value_bytes: usize) -> u32 {
        1
    }

    fn units_at<P: Pmem>(&self, _pool: &Pool<P>, _place: &Place) -> u32 {
        1
    }

    fn first_page(&self, _which: usize, chance: u64) -> (u64, u64) {
        (chance % self.pages_per_block, self.pages_per_block - 1)
    }

    fn capacities(&self) -> (u32, u32) {
        (self.layout.slots, self.slots_per_block())
    }

    #[inline(always)]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        let (found, expected) = (key.len(), self.key_bytes);
        if found == expected { Ok(()) } else { Err(Error::KeySize { found, expected }) }
    }

    #[inline(always)]
    fn check_value(&self, value: &[u8]) -> Result<()> {
        let (found, expected) = (value.len(), self.value_bytes);
        if found == expected { Ok(()) } else { Err(Error::ValueSize { found, expected }) }
    }

    #[inline(always)]
    fn fixed_value_bytes(&self) -> Option<usize> {
        Some(self.value_bytes)
    }

    // ---- reading -------------------------------------------------------------------------------

    #[inline(always)]
    fn head<P: Pmem>(&self, pool: &Pool<P>, place: &Place, _key_bytes: usize) -> Extent {
        pool.extent(place.record_at, u64::from(self.layout.key_at) + self.key_bytes as u64)
    }

    #[inline(always)]
    fn whole<P: Pmem>(&self, pool: &Pool<P>, place: &Place, _key_bytes: usize) -> Extent {
        self.slot(pool, place)
    }

    #[inline(always)]
    fn key_is<P: Pmem>(&self, pool: &Pool<P>, place: &Place, key: &[u8]) -> bool {
        pool.pmem.compare(self.key(pool, place), key)
    }

    fn read_key<P: Pmem>(&self, pool: &Pool<P>, place: &Place, into: &mut Vec<u8>) -> bool {
        into.resize(self.key_bytes, 0);
        pool.pmem.read(self.key(pool, place), into);
        true
    }

    #[inline(always)]
    fn read_value<P: Pmem>(&self, pool: &Pool<P>, place: &Place, into: &mut Vec<u8>) -> bool {
        into.resize(self.value_bytes, 0);
        pool.pmem.read(self.value(pool, place), into);
        true
    }

    #[inline(always)]
    fn value_is<P: Pmem>(&self, pool: &Pool<P>, place: &Place, value: &[u8]) -> bool {
        pool.pmem.compare(self.value(pool, place), value)
    }

    #[inline(always)]
    fn value_bytes<P: Pmem>(&self, _pool: &Pool<P>, _place: &Place) -> usize {
        self.value_bytes
    }

    #[inline]
    fn value_word<P: Pmem>(&self, _pool: &Pool<P>, place: &Place, at: usize) -> Option<u64> {
        self.expected_word(place, self.key_bytes, at)
    }

    fn expected_word(&self, place: &Place, _key_bytes: usize, at: usize) -> Option<u64> {
        (at.is_multiple_of(8) && at + 8 <= self.value_bytes)
            .then(|| place.record_at + u64::from(self.layout.value_at) + at as u64)
    }

    #[inline(always)]
    fn header<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> RecordHeader {
        if !self.layout.checked {
            return RecordHeader::from_words(0, 0);
        }
        let first = pool.pmem.load_u64(place.record_at);
        RecordHeader::from_words(first, pool.pmem.load_u64(place.record_at + 8))
    }

    // ---- writing -------------------------------------------------------------------------------

    #[inline(always)]
    fn is_elsewhere(&self, _value_bytes: usize) -> bool {
        false
    }

    #[inline(always)]
    fn spill_key_bytes_min(&self) -> usize {
        usize::MAX
    }

    fn room_for_chunk(&self, _point: &InsertPoint) -> usize {
        0
    }

    fn write_chunk<P: Pmem>(
        &self,
        _pool: &Pool<P>,
        _point: &mut InsertPoint,
        _chunk: &Chunk<'_>,
    ) -> (Location, Extent) {
        unreachable!("every value lies beside its key")
    }

    fn chunks<P: Pmem>(&self, _pool: &Pool<P>, _place: &Place) -> Vec<(u64, u32)> {
        Vec::new()
    }

    #[inline(always)]
    fn write_body<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> u32 {
        pool.pmem.copy(self.key(pool, place), key, sites::RECORD);
        pool.pmem.copy(self.value(pool, place), stored.value, sites::RECORD);
        if self.layout.checked { value_checksum(place.record_at, stored.value) } else { 0 }
    }

    #[inline(always)]
    fn write_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place, header: &RecordHeader) {
        if self.layout.checked {
            pool.pmem.store_u64(place.record_at, header.first_word(), sites::RECORD);
            pool.pmem.store_u64(place.record_at + 8, header.version, sites::RECORD);
        }
    }

    fn flush_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> bool {
        let header = pool.extent(place.record_at, u64::from(RECORD_HEADER_BYTES));
        pool.pmem.flush(header, sites::RECORD);
        true
    }

    #[inline(always)]
    fn flush_record<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        _key: &[u8],
        _stored: &Stored<'_>,
    ) -> bool {
        pool.pmem.flush(self.slot(pool, place), sites::RECORD);
        true
    }

    fn is_set<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Result<bool> {
        let (word, bit) = self.layout.bit_of(place.slot);
        Ok(self.bits(pool, place.page_at, word)? & bit != 0)
    }

    #[inline(always)]
    fn commit<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        _key: &[u8],
        _stored: &Stored<'_>,
    ) -> Result<()> {
        let (word, bit) = self.layout.bit_of(place.slot);
        let at = place.page_at + PageLayout::bitset_at(word);
        let depends_on = [self.slot(pool, place)];
        let mut found = pool.pmem.load_u64(at);
        loop {
            let Some(bits) = self.layout.decode_bits(word, found) else {
                return Err(damaged_word(at));
            };
            let new = self.layout.encode_bits(bits | bit);
            // Others may clear bits of the same word meanwhile.
            match pool.pmem.publish_cas(at, found, new, &depends_on, sites::COMMIT) {
                Ok(_) => break,
                Err(now) => found = now,
            }
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
        let (word, bit) = self.layout.bit_of(place.slot);
        let at = place.page_at + PageLayout::bitset_at(word);
        let mut found = pool.pmem.load_u64(at);
        loop {
            let Some(bits) = self.layout.decode_bits(word, found) else {
                return Err(damaged_word(at));
            };
            let new = self.layout.encode_bits(bits & !bit);
            match pool.pmem.cas_u64(at, found, new, sites::RETIRE) {
                Ok(_) => break,
                Err(now) => found = now,
            }
        }
        retired(1);
        pool.pmem.flush(pool.extent(at, 8), sites::RETIRE);
        pool.pmem.fence(sites::RETIRE);
        Ok(())
    }

    #[inline(always)]
    fn prefetch_retire<P: Pmem>(&self, pool: &Pool<P>, place: &Place) {
        let (word, _) = self.layout.bit_of(place.slot);
        pool.pmem.prefetch_write(pool.extent(place.page_at + PageLayout::bitset_at(word), 8));
    }

    // ---- where a session goes on ---------------------------------------------------------------

    #[inline(always)]
    fn room(&self, point: &InsertPoint, _key_bytes: usize, _value_bytes: usize) -> Option<Place> {
        if point.free == 0 {
            return None;
        }
        let slot = self.layout.slot_of(point.word, point.free.trailing_zeros());
        Some(Place {
            block: point.block.unwrap_or_default(),
            page: point.page,
            slot,
            page_at: point.page_at,
            record_at: point.page_at + self.layout.slot_at(slot),
        })
    }

    #[inline(always)]
    fn consume(&self, point: &mut InsertPoint, _key_bytes: usize, _value_bytes: usize) {
        point.free &= point.free - 1;
    }

    fn advance_in_page(&self, point: &mut InsertPoint) -> bool {
        let goes_on = point.word + 1 < self.layout.bitset_words;
        point.word += u32::from(goes_on);
        goes_on
    }

    fn enter<P: Pmem>(&self, pool: &Pool<P>, _which: usize, point: &mut InsertPoint) {
        // The slots of a damaged word are not for use.
        let bits = self.bits(pool, point.page_at, point.word).unwrap_or(u64::MAX);
        point.free = !bits & self.layout.bits_of_word(point.word);
        if point.is_reused && point.free != 0 {
            Self::persist_bits(pool, point.page_at, point.word);
        }
    }

    fn abandon(&self, point: &mut InsertPoint) {
        point.free = 0;
    }

    #[inline(always)]
    fn prefetch_next<P: Pmem>(&self, pool: &Pool<P>, point: &InsertPoint, _: usize, _: usize) {
        let free = point.free & (point.free - 1);
        // All but the line it may share with the present one, which is on its way out of the cache.
        if free != 0 && u64::from(self.layout.slot_bytes) > CACHE_LINE {
            let slot = self.layout.slot_of(point.word, free.trailing_zeros());
            let at = point.page_at + self.layout.slot_at(slot) + CACHE_LINE;
            let length = u64::from(self.layout.slot_bytes) - CACHE_LINE;
            pool.pmem.prefetch_write(pool.extent(at, length));
        }
    }

    #[inline(always)]
    fn prefetch_shared<P: Pmem>(&self, pool: &Pool<P>, point: &InsertPoint) {
        if point.free != 0 {
            let slot = self.layout.slot_of(point.word, point.free.trailing_zeros());
            let bits = point.page_at + PageLayout::bitset_at(point.word);
            for at in [point.page_at + self.layout.slot_at(slot), bits] {
                pool.pmem.prefetch_write(pool.extent(at, 8));
            }
        }
    }

    // ---- whole blocks --------------------------------------------------------------------------

    fn is_blank<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool {
        self.is_empty(pool, block)
    }

    fn clear_block<P: Pmem>(&self, pool: &Pool<P>, block: u64) {
        let bitset_bytes = 8 * u64::from(self.layout.bitset_words);
        for (_, page_at) in self.pages_of(pool, block) {
            let bits = pool.extent(page_at + PageLayout::bitset_at(0), bitset_bytes);
            pool.pmem.zero(bits, sites::BLOCK_RESET);
            pool.pmem.flush(bits, sites::BLOCK_RESET);
        }
        pool.pmem.fence(sites::BLOCK_RESET);
    }

    fn persist_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64) {
        for (page_at, word) in self.words(pool, block) {
            Self::flush_bits(pool, page_at, word);
        }
        pool.pmem.fence(sites::REUSE);
    }

    fn gain<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32 {
        self.free_slots(pool, block)
    }

    fn live_records<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32 {
        self.slots_per_block() - self.free_slots(pool, block)
    }

    fn places<P: Pmem>(&self, pool: &Pool<P>, block: u64, into: &mut Vec<Place>) {
        for page in 0..self.pages_per_block {
            for word in 0..self.layout.bitset_words {
                let page_at = self.map.page_at(block, page);
                let mut bits = self.bits(pool, page_at, word).unwrap_or_default();
                bits &= self.layout.bits_of_word(word);
                while bits != 0 {
                    let slot = self.layout.slot_of(word, bits.trailing_zeros());
                    let slot_at = |slot| self.layout.slot_at(slot);
                    into.push(Place::new(&self.map, block, page, slot, slot_at));
                    bits &= bits - 1;
                }
            }
        }
    }

    fn is_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool {
        self.free_slots(pool, block) == self.slots_per_block()
    }

    fn has_room<P: Pmem>(&self, pool: &Pool<P>, block: u64, _units: u32) -> bool {
        self.free_slots(pool, block) > 0
    }

    fn room_in<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Room {
        let free = self.free_slots(pool, block);
        Room { free, fillable: free, fillable_if_starved: free }
    }

    fn usage<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Usage {
        let mut usage = Usage::default();
        let slot_bytes = u64::from(self.layout.slot_bytes);
        for (_, page_at) in self.pages_of(pool, block) {
            let (mut live, mut known, mut is_damaged) = (0, 0, false);
            for word in 0..self.layout.bitset_words {
                match self.bits(pool, page_at, word) {
                    Ok(bits) => {
                        live += u64::from(bits.count_ones());
                        known += u64::from(self.layout.bits_of_word(word).count_ones());
                    }
                    Err(_) => is_damaged = true,
                }
            }
            usage.pages += 1;
            usage.pages_filled += u64::from(live > 0);
            usage.pages_damaged += u64::from(is_damaged);
            usage.live_records += live;
            usage.live_bytes += live * slot_bytes;
            usage.room_bytes += (known - live) * slot_bytes;
            usage.dead_bytes += (u64::from(self.layout.slots) - known) * slot_bytes;
        }
        usage
    }

    fn scan<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        block: u64,
        buffers: &mut PageBuffers,
        visit: &mut impl FnMut(Scanned<'_>),
    ) -> Room {
        let free = self.scan_block(pool, scan, block, &mut buffers.page, visit);
        Room { free, fillable: free, fillable_if_starved: free }
    }
}
