//! [`SlottedPages`]: VPages of fixed-size records (section 3.2.2).
//!
//! ```text
//! byte 0   page word: in the first page the flags of the block
//! byte 8   bitset: one bit per slot; a set bit means a live record
//!          padding, chosen so that records touch the fewest lines
//! slots    [check of place, version word, key: 4 | check of place, value: 4 | version word: 8] key value
//! ```
//! The version word is the version and, above it, which word of the value is updated in place.
//!
//! The part in brackets is there in the checked layout only. Keys and values are padded to 8 bytes
//! each, so that every field of a value keeps its alignment.
//!
//! The page word, and in the checked layout each 32 bits of the bitset, have a check of their place in the upper
//! half of their word, changed together with them by one swap. So no such word is zero. The published layout has bits
//! only, 64 to a word.
//!
//! The version lock of the paper's page header lives in DRAM, where a crash cannot leave it set.

mod codec;
mod commit;
mod cursor;
mod layout;
mod scan;
mod view;

use chimera_pmem::{Extent, Pmem};

use super::{LogPages, Pages, Place, damaged_word, sites, steps};
use super::{PageMap, PageParameters};
use crate::pool::Pool;
use crate::records::page_word::PageWord;
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
        match self.layout.decode_bits(word, found, at) {
            Some(bits) => Ok(bits),
            None if pool.pmem.skips(steps::COMMIT_CHECK) => {
                Ok(found & self.layout.bits_of_word(word))
            }
            None => Err(damaged_word(at)),
        }
    }

    /// The pages of a block, with their numbers and offsets.
    fn pages_of<P: Pmem>(
        &self,
        pool: &Pool<P>,
        block: u64,
    ) -> impl Iterator<Item = (u64, u64)> + use<P> {
        let (start, page_bytes) = (pool.map.block_at(block), self.map.page_bytes);
        (0..self.pages_per_block).map(move |page| (page, start + page * page_bytes))
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

    /// Whether the first word of a page is as it was written. That of the first page is judged with the flags.
    fn page_word_is_sound<P: Pmem>(pool: &Pool<P>, (page, page_at): (u64, u64)) -> bool {
        page == 0 || PageWord::load(pool, page_at) == Some(PageWord::open(0))
    }

    /// Makes durable that bits of a word, which others cleared, are clear: 1 line, 1 fence.
    fn persist_bits<P: Pmem>(pool: &Pool<P>, page_at: u64, word: u32) {
        Self::flush_bits(pool, page_at, word);
        pool.pmem.fence(sites::REUSE);
    }

    fn flush_bits<P: Pmem>(pool: &Pool<P>, page_at: u64, word: u32) {
        pool.pmem.flush(pool.extent(page_at + PageLayout::bitset_at(word), 8), sites::REUSE);
    }

    /// Free slots of a block, those of damaged words left out.
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
    fn takes(parameters: &PageParameters) -> bool {
        !parameters.is_variable()
    }

    const RESERVE_BLOCKS: u32 = 0;

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

    /// Every value fits its slot.
    #[inline(always)]
    fn spilling(&self) -> Option<&LogPages> {
        None
    }
}
