//! [`VPages`]: records and bits of the pages of a pool.

use std::ops::Range;

use chimera_pmem::{Extent, Pmem};

use super::{PageLayout, key_checksum, sites, steps, value_checksum};
use crate::pool::{BlockMap, Location, Pool, Superblock};
use crate::records::block_flags;
use crate::types::error::{Error, Result};

/// Bits of a location for the slot (plus one) and for the page.
const SLOT_BITS: u32 = 16;
const PAGE_BITS: u32 = 3;

/// The highest version a record can have: more than any number of puts reaches.
pub(crate) const VERSION_MAX: u64 = 1 << 62;

/// A slot of a page: offsets into the pool, computed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: u64,
    pub(crate) page: u64,
    pub(crate) slot: u32,
    /// Where the page begins.
    pub(crate) page_at: u64,
    /// Where the slot begins.
    pub(crate) record_at: u64,
}

/// What precedes a record in the checked layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) key_checksum: u32,
    pub(crate) value_checksum: u32,
    pub(crate) version: u64,
}

impl RecordHeader {
    pub(crate) fn from_words(first: u64, version: u64) -> Self {
        Self { key_checksum: first as u32, value_checksum: (first >> 32) as u32, version }
    }

    /// Whether a key, by its hash, and the version are what was written at this place.
    #[inline(always)]
    pub(crate) fn key_is_sound(&self, place: &Place, key_hash: u64) -> bool {
        self.version <= VERSION_MAX
            && key_checksum(place.record_at, self.version, key_hash) == self.key_checksum
    }

    /// Whether a value is what was written at this place.
    #[inline(always)]
    pub(crate) fn value_is_sound(&self, place: &Place, value: &[u8]) -> bool {
        value_checksum(place.record_at, value) == self.value_checksum
    }
}

/// The pages of a pool with fixed-size records: where things are, and the steps of which engines
/// make their protocols. A step says what it flushes; fences are the caller's unless it says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VPages {
    map: BlockMap,
    pub(crate) layout: PageLayout,
    pub(crate) pages_per_block: u64,
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
}

impl VPages {
    /// The pages of a pool, as its superblock says.
    ///
    /// # Errors
    /// `Corrupted` when a page does not hold such a record.
    pub(crate) fn of<P: Pmem>(pool: &Pool<P>) -> Result<Self> {
        let Superblock { geometry, layout, key_bytes, value_bytes, .. } = pool.superblock();
        let layout = PageLayout::new(&geometry, layout, key_bytes, value_bytes)
            .ok_or_else(|| Error::corrupted("the superblock's records do not fit a page", 56))?;
        Ok(Self {
            map: pool.map,
            layout,
            pages_per_block: u64::from(geometry.pages_per_block),
            key_bytes: key_bytes as usize,
            value_bytes: value_bytes as usize,
        })
    }

    // ---- where things are ----------------------------------------------------------------------

    /// Number of a page among all pages.
    #[inline(always)]
    pub(crate) fn page_number(&self, block: u64, page: u64) -> u64 {
        block * self.pages_per_block + page
    }

    #[inline(always)]
    pub(crate) fn place(&self, block: u64, page: u64, slot: u32) -> Place {
        let page_at = self.map.page_at(block, page);
        Place { block, page, slot, page_at, record_at: page_at + self.layout.slot_at(slot) }
    }

    /// The location of a place: 45 bits of block, 3 of page, 16 of slot plus one (section 3.2.1).
    #[inline(always)]
    pub(crate) fn location(place: &Place) -> Location {
        let raw = place.block << (PAGE_BITS + SLOT_BITS)
            | place.page << SLOT_BITS
            | u64::from(place.slot + 1);
        Location::from_raw(raw).expect("the slot's part is not 0")
    }

    /// The place of a location that [`location`](Self::location) made.
    #[inline(always)]
    pub(crate) fn place_of(&self, location: Location) -> Place {
        let raw = location.raw();
        let slot = (raw & ((1 << SLOT_BITS) - 1)) as u32 - 1;
        let page = raw >> SLOT_BITS & ((1 << PAGE_BITS) - 1);
        self.place(raw >> (PAGE_BITS + SLOT_BITS), page, slot)
    }

    /// The whole of a slot.
    #[inline(always)]
    pub(crate) fn record<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent {
        pool.extent(place.record_at, u64::from(self.layout.slot_bytes))
    }

    /// The start of a slot, up to the end of the key.
    #[inline(always)]
    pub(crate) fn head<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent {
        pool.extent(place.record_at, u64::from(self.layout.key_at) + self.key_bytes as u64)
    }

    #[inline(always)]
    fn key<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent {
        pool.extent(place.record_at + u64::from(self.layout.key_at), self.key_bytes as u64)
    }

