//! Lookups: none takes a lock. The protocol is told in the parent's prose.

use chimera_pmem::prefetch_read;

use super::ExtendibleHash;
use super::bucket::{Bucket, Found, Slots};
use crate::index::Probe;
use crate::pool::Location;
use crate::sync::until_some;

/// What a look without verifying shows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Glance<'a> {
    /// The first entry of the hash: most likely that of the key.
    Entry(Found<'a>),
    /// There is no entry.
    Nothing,
    /// The entries are being moved: [`ExtendibleHash::find`] tells.
    Unclear,
}

impl ExtendibleHash {
    /// Starts loading both buckets of `hash`.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        let slots = self.slots(self.directory.segment_of(hash));
        for bucket in slots.candidates(hash) {
            bucket.prefetch();
        }
    }

    /// Starts loading what a change of an entry of `hash` touches: both buckets and the header.
    #[inline]
    pub(crate) fn prefetch_to_change(&self, hash: u64) {
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
    pub(crate) fn find<'a, T>(
        &'a self,
        hash: u64,
        mut verify: impl FnMut(Found<'a>) -> Probe<T>,
    ) -> Option<T> {
        let slots = self.slots(self.directory.segment_of(hash));
        match probe(slots, hash, &mut verify) {
            Probe::Found(found) => Some(found),
            Probe::NotThis | Probe::Retry => self.find_observed(hash, verify),
        }
    }

    /// The first entry of `hash`, unverified: for a caller that verifies it, and does anything else than to find
    /// it right by [`find`](Self::find). May miss an entry, and may be wrong.
    ///
    /// # Cost
    /// A directory entry and one bucket, sometimes two.
    #[inline(always)]
    pub(crate) fn first(&self, hash: u64) -> Option<Found<'_>> {
        match self.first_in(self.directory.segment_of(hash), hash) {
            Glance::Entry(found) => Some(found),
            Glance::Nothing | Glance::Unclear => None,
        }
    }

    /// As [`first`](Self::first), in a segment: `Nothing` where no slot of its two buckets had the hash when it was
    /// looked at, and `Unclear` where an empty one had it.
    #[inline(always)]
    fn first_in(&self, segment: u64, hash: u64) -> Glance<'_> {
        let geometry = self.geometry;
        let home = geometry.home(hash);
        let mut bucket = Bucket::of(&self.lines, geometry, segment, home);
        let mut alike = bucket.matching(hash);
        if alike == 0 {
            bucket = Bucket::of(&self.lines, geometry, segment, geometry.other(hash, home));
            alike = bucket.matching(hash);
        }
        if alike == 0 {
            return Glance::Nothing;
        }
        let slot = alike.trailing_zeros();
        match bucket.location(slot) {
            Some(location) => {
                Glance::Entry(Found { segment, slot: Some((bucket, slot)), location })
            }
            None => Glance::Unclear,
        }
    }

    /// What a look without verifying shows of `hash`: for a caller that holds the key's lock, and so knows that
    /// nobody enters it meanwhile.
    ///
    /// # Cost
    /// A directory entry, the segment's header and one bucket, sometimes two.
    #[inline(always)]
    pub(crate) fn glance(&self, hash: u64) -> Glance<'_> {
        let segment = self.directory.segment_of(hash);
        let header = self.header(segment);
        let version = header.lock.read_begin();
        match self.first_in(segment, hash) {
            Glance::Entry(found) => Glance::Entry(found),
            // A split that came before the version is seen in the directory.
            Glance::Nothing
                if self.overflow.is_empty()
                    && version.is_some_and(|version| header.lock.read_is_valid(version))
                    && self.directory.segment_of(hash) == segment =>
            {
                Glance::Nothing
            }
            _ => self.glance_observed(hash),
        }
    }

    #[cold]
    fn glance_observed(&self, hash: u64) -> Glance<'_> {
        match self.look_observed(hash, &mut |_| Probe::Found(())) {
            Probe::NotThis => Glance::Nothing,
            Probe::Found(()) | Probe::Retry => Glance::Unclear,
        }
    }

    /// As `find`, once a short way has not found it: an answer other than `Found` is given only if the
    /// segment did not change meanwhile. So where `verify` says `NotThis` to each, it was asked about all entries of
    /// the hash as they were at one moment, and perhaps about others before.
    #[inline(never)]
    pub(crate) fn find_observed<'a, T>(
        &'a self,
        hash: u64,
        mut verify: impl FnMut(Found<'a>) -> Probe<T>,
    ) -> Option<T> {
        until_some(&*self.environment, || match self.look_observed(hash, &mut verify) {
            Probe::Found(found) => Some(Some(found)),
            Probe::NotThis => Some(None),
            Probe::Retry => None,
        })
    }

    /// One observation: `NotThis` only when there is no such entry.
    #[inline(always)]
    fn look_observed<'a, T>(
        &'a self,
        hash: u64,
        verify: &mut impl FnMut(Found<'a>) -> Probe<T>,
    ) -> Probe<T> {
        let Some(observed) = self.observe(hash) else { return Probe::Retry };
        let mut answer = probe(observed.slots, hash, verify);
        if matches!(answer, Probe::NotThis) && !self.overflow.is_empty() {
            answer = self.probe_overflow(hash, verify);
        }
        match answer {
            Probe::NotThis if !observed.is_unchanged() => Probe::Retry,
            answer => answer,
        }
    }

    /// The location of some entry of `hash`, unverified, for starting to load its record. May miss
    /// an entry, and may be wrong.
    #[inline]
    pub(crate) fn peek(&self, hash: u64) -> Option<Location> {
        Some(self.first(hash)?.location)
    }

    /// Whether there is an entry of `hash` with exactly this location. May miss one that is being
    /// moved; an answer of `true` was right at some moment during the call.
    ///
    /// # Cost
    /// Two loads where the entry is where it was found; else as a lookup.
    #[inline(always)]
    pub(crate) fn leads_to(&self, hash: u64, found: &Found<'_>) -> bool {
        found.is_there(hash) || self.leads_elsewhere(hash, found.location)
    }

    #[cold]
    fn leads_elsewhere(&self, hash: u64, location: Location) -> bool {
        let slots = self.slots(self.directory.segment_of(hash));
        slots.find_exact(hash, location).is_some()
            || self.overflow.locations(hash).contains(&location)
    }

    /// Whether there is an entry of `hash` with exactly this location.
    pub(crate) fn contains_exact(&self, hash: u64, location: Location) -> bool {
        until_some(&*self.environment, || {
            let observed = self.observe(hash)?;
            let found = observed.slots.find_exact(hash, location).is_some()
                || self.overflow.locations(hash).contains(&location);
            observed.is_unchanged().then_some(found)
        })
    }
}

impl ExtendibleHash {
    /// Asks `verify` about the entries of `hash` in the overflow, in order, until one is not `NotThis`.
    #[cold]
    fn probe_overflow<'a, T>(
        &'a self,
        hash: u64,
        verify: &mut impl FnMut(Found<'a>) -> Probe<T>,
    ) -> Probe<T> {
        for location in self.overflow.locations(hash) {
            match verify(Found { segment: 0, slot: None, location }) {
                Probe::NotThis => {}
                answer => return answer,
            }
        }
        Probe::NotThis
    }
}

/// Asks `verify` about the entries of `hash` in its two buckets, in order, until one is not
/// `NotThis`.
#[inline(always)]
fn probe<'a, T>(
    slots: Slots<'a>,
    hash: u64,
    verify: &mut impl FnMut(Found<'a>) -> Probe<T>,
) -> Probe<T> {
    let mut answer = Probe::NotThis;
    slots.first(hash, |found| {
        answer = verify(found);
        !matches!(answer, Probe::NotThis)
    });
    answer
}
