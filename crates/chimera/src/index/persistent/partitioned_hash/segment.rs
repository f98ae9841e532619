//! [`Segment`]: what is known of a segment in DRAM.

use super::layout::Prefix;
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
    entries: AtomicU32,
}

impl Segment {
    /// Makes it one whose header lies at `at`, before the directory leads to it.
    pub(super) fn begin(&self, at: u64, prefix: Prefix, entries: u32) {
        self.at.store(at, Ordering::Relaxed);
        self.set_prefix(prefix);
        self.set_entries(entries);
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
        self.entries.load(Ordering::Relaxed)
    }

    pub(super) fn set_entries(&self, entries: u32) {
        self.entries.store(entries, Ordering::Relaxed);
    }
}
