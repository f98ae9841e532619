//! Reading whole blocks.

use std::ops::Range;

use chimera_pmem::Pmem;

use super::{PageLayout, SlottedPages};
use crate::pool::Pool;
use crate::records::header::RecordHeader;
use crate::records::vpage::{DAMAGED_PAGE, Place, Scan, Scanned};

impl SlottedPages {
    /// Hands the records of a block to `visit`. `page` is a buffer of the caller's. Returns how many slots
    /// are free.
    pub(super) fn scan_block<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        block: u64,
        page: &mut Vec<u8>,
        visit: &mut impl FnMut(Scanned<'_>),
    ) -> u32 {
        page.resize(self.map.page_bytes as usize, 0);
        let mut free = 0;
        for (number, page_at) in self.pages_of(pool, block) {
            if !Self::page_word_is_sound(pool, (number, page_at)) {
                visit(Scanned::Damage { at: page_at, what: DAMAGED_PAGE });
            }
            let mut is_read = false;
            for word in 0..self.layout.bitset_words {
                let bits = self.bits(pool, page_at, word);
                let known = self.layout.bits_of_word(word);
                free += bits.as_ref().map_or(0, |bits| (!bits & known).count_ones());
                let mut bits = bits.unwrap_or_else(|_| {
                    let what = "the bitset of a page is damaged";
                    let at = page_at + PageLayout::bitset_at(word);
                    visit(Scanned::Damage { at, what });
                    if scan.salvage { self.raw_bits(pool, page_at, word) } else { 0 }
                });
                if bits != 0 && !is_read {
                    pool.pmem.read(pool.extent(page_at, page.len() as u64), page);
                    is_read = true;
                }
                while bits != 0 {
                    let slot = self.layout.slot_of(word, bits.trailing_zeros());
                    bits &= bits - 1;
                    let record_at = page_at + self.layout.slot_at(slot);
                    let place = Place { block, page: number, slot, page_at, record_at };
                    let (key, value) = self.in_copy(slot);
                    let record = self.record(place, self.header_in_copy(slot, page));
                    let (key, value) = (&page[key], Some(&page[value]));
                    visit(Scanned::Record { record, key, value });
                }
            }
        }
        free
    }

    /// The bits of a damaged word, as they are.
    fn raw_bits<P: Pmem>(&self, pool: &Pool<P>, page_at: u64, word: u32) -> u64 {
        pool.pmem.load_u64(page_at + PageLayout::bitset_at(word)) & self.layout.bits_of_word(word)
    }

    /// The key and value of a slot inside a copy of its page.
    fn in_copy(&self, slot: u32) -> (Range<usize>, Range<usize>) {
        let start = self.layout.slot_at(slot) as usize;
        let key = start + self.layout.key_at as usize;
        let value = start + self.layout.value_at as usize;
        (key..key + self.key_bytes, value..value + self.value_bytes)
    }

    fn header_in_copy(&self, slot: u32, page: &[u8]) -> Option<RecordHeader> {
        let start = self.layout.slot_at(slot) as usize;
        let word = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"));
        let is_checked = self.layout.is_checked();
        is_checked.then(|| RecordHeader::from_words(word(start), word(start + 8)))
    }
}
