//! Making pages ready for new records.

use chimera_pmem::{CACHE_LINE, Pmem, Site};

use super::part::Part;
use super::{LogPages, sites, steps};
use crate::pool::Pool;
use crate::records::lengths::Entry;
use crate::records::vpage::END_AHEAD;

/// What the rest of a page is compared with, piece by piece.
const ZEROS: [u8; 512] = [0; 512];

impl LogPages {
    /// Makes the rest of a block that is one page zero, durably: nothing says where a log ends in which a
    /// chunk is on its way. Not under a journal, which would have to take the whole block: there each record and each chunk
    /// has a zero behind it.
    pub(super) fn clear_rest<P: Pmem>(pool: &Pool<P>, part: Part, from: u64) {
        if pool.pmem.is_journaled() {
            return;
        }
        let mut starts = (from..part.length).step_by(ZEROS.len());
        let is_zero = starts.all(|start| {
            let zeros = &ZEROS[..ZEROS.len().min((part.length - start) as usize)];
            pool.pmem.compare(pool.extent(part.at + start, zeros.len() as u64), zeros)
        });
        if is_zero || pool.pmem.skips(steps::CLEAR_REST) {
            return;
        }
        pool.pmem.zero(pool.extent(part.at + from, part.length - from), sites::REUSE);
        // The line in which the log ends, and those behind it.
        let next_line = (from + 1).next_multiple_of(CACHE_LINE).min(part.length);
        pool.pmem.flush(pool.extent(part.at + from, next_line - from), sites::REUSE);
        if next_line < part.length {
            let rest = pool.extent(part.at + next_line, part.length - next_line);
            pool.pmem.flush(rest, sites::REUSE);
        }
        pool.pmem.fence(sites::REUSE);
    }

    /// Makes the word at an offset zero, durably, where a log is to end behind a chunk: a chunk and a word of its own are not
    /// ordered by one fence. Under a journal alone: elsewhere the rest of the block [is zero](Self::clear_rest). It
    /// `is_beside_new` where chunks are new in their place.
    ///
    /// # Cost
    /// 1 line and 1 fence, in a block that was in use before.
    pub(super) fn end_ahead<P: Pmem>(pool: &Pool<P>, at: u64, is_beside_new: bool) {
        let is_zero = !pool.pmem.is_journaled() || pool.pmem.load_u64(at) == 0;
        if is_zero || pool.pmem.skips(END_AHEAD) {
            return;
        }
        pool.pmem.store_u64(at, 0, sites::REUSE);
        if is_beside_new {
            pool.pmem.flush_beside_new(pool.extent(at, 8), sites::REUSE);
        } else {
            pool.pmem.flush(pool.extent(at, 8), sites::REUSE);
        }
        pool.pmem.fence(sites::REUSE);
    }

    /// Makes a page in which nothing is live an empty one.
    pub(super) fn clear_page<P: Pmem>(&self, pool: &Pool<P>, part: Part) {
        self.persist_retired(pool, part);
        // First that it is empty: that its records were retired may not be durable yet.
        Self::clear_heads(pool, [part], sites::REUSE);
        pool.pmem.withdrawn(pool.extent(part.at, part.length));
    }

    /// Makes pages open and their logs end where they begin, durably.
    pub(super) fn clear_heads<P: Pmem>(
        pool: &Pool<P>,
        parts: impl IntoIterator<Item = Part>,
        site: Site,
    ) {
        for part in parts {
            Self::empty_head(pool, part, site);
        }
        pool.pmem.fence(site);
    }

    /// Makes durable, before a page is emptied, that the records of its chunks are retired, and its own records
    /// with chunks: both can be seen before they are durable, and a chunk is live while its record's word, wherever
    /// that lies, says that the record is.
    pub(super) fn persist_retired<P: Pmem>(&self, pool: &Pool<P>, part: Part) {
        let mut is_any = false;
        self.for_entries(pool, part, |at, entry| {
            let word_at = match entry {
                Entry::Chunk { .. } => {
                    self.record_of_chunk(pool, part.at + at).map(|(place, _)| place.record_at)
                }
                Entry::Record { lengths, .. } if lengths.is_spilled => Some(part.at + at),
                _ => None,
            };
            if let Some(word_at) = word_at.filter(|_| !pool.pmem.skips(steps::CHUNKS_LAST)) {
                pool.pmem.flush(pool.extent(word_at, 8), sites::REUSE);
                is_any = true;
            }
        });
        if is_any {
            pool.pmem.fence(sites::REUSE);
        }
    }
}
