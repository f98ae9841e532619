//! [`Segment`]: what is known of a segment in DRAM.

use super::{CACHE_LINE, SEGMENT_BYTES_MAX};
use crate::index::persistent::buckets::{PER_BUCKET, Prefix};
use crate::sync::VersionLock;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What is known of a segment in DRAM. The numbers change under the lock only, and are read under it or validated by its
/// version.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
#[repr(C)]
pub(super) struct Segment {
    pub(super) lock: VersionLock,
    /// Offset of its header line.
    at: AtomicU64,
    prefix: AtomicU64,
    depth: AtomicU32,
    /// Entries in the lower half, walked buckets in the upper one: a segment stays half a cache line.
    counts: AtomicU32,
}

const WALKED_SHIFT: u32 = 16;
const ENTRIES: u32 = (1 << WALKED_SHIFT) - 1;
const _: () = assert!((SEGMENT_BYTES_MAX / CACHE_LINE - 2) * PER_BUCKET as u64 <= ENTRIES as u64);

impl Segment {
    /// Makes it one whose header lies at `at`, before the directory leads to it.
    pub(super) fn begin(&self, at: u64, prefix: Prefix, entries: u32, walked: u32) {
        self.at.store(at, Ordering::Relaxed);
        self.set_prefix(prefix);
        self.set_counts(entries, walked);
    }

    /// Offset of its header line, which never changes.
    #[inline(always)]
    pub(super) fn at(&self) -> u64 {
        self.at.load(Ordering::Relaxed)
    }

    /// The hashes that it has.
    #[inline(always)]
    pub(super) fn prefix(&self) -> Prefix {
        Prefix {
            prefix: self.prefix.load(Ordering::Relaxed),
            depth: self.depth.load(Ordering::Relaxed),
        }
    }

    pub(super) fn set_prefix(&self, prefix: Prefix) {
        self.prefix.store(prefix.prefix, Ordering::Relaxed);
        self.depth.store(prefix.depth, Ordering::Relaxed);
    }

    /// Entries that are not foreign.
    pub(super) fn entries(&self) -> u32 {
        self.counts.load(Ordering::Relaxed) & ENTRIES
    }

    pub(super) fn set_entries(&self, entries: u32) {
        self.set_counts(entries, self.walked());
    }

    /// Buckets, from the first one on, whose entries were [walked](super::PartitionedHash::walk) since the store was
    /// opened.
    pub(super) fn walked(&self) -> u32 {
        self.counts.load(Ordering::Relaxed) >> WALKED_SHIFT
    }

    pub(super) fn set_walked(&self, walked: u32) {
        self.set_counts(self.entries(), walked);
    }

    fn set_counts(&self, entries: u32, walked: u32) {
        debug_assert!(entries <= ENTRIES && walked <= ENTRIES, "{entries} entries, {walked}");
        self.counts.store(entries | walked << WALKED_SHIFT, Ordering::Relaxed);
    }
}
