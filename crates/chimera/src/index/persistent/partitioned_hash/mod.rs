//! [`PartitionedHash`]: the point index of HiKV (ATC'17, sections 3.1 and 3.4.1): a hash table in persistent memory, partitioned by
//! the hash of the key.
//!
//! An entry is 16 bytes: the *signature* of a key, which is all 64 bits of its hash, and the *position* of its record.
//! The index knows no records. A lookup hands the positions of its signature to a closure of the caller, which answers
//! whether the record of its key lies there ([`Probe`]).
//!
//! # Structure
//! ```text
//! run of blocks   64 bytes of the pool | header line | bucket | bucket | ..
//! header line     [word of the segment: 8] [0: 56]
//! bucket          four entries of [signature: 8] [position: 8]: one cache line
//! ```
//! - A **partition** has the keys whose hashes begin with the same bits. Their number is fixed at creation.
//! - Each partition is an extendible hash of **segments** of a fixed size. A segment has the hashes that begin with its
//!   *prefix*: the bits of its partition and more. A partition without keys has no segment.
//! - Within a segment the low bits of a hash say which bucket is its *home*. An entry lies in the first free slot from
//!   there on, within a *window* of [`WINDOW_BUCKETS`](super::buckets::WINDOW_BUCKETS) buckets (MICA). Nothing is ever dropped: where the window is full
//!   the segment is split in two.
//! - The **directory** of all partitions is in DRAM, and is rebuilt from the headers of the segments.
//!
//! # Rules of a slot
//! See [`buckets`](super::buckets). A damaged slot is noticed, and a lookup that finds nothing in a window with a damaged slot
//! says so instead of "there is none".
//!
//! The paper changes an entry by one `cmpxchg16b`, so that readers, who take no lock, see both words or none of them.
//! That instruction is atomic for readers and not for power loss: either word may survive alone. Here an entry is two
//! stores of 8 bytes: the signature, then the position that publishes it. Both lie in one line, and stores to a line
//! become durable in their order. So after a crash the position is there only with its signature, and one flush and one
//! fence are enough, without an instruction that some processors lack. Readers need no 16 bytes at once either: they
//! validate the version of the segment.
//!
//! # Concurrency
//! A segment has a [`VersionLock`](crate::sync::VersionLock) in DRAM. Whoever changes an entry of it holds the lock until
//! the change is durable, so nobody sees an entry that a crash could take back. **Readers** take no lock: they read the
//! version, verify that the segment has the prefix of the hash, probe, ask their closure, and read the version again. If
//! it is the same, then what they found was so at one moment, the record included, provided that a record is not changed
//! and its place not used again before the index leads elsewhere.
//!
//! Locks are taken in the order: segment, then that of growth; one segment at a time. Closures of readers run outside of
//! all locks.
//!
//! # Growth
//! One segment is split at a time, under its lock; all others go on:
//! 1. a run is taken. Before it is taken it has a durable header, with a prefix that is one bit longer and ends with 1,
//!    the entries that move, each in the same slot, and the words of empty slots in all others;
//! 2. the word of the old segment is replaced by one with a prefix that is one bit longer and ends with 0; flush,
//!    *fence*. This publishes the split: the entries that moved are foreign in the old segment from now on;
//! 3. the directory leads to the new segment.
//!
//! *A crash before 2* leaves the old segment as it was, and a new one whose prefix the old one covers: recovery frees it.
//! *A crash after 2* leaves both in force.
//!
//! # Invariants
//! 1. No two segments in force have a hash in common, and those of a partition that has any cover all its hashes.
//! 2. A valid entry that is not foreign lies in the window of its signature.
//! 3. Entries, the segment's word and its numbers in DRAM change only under its lock.
//!
//! # Cost
//! An entry costs 1 line and 1 fence. A lookup that finds its key reads 1 to 2 lines on average, one that does not reads
//! the [`WINDOW_BUCKETS`](super::buckets::WINDOW_BUCKETS) of its window. A split costs a run (2 fences and the lines of a segment), 1 line and 1 fence.

mod changes;
mod growth;
mod listing;
mod lookup;
mod recovery;
mod segment;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Pmem};

pub(crate) use super::buckets::Batch;
use super::buckets::{self, Slots};
use crate::index::OutOfSpace;
use crate::index::directory::Directory;
use crate::pool::runs::Run;
use crate::pool::{BlockKind, Pool};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arena, VersionLock};
use crate::types::error::{Error, Result};
use segment::Segment;
pub(crate) use walk::{FoundSlot, Walk};

