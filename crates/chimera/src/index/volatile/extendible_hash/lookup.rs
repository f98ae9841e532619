//! Lookups: none takes a lock. The protocol is told in the parent's prose.

use chimera_pmem::prefetch_read;

use super::ExtendibleHash;
use super::bucket::Slots;
use crate::index::Probe;
use crate::pool::Location;

impl ExtendibleHash {
    /// Starts loading both buckets of `hash`.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let slots = self.slots(self.directory.segment_of(hash));
        for bucket in slots.candidates(hash) {
            bucket.prefetch();
        }
    }

    /// Starts loading what a change of an entry of `hash` touches: both buckets and the header.
    #[inline]
    pub fn prefetch_to_change(&self, hash: u64) {
        let segment = self.directory.segment_of(hash);
        for bucket in self.slots(segment).candidates(hash) {
            bucket.prefetch();
        }
        prefetch_read(self.header(segment));
    }

    /// Looks for the entry of `hash` that `verify` finds right.
    ///
    /// `verify` may be asked about any location that was ever entered, also one that has been
    /// removed or given to another record since, and about the same one again. It answers
    /// - `Found` only if the record of the very key is there and live;
    /// - `NotThis` if another key's record is there, or none, or one that was retired after its entry
    ///   had been swapped or while its key was being removed;
    /// - `Retry` if it cannot tell.
    ///
    /// `None` means that at some moment during the call there was no entry that `verify` would have
    /// found right. Runs without a lock, and `verify` may use the table.
    ///
    /// # Cost
    /// A directory entry and one bucket, sometimes two. When nothing is found, both buckets and the
    /// segment's header. Waits only while a writer is at the segment and the record was not found.
    #[inline]
    pub fn find<T>(&self, hash: u64, mut verify: impl FnMut(Location) -> Probe<T>) -> Option<T> {
        let slots = self.slots(self.directory.segment_of(hash));
        match probe(slots, hash, &mut verify) {
            Probe::Found(found) => Some(found),
            Probe::NotThis | Probe::Retry => self.find_observed(hash, verify),
        }
    }

    /// As [`find`](Self::find), for a caller that will change the entry or enter one: reads the header at
    /// once, and so need not look twice to find nothing.
    ///
    /// # Cost
    /// A directory entry, the segment's header and one bucket, or both.
    #[inline]
    pub fn find_to_change<T>(
        &self,
        hash: u64,
        mut verify: impl FnMut(Location) -> Probe<T>,
    ) -> Option<T> {
        match self.look_observed(hash, &mut verify) {
            Probe::Found(found) => Some(found),
            Probe::NotThis => None,
            Probe::Retry => self.find_observed(hash, verify),
        }
    }

    /// As `find`, once a short way has not found it: an answer other than `Found` is given only if the
    /// segment did not change meanwhile.
    #[inline(never)]
    fn find_observed<T>(
        &self,
        hash: u64,
        mut verify: impl FnMut(Location) -> Probe<T>,
    ) -> Option<T> {
        let mut attempt = 0;
        loop {
            match self.look_observed(hash, &mut verify) {
                Probe::Found(found) => return Some(found),
                Probe::NotThis => return None,
                Probe::Retry => {}
            }
            self.environment.relax(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// One observation: `NotThis` only when there is no such entry.
    #[inline(always)]
    fn look_observed<T>(
        &self,
        hash: u64,
        verify: &mut impl FnMut(Location) -> Probe<T>,
    ) -> Probe<T> {
        let Some(observed) = self.observe(hash) else { return Probe::Retry };
        let mut answer = probe(observed.slots, hash, verify);
        if matches!(answer, Probe::NotThis) && !self.overflow.is_empty() {
            answer = propose(self.overflow.locations(hash), verify);
        }
        match answer {
            Probe::NotThis if !observed.is_unchanged() => Probe::Retry,
            answer => answer,
        }
    }

    /// The location of some entry of `hash`, unverified, for starting to load its record. May miss
    /// an entry, and may be wrong.
    #[inline]
    pub fn peek(&self, hash: u64) -> Option<Location> {
        let slots = self.slots(self.directory.segment_of(hash));
        let buckets = slots.candidates(hash).into_iter();
        buckets.flat_map(|bucket| bucket.matches(hash)).map(|(_, location)| location).next()
    }

    /// Whether there is an entry of `hash` with exactly this location. May miss one that is being
    /// moved; an answer of `true` was right at some moment during the call.
    ///
    /// # Cost
    /// As a lookup that finds the entry; nearly nothing right after one.
    #[inline]
    pub fn leads_to(&self, hash: u64, location: Location) -> bool {
        let slots = self.slots(self.directory.segment_of(hash));
        slots.find_exact(hash, location).is_some()
            || self.overflow.locations(hash).contains(&location)
    }

    /// Whether there is an entry of `hash` with exactly this location.
    pub fn contains_exact(&self, hash: u64, location: Location) -> bool {
        let mut attempt = 0;
        loop {
            if let Some(observed) = self.observe(hash) {
                let found = observed.slots.find_exact(hash, location).is_some()
                    || self.overflow.locations(hash).contains(&location);
                if observed.is_unchanged() {
                    return found;
                }
            }
            self.environment.relax(attempt);
            attempt = attempt.saturating_add(1);
        }
    }
}

/// Asks `verify` about the entries of `hash` in its two buckets, in order, until one is not
/// `NotThis`.
#[inline(always)]
fn probe<T>(
    slots: Slots<'_>,
    hash: u64,
    verify: &mut impl FnMut(Location) -> Probe<T>,
) -> Probe<T> {
    for number in slots.geometry().candidates(hash) {
        let locations = slots.bucket(number).matches(hash).map(|(_, location)| location);
        match propose(locations, verify) {
            Probe::NotThis => {}
            answer => return answer,
        }
    }
    Probe::NotThis
}

/// Asks `verify` about locations in order until one is not `NotThis`.
#[inline(always)]
fn propose<T>(
    locations: impl IntoIterator<Item = Location>,
    verify: &mut impl FnMut(Location) -> Probe<T>,
) -> Probe<T> {
    for location in locations {
        match verify(location) {
            Probe::NotThis => {}
            answer => return answer,
        }
    }
    Probe::NotThis
}