    #[inline(always)]
    pub(crate) fn value<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent {
        pool.extent(place.record_at + u64::from(self.layout.value_at), self.value_bytes as u64)
    }

    /// Offset of the word that holds bytes `at..at + 8` of a value, if one word does.
    #[inline]
    pub(crate) fn value_word(&self, place: &Place, at: usize) -> Option<u64> {
        (at.is_multiple_of(8) && at + 8 <= self.value_bytes)
            .then(|| place.record_at + u64::from(self.layout.value_at) + at as u64)
    }

    // ---- reading -------------------------------------------------------------------------------

    #[inline(always)]
    pub(crate) fn key_is<P: Pmem>(&self, pool: &Pool<P>, place: &Place, key: &[u8]) -> bool {
        pool.pmem.compare(self.key(pool, place), key)
    }

    pub(crate) fn read_key<P: Pmem>(&self, pool: &Pool<P>, place: &Place, into: &mut [u8]) {
        pool.pmem.read(self.key(pool, place), into);
    }

    #[inline(always)]
    pub(crate) fn read_value<P: Pmem>(&self, pool: &Pool<P>, place: &Place, into: &mut [u8]) {
        pool.pmem.read(self.value(pool, place), into);
    }

    /// The header of a record; of the checked layout only.
    #[inline(always)]
    pub(crate) fn header<P: Pmem>(pool: &Pool<P>, place: &Place) -> RecordHeader {
        let first = pool.pmem.load_u64(place.record_at);
        RecordHeader::from_words(first, pool.pmem.load_u64(place.record_at + 8))
    }

    // ---- writing -------------------------------------------------------------------------------

