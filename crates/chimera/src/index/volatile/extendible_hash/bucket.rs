//! [`Bucket`], one cache line of slots, and [`Slots`], the slots of one segment.
//!
//! A bucket is four fingerprints followed by the four locations that belong to them. A slot is
//! occupied exactly when its location is not zero; the fingerprint says nothing about that, so a
//! fingerprint of zero needs no special care.

use chimera_pmem::prefetch_read;

use super::geometry::{BUCKET_SLOTS, BUCKET_WORDS, HashGeometry};
use crate::pool::Location;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arena, ArenaRange};

/// A cache line of words: four fingerprints, four locations.
#[derive(Debug)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(64))]
pub(super) struct Line([AtomicU64; BUCKET_WORDS as usize]);

/// A bucket. Everything that changes it needs the lock of its segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket<'a>(&'a Line);

impl<'a> Bucket<'a> {
    /// The bucket with this number of a segment.
    #[inline(always)]
    pub(super) fn of(
        lines: &'a Arena<Line>,
        geometry: HashGeometry,
        segment: u64,
        number: u32,
    ) -> Self {
        let line = segment << geometry.bucket_bits() | u64::from(number);
        Self(lines.get(line).expect("a segment that was ensured"))
    }
}

impl Bucket<'_> {
    #[inline(always)]
    fn load(self, word: u32) -> u64 {
        self.0.0[word as usize].load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store(self, word: u32, value: u64) {
        self.0.0[word as usize].store(value, Ordering::Release);
    }

    /// The fingerprint in a slot.
    #[inline(always)]
    pub(super) fn fingerprint(self, slot: u32) -> u64 {
        self.load(slot)
    }

    /// The location in a slot, when it is occupied.
    #[inline(always)]
    pub(super) fn location(self, slot: u32) -> Option<Location> {
        Location::from_raw(self.load(BUCKET_SLOTS + slot))
    }

    /// The slots that have the fingerprint `hash`, occupied or not: a one for each. All are compared, so that
    /// nothing depends on a guess where the entry is.
    #[inline(always)]
    pub(super) fn matching(self, hash: u64) -> u32 {
        let is = |slot: u32| u32::from(self.fingerprint(slot) == hash) << slot;
        is(0) | is(1) | is(2) | is(3)
    }

    /// The occupied slots that have the fingerprint `hash`, as `(slot, location)`. The fingerprints
    /// are loaded at once, a location when its turn comes.
    #[inline(always)]
    pub(super) fn matches(self, hash: u64) -> impl Iterator<Item = (u32, Location)> {
        Ones(self.matching(hash)).filter_map(move |slot| Some((slot, self.location(slot)?)))
    }

    /// Whether a slot has this fingerprint and this location.
    #[inline(always)]
    pub(super) fn has(self, slot: u32, hash: u64, location: Location) -> bool {
        self.fingerprint(slot) == hash && self.load(BUCKET_SLOTS + slot) == location.raw()
    }

    /// The first slot that is not occupied.
    #[inline(always)]
    pub(super) fn free_slot(self) -> Option<u32> {
        let is = |slot: u32| u32::from(self.load(BUCKET_SLOTS + slot) == 0) << slot;
        Ones(is(0) | is(1) | is(2) | is(3)).next()
    }

    /// Occupies an empty slot: the fingerprint first, so that the location, which makes the slot
    /// occupied, appears with its own fingerprint in place.
    #[inline(always)]
    pub(super) fn fill(self, slot: u32, hash: u64, location: Location) {
        self.store(slot, hash);
        self.store(BUCKET_SLOTS + slot, location.raw());
    }

    /// Empties a slot: the location first, so that the slot is empty when its fingerprint goes.
    #[inline(always)]
    pub(super) fn clear(self, slot: u32) {
        self.store(BUCKET_SLOTS + slot, 0);
        self.store(slot, 0);
    }

    /// Replaces the location of an occupied slot; the key stays.
    #[inline(always)]
    pub(super) fn replace(self, slot: u32, location: Location) {
        self.store(BUCKET_SLOTS + slot, location.raw());
    }

    /// Moves an entry to an empty slot of another bucket. It is never absent: for a moment it is in
    /// both.
    pub(super) fn relocate(self, slot: u32, to: Self, to_slot: u32) {
        let location = self.location(slot).expect("only entries are moved");
        to.fill(to_slot, self.fingerprint(slot), location);
        self.clear(slot);
    }

    /// Starts loading the bucket.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        prefetch_read(self.0);
    }
}

