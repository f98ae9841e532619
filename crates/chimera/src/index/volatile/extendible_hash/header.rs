//! [`SegmentHeader`]: what writers share about a segment, apart from its slots, so that a lookup
//! that finds its key does not touch it.

use crate::sync::VersionLock;
use crate::sync::atomic::{AtomicU32, Ordering};

/// A segment's header. The numbers change under the lock only.
///
/// Four share a cache line, so that headers stay in the processor's caches: random keys seldom
/// bring two writers to one line at the same time, and few segments are hot for long.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
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
