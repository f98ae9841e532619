//! Fresh blocks and free runs: on a plain file with a journal what is stored there is written once ([`Pmem::take_new`]).
//!
//! After a power loss a fresh block may hold anything that was ever stored there, also whole records of a future that was lost,
//! and so may a free run. Opening removes that: [behind the used blocks](super::leftovers), and [in runs](super::runs::leftovers).

use std::ops::Range;

use chimera_pmem::{Extent, Fenced, Pmem};

use super::Pool;
use super::storage::SYSTEM_PAGE_BYTES;

/// What is taken ahead of use, so that a system call is for many blocks.
const AHEAD_BYTES: u64 = 1 << 20;

impl<P: Pmem> Pool<P> {
    /// Says that fresh blocks of a segment are about to be prepared and used. Those before `ready` have storage, and nothing was
    /// left in any when `emptied` was fenced.
    #[inline]
    pub(super) fn take_new(&self, blocks: Range<u64>, ready: u64, emptied: Fenced) {
        if self.pmem.is_journaled() {
            let ahead = blocks.start + AHEAD_BYTES / self.map.block_bytes;
            let of_segment = blocks.start + self.map.blocks_to_segment_end(blocks.start);
            let ahead = ahead.min(of_segment).min(ready).max(blocks.end);
            let range = |end| self.blocks_extent(blocks.start..end);
            self.pmem.take_new(range(blocks.end), range(ahead), emptied);
        }
    }

    /// Says that a run that was free is about to be used. Nothing was left in it when `emptied` was fenced.
    pub(super) fn take_new_of_run(&self, blocks: Range<u64>, emptied: Fenced) {
        if self.pmem.is_journaled()
            && let Some(place) = self.place_in_run(blocks)
        {
            self.pmem.take_new(place, place, emptied);
        }
    }

    /// What can be stored to the file of a run that is free: its whole pages, if it has some. The first one stays, which has the
    /// word of the run.
    pub(super) fn place_in_run(&self, blocks: Range<u64>) -> Option<Extent> {
        let run = self.blocks_extent(blocks);
        let start = (run.offset() + 1).next_multiple_of(SYSTEM_PAGE_BYTES);
        let end = run.end() / SYSTEM_PAGE_BYTES * SYSTEM_PAGE_BYTES;
        (start < end).then(|| self.extent(start, end - start))
    }

    fn blocks_extent(&self, blocks: Range<u64>) -> Extent {
        let bytes = (blocks.end - blocks.start) * self.map.block_bytes;
        self.extent(self.map.block_at(blocks.start), bytes)
    }
}
