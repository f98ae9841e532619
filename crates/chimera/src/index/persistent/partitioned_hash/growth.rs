//! Growth: the first segment of a partition, and splits. docs/DURABILITY.md has what a crash in each step leaves.
//!
//! The next opening frees a segment that a crash leaves beside the one that covers it, before the store serves anybody. A later
//! split of the old segment would make another segment with the same prefix. An entry that moved stays in the old segment and
//! is foreign there. It may be out of date. That makes no difference: a foreign entry is never read, and prefixes never become
//! shorter.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::changes::LockedSegment;
use super::{PartitionedHash, no_memory, sites};
use crate::index::OutOfSpace;
use crate::index::persistent::buckets::{DEPTH_MAX, Image, Prefix};
use crate::pool::runs::Run;
use crate::sync::atomic::Ordering;
use crate::types::error::{Error, Result};

/// A directory up to this size, or of so many entries for each segment or partition, may double whenever a split wants
/// it to. Hashes that agree in their leading bits would double a larger one for ever.
const DIRECTORY_ALWAYS_MAX: u64 = 64;
const DIRECTORY_ENTRIES_PER_SEGMENT_MAX: u64 = 16;

impl<P: Pmem> PartitionedHash<P> {
    /// Makes room for an entry of `hash` where there is none: splits a segment, or takes the first one of a partition.
    /// The window may still be full afterwards, where all its entries went to the same half: to be called again.
    ///
    /// # Errors
    /// `PoolFull`, with nothing changed. `KeyCollisions` when so many hashes are alike that splitting does not help.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the segment whole or split.
    ///
    /// # Cost
    /// What a run costs, with the lines of a segment, and 1 line and 1 fence.
    pub(crate) fn make_room(&self, hash: u64) -> Result<()> {
        let Some(locked) = self.lock(hash) else { return self.begin_partition(hash) };
        let prefix = locked.segment.prefix();
        if self.slots(locked.segment).free_slot(hash, prefix).is_some() {
            return Ok(());
        }
        self.split(&locked, prefix)
    }

    /// Takes the first segment of the partition of a hash, unless there is one.
    fn begin_partition(&self, hash: u64) -> Result<()> {
        let _growth = self.growth.lock(&*self.pool.environment);
        if self.segment_of(hash).is_some() {
            return Ok(());
        }
        let depth = self.shape.partition_bits;
        let prefix = hash.checked_shr(u64::BITS - depth).unwrap_or(0);
        let prefix = Prefix { prefix, depth };
        self.ensure_segment(self.segments() + 1)?;
        let run = self.take_segment(prefix, &self.slots_at(0).none())?;
        self.give_out(&run, prefix, 0, self.buckets);
        Ok(())
    }

    /// Splits a segment in two by the next bit of its hashes.
    fn split(&self, old: &LockedSegment<'_>, prefix: Prefix) -> Result<()> {
        self.ensure_deeper(prefix)?;
        let (slots, upper) = (self.slots(old.segment), prefix.half(1));
        let image = slots.half(upper);
        let moved = image.entries();
        let run = self.take_segment(upper, &image)?;
        let new = self.pool.run_bytes(&run);
        let (at, lower) = (old.segment.at(), prefix.half(0));
        self.pool.pmem.publish(at, lower.encode(at), &[new], sites::SPLIT);
        self.pool.pmem.flush(self.pool.extent(at, 8), sites::SPLIT);
        self.pool.pmem.fence(sites::SPLIT);
        let growth = self.growth.lock(&*self.pool.environment);
        // An entry stays in its slot: what of the old one was walked is walked in the new one.
        self.give_out(&run, upper, moved, old.segment.walked());
        drop(growth);
        old.segment.set_prefix(lower);
        old.segment.set_entries(old.segment.entries().saturating_sub(moved));
        Ok(())
    }

    /// Takes a run with the header and the slots of a segment, durably.
    fn take_segment(&self, prefix: Prefix, image: &Image) -> Result<Run> {
        let pool = &self.pool;
        pool.take_run(self.kind, self.shape.segment_blocks, |bytes| {
            let at = bytes.offset();
            pool.pmem.zero(pool.extent(at, CACHE_LINE), sites::SEGMENT);
            pool.pmem.store_u64(at, prefix.encode(at), sites::SEGMENT);
            pool.pmem.flush(pool.extent(at, CACHE_LINE), sites::SEGMENT);
            self.slots_at(at).store(image, sites::SEGMENT);
        })
    }

    /// Gives a number to a segment in force, and leads the directory there. Under the growth lock.
    fn give_out(&self, run: &Run, prefix: Prefix, entries: u32, walked: u32) {
        let number = self.segments();
        let segment = self.segments.get(number).expect("memory that was ensured");
        segment.begin(self.pool.run_bytes(run).offset(), prefix, entries, walked);
        self.count.store(number + 1, Ordering::Release);
        self.publish(prefix, number);
    }

    /// Leads the directory, which is deep enough or is ensured to become so, to a segment.
    pub(super) fn publish(&self, prefix: Prefix, number: u64) {
        while self.directory.depth() < prefix.depth {
            self.directory.double();
        }
        let (first, _) = prefix.range();
        self.directory.publish(first.reverse_bits(), prefix.depth, number as u32 + 1);
    }

    /// Makes sure that there is memory for a split, and for the directory to tell the two halves apart.
    fn ensure_deeper(&self, prefix: Prefix) -> Result<()> {
        let _growth = self.growth.lock(&*self.pool.environment);
        if prefix.depth == self.directory.depth() {
            if prefix.depth == DEPTH_MAX || 2 << prefix.depth > self.directory_max() {
                return Err(Error::KeyCollisions);
            }
            self.directory.ensure_depth(prefix.depth + 1).map_err(no_memory)?;
        }
        // Others may split at the same time.
        self.ensure_segment(self.segments() + SPLITS_AT_ONCE_MAX)
    }

    /// Most entries that the directory may have.
    pub(super) fn directory_max(&self) -> u64 {
        let segments = self.segments().max(1 << self.shape.partition_bits);
        (DIRECTORY_ENTRIES_PER_SEGMENT_MAX * segments).max(DIRECTORY_ALWAYS_MAX)
    }

    /// Memory for so many segments.
    pub(super) fn ensure_segment(&self, count: u64) -> Result<()> {
        let is_possible = count < u64::from(u32::MAX);
        let ensured = is_possible.then(|| self.segments.ensure(count)).transpose();
        ensured.ok().flatten().ok_or_else(|| no_memory(OutOfSpace))
    }
}

/// Threads that may split segments at the same time: more than there are.
const SPLITS_AT_ONCE_MAX: u64 = 4096;
