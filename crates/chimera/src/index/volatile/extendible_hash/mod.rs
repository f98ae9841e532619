//! [`ExtendibleHash`]: a concurrent extendible hash table in DRAM, the "offset map" of Viper
//! (PVLDB'21, section 3.2.1).
//!
//! It maps the 64-bit hash of a key to the location of the key's record, in 16 bytes. Keys are not
//! stored: the hash serves as a fingerprint (as in section 3.2.1 for keys longer than 8 bytes), and
//! the caller compares keys where the record lies. It must be able to name any record with one
//! access to DRAM, grow without stopping the world, and stay out of the way of readers.
//!
//! # Structure
//! ```text
//!  directory              segments of 16 KiB, 256 buckets          bucket, one cache line
//!  hash & mask            two candidate buckets per hash
//!   00 ---------------->  [ bucket 0 | bucket 1 | ... ]   ------>  [ f f f f | l l l l ]
//!   01 ------------.                                                fingerprints, locations
//!   10 -----------. `-->  [ ... ]
//!   11 ----------. `--->  [ ... ]
//!                 `---->  [ ... ]                                  headers, apart: version, depth
//! ```
//! - The **directory** has 2^depth entries and is addressed by the low bits of the hash. A segment
//!   has a depth of its own: the number of low bits that its hashes have in common. All directory
//!   entries that agree in these bits lead to it.
//! - A **segment** that is full is split in two by its next bit. When the directory is not deep
//!   enough to tell the two apart it doubles, in place: the lower half is copied to the upper half.
//! - Within a segment the high bits of the hash choose two **buckets**. A new entry takes the first
//!   one (its home) if that has a free slot, else the second, else entries are displaced to their
//!   other buckets to make room (cuckoo hashing, a bounded breadth-first search). That is how a
//!   segment gets 0.946 full on average before it splits. After a split entries move home again, so
//!   that more than nine out of ten lookups read a single bucket.
//! - An entry for which there is no place, and splitting would not help, goes to the **overflow**, a plain
//!   map under a lock: more than eight keys of one hash, or hashes chosen to agree. It is empty, and
//!   costs a load when nothing is found, unless hashes are bad or memory has run out. It holds at
//!   most 72 entries of one hash, so that no set of keys makes lookups slow without bound.
//! - Segments are never merged or given back; a table shrinks when it is rebuilt.
//!
//! # Invariants
//! 1. Nothing moves in memory: directory, segments and headers only grow, in arenas. A segment number
//!    once read stays good to use.
//! 2. A slot is occupied exactly when its location is not zero. It changes its fingerprint only
//!    while empty, and its location to another non-zero one only for the same key.
//! 3. Slots, the header's numbers and the overflow entries of a segment's hashes change only under
//!    the lock of the segment; the directory and the number of segments only under the growth lock.
//! 4. Whenever no segment is locked, each entry is in one place: in one of the two buckets of its
//!    hash in the segment to which the directory leads, or in the overflow.
//! 5. An entry that is moved (displaced, moved home, split off) is copied first and removed from
//!    its old place afterwards. While it is in two segments, both are locked.
//! 6. Locks are taken in the order: segment, a segment with a higher number, growth or overflow.
//!    The second segment is always a new one that nobody else may hold before the directory leads
//!    there, so there is no cycle. Closures of the caller run outside of all locks, except
//!    those of [`ExtendibleHash::upsert_with`] and of the changes named `.._after`, which run with the
//!    segment locked and must not use the table.
//!
//! # Protocol
//! **Writers** read the directory, lock the segment by making its version odd, and read the
//! directory again: if the segment was split first they begin anew, otherwise the directory cannot
//! turn away from the segment while they hold its lock (invariant 3). They release it by making the
//! version even again, two higher than it was, also when a closure panics.
//!
//! **Readers** make a short attempt first: directory, home bucket, second bucket, proposing the
//! location of each matching fingerprint to the caller. If the caller finds the record of its key
//! there, the lookup is over. This needs no agreement with any writer, because what makes the answer
//! right is the record: it held the key and was live at that moment. The two words of a slot may
//! have been read around a change, the segment may be the wrong one; then a wrong location is
//! proposed and rejected, or the right one is not proposed.
//!
//! Everything else, that is finding nothing or only records of other keys, proves nothing yet. The
//! lookup is repeated as an observation: read the version `v` of the segment, which must be even;
//! read the directory again, which must still lead here; probe both buckets and the overflow; read
//! the version again, which must still be `v`. Then, and only then, there is no entry that the
//! caller would accept. *Proof.* Words are stored with release and loaded with acquire order. If the
//! second reading of the version gives `v`, no load in between saw a store of a writer that locked
//! after `v`: the version had become odd before that store, so seeing the store would mean seeing
//! the version changed. And all that writers did before `v` was seen, because `v` was loaded with
//! acquire order: their changes of slots, and of the directory by a split of this segment, which is
//! therefore noticed by the second reading of the directory. So the loads saw the segment as it was
//! at the moment `v` was read, unlocked and responsible for the hash, and by invariant 4 the entry
//! would have been among them. The same holds for what the caller's closure saw of records, provided
//! a record that was replaced is retired only after the table was changed: that is why a location
//! whose record turns out to be dead may be answered with `NotThis`. ∎
//!
//! **Splits** lock the segment, fill a new one that nobody knows with copies of the entries whose next
//! bit is set, point the directory there, and only then remove those entries from the old segment.
//! A reader that still goes to the old segment finds its entry there, or misses it and observes: the
//! old segment's version is odd until the end, and then the directory leads to the new one. Segments split
//! independently of each other; only giving out a number and the directory are under the growth
//! lock. **Doubling** writes the upper half before the mask; a thread with the old mask reads entries
//! of the lower half, which stay maintained and lead to where the key is or was before a split.
//!
//! Readers never wait for each other. A lookup that cannot be answered at the first attempt waits
//! while a writer is at the segment: some 200 ns with a flush and a fence, or 20 us while it splits.
//!
//! # Cost
//! | | cache lines beside the directory entry |
//! | --- | --- |
//! | found | 1, sometimes 2 |
//! | not found | 2 and the header |
//! | swap, remove | 1, sometimes 2, and the header |
//! | insert | the same; with both buckets full 5 to 70 more |
//! | split, once for 480 inserts | two segments of 16 KiB |
//!
//! Directory and headers take 20 bytes for each segment and stay in the processor's caches: 300 KiB
//! for 10 million keys.
//!
//! DRAM per key is 16 bytes over the load. A segment splits when 0.946 full and is half as full
//! afterwards, so it takes 16.9 to 33.8 bytes per key, and 16 / (0.946 ln 2) = 24.4 on average over
//! all table sizes; with segments kept ready and all the rest 24.8 was measured from 1 to 50 million
//! keys, never more than 32. (Viper reports 23 to 24 for its table.)

