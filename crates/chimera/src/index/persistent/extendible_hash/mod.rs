//! [`ExtendibleHash`]: extendible hashing in persistent memory with the segments of CCEH (Write-Optimized Dynamic Hashing for
//! Persistent Memory, FAST'19). Nothing of the index is in DRAM but locks and counts.
//!
//! An entry is 16 bytes: the hash of a key and the position of its record. The index knows no records. A lookup hands the
//! positions of a hash to a closure of the caller, which answers whether the record of its key lies there ([`Probe`]).
//!
//! # Structure
//! ```text
//! segment     64 bytes of the pool | line: [word of its prefix: 8] [0: 56] | bucket | bucket | ..
//! directory   64 bytes of the pool | line: [word of its depth: 8] | [place of a segment: 8] ..
//! ```
//! - The **directory** has a word for each value of the first bits of a hash, as many as its *depth*. Words of a segment
//!   follow one another.
//! - A **segment** has the hashes that begin with its *prefix*. Its low bits choose the home bucket of a hash. An entry lies
//!   in the first free slot from there on, within 4 buckets: see [`buckets`](super::buckets) for the rules of slots.
//! - A segment that is full is split in two. What moved stays in its slot and is *foreign* there: deletion is lazy.
//!
//! # Steps
//! - **insert**: hash, then position, in one line; flush, *fence*. **remove** and **swap**: the same.
//! - **split**: 1. a run with the new segment, its prefix and copies of the entries that move, is taken; all of it durable.
//!   2. The word of the old segment gets the prefix of the lower half; flush, *fence*. From then on the new segment is in
//!   force. 3. The words of the directory lead to it, the last one first; flush, *fence*.
//! - **double**: a run whose first word says that it is not in force is taken; each word of the directory twice; flush, *fence*; the word of its
//!   depth, which puts it in force; flush, *fence*. Then the old directory is freed.
//!
//! # What is not as published
//! - The paper changes the directory before the segment, and recovery goes back to the old segment if it finds the directory
//!   half changed. Another writer may have come to the new segment by then, and its entry would be lost. Here the word of the
//!   old segment decides, before anybody can come to the new one, and recovery completes the directory.
//! - The paper's directory has its depth and its place in two words. Here one word decides.
//! - Locks are in DRAM, so none is left set by a crash, and lookups write nothing. A slot has a check.
//!
//! # Concurrency
//! The lock of a segment is one of many *stripes* in DRAM, by the segment's place. A lookup reads the directory, then the
//! version of the stripe, then the directory again: where that is the same, the segment has the hash until the version
//! changes. It probes, and reads the version again. Writers hold the stripe until their change is durable. The directory
//! changes under the lock of growth, which is taken after a stripe; one stripe at a time.
//!
//! # Invariants
//! 1. The prefixes of the segments in force have no hash in common and cover all hashes; none is longer than the depth.
//! 2. What a word of the directory leads to has the hashes of that word, or had them when its prefix was shorter, and then the
//!    stripe of the one to which it leads is held.
//! 3. Of the directories whose first word says a depth, the deepest is in force.
//!
//! # Cost
//! An entry costs 1 line and 1 fence. A lookup reads a line of the directory and 1 to 4 of the segment. A split costs a run
//! (2 fences and the lines of a segment), 1 line, the lines of its part of the directory, and 2 fences.

mod changes;
mod directory;
mod growth;
mod lookup;
mod recovery;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;

use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Pmem};

use super::buckets::{self, Prefix, Slots};
use crate::pool::runs::Run;
use crate::pool::{BlockKind, Pool};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, VersionLock};
use crate::types::error::Error;
use directory::Directory;
pub(crate) use recovery::{Arranged, InForce};

/// Where the index stores, flushes and fences.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// A new segment, before its run is taken.
        SEGMENT = "cceh.segment";
        /// The word of a segment that was split.
        SPLIT = "cceh.split", in_place;
        /// Words of the directory that lead to a new segment.
        LEAD = "cceh.lead", in_place;
        /// The first word of a new directory, before its run is taken: it is not in force.
        BEGIN = "cceh.begin";
        /// The words of a new directory.
        DIRECTORY = "cceh.directory";
        /// The word that puts a directory in force.
        DOUBLE = "cceh.double";
        /// What recovery found, written back once more.
        FOUND = "cceh.found", may_be_clean;
    }
}

/// Steps that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// Completing the directory after a crash in a split.
        COMPLETE = "cceh.step.complete";
    }
}

