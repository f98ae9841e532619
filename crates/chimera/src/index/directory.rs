//! [`Directory`]: from the low bits of a hash to a segment. An index whose segments go by the high bits of a hash
//! gives it the hash with its bits reversed.
//!
//! It has 2^depth entries and doubles in place: the lower half is copied to the upper half, then
//! the mask grows. Nothing moves, so a thread that still uses the shorter mask reads entries
//! that are maintained like all others, and is at worst sent to the segment in which the key was before a
//! split. All changes happen under a growth lock of the table.

use crate::index::OutOfSpace;
use crate::sync::Arena;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Entries in the first chunk of memory.
const FIRST_ENTRIES: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Number of entries less one.
    mask: AtomicU64,
    entries: Arena<AtomicU32>,
}

impl Directory {
    /// One entry, for segment 0.
    pub(crate) fn new() -> Result<Self, OutOfSpace> {
        let directory = Self { mask: AtomicU64::new(0), entries: Arena::new(FIRST_ENTRIES, false) };
        directory.ensure_depth(0)?;
        Ok(directory)
    }

    /// The segment of a hash.
    #[inline(always)]
    pub(crate) fn segment_of(&self, hash: u64) -> u64 {
        // Acquire: the entries below a mask are written before it.
        let mask = self.mask.load(Ordering::Acquire);
        u64::from(self.entry(hash & mask).load(Ordering::Acquire))
    }

    /// log2 of the number of entries.
    pub(crate) fn depth(&self) -> u32 {
        self.mask.load(Ordering::Acquire).count_ones()
    }

    /// Makes room for 2^depth entries.
    pub(crate) fn ensure_depth(&self, depth: u32) -> Result<(), OutOfSpace> {
        self.entries.ensure(1 << depth).map_err(|_| OutOfSpace)
    }

    /// Doubles the number of entries, for which room was ensured.
    pub(crate) fn double(&self) {
        let entries = 1 << self.depth();
        for index in 0..entries {
            let segment = self.entry(index).load(Ordering::Relaxed);
            self.entry(entries + index).store(segment, Ordering::Relaxed);
        }
        self.mask.store(2 * entries - 1, Ordering::Release);
    }

    /// Points all entries that agree with `hash` in its lowest `depth` bits to `segment`.
    pub(crate) fn publish(&self, hash: u64, depth: u32, segment: u32) {
        let entries = 1u64 << self.depth();
        let stride = 1u64 << depth;
        let mut index = hash & (stride - 1);
        while index < entries {
            self.entry(index).store(segment, Ordering::Release);
            index += stride;
        }
    }

    /// Sets up 2^depth entries for segments of the same numbers. Only for the directory of a table
    /// with one segment.
    pub(crate) fn spread(&self, depth: u32) {
        for index in 0..1u32 << depth {
            self.entry(u64::from(index)).store(index, Ordering::Relaxed);
        }
        self.mask.store((1 << depth) - 1, Ordering::Release);
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> u64 {
        (1u64 << self.depth()) * size_of::<AtomicU32>() as u64
    }

    #[inline(always)]
    fn entry(&self, index: u64) -> &AtomicU32 {
        self.entries.get(index).expect("an entry that was ensured")
    }
}