mod bucket;
mod changes;
mod displacement;
mod geometry;
mod growth;
mod header;
mod listing;
mod lookup;
#[cfg(all(test, loom))]
mod models;
mod overflow;
#[cfg(test)]
mod single;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use chimera_pmem::Environment;

pub(crate) use self::bucket::Found;
use self::bucket::{Bucket, Line, Slots};
pub(crate) use self::geometry::HashGeometry;
use self::growth::Growth;
use self::header::SegmentHeader;
pub(crate) use self::listing::position_of;
pub(crate) use self::lookup::Glance;
use self::overflow::Overflow;
use crate::index::OutOfSpace;
use crate::index::directory::Directory;
use crate::sync::{Arena, VersionGuard};

/// Lines that small tables have without a system call: 4 KiB. The heap has a whole number of segments.
const FIRST_LINES: usize = 64;
/// Headers in the first chunk of memory.
const FIRST_HEADERS: usize = 16;

/// A concurrent extendible hash table from 64-bit hashes to locations.
///
/// Any number of threads may call anything at any time. The caller makes sure that no two entries
/// have the same hash and location, and that each key is entered once: by holding a lock of the key
/// from finding it absent to [`insert_after`](Self::insert_after), or by [`upsert_with`](Self::upsert_with).
pub(crate) struct ExtendibleHash {
    geometry: HashGeometry,
    directory: Directory,
    lines: Arena<Line>,
    headers: Arena<SegmentHeader>,
    overflow: Overflow,
    growth: Growth,
    environment: Arc<dyn Environment>,
}

/// How a table has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Segments given out.
    pub segments: u64,
    /// Slots of each.
    pub slots_per_segment: u32,
    /// log2 of the entries of the directory.
    pub directory_depth: u32,
    /// Entries that have no place in their segment.
    pub overflow: u64,
}

/// A segment whose lock is held.
struct LockedSegment<'a> {
    table: &'a ExtendibleHash,
    segment: u64,
    header: &'a SegmentHeader,
    _guard: VersionGuard<'a>,
}

