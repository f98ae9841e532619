//! [`Slots`]: the buckets of a segment, read and changed slot by slot.

use std::ops::Range;

use chimera_pmem::{CACHE_LINE, Extent, Pmem, Site};

use super::layout::{self, Prefix};
use super::{Batch, WINDOW_BUCKETS, sites, steps};
use crate::pool::Pool;
use crate::types::error::Error;

/// Slots of a bucket.
pub(crate) const PER_BUCKET: u32 = (CACHE_LINE / SLOT_BYTES) as u32;
const SLOT_BYTES: u64 = 16;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Empty,
    Entry { signature: u64, at: u64 },
    Damaged,
}

/// The buckets of a segment.
pub(crate) struct Slots<'a, P: Pmem> {
    pool: &'a Pool<P>,
    /// Offset of the first bucket.
    first: u64,
    buckets: u32,
}

impl<'a, P: Pmem> Slots<'a, P> {
    /// Of the segment whose header lies at `at`.
    #[inline(always)]
    pub(crate) fn new(pool: &'a Pool<P>, at: u64, buckets: u32) -> Self {
        Self { pool, first: at + CACHE_LINE, buckets }
    }

    /// All slots.
    pub(crate) fn count(&self) -> u32 {
        self.buckets * PER_BUCKET
    }

    /// Offset of a slot.
    #[inline(always)]
    pub(crate) fn offset(&self, slot: u32) -> u64 {
        self.first + u64::from(slot) * SLOT_BYTES
    }

    /// The slots in which an entry of this hash may lie, the first one first.
    #[inline(always)]
    pub(crate) fn window(&self, hash: u64) -> impl Iterator<Item = u32> + use<P> {
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
    pub(crate) fn is_in_window(&self, hash: u64, slot: u32) -> bool {
        let distance = (slot / PER_BUCKET + self.buckets - self.home(hash)) % self.buckets;
        distance < WINDOW_BUCKETS
    }

    #[inline(always)]
    pub(crate) fn signature(&self, slot: u32) -> u64 {
        self.pool.pmem.load_u64(self.offset(slot))
    }

    /// What a slot holds.
    #[inline(always)]
    pub(crate) fn read(&self, slot: u32) -> Slot {
        let slot_at = self.offset(slot);
        let position = self.pool.pmem.load_u64(slot_at + 8);
        if position == layout::empty(slot_at) {
            return Slot::Empty;
        }
        let signature = self.signature(slot);
        match layout::offset(layout::placed(signature, slot_at), position) {
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
    pub(crate) fn free_slot(&self, hash: u64, prefix: Prefix) -> Option<u32> {
        self.window(hash).find(|slot| match self.read(*slot) {
            Slot::Empty => true,
            Slot::Entry { signature, .. } => !prefix.covers(signature),
            Slot::Damaged => false,
        })
    }

    /// The slot of the entry of a hash that leads to `at`.
    pub(crate) fn find(&self, hash: u64, at: u64) -> Option<u32> {
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
    pub(crate) fn fill(&self, slot: u32, hash: u64, record: Extent) {
        let slot_at = self.offset(slot);
        let empty = layout::empty(slot_at);
        if self.pool.pmem.load_u64(slot_at + 8) != empty {
            self.pool.pmem.store_u64(slot_at + 8, empty, sites::ENTRY);
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
    pub(crate) fn lead(&self, slot: u32, hash: u64, record: Extent) {
        let slot_at = self.offset(slot);
        let position = layout::position(layout::placed(hash, slot_at), record.offset());
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
    pub(crate) fn clear(&self, slot: u32) {
        let slot_at = self.offset(slot);
        self.pool.pmem.store_u64(slot_at + 8, layout::empty(slot_at), sites::REMOVE);
        self.pool.pmem.store_u64(slot_at, 0, sites::REMOVE);
        self.pool.pmem.flush(self.pool.extent(slot_at, SLOT_BYTES), sites::REMOVE);
        self.pool.pmem.fence(sites::REMOVE);
    }

    /// Hands the entries in some slots to `take`, but for foreign ones, and the slots that are damaged, without an entry;
    /// each with its offset.
    pub(crate) fn each_found(
        &self,
        range: Range<u32>,
        prefix: Prefix,
        mut take: impl FnMut(u64, Option<(u64, u64)>),
    ) {
        for slot in range {
            let found = match self.read(slot) {
                Slot::Empty => continue,
                Slot::Entry { signature, .. }
                    if !prefix.covers(signature) && !self.pool.pmem.skips(steps::FOREIGN) =>
                {
                    continue;
                }
                Slot::Entry { signature, at } if self.is_in_window(signature, slot) => {
                    Some((signature, at))
                }
                Slot::Entry { .. } | Slot::Damaged => None,
            };
            take(self.offset(slot), found);
        }
    }

    /// Puts the entries from hash `from` on into `batch`, but for foreign ones, and what is damaged: slots, and the word of
    /// the segment at `at`.
    pub(crate) fn list(&self, at: u64, prefix: Prefix, from: u64, batch: &mut Batch) {
        batch.clear();
        if self.pool.pmem.load_u64(at) != prefix.encode(at) {
            batch.damages.push(at);
        }
        for slot in 0..self.count() {
            match self.read(slot) {
                Slot::Entry { signature, at } if signature >= from && prefix.covers(signature) => {
                    batch.entries.push((signature, at));
                }
                Slot::Damaged => batch.damages.push(self.offset(slot)),
                Slot::Empty | Slot::Entry { .. } => {}
            }
        }
        batch.entries.sort_unstable();
        batch.next = prefix.range().1.checked_add(1);
    }

    /// The slots that go with half of a segment's hashes, each at its place. A slot that is damaged goes with both halves: whose
    /// key it had is not known.
    pub(crate) fn half(&self, half: Prefix) -> Image {
        let read = |slot| match self.read(slot) {
            Slot::Entry { signature, .. } if !half.covers(signature) => Slot::Empty,
            found => found,
        };
        Image((0..self.count()).map(read).collect())
    }

    /// A segment whose slots are all empty.
    pub(crate) fn none(&self) -> Image {
        Image((0..self.count()).map(|_| Slot::Empty).collect())
    }

    /// Stores all slots of a segment that nothing leads to yet, and starts writing them back.
    ///
    /// # Cost
    /// All lines of the buckets.
    pub(crate) fn store(&self, image: &Image, site: Site) {
        let mut bytes = Vec::with_capacity(image.0.len() * SLOT_BYTES as usize);
        for (slot, found) in (0..).zip(&image.0) {
            let slot_at = self.offset(slot);
            let words = match *found {
                Slot::Empty => [0, layout::empty(slot_at)],
                Slot::Entry { signature, at } => {
                    [signature, layout::position(layout::placed(signature, slot_at), at)]
                }
                // Damaged there, too.
                Slot::Damaged => [0; 2],
            };
            for word in words {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        let to = self.pool.extent(self.first, bytes.len() as u64);
        self.pool.pmem.copy(to, &bytes, site);
        self.pool.pmem.flush(to, site);
    }
}

/// What the slots of a new segment hold.
#[derive(Debug)]
pub(crate) struct Image(Vec<Slot>);

impl Image {
    /// Its entries.
    pub(crate) fn entries(&self) -> u32 {
        self.0.iter().filter(|slot| matches!(slot, Slot::Entry { .. })).count() as u32
    }
}

#[cold]
pub(crate) fn damaged_slot(at: u64) -> Error {
    Error::corrupted("an entry of the index is damaged", at)
}
