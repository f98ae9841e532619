//! [`CacheModel`]: which lines a modelled processor cache holds.
//!
//! Whether a load misses is decided here and not by the machine, so that counts and injected latency
//! are the same everywhere. One set-associative cache with true LRU order per set stands for all
//! levels together and is shared by all threads, as a last-level cache is; DRAM does not compete for
//! it. A line's set is its number modulo the number of sets, a power of two. Lines are stored to in the cache
//! (write-allocate, write-back); copies past the cache drop the line from it.

use std::ops::Range;
use std::sync::Mutex;

use super::lock;
use crate::CACHE_LINE;

/// Parameters of the cache model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CacheParameters {
    /// Capacity in bytes, rounded down to a power of two of sets. Default 32 MiB, a server's last-level
    /// cache. A smaller one makes more reads miss and writes unflushed lines back sooner.
    pub bytes: u64,
    /// Lines per set. Default 16. Fewer means more conflicts.
    pub ways: u32,
    /// Whether a flushed line stays cached. Default true, as CLWB is defined; false is CLFLUSHOPT,
    /// and CLWB as the first processors with persistent memory (Cascade Lake) carried it out: the
    /// next access to a flushed line then misses.
    pub flush_keeps_line: bool,
}

impl Default for CacheParameters {
    fn default() -> Self {
        Self { bytes: 32 << 20, ways: 16, flush_keeps_line: true }
    }
}

/// What a touch of a line found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    /// The line was there.
    pub(super) hit: bool,
    /// The dirty line that had to make room and so was written back.
    pub(super) evicted: Option<u64>,
}

/// Locks that the sets are spread over, at most; neighbouring sets share one.
const SHARDS_MAX: u64 = 64;

/// The cache. Thread-safe: sets are spread over locks.
#[derive(Debug)]
pub(super) struct CacheModel {
    shards: Vec<Mutex<Vec<Entry>>>,
    /// log2 of the number of sets.
    sets_bits: u32,
    /// log2 of the number of sets in a shard.
    shard_bits: u32,
    ways: usize,
    flush_keeps_line: bool,
}

/// A line of a set: its number without the bits that say which set, plus 1, and whether it is dirty.
/// 0 is empty. Each set is kept in order of use. A set of 16 fits a cache line of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(u32);

impl Entry {
    const EMPTY: Self = Self(0);

    fn new(tag: u32, dirty: bool) -> Self {
        Self((tag + 1) << 1 | u32::from(dirty))
    }

    fn holds(self, tag: u32) -> bool {
        self.0 >> 1 == tag + 1
    }

    fn tag(self) -> Option<u32> {
        (self.0 >> 1).checked_sub(1)
    }

    fn dirty(self) -> bool {
        self.0 & 1 == 1
    }
}

impl CacheModel {
    pub(super) fn new(parameters: CacheParameters) -> Self {
        let ways = u64::from(parameters.ways);
        assert!(ways > 0, "the cache model needs at least one way");
        let sets = parameters.bytes / (CACHE_LINE * ways);
        assert!(sets > 0, "the cache model needs room for at least one set of lines");
        let sets_bits = sets.ilog2();
        let shards = (1 << sets_bits).min(SHARDS_MAX);
        let shard_bits = sets_bits - shards.ilog2();
        let shard = || Mutex::new(vec![Entry::EMPTY; (ways << shard_bits) as usize]);
        Self {
            shards: (0..shards).map(|_| shard()).collect(),
            sets_bits,
            shard_bits,
            ways: ways as usize,
            flush_keeps_line: parameters.flush_keeps_line,
        }
    }

    /// Lines it has room for.
    fn capacity(&self) -> u64 {
        (self.ways as u64) << self.sets_bits
    }

    /// Runs `work` with a line's set and its tag in there.
    fn in_set<R>(&self, line: u64, work: impl FnOnce(&mut [Entry], u32) -> R) -> R {
        let set = line & ((1 << self.sets_bits) - 1);
        let tag = u32::try_from(line >> self.sets_bits).ok().filter(|tag| *tag < u32::MAX >> 1);
        let tag = tag.expect("the cache model is too small for a pool of this size");
        let mut shard = lock(&self.shards[(set >> self.shard_bits) as usize]);
        let first = (set & ((1 << self.shard_bits) - 1)) as usize * self.ways;
        work(&mut shard[first..first + self.ways], tag)
    }

    /// The line of set `set` with tag `tag`.
    fn line(&self, set: u64, tag: u32) -> u64 {
        u64::from(tag) << self.sets_bits | set
    }

    /// Uses a line: brings it in if missing, makes it the most recently used one, and dirty if it is
    /// stored to.
    pub(super) fn touch(&self, line: u64, store: bool) -> Touch {
        let (hit, evicted) = self.in_set(line, |set, tag| {
            if let Some(at) = set.iter().position(|entry| entry.holds(tag)) {
                let dirty = set[at].dirty() || store;
                set.copy_within(0..at, 1);
                set[0] = Entry::new(tag, dirty);
                return (true, None);
            }
            let last = set[set.len() - 1];
            set.copy_within(0..set.len() - 1, 1);
            set[0] = Entry::new(tag, store);
            (false, last.tag().filter(|_| last.dirty()))
        });
        let set = line & ((1 << self.sets_bits) - 1);
        Touch { hit, evicted: evicted.map(|tag| self.line(set, tag)) }
    }

    /// Flushes a line; true when it was dirty and so is written back. Its place in the order of use
    /// does not change.
    pub(super) fn flush(&self, line: u64) -> bool {
        let keeps = self.flush_keeps_line;
        self.in_set(line, |set, tag| {
            let Some(at) = set.iter().position(|entry| entry.holds(tag)) else { return false };
            let dirty = set[at].dirty();
            if keeps {
                set[at] = Entry::new(tag, false);
            } else {
                remove(set, at);
            }
            dirty
        })
    }

    /// Drops a line without writing it back: it was overwritten past the cache.
    pub(super) fn forget(&self, line: u64) {
        self.in_set(line, |set, tag| {
            if let Some(at) = set.iter().position(|entry| entry.holds(tag)) {
                remove(set, at);
            }
        });
    }

    /// Drops a range of lines without writing them back.
    pub(super) fn forget_all(&self, lines: Range<u64>) {
        if lines.end - lines.start <= self.capacity() {
            lines.for_each(|line| self.forget(line));
        } else {
            self.drain(&|line| lines.contains(&line));
        }
    }

    /// Empties the cache; the dirty lines, in ascending order, are written back.
    pub(super) fn clear(&self) -> Vec<u64> {
        self.drain(&|_| true)
    }

    fn drain(&self, which: &dyn Fn(u64) -> bool) -> Vec<u64> {
        let mut dirty = Vec::new();
        for (shard, sets) in self.shards.iter().enumerate() {
            for (set, entries) in lock(sets).chunks_mut(self.ways).enumerate() {
                let set = (shard as u64) << self.shard_bits | set as u64;
                for at in (0..entries.len()).rev() {
                    let entry = entries[at];
                    let line = entry.tag().map(|tag| self.line(set, tag));
                    let Some(line) = line.filter(|line| which(*line)) else { continue };
                    remove(entries, at);
                    dirty.extend(entry.dirty().then_some(line));
                }
            }
        }
        dirty.sort_unstable();
        dirty
    }
}

/// Takes one entry out of a set; the emptied place becomes the first to be used again.
fn remove(set: &mut [Entry], at: usize) {
    set.copy_within(at + 1.., at);
    set[set.len() - 1] = Entry::EMPTY;
}
