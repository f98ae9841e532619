//! [`BlockView`]: what a whole block holds.

use chimera_pmem::Pmem;

use super::{Codec, Place, Record};
use crate::pool::Pool;

/// How units that become free in a block come to be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// Where they are, beside live records.
    InPlace,
    /// Once nothing in the block is live: until then retired records keep their place.
    WholeBlock,
}

impl Reuse {
    /// A block that no session fills is worth filling again once one in so many of its units has become free.
    pub(crate) fn refilled_at_part(self) -> u32 {
        match self {
            // Refilling fewer costs more flushes and scattered writes than the space is worth.
            Self::InPlace => 4,
            Self::WholeBlock => 1,
        }
    }

    /// A block is emptied when so much of it is free, in percent, where `percent` was asked for.
    pub(crate) fn emptied_at_percent(self, percent: u64) -> u64 {
        match self {
            // What is free there is used again without moving anything.
            Self::InPlace => percent.max(50),
            Self::WholeBlock => percent,
        }
    }

    /// Units for new records in a block of `units` of which so many are free.
    pub(crate) fn room(self, free: u64, units: u64) -> u64 {
        match self {
            Self::InPlace => free,
            Self::WholeBlock if free == units => free,
            Self::WholeBlock => 0,
        }
    }
}

/// The parts of a block in which no record is live, in units.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub(crate) free: u32,
    /// Of these, what is worth filling while there are fresh blocks, and after that.
    pub(crate) fillable: u32,
    pub(crate) fillable_if_starved: u32,
}

/// What the pages of a block hold, in bytes where nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) pages: u64,
    /// Pages in which something is live, and pages with a damaged word.
    pub(crate) pages_filled: u64,
    pub(crate) pages_damaged: u64,
    pub(crate) live_records: u64,
    /// Live records and chunks, with their headers.
    pub(crate) live_bytes: u64,
    /// Neither live nor room.
    pub(crate) dead_bytes: u64,
    pub(crate) room_bytes: u64,
}

/// What reading a page found.
pub(crate) enum Scanned<'a> {
    /// A live record: the value is empty where it was not asked for, and none where a part of it cannot be
    /// found.
    Record { record: Record, key: &'a [u8], value: Option<&'a [u8]> },
    /// Something that is not as it must be.
    Damage { at: u64, what: &'static str },
}

/// Whether a record and a key belong together.
pub(crate) type IsSound<'a> = dyn Fn(&Record, &[u8]) -> bool + 'a;

/// How to read the pages of a block.
pub(crate) struct Scan<'a> {
    /// The block's.
    pub(crate) flags: u32,
    /// Take records found by, or behind, a damaged word as they are.
    pub(crate) salvage: bool,
    /// Values are asked for.
    pub(crate) values: bool,
    pub(crate) is_sound: &'a IsSound<'a>,
}

/// Buffers for reading pages.
#[derive(Default)]
pub(crate) struct PageBuffers {
    pub(super) page: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Blocks of pages of one kind, as a whole.
pub(crate) trait BlockView: Codec {
    /// Pages of a block.
    fn pages_per_block(&self) -> u64;

    /// Units of room in a block.
    fn units_per_block(&self) -> u32;

    /// Records of a page and of a block, where that is known.
    fn capacities(&self) -> (u32, u32);

    /// How units that become free are used again.
    fn reuse(&self) -> Reuse;

    // ---- looking -------------------------------------------------------------------------------

    /// Whether a block of the pool, its other flags aside, is as [`format`](Self::format) leaves it.
    fn is_blank<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool;

    /// Whether nothing in a block is live, and nothing in it is damaged.
    fn is_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool;

    /// Whether a block has a place for a record of so many units.
    fn has_room<P: Pmem>(&self, pool: &Pool<P>, block: u64, units: u32) -> bool;

    /// The parts of a block in which nothing is live; damaged parts are no room.
    fn room_in<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Room;

    /// Units of a block that emptying it would gain.
    fn gain<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32;

    /// Places of the live records that have a part in a block, as far as nothing is damaged before.
    fn places<P: Pmem>(&self, pool: &Pool<P>, block: u64, into: &mut Vec<Place>);

    /// What the pages of a block hold.
    fn usage<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Usage;

    /// Hands the records of a block to `visit`. The room in it, as [`room_in`](Self::room_in) tells.
    fn scan<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        block: u64,
        buffers: &mut PageBuffers,
        visit: &mut impl FnMut(Scanned<'_>),
    ) -> Room;

    // ---- clearing ------------------------------------------------------------------------------

    /// Makes a fresh block, which may hold anything, one with these flags and without records, and starts writing that
    /// back.
    ///
    /// # Durability
    /// After the caller's next fence.
    ///
    /// # Cost
    /// The lines in which the pages begin, with all words that tell which records are live.
    fn format<P: Pmem>(&self, pool: &Pool<P>, block: u64, flags: u32);

    /// Makes durable that no record of a block is live. After that it may become one with the flags `next`.
    fn persist_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64, next: u32);

    /// Number of a page among all pages.
    #[inline(always)]
    fn page_number(&self, block: u64, page: u64) -> u64 {
        block * self.pages_per_block() + page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_units_are_room_where_they_are_or_once_the_block_is_free() {
        assert_eq!([0, 3, 8].map(|free| Reuse::InPlace.room(free, 8)), [0, 3, 8]);
        assert_eq!([0, 3, 8].map(|free| Reuse::WholeBlock.room(free, 8)), [0, 0, 8]);
    }

    #[test]
    fn blocks_are_filled_again_and_emptied_as_their_units_are_reused() {
        let both = [Reuse::InPlace, Reuse::WholeBlock];
        assert_eq!(both.map(Reuse::refilled_at_part), [4, 1]);
        assert_eq!(both.map(|reuse| reuse.emptied_at_percent(20)), [50, 20]);
        assert_eq!(both.map(|reuse| reuse.emptied_at_percent(70)), [70, 70]);
    }
}