impl<'a> LockedSegment<'a> {
    #[inline(always)]
    fn slots(&self) -> Slots<'a> {
        self.table.slots(self.segment)
    }
}

/// What a reader remembers to tell later whether anything has changed.
struct Observed<'a> {
    header: &'a SegmentHeader,
    slots: Slots<'a>,
    version: u64,
}

impl Observed<'_> {
    #[inline]
    fn is_unchanged(&self) -> bool {
        self.header.lock.read_is_valid(self.version)
    }
}

impl ExtendibleHash {
    /// An empty table. `huge_pages` asks the system for 2 MiB pages once the table is that large: fewer
    /// address-translation misses, for up to 2 MiB of memory not needed yet.
    ///
    /// # Errors
    /// When there is no memory for the first segment.
    ///
    /// # Cost
    /// One segment and some 3 KiB.
    pub(crate) fn new(
        geometry: HashGeometry,
        huge_pages: bool,
        environment: Arc<dyn Environment>,
    ) -> Result<Self, OutOfSpace> {
        let table = Self {
            geometry,
            directory: Directory::new()?,
            lines: Arena::new((geometry.buckets() as usize).max(FIRST_LINES), huge_pages),
            headers: Arena::new(FIRST_HEADERS, false),
            overflow: Overflow::default(),
            growth: Growth::default(),
            environment,
        };
        table.grow_first()?;
        Ok(table)
    }

    /// The number of entries; while others change the table, roughly.
    ///
    /// # Cost
    /// 16 bytes read for each segment, that is for some 700 entries.
    pub(crate) fn len(&self) -> u64 {
        let segments = (0..self.growth.segments()).map(|number| self.header(number));
        segments.map(|header| u64::from(header.entries())).sum::<u64>() + self.overflow.len()
    }

    /// Bytes of memory in use: segments, their headers and the directory.
    pub(crate) fn bytes(&self) -> u64 {
        let lines = self.lines.count() * size_of::<Line>() as u64;
        let headers = self.headers.count() * size_of::<SegmentHeader>() as u64;
        lines + headers + self.directory.bytes() + self.overflow.bytes()
    }

    /// How the table has grown.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            segments: self.growth.segments(),
            slots_per_segment: self.geometry.slots_per_segment(),
            directory_depth: self.directory.depth(),
            overflow: self.overflow.len(),
        }
    }

    #[inline(always)]
    fn slots(&self, segment: u64) -> Slots<'_> {
        Slots::new(&self.lines, self.geometry, segment)
    }

    #[inline(always)]
    fn header(&self, segment: u64) -> &SegmentHeader {
        self.headers.get(segment).expect("a segment that was ensured")
    }

    /// Locks the segment that `hash` belongs to.
    #[inline]
    fn lock(&self, hash: u64) -> LockedSegment<'_> {
        loop {
            let segment = self.directory.segment_of(hash);
            // The bucket is needed next; it need not wait for the header.
            Bucket::of(&self.lines, self.geometry, segment, self.geometry.home(hash)).prefetch();
            let locked = self.lock_segment(segment);
            // A split may have come first. With the lock held the directory keeps pointing here.
            if self.directory.segment_of(hash) == segment {
                return locked;
            }
        }
    }

    #[inline]
    fn lock_segment(&self, segment: u64) -> LockedSegment<'_> {
        let header = self.header(segment);
        let guard = header.lock.lock(&*self.environment);
        LockedSegment { table: self, segment, header, _guard: guard }
    }

    /// The segment `hash` belongs to, with its version. `None` while a writer is at it, or when it
    /// has just been split.
    #[inline]
    fn observe(&self, hash: u64) -> Option<Observed<'_>> {
        self.observe_in(self.directory.segment_of(hash), hash)
    }

    /// As `observe`, for the segment that `hash` belonged to a moment ago.
    #[inline]
    fn observe_in(&self, segment: u64, hash: u64) -> Option<Observed<'_>> {
        let header = self.header(segment);
        let version = header.lock.read_begin()?;
        // Not before the version: a split that this version tells nothing about must be seen here.
        let still_here = self.directory.segment_of(hash) == segment;
        still_here.then(|| Observed { header, slots: self.slots(segment), version })
    }
}

impl fmt::Debug for ExtendibleHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtendibleHash")
            .field("geometry", &self.geometry)
            .field("segments", &self.growth.segments())
            .field("directory_depth", &self.directory.depth())
            .finish_non_exhaustive()
    }
}
