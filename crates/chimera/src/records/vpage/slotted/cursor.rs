//! A session on its way through the free slots of a block, one word of a bitset after the other.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::{PageLayout, SlottedPages};
use crate::pool::Pool;
use crate::records::vpage::{Abandoned, Cursor, InsertPoint, PAGE_KINDS, Place, Room};
use crate::sync::VersionGuard;

impl Cursor for SlottedPages {
    const KIND_FLAGS: [u32; PAGE_KINDS] = [0; PAGE_KINDS];
    const KIND_MASK: u32 = 0;

    /// All records have one size.
    #[inline(always)]
    fn kind_of(&self, _key_bytes: usize, _beside_bytes: usize) -> usize {
        0
    }

    fn begin(&self, block: u64, is_reused: bool, _kind: usize, chance: u64) -> InsertPoint {
        let page = chance % self.pages_per_block;
        InsertPoint {
            block: Some(block),
            is_reused,
            pages_left: self.pages_per_block - 1,
            page,
            page_at: self.map.page_at(block, page),
            ..InsertPoint::default()
        }
    }

    fn enter<'a, P: Pmem>(
        &self,
        pool: &Pool<P>,
        _kind: usize,
        point: &mut InsertPoint,
        _lock: impl FnOnce() -> VersionGuard<'a>,
    ) {
        let word = point.slots.word;
        // The slots of a damaged word are not for use.
        let bits = self.bits(pool, point.page_at, word).unwrap_or(u64::MAX);
        point.slots.free = !bits & self.layout.bits_of_word(word);
        if point.is_reused && point.slots.free != 0 {
            Self::persist_bits(pool, point.page_at, word);
        }
    }

    #[inline(always)]
    fn room(&self, point: &InsertPoint, _key_bytes: usize, _beside_bytes: usize) -> Option<Place> {
        if point.slots.free == 0 {
            return None;
        }
        let slot = self.layout.slot_of(point.slots.word, point.slots.free.trailing_zeros());
        Some(Place {
            block: point.block.unwrap_or_default(),
            page: point.page,
            slot,
            page_at: point.page_at,
            record_at: point.page_at + self.layout.slot_at(slot),
        })
    }

    #[inline(always)]
    fn consume(&self, point: &mut InsertPoint, _key_bytes: usize, _beside_bytes: usize) {
        point.slots.free &= point.slots.free - 1;
    }

    /// A slot whose bit is not set is free, whatever was begun there.
    fn abandon(&self, point: &mut InsertPoint, cause: Abandoned) {
        if cause == Abandoned::Damaged {
            point.slots.free = 0;
        }
    }

    fn advance<P: Pmem>(&self, _pool: &Pool<P>, point: &mut InsertPoint) -> bool {
        if point.slots.word + 1 < self.layout.bitset_words {
            point.slots.word += 1;
            return true;
        }
        point.slots.word = 0;
        point.next_page(&self.map, self.pages_per_block)
    }

    /// Others clear bits all the time: the bitsets say what is free.
    fn leave<P: Pmem>(&self, _pool: &Pool<P>, _point: InsertPoint) -> Option<Room> {
        None
    }

    #[inline(always)]
    fn prefetch_next<P: Pmem>(&self, pool: &Pool<P>, point: &InsertPoint, _: usize, _: usize) {
        let free = point.slots.free & (point.slots.free - 1);
        // All but the line it may share with the present one, which is on its way out of the cache.
        if free != 0 && u64::from(self.layout.slot_bytes) > CACHE_LINE {
            let slot = self.layout.slot_of(point.slots.word, free.trailing_zeros());
            let at = point.page_at + self.layout.slot_at(slot) + CACHE_LINE;
            let length = u64::from(self.layout.slot_bytes) - CACHE_LINE;
            pool.pmem.prefetch_write(pool.extent(at, length));
        }
    }

    #[inline(always)]
    fn prefetch_shared<P: Pmem>(&self, pool: &Pool<P>, point: &InsertPoint) {
        if point.slots.free != 0 {
            let slot = self.layout.slot_of(point.slots.word, point.slots.free.trailing_zeros());
            let bits = point.page_at + PageLayout::bitset_at(point.slots.word);
            for at in [point.page_at + self.layout.slot_at(slot), bits] {
                pool.pmem.prefetch_write(pool.extent(at, 8));
            }
        }
    }
}
