//! Reading whole blocks: for recovery and for verification.

use chimera_pmem::Pmem;

use super::Viper;
use crate::index::volatile::extendible_hash::Words;
use crate::records::block_flags;
use crate::records::vpage::{PageLayout, Place, RecordHeader, steps};
use crate::sync::atomic::Ordering;

/// What reading a block found.
pub(super) enum Finding<'a> {
    /// A record whose bit is set and whose checksums, as far as they apply, are right.
    Record { place: Place, header: RecordHeader, hash: u64, key: &'a [u8], value_unchecked: bool },
    /// Something that is not as it must be.
    Damage { at: u64, what: &'static str },
}

/// What to verify beside keys and versions, and what to do about damage.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    pub(super) verify_values: bool,
    /// Take the bits of a damaged word as they are.
    pub(super) salvage: bool,
}

impl<P: Pmem, W: Words> Viper<P, W> {
    /// Reads the records of a block. `page` is a buffer of the caller's.
    pub(super) fn scan_block(
        &self,
        scan: Scan,
        block: u64,
        page: &mut Vec<u8>,
        visit: &mut impl FnMut(Finding<'_>),
    ) {
        let flags = block_flags::read(&self.pool, block).unwrap_or_else(|_| {
            let at = self.pool.map.block_at(block);
            visit(Finding::Damage { at, what: "the flags of a block are damaged" });
            // Whether values were updated in place is unknown: their checksums decide.
            0
        });
        if flags & block_flags::INDEX != 0 {
            return;
        }
        let verify_values = scan.verify_values && flags & block_flags::IN_PLACE == 0;
        page.resize(self.pages.page_bytes(), 0);
        for (number, page_at) in self.pages.pages_of(block) {
            let mut is_read = false;
            for word in 0..self.pages.layout.bitset_words {
                let bits = self.pages.bits(&self.pool, page_at, word);
                let mut bits = bits.unwrap_or_else(|_| {
                    let what = "the bitset of a page is damaged";
                    let at = page_at + PageLayout::bitset_at(word);
                    visit(Finding::Damage { at, what });
                    if scan.salvage { self.raw_bits(page_at, word) } else { 0 }
                });
                if bits != 0 && !is_read {
                    let all = self.pool.extent(page_at, page.len() as u64);
                    self.pool.pmem.read(all, page);
                    is_read = true;
                }
                while bits != 0 {
                    let slot = self.pages.layout.slot_of(word, bits.trailing_zeros());
                    bits &= bits - 1;
                    let record_at = page_at + self.pages.layout.slot_at(slot);
                    let place = Place { block, page: number, slot, page_at, record_at };
                    self.scan_record(place, page, verify_values, visit);
                }
            }
        }
    }

    /// The bits of a damaged word, as they are.
    fn raw_bits(&self, page_at: u64, word: u32) -> u64 {
        let at = page_at + PageLayout::bitset_at(word);
        self.pool.pmem.load_u64(at) & self.pages.layout.bits_of_word(word)
    }

    fn scan_record(
        &self,
        place: Place,
        page: &[u8],
        verify_value: bool,
        visit: &mut impl FnMut(Finding<'_>),
    ) {
        let (key, value) = self.pages.in_copy(place.slot);
        let (key, value) = (&page[key], &page[value]);
        let checked = self.pages.layout.checked;
        let header = if checked {
            let start = self.pages.layout.slot_at(place.slot) as usize;
            let word =
                |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"));
            RecordHeader::from_words(word(start), word(start + 8))
        } else {
            RecordHeader::from_words(0, 0)
        };
        let at = place.record_at;
        let hash = self.hash.of(key);
        let pmem = &self.pool.pmem;
        if checked && !header.key_is_sound(&place, hash) && !pmem.skips(steps::KEY_CHECK) {
            visit(Finding::Damage { at, what: "the key of a record does not match its checksum" });
        } else if checked
            && verify_value
            && !header.value_is_sound(&place, value)
            && !pmem.skips(steps::VALUE_CHECK)
        {
            // Whatever is written next must win against it, should it ever count again.
            self.clock.fetch_max(header.version, Ordering::Relaxed);
            visit(Finding::Damage { at, what: "a value does not match its checksum" });
        } else {
            let value_unchecked = checked && !verify_value;
            visit(Finding::Record { place, header, hash, key, value_unchecked });
        }
    }
}
