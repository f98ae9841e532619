//! Growing: giving out segments, splitting them, doubling the directory.

use super::bucket::Slots;
use super::{ExtendibleHash, LockedSegment};
use crate::index::OutOfSpace;
use crate::sync::VersionLock;
use crate::sync::atomic::{AtomicU64, Ordering};

/// A directory up to this size may double whenever a split wants it to.
const DIRECTORY_ALWAYS_MAX: u64 = 64;
/// A larger one only while it stays below this many entries per segment. Well-mixed hashes need
/// two or three; hashes that agree in their low bits would double it for ever.
const DIRECTORY_ENTRIES_PER_SEGMENT_MAX: u64 = 16;
/// Share of its slots that [`ExtendibleHash::reserve`] expects a segment to fill.
const RESERVED_LOAD_PERCENT: u64 = 90;

/// How far the table has grown.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Held to give out a segment and to change the directory. Taken after segment locks.
    pub(super) lock: VersionLock,
    /// Segments given out: numbers `0..segments`.
    segments: AtomicU64,
    /// The number of segments at which to make more of them usable.
    refill_at: AtomicU64,
    /// Segments that there is memory for, where a test limits them.
    #[cfg(test)]
    pub(super) segments_max: std::sync::Mutex<Option<u64>>,
}

impl Growth {
    pub(super) fn segments(&self) -> u64 {
        self.segments.load(Ordering::Acquire)
    }

    #[inline]
    fn needs_refill(&self) -> bool {
        self.segments.load(Ordering::Relaxed) >= self.refill_at.load(Ordering::Relaxed)
    }
}

impl ExtendibleHash {
    /// The first segment.
    pub(super) fn grow_first(&self) -> Result<(), OutOfSpace> {
        self.ensure_segments(1)?;
        self.growth.segments.store(1, Ordering::Release);
        Ok(())
    }

    /// Makes memory available so that the next [`insert_after`](Self::insert_after) of this thread finds what
    /// it needs.
    ///
    /// # Errors
    /// When there is none.
    ///
    /// # Cost
    /// Two loads, nearly always.
    #[inline]
    pub(crate) fn prepare_insert(&self) -> Result<(), OutOfSpace> {
        if self.growth.needs_refill() { self.refill() } else { Ok(()) }
    }

    #[cold]
    fn refill(&self) -> Result<(), OutOfSpace> {
        let _growth = self.growth.lock.lock(&*self.environment);
        let segments = self.growth.segments();
        let spare = (segments / 64).clamp(2, 16);
        self.ensure_segments(segments + spare)?;
        self.growth.refill_at.store(segments + spare / 2, Ordering::Relaxed);
        Ok(())
    }

    /// Prepares an empty table for `count` entries: as many segments as they will need, and the
    /// directory for them, at once. Does nothing when the table is not empty.
    ///
    /// # Errors
    /// When there is not enough memory; the table is as before.
    ///
    /// # Cost
    /// Some 20 bytes written for each 1000 entries; slots are touched when they are filled.
    pub(crate) fn reserve(&self, count: u64) -> Result<(), OutOfSpace> {
        let expected = u64::from(self.geometry.slots_per_segment()) * RESERVED_LOAD_PERCENT / 100;
        let segments = count.div_ceil(expected).max(1).checked_next_power_of_two();
        let segments = segments.filter(|&segments| segments <= 1 << 31).ok_or(OutOfSpace)?;
        let depth = segments.ilog2();
        let locked = self.lock(0);
        let _growth = self.growth.lock.lock(&*self.environment);
        if self.growth.segments() > 1 || locked.header.entries() > 0 || depth == 0 {
            return Ok(());
        }
        self.ensure_segments(segments)?;
        self.directory.ensure_depth(depth)?;
        for segment in 0..segments {
            self.header(segment).set_depth(depth);
        }
        self.growth.segments.store(segments, Ordering::Release);
        self.directory.spread(depth);
        Ok(())
    }