/// Where the index stores, flushes and fences.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// A new segment, before its run is taken.
        SEGMENT = "hash.segment";
        /// The word of a segment that was split.
        SPLIT = "hash.split", in_place;
        /// The segments that recovery found, written back once more.
        FOUND = "hash.found", may_be_clean;
    }
}

/// Most bits of a hash that choose a partition.
pub(crate) const PARTITION_BITS_MAX: u32 = 10;
/// Fewest bytes of a segment, with the pool's line and its own header: two buckets.
pub(crate) const SEGMENT_BYTES_MIN: u64 = 4 * CACHE_LINE;
/// Most bytes of a segment.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 1 << 20;
/// Descriptors of segments in the first chunk of memory.
const FIRST_SEGMENTS: usize = 16;

/// What is fixed when a store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HashShape {
    /// Leading bits of a hash that choose its partition.
    pub(crate) partition_bits: u32,
    /// Blocks of a segment.
    pub(crate) segment_blocks: u32,
}

/// The index. Any number of threads may call anything at any time, but for recovery. The caller keeps others from
/// changing the entry of a key while it does: by a lock of the key.
pub(crate) struct PartitionedHash<P: Pmem> {
    pool: Arc<Pool<P>>,
    kind: BlockKind,
    shape: HashShape,
    /// Buckets of a segment.
    buckets: u32,
    /// By the reversed hash: the number of the segment plus one; 0 for none.
    directory: Directory,
    segments: Arena<Segment>,
    /// Segments given out.
    count: AtomicU64,
    /// Held to give out a segment and to change the directory. Taken after the lock of a segment.
    growth: VersionLock,
    /// Runs that recovery found and did not arrange yet.
    found: Vec<Run>,
    /// What is damaged is passed over.
    salvages: bool,
}

impl<P: Pmem> PartitionedHash<P> {
    /// An index without segments, which takes runs of this kind.
    ///
    /// # Errors
    /// When there is no memory for the directory.
    pub(crate) fn new(
        pool: Arc<Pool<P>>,
        kind: BlockKind,
        shape: HashShape,
        salvages: bool,
    ) -> Result<Self> {
        let bytes = u64::from(shape.segment_blocks) * pool.map.block_bytes;
        let directory = Directory::new().map_err(no_memory)?;
        directory.ensure_depth(shape.partition_bits).map_err(no_memory)?;
        (0..shape.partition_bits).for_each(|_| directory.double());
        Ok(Self {
            pool,
            kind,
            shape,
            buckets: (bytes / CACHE_LINE - 2) as u32,
            directory,
            segments: Arena::new(FIRST_SEGMENTS, false),
            count: AtomicU64::new(0),
            growth: VersionLock::default(),
            found: Vec::new(),
            salvages,
        })
    }

    /// The number of entries; while others change the index, roughly.
    ///
    /// # Cost
    /// A load for each segment.
    pub(crate) fn len(&self) -> u64 {
        self.each_segment().map(|segment| u64::from(segment.entries())).sum()
    }

    /// Segments.
    pub(crate) fn segments(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Slots of each segment.
    pub(crate) fn slots_per_segment(&self) -> u32 {
        self.buckets * buckets::PER_BUCKET
    }

    /// log2 of the entries of the directory.
    pub(crate) fn directory_depth(&self) -> u32 {
        self.directory.depth()
    }

    /// Bytes of DRAM.
    pub(crate) fn bytes(&self) -> u64 {
        self.directory.bytes() + self.segments() * size_of::<Segment>() as u64
    }

    fn each_segment(&self) -> impl Iterator<Item = &Segment> {
        (0..self.segments()).map(|number| self.segment(number))
    }

    #[inline(always)]
    fn segment(&self, number: u64) -> &Segment {
        self.segments.get(number).expect("a segment that was given out")
    }

    /// The segment that the directory has for a hash. It may not cover the hash any more. None in a partition without
    /// segments.
    #[inline(always)]
    fn segment_of(&self, hash: u64) -> Option<&Segment> {
        let number = self.directory.segment_of(hash.reverse_bits());
        (number > 0).then(|| self.segment(number - 1))
    }

    #[inline(always)]
    fn slots(&self, segment: &Segment) -> Slots<'_, P> {
        self.slots_at(segment.at())
    }

    /// Of the segment whose header lies at `at`.
    #[inline(always)]
    fn slots_at(&self, at: u64) -> Slots<'_, P> {
        Slots::new(&self.pool, at, self.buckets)
    }
}

#[cold]
fn no_memory(_: OutOfSpace) -> Error {
    Error::no_memory("the directory of its index")
}