    /// Copies key and value into a slot. Returns the value's checksum, 0 in the published layout.
    #[inline(always)]
    pub(crate) fn write_body<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        value: &[u8],
    ) -> u32 {
        pool.pmem.copy(self.key(pool, place), key, sites::RECORD);
        pool.pmem.copy(self.value(pool, place), value, sites::RECORD);
        if self.layout.checked { value_checksum(place.record_at, value) } else { 0 }
    }

    /// Stores the header that completes a record; nothing in the published layout.
    #[inline(always)]
    pub(crate) fn write_header<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key_hash: u64,
        version: u64,
        value_checksum: u32,
    ) {
        if self.layout.checked {
            let key_checksum = key_checksum(place.record_at, version, key_hash);
            let first = u64::from(key_checksum) | u64::from(value_checksum) << 32;
            pool.pmem.store_u64(place.record_at, first, sites::RECORD);
            pool.pmem.store_u64(place.record_at + 8, version, sites::RECORD);
        }
    }

    /// Flushes a whole slot.
    #[inline(always)]
    pub(crate) fn flush_record<P: Pmem>(&self, pool: &Pool<P>, place: &Place) {
        pool.pmem.flush(self.record(pool, place), sites::RECORD);
    }

    // ---- bits ----------------------------------------------------------------------------------

    /// The bits of word `word` of a page's bitset.
    ///
    /// # Errors
    /// `Corrupted` when the word is damaged.
    #[inline(always)]
    pub(crate) fn bits<P: Pmem>(&self, pool: &Pool<P>, page_at: u64, word: u32) -> Result<u64> {
        let at = page_at + PageLayout::bitset_at(word);
        let found = pool.pmem.load_u64(at);
        match self.layout.decode_bits(word, found) {
            Some(bits) => Ok(bits),
            None if pool.pmem.skips(steps::BITS_CHECK) => {
                Ok(found & self.layout.bits_of_word(word))
            }
            None => Err(damaged_bits(at)),
        }
    }

    /// Whether a slot's bit is set.
    pub(crate) fn is_set<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Result<bool> {
        let (word, bit) = self.layout.bit_of(place.slot);
        Ok(self.bits(pool, place.page_at, word)? & bit != 0)
    }

    /// Sets a slot's bit, whose record is durable: 1 line, 1 fence.
    #[inline(always)]
    pub(crate) fn set_bit<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Result<()> {
        let (word, bit) = self.layout.bit_of(place.slot);
        let at = place.page_at + PageLayout::bitset_at(word);
        let depends_on = [self.record(pool, place)];
        let mut found = pool.pmem.load_u64(at);
        loop {
            let Some(bits) = self.layout.decode_bits(word, found) else {
                return Err(damaged_bits(at));
            };
            let new = self.layout.encode_bits(bits | bit);
            // Others may clear bits of the same word meanwhile.
            match pool.pmem.publish_cas(at, found, new, &depends_on, sites::BIT_SET) {
                Ok(_) => break,
                Err(now) => found = now,
            }
        }
        pool.pmem.flush(pool.extent(at, 8), sites::BIT_SET);
        pool.pmem.fence(sites::BIT_SET);
        Ok(())
    }

    /// Clears a slot's bit durably: 1 line, 1 fence. Calls `cleared` once it is clear and before it is
    /// durable: what is atomic there need not wait for the fence.
    #[inline(always)]
    pub(crate) fn clear_bit<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        cleared: impl FnOnce(),
    ) -> Result<()> {
        let (word, bit) = self.layout.bit_of(place.slot);
        let at = place.page_at + PageLayout::bitset_at(word);
        let mut found = pool.pmem.load_u64(at);
        loop {
            let Some(bits) = self.layout.decode_bits(word, found) else {
                return Err(damaged_bits(at));
            };
            let new = self.layout.encode_bits(bits & !bit);
            match pool.pmem.cas_u64(at, found, new, sites::BIT_CLEAR) {
                Ok(_) => break,
                Err(now) => found = now,
            }
        }
        cleared();
        pool.pmem.flush(pool.extent(at, 8), sites::BIT_CLEAR);
        pool.pmem.fence(sites::BIT_CLEAR);
        Ok(())
    }

    /// Starts loading the line with a slot's bit for writing.
    #[inline(always)]
    pub(crate) fn prefetch_bits<P: Pmem>(&self, pool: &Pool<P>, place: &Place) {
        let (word, _) = self.layout.bit_of(place.slot);
        pool.pmem.prefetch_write(pool.extent(place.page_at + PageLayout::bitset_at(word), 8));
    }

    /// Makes durable that bits of a word, which others cleared, are clear: 1 line, 1 fence.
    pub(crate) fn persist_bits<P: Pmem>(pool: &Pool<P>, page_at: u64, word: u32) {
        pool.pmem.flush(pool.extent(page_at + PageLayout::bitset_at(word), 8), sites::BITS_REUSED);
        pool.pmem.fence(sites::BITS_REUSED);
    }

    fn bitset<P: Pmem>(&self, pool: &Pool<P>, page_at: u64) -> Extent {
        pool.extent(page_at + PageLayout::bitset_at(0), 8 * u64::from(self.layout.bitset_words))
    }

    /// Free slots of a block; those of damaged words do not count.
    pub(crate) fn free_slots<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32 {
        let words = |(_, page_at)| (0..self.layout.bitset_words).map(move |word| (page_at, word));
        let free = |(page_at, word)| {
            let bits = self.bits(pool, page_at, word).unwrap_or(u64::MAX);
            (!bits & self.layout.bits_of_word(word)).count_ones()
        };
        self.pages_of(block).flat_map(words).map(free).sum()
    }

    /// Records a block can hold.
    pub(crate) fn slots_per_block(&self) -> u32 {
        self.layout.slots * self.pages_per_block as u32
    }

    // ---- whole blocks --------------------------------------------------------------------------

    /// Makes an index block a free block: clears all bits durably, then its flags.
    ///
    /// # Errors
    /// As [`block_flags::change`].
    pub(crate) fn reset_block<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Result<()> {
        self.clear_all_bits(pool, block);
        block_flags::change(pool, block, 0, block_flags::KNOWN)
    }

    /// Makes a block that was never in use a free block, whatever the file had there.
    pub(crate) fn blank_block<P: Pmem>(&self, pool: &Pool<P>, block: u64) {
        self.clear_all_bits(pool, block);
        block_flags::set_fresh(pool, block, 0);
    }

    /// Clears all bits of a block durably, damaged ones, too.
    fn clear_all_bits<P: Pmem>(&self, pool: &Pool<P>, block: u64) {
        for (_, page_at) in self.pages_of(block) {
            let bits = self.bitset(pool, page_at);
            pool.pmem.zero(bits, sites::BLOCK_RESET);
            pool.pmem.flush(bits, sites::BLOCK_RESET);
        }
        pool.pmem.fence(sites::BLOCK_RESET);
    }

    /// Offsets of the pages of a block.
    pub(crate) fn pages_of(&self, block: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let start = self.map.block_at(block);
        let page_bytes = self.map.page_bytes;
        (0..self.pages_per_block).map(move |page| (page, start + page * page_bytes))
    }

    /// Bytes of a page.
    pub(crate) fn page_bytes(&self) -> usize {
        self.map.page_bytes as usize
    }

    /// The key and value of a slot inside a copy of its page.
    pub(crate) fn in_copy(&self, slot: u32) -> (Range<usize>, Range<usize>) {
        let start = self.layout.slot_at(slot) as usize;
        let key = start + self.layout.key_at as usize;
        let value = start + self.layout.value_at as usize;
        (key..key + self.key_bytes, value..value + self.value_bytes)
    }
}

#[cold]
fn damaged_bits(at: u64) -> Error {
    Error::corrupted("the bitset of a page is damaged", at)
}
