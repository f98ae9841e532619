//! Changes of single entries, each under the lock of its segment until it is durable.

use chimera_pmem::{Extent, Pmem};

use super::PartitionedHash;
use super::segment::Segment;
use crate::index::persistent::buckets::Slots;
use crate::sync::VersionGuard;

/// A segment whose lock is held.
pub(super) struct LockedSegment<'a> {
    pub(super) segment: &'a Segment,
    _guard: VersionGuard<'a>,
}

impl<P: Pmem> PartitionedHash<P> {
    /// Locks the segment that covers a hash. None in a partition without segments.
    pub(super) fn lock(&self, hash: u64) -> Option<LockedSegment<'_>> {
        loop {
            let segment = self.segment_of(hash)?;
            let guard = segment.lock.lock(&*self.pool.environment);
            if segment.prefix().covers(hash) {
                return Some(LockedSegment { segment, _guard: guard });
            }
        }
    }

    /// Enters `record`, a record whose key has this hash and no entry. `false`, with nothing changed, when there is no
    /// room for it: [`make_room`](Self::make_room) helps.
    ///
    /// # Durability
    /// Durable on return, and nobody sees the entry before. A crash before leaves the entry, or none.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(crate) fn insert(&self, hash: u64, record: Extent) -> bool {
        let Some(locked) = self.lock(hash) else { return false };
        let (segment, slots) = (locked.segment, self.slots(locked.segment));
        let Some(slot) = slots.free_slot(hash, segment.prefix()) else { return false };
        slots.fill(slot, hash, record);
        segment.set_entries(segment.entries() + 1);
        true
    }

    /// Makes the entry of `hash` that leads to `old` lead to `record`, and calls `then` before the lock of its segment is
    /// released. `false`, with nothing done, when there is none.
    ///
    /// # Durability
    /// Durable on return, and nobody sees the change before. A crash before leaves the old entry or the new one.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(crate) fn swap(&self, hash: u64, old: u64, record: Extent, then: impl FnOnce()) -> bool {
        self.change(hash, old, |_, slots, slot| {
            slots.lead(slot, hash, record);
            then();
        })
    }

    /// Removes the entry of `hash` that leads to `old`, and calls `then` before the lock of its segment is released. `false`,
    /// with nothing done, when there is none.
    ///
    /// # Durability
    /// Durable on return, and nobody misses the entry before. A crash before leaves the entry, or none.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(crate) fn remove(&self, hash: u64, old: u64, then: impl FnOnce()) -> bool {
        self.change(hash, old, |segment, slots, slot| {
            slots.clear(slot);
            segment.set_entries(segment.entries().saturating_sub(1));
            then();
        })
    }

    fn change(
        &self,
        hash: u64,
        old: u64,
        change: impl FnOnce(&Segment, &Slots<'_, P>, u32),
    ) -> bool {
        let Some(locked) = self.lock(hash) else { return false };
        let slots = self.slots(locked.segment);
        let Some(slot) = slots.find(hash, old) else { return false };
        change(locked.segment, &slots, slot);
        true
    }
}
