//! The walk: every entry that there was when the index was opened is looked at once, beside sessions.
//!
//! It goes through the buckets of each segment, some at a time, under the segment's lock. A segment knows in DRAM how many
//! of its buckets were walked. An entry never changes its slot, but for a split, which copies it to the same slot of the
//! new segment and copies the number as well. So for each entry it is decided at any time, under the lock of its segment,
//! whether it was walked. One that is made after opening may be handed out or not.

use chimera_pmem::Pmem;

use super::PartitionedHash;
use crate::index::persistent::buckets::PER_BUCKET;

/// Buckets that are walked at a time: readers and writers of their segment wait meanwhile.
const BUCKETS: u32 = 16;

/// What a walk found in a slot: the slot's offset; hash and position of its entry, none if the slot is damaged.
pub(crate) type FoundSlot = (u64, Option<(u64, u64)>);

/// Where a walk goes on.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The first segment that is not walked: all before it are.
    segment: u64,
    found: Vec<FoundSlot>,
}

impl Walk {
    /// Segments that are walked.
    pub(crate) fn segments(&self) -> u64 {
        self.segment
    }
}

impl<P: Pmem> PartitionedHash<P> {
    /// Walks some buckets, and hands what they hold to `take` while no entry of them can change. `false` when every
    /// segment is walked.
    ///
    /// # Cost
    /// Up to 64 entries and what `take` does with them, with the lock of their segment held.
    pub(crate) fn walk(&self, walk: &mut Walk, take: impl FnOnce(&[FoundSlot])) -> bool {
        // A segment that is split off one that is not walked gets a higher number, before the lock of that one is free.
        if walk.segment >= self.segments() {
            return false;
        }
        let segment = self.segment(walk.segment);
        let _guard = segment.lock.lock(&*self.pool.environment);
        let start = segment.walked();
        let end = self.buckets.min(start + BUCKETS);
        walk.found.clear();
        let slots = start * PER_BUCKET..end * PER_BUCKET;
        self.each_found(segment, slots, |slot_at, found| walk.found.push((slot_at, found)));
        take(&walk.found);
        segment.set_walked(end);
        walk.segment += u64::from(end == self.buckets);
        true
    }
}
