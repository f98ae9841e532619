//! Changes of single entries, each under the lock of one segment.

use super::bucket::{Bucket, Found};
use super::overflow::{COLLISIONS_MAX, COLLISIONS_REBUILT_MAX};
use super::{ExtendibleHash, LockedSegment, displacement};
use crate::index::{Resolve, TooManyCollisions};
use crate::pool::Location;

impl ExtendibleHash {
    /// Whether one more entry of `hash` may be [inserted](Self::insert_after): not when there are so many
    /// already that the keys must have been chosen to have the same hash. The answer stays right as
    /// long as the caller keeps others from inserting entries of this hash.
    ///
    /// # Cost
    /// One load, unless the overflow is in use.
    #[inline]
    pub(crate) fn takes(&self, hash: u64) -> bool {
        self.overflow.has_fewer(COLLISIONS_MAX, hash)
    }

    /// Adds an entry, once `first` has succeeded. The caller knows that the key has none, and keeps it so meanwhile.
    ///
    /// Cannot fail otherwise. Call [`takes`](Self::takes) before where keys may be crafted, and
    /// [`prepare_insert`](Self::prepare_insert) before to learn in time that
    /// memory is running out; otherwise entries pile up where lookups are slower.
    ///
    /// The segment is locked while `first` runs, so
    /// that nothing after `first` is an atomic read-modify-write: such an instruction would wait for
    /// the fence with which `first` ends, and what the thread does next could not begin.
    ///
    /// # Errors
    /// That of `first`; nothing is changed.
    ///
    /// # Cost
    /// The header and one bucket, sometimes two; near the end of a segment's growth some dozens.
    #[inline]
    pub(crate) fn insert_after<E>(
        &self,
        hash: u64,
        location: Location,
        first: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let locked = self.lock(hash);
            match self.room(&locked, hash) {
                Room::Slot(bucket, slot) => {
                    first()?;
                    bucket.fill(slot, hash, location);
                    locked.header.set_entries(locked.header.entries() + 1);
                    return Ok(());
                }
                Room::Overflow => {
                    first()?;
                    self.overflow.insert(hash, location);
                    return Ok(());
                }
                Room::WasSplit => {}
            }
        }
    }

    /// Replaces the location of an entry, if the entry is there with the location of `old`, once `first` has
    /// succeeded, which is called only then. See [`insert_after`](Self::insert_after).
    ///
    /// # Errors
    /// That of `first`; nothing is changed.
    ///
    /// # Cost
    /// The header and one bucket, sometimes two.
    #[inline]
    pub(crate) fn swap_after<E>(
        &self,
        hash: u64,
        old: &Found<'_>,
        new: Location,
        first: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let (_locked, slot) = self.lock_entry(hash, old);
        let old = old.location;
        if let Some((bucket, slot)) = slot {
            first()?;
            bucket.replace(slot, new);
            return Ok(true);
        }
        if !self.overflow.locations(hash).contains(&old) {
            return Ok(false);
        }
        first()?;
        Ok(self.overflow.replace(hash, old, new))
    }

    /// Removes an entry, if it is there with the location of `old`, once `first` has succeeded, which is called only
    /// then. See [`insert_after`](Self::insert_after).
    ///
    /// # Errors
    /// That of `first`; nothing is changed.
    ///
    /// # Cost
    /// The header and one bucket, sometimes two.
    #[inline]
    pub(crate) fn remove_after<E>(
        &self,
        hash: u64,
        old: &Found<'_>,
        first: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let (locked, slot) = self.lock_entry(hash, old);
        let old = old.location;
        if slot.is_none() && !self.overflow.locations(hash).contains(&old) {
            return Ok(false);
        }
        first()?;
        let Some((bucket, slot)) = slot else {
            return Ok(self.overflow.remove(hash, old));
        };
        bucket.clear(slot);
        locked.header.set_entries(locked.header.entries() - 1);
        Ok(true)
    }

    /// Enters a record that was found by a scan: adds it, or lets the newer of two records of its
    /// key have the entry. Returns the location that lost.
    ///
    /// # Errors
    /// When the entry is a new one, and there are even more of its hash than [`takes`](Self::takes)
    /// would let in.
    ///
    /// `same_key` is asked about entries with the same hash, with the segment locked; it may be
    /// asked about one more than once, and must not use this table.
    pub(crate) fn upsert_with(
        &self,
        hash: u64,
        new: Location,
        mut same_key: impl FnMut(Location) -> Resolve,
    ) -> Result<Option<Location>, TooManyCollisions> {
        loop {
            let locked = self.lock(hash);
            let mut free = None;
            for bucket in locked.slots().candidates(hash) {
                free = free.or_else(|| Some((bucket, bucket.free_slot()?)));
                for (slot, old) in bucket.matches(hash) {
                    match same_key(old) {
                        Resolve::OtherKey => {}
                        Resolve::KeepOld => return Ok(Some(new)),
                        Resolve::KeepNew => {
                            bucket.replace(slot, new);
                            return Ok(Some(old));
                        }
                    }
                }
            }
            for old in self.overflow.locations(hash) {
                match same_key(old) {
                    Resolve::OtherKey => {}
                    Resolve::KeepOld => return Ok(Some(new)),
                    Resolve::KeepNew => {
                        self.overflow.replace(hash, old, new);
                        return Ok(Some(old));
                    }
                }
            }
            match self.room_or(free, &locked, hash) {
                Room::Slot(bucket, slot) => {
                    bucket.fill(slot, hash, new);
                    locked.header.set_entries(locked.header.entries() + 1);
                    return Ok(None);
                }
                Room::Overflow if !self.overflow.has_fewer(COLLISIONS_REBUILT_MAX, hash) => {
                    return Err(TooManyCollisions);
                }
                Room::Overflow => {
                    self.overflow.insert(hash, new);
                    return Ok(None);
                }
                Room::WasSplit => {}
            }
        }
    }

    /// Locks the segment of an entry that was found. Its slot: none when it is in the overflow, or not there.
    #[inline(always)]
    fn lock_entry<'a>(
        &'a self,
        hash: u64,
        found: &Found<'a>,
    ) -> (LockedSegment<'a>, Option<(Bucket<'a>, u32)>) {
        if found.slot.is_some() {
            // What is in its slot while the segment is locked is in no other segment: invariants 4 and 5.
            let locked = self.lock_segment(found.segment);
            if found.is_there(hash) {
                return (locked, found.slot);
            }
        }
        self.lock_moved(hash, found.location)
    }

    /// As [`lock_entry`](Self::lock_entry), for one that is not where it was found.
    #[cold]
    fn lock_moved(
        &self,
        hash: u64,
        location: Location,
    ) -> (LockedSegment<'_>, Option<(Bucket<'_>, u32)>) {
        let locked = self.lock(hash);
        let slot = locked.slots().find_exact(hash, location);
        (locked, slot)
    }

    /// Finds a place for a new entry in a locked segment, or splits it.
    #[inline]
    fn room<'a>(&self, locked: &LockedSegment<'a>, hash: u64) -> Room<'a> {
        let slots = locked.slots();
        let free = slots.geometry().candidates(hash).into_iter().find_map(|number| {
            let bucket = slots.bucket(number);
            Some((bucket, bucket.free_slot()?))
        });
        self.room_or(free, locked, hash)
    }

    /// As [`room`](Self::room), of a caller that has looked for a free slot.
    #[inline(always)]
    fn room_or<'a>(
        &self,
        free: Option<(Bucket<'a>, u32)>,
        locked: &LockedSegment<'a>,
        hash: u64,
    ) -> Room<'a> {
        match free {
            Some((bucket, slot)) => Room::Slot(bucket, slot),
            None => self.room_made(locked, hash),
        }
    }

    #[inline(never)]
    fn room_made<'a>(&self, locked: &LockedSegment<'a>, hash: u64) -> Room<'a> {
        let slots = locked.slots();
        match displacement::make_room(slots, slots.geometry().candidates(hash)) {
            Some((bucket, slot)) => Room::Slot(bucket, slot),
            None if self.split(locked, hash) => Room::WasSplit,
            None => Room::Overflow,
        }
    }
}

/// Where a new entry goes.
enum Room<'a> {
    /// Into a free slot.
    Slot(Bucket<'a>, u32),
    /// Into the overflow: splitting would not help, or there is no space.
    Overflow,
    /// The segment was split: to be looked at anew.
    WasSplit,
}
