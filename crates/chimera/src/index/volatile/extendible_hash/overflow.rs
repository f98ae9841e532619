//! [`Overflow`]: entries that have no place in their segment when splitting it would not help or
//! there is no space to split.
//!
//! Well-mixed hashes never come here. More than eight keys with one 64-bit hash do, and so do
//! keys chosen by an adversary to agree in many bits. They stay correct and become slower, and
//! memory stays proportional to the number of entries. Every lookup of a hash goes through all of its
//! entries, so there are at most [`COLLISIONS_MAX`] of one hash: otherwise n crafted keys would cost n²
//! steps. Entries change only while the segment of their hash is locked, so the segment's version
//! covers them as well, and stay here until removed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::PoisonError;

use super::listing::{hash_at, position_of};
use crate::pool::Location;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Most entries of one hash. That 2^40 keys with well-mixed hashes have five of one hash among them
/// has a chance of 2^-62.
pub(super) const COLLISIONS_MAX: usize = 64;
/// The same while a table is rebuilt: those that had a slot in one of two buckets may have none now.
pub(super) const COLLISIONS_REBUILT_MAX: usize = COLLISIONS_MAX + 8;

/// By position in a listing, so that the entries of a segment are next to each other.
type Entries = BTreeMap<u64, Vec<Location>>;

#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// Number of entries: spares lookups the lock.
    count: AtomicU64,
    entries: RwLock<Entries>,
}

impl Overflow {
    #[inline(always)]
    pub(super) fn len(&self) -> u64 {
        // Acquire: who sees a count sees its entry; see also the order in `insert`.
        self.count.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The locations of a hash.
    #[inline]
    pub(super) fn locations(&self, hash: u64) -> Vec<Location> {
        if self.is_empty() {
            return Vec::new();
        }
        self.read().get(&position_of(hash)).cloned().unwrap_or_default()
    }

    /// Whether there are fewer than `limit` entries of a hash.
    #[inline(always)]
    pub(super) fn has_fewer(&self, limit: usize, hash: u64) -> bool {
        self.is_empty() || self.read().get(&position_of(hash)).is_none_or(|all| all.len() < limit)
    }

    pub(super) fn insert(&self, hash: u64, location: Location) {
        let mut entries = self.write();
        entries.entry(position_of(hash)).or_default().push(location);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Replaces a location of `hash`: whether it was there.
    pub(super) fn replace(&self, hash: u64, old: Location, new: Location) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut entries = self.write();
        let all = entries.get_mut(&position_of(hash));
        let found = all.and_then(|all| all.iter_mut().find(|at| **at == old));
        found.map(|at| *at = new).is_some()
    }

    /// Removes a location of `hash`: whether it was there.
    pub(super) fn remove(&self, hash: u64, location: Location) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut entries = self.write();
        let Some(all) = entries.get_mut(&position_of(hash)) else { return false };
        let Some(position) = all.iter().position(|&at| at == location) else { return false };
        all.swap_remove(position);
        if all.is_empty() {
            entries.remove(&position_of(hash));
        }
        self.count.fetch_sub(1, Ordering::Release);
        true
    }

    /// Adds the entries at these positions of a listing to `into`.
    pub(super) fn list(&self, positions: RangeInclusive<u64>, into: &mut Vec<(u64, Location)>) {
        if self.is_empty() {
            return;
        }
        for (&position, all) in self.read().range(positions) {
            into.extend(all.iter().map(|&at| (hash_at(position), at)));
        }
    }

    /// Bytes in use, roughly.
    pub(super) fn bytes(&self) -> u64 {
        self.len() * (size_of::<(u64, Vec<Location>)>() + 4 * size_of::<Location>()) as u64
    }

    /// No panic can happen while the map is half-changed, so a poisoned lock is as good as any.
    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}
