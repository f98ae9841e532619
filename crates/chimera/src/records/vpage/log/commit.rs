//! The word that makes records in logs live: their lengths, in front of them.

use chimera_pmem::Pmem;

use super::{LogPages, damaged_word, sites, span, steps};
use crate::pool::Pool;
use crate::records::lengths::{Entry, HEADER_AT};
use crate::records::vpage::{Commit, Place, Stored};
use crate::types::error::Result;

impl Commit for LogPages {
    fn is_live<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Result<bool> {
        match Entry::decode(pool.pmem.load_u64(place.record_at), place.record_at) {
            Some(Entry::Record { is_live, .. }) => Ok(is_live),
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
            let word = Entry::record(at, key.len(), stored.beside.len());
            pool.pmem.publish(at, word, &[rest], sites::COMMIT);
        } else {
            let depends_on = [&[rest], stored.chunks].concat();
            let word = Entry::record_of_chunks(at, key.len());
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
            let Some(Entry::Record { lengths, .. }) = Entry::decode(found, at) else {
                return Err(damaged_word(at));
            };
            match pool.pmem.cas_u64(at, found, Entry::retired(found, at), sites::RETIRE) {
                Ok(_) => {
                    retired((lengths.span() / 8) as u32);
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
}