/// The positions of the ones in a number, in ascending order.
struct Ones(u32);

impl Iterator for Ones {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let position = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(position)
    }
}

/// An occupied slot.
pub(super) struct Entry<'a> {
    /// The bucket's number in its segment.
    pub(super) number: u32,
    pub(super) bucket: Bucket<'a>,
    pub(super) slot: u32,
    pub(super) hash: u64,
    pub(super) location: Location,
}

/// An entry as a lookup found it. It may have been moved, changed or removed since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub(super) segment: u64,
    /// None in the overflow.
    pub(super) slot: Option<(Bucket<'a>, u32)>,
    /// Where the entry leads.
    pub location: Location,
}

impl Found<'_> {
    /// Whether the very slot still has the entry, of `hash`. `false` says nothing: the entry may have been moved. While
    /// the slot has it the entry is in force, also when its segment is just being split: invariant 5.
    ///
    /// # Cost
    /// Two loads.
    #[inline(always)]
    pub(crate) fn is_there(&self, hash: u64) -> bool {
        self.slot.is_some_and(|(bucket, slot)| bucket.has(slot, hash, self.location))
    }
}

/// The slots of one segment.
#[derive(Clone, Copy)]
pub(super) struct Slots<'a> {
    lines: ArenaRange<'a, Line>,
    geometry: HashGeometry,
    segment: u64,
}

impl<'a> Slots<'a> {
    /// Of a segment whose lines are present in `lines`.
    #[inline(always)]
    pub(super) fn new(lines: &'a Arena<Line>, geometry: HashGeometry, segment: u64) -> Self {
        let start = segment << geometry.bucket_bits();
        let lines = lines.range(start, u64::from(geometry.buckets()));
        Self { lines: lines.expect("a segment that was ensured"), geometry, segment }
    }

    #[inline(always)]
    pub(super) fn geometry(self) -> HashGeometry {
        self.geometry
    }

    /// The bucket with this number.
    #[inline(always)]
    pub(super) fn bucket(self, number: u32) -> Bucket<'a> {
        Bucket(self.lines.get(number as usize).expect("a bucket of the segment"))
    }

    /// The two buckets `hash` may live in, its home first.
    #[inline(always)]
    pub(super) fn candidates(self, hash: u64) -> [Bucket<'a>; 2] {
        self.geometry.candidates(hash).map(|number| self.bucket(number))
    }

    /// Hands the entries of all buckets to `visit`.
    #[inline(always)]
    pub(super) fn for_each(self, mut visit: impl FnMut(Entry<'a>)) {
        for number in 0..self.geometry.buckets() {
            let bucket = self.bucket(number);
            for slot in 0..BUCKET_SLOTS {
                if let Some(location) = bucket.location(slot) {
                    visit(Entry { number, bucket, slot, hash: bucket.fingerprint(slot), location });
                }
            }
        }
    }

    /// The first occupied slot of `hash` that `is` says yes to; home comes first.
    #[inline(always)]
    pub(super) fn first(
        self,
        hash: u64,
        mut is: impl FnMut(Found<'a>) -> bool,
    ) -> Option<Found<'a>> {
        let home = self.geometry.home(hash);
        let mut number = home;
        loop {
            let bucket = self.bucket(number);
            for (slot, location) in bucket.matches(hash) {
                let found = Found { segment: self.segment, slot: Some((bucket, slot)), location };
                if is(found) {
                    return Some(found);
                }
            }
            if number != home {
                return None;
            }
            number = self.geometry.other(hash, home);
        }
    }

    /// The slot of the entry of `hash` with exactly this location.
    #[inline]
    pub(super) fn find_exact(self, hash: u64, location: Location) -> Option<(Bucket<'a>, u32)> {
        self.first(hash, |found| found.location == location)?.slot
    }

    /// Starts loading the whole segment.
    pub(super) fn prefetch(self) {
        for number in 0..self.geometry.buckets() {
            self.bucket(number).prefetch();
        }
    }
}