    /// Splits a full segment in two by the next bit of its hashes. `hash` is any hash that belongs
    /// to it. `false`, with nothing changed, when that would not help or there is no space.
    ///
    /// 1. The entries whose next bit is set are copied to a new segment that nobody can see.
    /// 2. The directory is pointed there; from here on lookups for them go to the new segment.
    /// 3. They are removed from the old segment.
    ///
    /// Both segments stay locked while any entry is in both.
    pub(super) fn split(&self, old: &LockedSegment<'_>, hash: u64) -> bool {
        let entries = old.header.entries();
        // With so few entries it is their hashes that collide; halving them would help little.
        if entries < self.geometry.slots_per_segment() / 2 {
            return false;
        }
        let depth = old.header.depth();
        let Some(number) = self.give_out_segment(depth) else { return false };
        let new = self.lock_segment(u64::from(number));
        old.slots().prefetch();
        new.slots().prefetch();
        let bit = 1 << depth;
        let moved = copy_where_set(old.slots(), new.slots(), bit);
        new.header.set_entries(moved);
        new.header.set_depth(depth + 1);
        move_home(new.slots());

        self.publish_split(hash | bit, depth + 1, number);

        clear_where_set(old.slots(), bit);
        old.header.set_entries(entries - moved);
        old.header.set_depth(depth + 1);
        move_home(old.slots());
        true
    }

    /// The number of a new segment to split one of `depth` into, with the space for the directory
    /// that goes with it.
    fn give_out_segment(&self, depth: u32) -> Option<u32> {
        let _growth = self.growth.lock.lock(&*self.environment);
        let segments = self.growth.segments();
        let number = u32::try_from(segments).ok()?;
        if depth == self.directory.depth() {
            let entries = 2u64 << depth;
            let limit = DIRECTORY_ENTRIES_PER_SEGMENT_MAX * segments;
            if entries > limit.max(DIRECTORY_ALWAYS_MAX) {
                return None;
            }
            self.directory.ensure_depth(depth + 1).ok()?;
        }
        self.ensure_segments(segments + 1).ok()?;
        self.growth.segments.store(segments + 1, Ordering::Release);
        Some(number)
    }

    /// Points the directory to a new segment, doubling it when it does not tell the two apart.
    fn publish_split(&self, hash: u64, depth: u32, segment: u32) {
        let _growth = self.growth.lock.lock(&*self.environment);
        if depth > self.directory.depth() {
            self.directory.double();
        }
        self.directory.publish(hash, depth, segment);
    }

    /// Under the growth lock.
    fn ensure_segments(&self, count: u64) -> Result<(), OutOfSpace> {
        #[cfg(test)]
        if self.growth.segments_max.lock().is_ok_and(|max| max.is_some_and(|max| count > max)) {
            return Err(OutOfSpace);
        }
        let lines = count.checked_mul(u64::from(self.geometry.buckets())).ok_or(OutOfSpace)?;
        self.lines.ensure(lines).map_err(|_| OutOfSpace)?;
        self.headers.ensure(count).map_err(|_| OutOfSpace)
    }
}

/// Copies the entries whose hash has `bit` set to the same slots of the empty segment `new`.
/// Returns their number.
fn copy_where_set(old: Slots<'_>, new: Slots<'_>, bit: u64) -> u32 {
    let mut copied = 0;
    old.for_each(|entry| {
        if entry.hash & bit != 0 {
            new.bucket(entry.number).fill(entry.slot, entry.hash, entry.location);
            copied += 1;
        }
    });
    copied
}

/// Removes the entries whose hash has `bit` set.
fn clear_where_set(slots: Slots<'_>, bit: u64) {
    slots.for_each(|entry| {
        if entry.hash & bit != 0 {
            entry.bucket.clear(entry.slot);
        }
    });
}

/// Moves entries that are in their second bucket to their first where that has room again, so that
/// lookups find them with one cache line.
fn move_home(slots: Slots<'_>) {
    slots.for_each(|entry| {
        let home = slots.geometry().home(entry.hash);
        if home == entry.number {
            return;
        }
        let home = slots.bucket(home);
        if let Some(free) = home.free_slot() {
            entry.bucket.relocate(entry.slot, home, free);
        }
    });
}
