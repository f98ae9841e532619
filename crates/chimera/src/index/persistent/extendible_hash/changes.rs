//! Changes of single entries, each under the lock of its segment until it is durable.

use chimera_pmem::{Extent, Pmem};

use super::{ExtendibleHash, Stripe, damaged_directory, damaged_segment};
use crate::index::persistent::buckets::{Prefix, Slots};
use crate::sync::VersionGuard;
use crate::types::error::Result;

/// A segment whose lock is held.
pub(super) struct Locked<'a> {
    /// Offset of its header.
    pub(super) at: u64,
    pub(super) prefix: Prefix,
    pub(super) stripe: &'a Stripe,
    _guard: VersionGuard<'a>,
}

impl<P: Pmem> ExtendibleHash<P> {
    /// Locks the segment that has a hash. None in an index without segments.
    ///
    /// # Errors
    /// `Corrupted` when the word of the directory, or that of the segment, is damaged.
    pub(super) fn lock(&self, hash: u64) -> Result<Option<Locked<'_>>> {
        loop {
            let Some(place) = self.place_of(hash) else { return Ok(None) };
            let stripe = self.stripe(place.at.unwrap_or(0));
            let guard = stripe.lock.lock(&*self.pool.environment);
            if !self.is_place(&place) {
                continue;
            }
            let at = place.at.ok_or_else(|| damaged_directory(place.word_at))?;
            let prefix = self.prefix_at(at).filter(|prefix| prefix.covers(hash));
            let prefix = prefix.ok_or_else(|| damaged_segment(at))?;
            return Ok(Some(Locked { at, prefix, stripe, _guard: guard }));
        }
    }

    /// Enters `record`, a record whose key has this hash and no entry. `false`, with nothing changed, when there is no
    /// room for it: [`make_room`](Self::make_room) helps.
    ///
    /// # Errors
    /// `Corrupted` when the way to the entry is damaged.
    ///
    /// # Durability
    /// Durable on return, and nobody sees the entry before. A crash before leaves the entry, or none.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(crate) fn insert(&self, hash: u64, record: Extent) -> Result<bool> {
        let Some(locked) = self.lock(hash)? else { return Ok(false) };
        let slots = self.slots(locked.at);
        let Some(slot) = slots.free_slot(hash, locked.prefix) else { return Ok(false) };
        slots.fill(slot, hash, record);
        locked.stripe.add(1);
        Ok(true)
    }

    /// Makes the entry of `hash` that leads to `old` lead to `record`. `false`, with nothing done, when there is none.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    ///
    /// # Durability
    /// Durable on return, and nobody sees the change before. A crash before leaves the old entry or the new one.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(crate) fn swap(&self, hash: u64, old: u64, record: Extent) -> Result<bool> {
        self.change(hash, old, |_, slots, slot| slots.lead(slot, hash, record))
    }

    /// Removes the entry of `hash` that leads to `old`. `false`, with nothing done, when there is none.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    ///
    /// # Durability
    /// Durable on return, and nobody misses the entry before. A crash before leaves the entry, or none.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(crate) fn remove(&self, hash: u64, old: u64) -> Result<bool> {
        self.change(hash, old, |locked, slots, slot| {
            slots.clear(slot);
            locked.stripe.subtract(1);
        })
    }

    fn change(
        &self,
        hash: u64,
        old: u64,
        change: impl FnOnce(&Locked<'_>, &Slots<'_, P>, u32),
    ) -> Result<bool> {
        let Some(locked) = self.lock(hash)? else { return Ok(false) };
        let slots = self.slots(locked.at);
        let Some(slot) = slots.find(hash, old) else { return Ok(false) };
        change(&locked, &slots, slot);
        Ok(true)
    }

    /// What the header of the segment at `at` says, unless it is damaged.
    pub(super) fn prefix_at(&self, at: u64) -> Option<Prefix> {
        Prefix::decode(self.pool.pmem.load_u64(at), at)
    }
}
