//! [`Slots`]: the buckets of a segment, read and changed slot by slot.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::layout::{self, Prefix};
use super::{WINDOW_BUCKETS, sites, steps};
use crate::pool::Pool;

/// Slots of a bucket.
pub(super) const PER_BUCKET: u32 = (CACHE_LINE / SLOT_BYTES) as u32;
const SLOT_BYTES: u64 = 16;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Empty,
    Entry { signature: u64, at: u64 },
    Damaged,
}

/// The buckets of a segment.
pub(super) struct Slots<'a, P: Pmem> {
    pool: &'a Pool<P>,
    /// Offset of the first bucket.
    first: u64,
    buckets: u32,
}

impl<'a, P: Pmem> Slots<'a, P> {
    /// Of the segment whose header lies at `at`.
    #[inline(always)]
    pub(super) fn new(pool: &'a Pool<P>, at: u64, buckets: u32) -> Self {
        Self { pool, first: at + CACHE_LINE, buckets }
    }

    /// All slots.
    pub(super) fn count(&self) -> u32 {
        self.buckets * PER_BUCKET
    }

    /// Offset of a slot.
    #[inline(always)]
    pub(super) fn offset(&self, slot: u32) -> u64 {
        self.first + u64::from(slot) * SLOT_BYTES
    }

    /// The slots in which an entry of this hash may lie, the first one first.
    #[inline(always)]
    pub(super) fn window(&self, hash: u64) -> impl Iterator<Item = u32> + use<P> {
        let (count, first) = (self.buckets * PER_BUCKET, self.home(hash) * PER_BUCKET);
        let window = self.buckets.min(WINDOW_BUCKETS) * PER_BUCKET;
        (first..first + window).map(move |slot| if slot < count { slot } else { slot - count })
    }

    /// The bucket from which on an entry of this hash lies.
    #[inline(always)]
    fn home(&self, hash: u64) -> u32 {
        // The low half: the leading bits of all hashes in a segment are the same.
        (((hash & u64::from(u32::MAX)) * u64::from(self.buckets)) >> 32) as u32
    }

    /// Whether an entry of this hash may lie in a slot.
    pub(super) fn is_in_window(&self, hash: u64, slot: u32) -> bool {
        let distance = (slot / PER_BUCKET + self.buckets - self.home(hash)) % self.buckets;
        distance < WINDOW_BUCKETS
    }

    #[inline(always)]
    pub(super) fn signature(&self, slot: u32) -> u64 {
        self.pool.pmem.load_u64(self.offset(slot))
    }

    /// What a slot holds.
    #[inline(always)]
    pub(super) fn read(&self, slot: u32) -> Slot {
        let position = self.pool.pmem.load_u64(self.offset(slot) + 8);
        if position == 0 {
            return Slot::Empty;
        }
        let signature = self.signature(slot);
        match layout::offset(signature, position) {
            Some(at) => Slot::Entry { signature, at },
            None => self.unsound(signature, position),
        }
    }

    #[cold]
    fn unsound(&self, signature: u64, position: u64) -> Slot {
        if self.pool.pmem.skips(steps::SLOT_CHECK) {
            return Slot::Entry { signature, at: layout::unchecked_offset(position) };
        }
        Slot::Damaged
    }

    /// The first slot in the window of a hash that can be filled: empty or foreign.
    pub(super) fn free_slot(&self, hash: u64, prefix: Prefix) -> Option<u32> {
        self.window(hash).find(|slot| match self.read(*slot) {
            Slot::Empty => true,
            Slot::Entry { signature, .. } => !prefix.covers(signature),
            Slot::Damaged => false,
        })
    }

    /// The slot of the entry of a hash that leads to `at`.
    pub(super) fn find(&self, hash: u64, at: u64) -> Option<u32> {
        let wanted = Slot::Entry { signature: hash, at };
        self.window(hash).find(|slot| self.signature(*slot) == hash && self.read(*slot) == wanted)
    }

    /// Makes an entry in a slot that is empty or foreign. `record` is what it leads to.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the slot as it was, empty, or with the entry.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(super) fn fill(&self, slot: u32, hash: u64, record: Extent) {
        let slot_at = self.offset(slot);
        if self.pool.pmem.load_u64(slot_at + 8) != 0 {
            self.pool.pmem.store_u64(slot_at + 8, 0, sites::ENTRY);
        }
        self.pool.pmem.store_u64(slot_at, hash, sites::ENTRY);
        self.lead(slot, hash, record);
    }

    /// Makes the entry in a slot lead to another record.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the old entry or the new one.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(super) fn lead(&self, slot: u32, hash: u64, record: Extent) {
        let slot_at = self.offset(slot);
        let position = layout::position(hash, record.offset());
        self.pool.pmem.publish(slot_at + 8, position, &[record], sites::ENTRY);
        self.pool.pmem.flush(self.pool.extent(slot_at, SLOT_BYTES), sites::ENTRY);
        self.pool.pmem.fence(sites::ENTRY);
    }

    /// Makes a slot empty.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the entry, or none.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(super) fn clear(&self, slot: u32) {
        let slot_at = self.offset(slot);
        self.pool.pmem.store_u64(slot_at + 8, 0, sites::REMOVE);
        self.pool.pmem.store_u64(slot_at, 0, sites::REMOVE);
        self.pool.pmem.flush(self.pool.extent(slot_at, SLOT_BYTES), sites::REMOVE);
        self.pool.pmem.fence(sites::REMOVE);
    }
}
