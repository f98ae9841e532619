//! [`SegmentHeader`]: what writers share about a segment, apart from its slots, so that a lookup
//! that finds its key does not touch it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use chimera_pmem::Environment;
use zerocopy::FromZeros;

/// A lock for writers and a version for readers in one word: odd while a writer holds it, and
/// larger by two after each. It cannot wrap: 2^63 changes take centuries.
#[derive(Debug, Default, FromZeros)]
#[repr(transparent)]
pub(super) struct VersionLock(AtomicU64);

impl VersionLock {
    /// Takes the lock, relaxing between attempts. Released when the guard is dropped, also by a
    /// panic: a caller's closure never runs while something is half-done.
    #[inline]
    pub(super) fn lock(&self, environment: &dyn Environment) -> VersionGuard<'_> {
        let mut attempt = 0;
        loop {
            let version = self.0.load(Ordering::Relaxed);
            let free = version.is_multiple_of(2);
            // Acquire: what earlier holders did is seen.
            if free
                && self
                    .0
                    .compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return VersionGuard { lock: self, held: version + 1 };
            }
            environment.relax(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// The version, when no writer holds the lock. What writers did up to this version is seen.
    #[inline]
    pub(super) fn read_begin(&self) -> Option<u64> {
        let version = self.0.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
    }

    /// Whether no writer has held the lock since [`read_begin`](Self::read_begin) gave `version`, as
    /// far as anything read in between can tell.
    #[inline]
    pub(super) fn read_is_valid(&self, version: u64) -> bool {
        // The table's own words are loaded with acquire order; the fence is for records, which a
        // closure may have read by relaxed loads.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == version
    }
}

/// Holds a [`VersionLock`].
#[derive(Debug)]
pub(super) struct VersionGuard<'a> {
    lock: &'a VersionLock,
    held: u64,
}

impl Drop for VersionGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.0.store(self.held + 1, Ordering::Release);
    }
}

/// A segment's header. The numbers change under the lock only.
///
/// Four share a cache line, so that headers stay in the processor's caches: random keys seldom
/// bring two writers to one line at the same time, and few segments are hot for long.
#[derive(Debug, Default, FromZeros)]
#[repr(C)]
pub(super) struct SegmentHeader {
    pub(super) lock: VersionLock,
    depth: AtomicU32,
    entries: AtomicU32,
}

impl SegmentHeader {
    /// The number of low hash bits that everything in the segment has in common.
    pub(super) fn depth(&self) -> u32 {
        self.depth.load(Ordering::Relaxed)
    }

    pub(super) fn set_depth(&self, depth: u32) {
        self.depth.store(depth, Ordering::Relaxed);
    }

    /// The number of occupied slots.
    pub(super) fn entries(&self) -> u32 {
        self.entries.load(Ordering::Relaxed)
    }

    pub(super) fn set_entries(&self, entries: u32) {
        self.entries.store(entries, Ordering::Relaxed);
    }
}