/// Bytes of a segment, as published.
pub(crate) const SEGMENT_BYTES: u32 = 16 << 10;
/// Fewest bytes of a segment, with the pool's line and its own header: two buckets.
pub(crate) const SEGMENT_BYTES_MIN: u64 = 4 * CACHE_LINE;
/// Most bytes of a segment.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 1 << 20;

/// A power of two.
const STRIPES: usize = 4096;
/// Odd, without long rows of equal bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The kinds of its runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds {
    pub(crate) segment: BlockKind,
    pub(crate) directory: BlockKind,
}

/// The index. Any number of threads may call anything at any time, but for recovery. The caller keeps others from
/// changing the entry of a key while it does: by a lock of the key.
pub(crate) struct ExtendibleHash<P: Pmem> {
    pool: Arc<Pool<P>>,
    kinds: Kinds,
    /// Blocks of a segment.
    segment_blocks: u32,
    /// Buckets of a segment.
    buckets: u32,
    /// What is in force; 0 for none. Changes under the lock of growth.
    directory: AtomicU64,
    segments: AtomicU64,
    growth: Mutex<Growth>,
    stripes: Box<[Stripe]>,
    /// Runs that recovery found and did not arrange yet.
    found: Vec<Run>,
    /// Segments that the directory does not lead to everywhere, in a store that takes no writes: it is open for reading only,
    /// or damaged.
    beside: Vec<(Prefix, u64)>,
    /// What is damaged is passed over.
    salvages: bool,
}

/// What changes under the lock of growth.
#[derive(Debug, Default)]
struct Growth {
    /// The run of the directory.
    run: Option<Run>,
}

/// A lock that segments share.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe {
    lock: VersionLock,
    /// Entries of its segments that are not foreign, those that were removed subtracted: a sum of all stripes means
    /// something.
    entries: AtomicU64,
}

impl Stripe {
    fn add(&self, entries: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
    }

    fn subtract(&self, entries: u64) {
        self.entries.fetch_sub(entries, Ordering::Relaxed);
    }
}

impl<P: Pmem> ExtendibleHash<P> {
    /// An index without segments, which takes runs of these kinds; those of segments have so many blocks.
    pub(crate) fn new(
        pool: Arc<Pool<P>>,
        kinds: Kinds,
        segment_blocks: u32,
        salvages: bool,
    ) -> Self {
        let bytes = u64::from(segment_blocks) * pool.map.block_bytes;
        Self {
            pool,
            kinds,
            segment_blocks,
            buckets: (bytes / CACHE_LINE - 2) as u32,
            directory: AtomicU64::new(0),
            segments: AtomicU64::new(0),
            growth: Mutex::default(),
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            found: Vec::new(),
            beside: Vec::new(),
            salvages,
        }
    }

    /// The number of entries; while others change the index, roughly.
    ///
    /// # Cost
    /// A load for each stripe.
    pub(crate) fn len(&self) -> u64 {
        let counts = self.stripes.iter().map(|stripe| stripe.entries.load(Ordering::Relaxed));
        counts.fold(0, u64::wrapping_add)
    }

    /// Segments in force.
    pub(crate) fn segments(&self) -> u64 {
        self.segments.load(Ordering::Relaxed)
    }

    /// Slots of each segment.
    pub(crate) fn slots_per_segment(&self) -> u32 {
        self.buckets * buckets::PER_BUCKET
    }

    /// log2 of the words of the directory.
    pub(crate) fn directory_depth(&self) -> u32 {
        self.directory().map_or(0, |directory| directory.depth)
    }

    /// Bytes of DRAM.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(&*self.stripes) as u64
    }

    /// The directory in force. None in an index without segments.
    #[inline(always)]
    fn directory(&self) -> Option<Directory> {
        Directory::unpack(self.directory.load(Ordering::Acquire))
    }

    /// The lock of the segment at `at`.
    #[inline(always)]
    fn stripe(&self, at: u64) -> &Stripe {
        let mixed = (at / CACHE_LINE).wrapping_mul(FACTOR);
        &self.stripes[(mixed >> (u64::BITS - STRIPES.ilog2())) as usize]
    }

    #[inline(always)]
    fn slots(&self, at: u64) -> Slots<'_, P> {
        Slots::new(&self.pool, at, self.buckets)
    }

    /// Bytes of the buckets of a segment.
    fn slots_bytes(&self) -> u64 {
        u64::from(self.buckets) * CACHE_LINE
    }
}

#[cold]
fn damaged_directory(at: u64) -> Error {
    Error::corrupted("a word of the directory of the index is damaged", at)
}

#[cold]
fn damaged_segment(at: u64) -> Error {
    Error::corrupted("the header of a segment of the index is damaged", at)
}
