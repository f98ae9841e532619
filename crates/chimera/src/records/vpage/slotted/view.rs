//! What blocks of slots hold, as their bitsets say.

use chimera_pmem::Pmem;

use super::{PageLayout, SlottedPages};
use crate::pool::Pool;
use crate::records::page_word::PageWord;
use crate::records::vpage::{
    BlockView, PageBuffers, Place, Reuse, Room, Scan, Scanned, Usage, sites,
};

impl SlottedPages {
    /// Room of so many free slots.
    fn room_of(free: u32) -> Room {
        Room { free, fillable: free, fillable_if_starved: free }
    }
}

impl BlockView for SlottedPages {
    #[inline(always)]
    fn pages_per_block(&self) -> u64 {
        self.pages_per_block
    }

    fn units_per_block(&self) -> u32 {
        self.slots_per_block()
    }

    fn capacities(&self) -> (u32, u32) {
        (self.layout.slots, self.slots_per_block())
    }

    fn reuse(&self) -> Reuse {
        Reuse::InPlace
    }

    // ---- looking -------------------------------------------------------------------------------

    fn is_blank<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool {
        let mut pages = self.pages_of(pool, block);
        pages.all(|page| Self::page_word_is_sound(pool, page)) && self.is_empty(pool, block)
    }

    fn is_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool {
        self.free_slots(pool, block) == self.slots_per_block()
    }

    fn has_room<P: Pmem>(&self, pool: &Pool<P>, block: u64, _units: u32) -> bool {
        self.free_slots(pool, block) > 0
    }

    fn room_in<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Room {
        Self::room_of(self.free_slots(pool, block))
    }

    fn gain<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32 {
        self.free_slots(pool, block)
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

    fn usage<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Usage {
        let mut usage = Usage::default();
        let slot_bytes = u64::from(self.layout.slot_bytes);
        for page in self.pages_of(pool, block) {
            let (_, page_at) = page;
            let is_sound = Self::page_word_is_sound(pool, page);
            let (mut live, mut known, mut is_damaged) = (0, 0, !is_sound);
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
        Self::room_of(self.scan_block(pool, scan, block, &mut buffers.page, visit))
    }

    // ---- clearing ------------------------------------------------------------------------------

    fn format<P: Pmem>(&self, pool: &Pool<P>, block: u64, flags: u32) {
        for (page, page_at) in self.pages_of(pool, block) {
            let of_block = if page == 0 { flags } else { 0 };
            PageWord::open(of_block).store(pool, page_at, sites::FORMAT);
            for word in 0..self.layout.bitset_words {
                let at = page_at + PageLayout::bitset_at(word);
                pool.pmem.store_u64(at, self.layout.encode_bits(0, at), sites::FORMAT);
            }
            let words = PageLayout::bitset_at(self.layout.bitset_words);
            pool.pmem.flush(pool.extent(page_at, words), sites::FORMAT);
        }
    }

    fn persist_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64, _next: u32) {
        for (page_at, word) in self.words(pool, block) {
            Self::flush_bits(pool, page_at, word);
        }
        pool.pmem.fence(sites::REUSE);
    }
}
