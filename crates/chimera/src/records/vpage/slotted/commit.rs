//! The word that makes records in slots live: a bit for each in the page's bitset.

use chimera_pmem::Pmem;

use super::{PageLayout, SlottedPages};
use crate::pool::Pool;
use crate::records::vpage::{Commit, Place, Stored, damaged_word, sites};
use crate::types::error::Result;

impl Commit for SlottedPages {
    fn is_live<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Result<bool> {
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
            let Some(bits) = self.layout.decode_bits(word, found, at) else {
                return Err(damaged_word(at));
            };
            let new = self.layout.encode_bits(bits | bit, at);
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
            let Some(bits) = self.layout.decode_bits(word, found, at) else {
                return Err(damaged_word(at));
            };
            let new = self.layout.encode_bits(bits & !bit, at);
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
}
