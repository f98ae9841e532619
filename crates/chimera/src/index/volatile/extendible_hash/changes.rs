//! Changes of single entries, each under the lock of one segment.

use super::{ExtendibleHash, LockedSegment, Words, displacement};
use crate::index::Resolve;
use crate::pool::Location;

impl<W: Words> ExtendibleHash<W> {
    /// Adds an entry. The caller knows that the key has none, and keeps it so meanwhile.
    ///
    /// Cannot fail. Call [`prepare_insert`](Self::prepare_insert) before to learn in time that
    /// memory is running out; otherwise entries pile up where lookups are slower.
    ///
    /// # Cost
    /// The header and one bucket, sometimes two; near the end of a segment's growth some dozens.
    pub fn insert(&self, hash: u64, location: Location) {
        loop {
            let locked = self.lock(hash);
            if self.place(&locked, hash, location) {
                return;
            }
        }
    }

    /// Replaces the location of an entry, if the entry is there with the location `old`.
    ///
    /// # Cost
    /// The header and one bucket, sometimes two.
    pub fn swap_if(&self, hash: u64, old: Location, new: Location) -> bool {
        let locked = self.lock(hash);
        let Some((bucket, slot)) = locked.slots.find_exact(hash, old) else {
            return self.overflow.replace(hash, old, new);
        };
        bucket.replace(slot, new);
        bucket.persist();
        true
    }

    /// Removes an entry, if it is there with the location `old`.
    ///
    /// # Cost
    /// The header and one bucket, sometimes two.
    pub fn remove_if(&self, hash: u64, old: Location) -> bool {
        let locked = self.lock(hash);
        let Some((bucket, slot)) = locked.slots.find_exact(hash, old) else {
            return self.overflow.remove(hash, old);
        };
        bucket.clear(slot);
        bucket.persist();
        locked.header.set_entries(locked.header.entries() - 1);
        true
    }

    /// Enters a record that was found by a scan: adds it, or lets the newer of two records of its
    /// key have the entry. Returns the location that lost.
    ///
    /// `same_key` is asked about entries with the same hash, with the segment locked; it may be
    /// asked about one more than once, and must not use this table.
    pub fn upsert_with(
        &self,
        hash: u64,
        new: Location,
        mut same_key: impl FnMut(Location) -> Resolve,
    ) -> Option<Location> {
        loop {
            let locked = self.lock(hash);
            for bucket in locked.slots.candidates(hash) {
                for (slot, old) in bucket.matches(hash) {
                    match same_key(old) {
                        Resolve::OtherKey => {}
                        Resolve::KeepOld => return Some(new),
                        Resolve::KeepNew => {
                            bucket.replace(slot, new);
                            bucket.persist();
                            return Some(old);
                        }
                    }
                }
            }
            for old in self.overflow.locations(hash) {
                match same_key(old) {
                    Resolve::OtherKey => {}
                    Resolve::KeepOld => return Some(new),
                    Resolve::KeepNew => {
                        self.overflow.replace(hash, old, new);
                        return Some(old);
                    }
                }
            }
            if self.place(&locked, hash, new) {
                return None;
            }
        }
    }

    /// Puts an entry into a locked segment. `false` when the segment was split instead.
    fn place(&self, locked: &LockedSegment<'_, W>, hash: u64, location: Location) -> bool {
        let slots = locked.slots;
        let candidates = slots.geometry().candidates(hash);
        let free = candidates.into_iter().find_map(|number| {
            let bucket = slots.bucket(number);
            Some((bucket, bucket.free_slot()?))
        });
        let room = free.or_else(|| displacement::make_room(slots, candidates));
        let Some((bucket, slot)) = room else {
            if self.split(locked, hash) {
                return false;
            }
            self.overflow.insert(hash, location);
            return true;
        };
        bucket.fill(slot, hash, location);
        bucket.persist();
        locked.header.set_entries(locked.header.entries() + 1);
        true
    }
}
