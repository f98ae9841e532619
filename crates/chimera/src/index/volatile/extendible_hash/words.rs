//! [`Words`]: where the slots of a table live.

use chimera_pmem::prefetch_read;

use super::HashGeometry;
use super::bucket::BUCKET_WORDS;
use crate::index::OutOfSpace;
use crate::sync::Arena;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Storage of one table's slots: segments of cache lines of eight 8-byte words.
///
/// A segment starts as zeros and never moves. Every segment and line that is passed in has been
/// ensured before.
pub trait Words: Send + Sync {
    /// Where a line is, found once for several accesses to its words.
    type Line<'a>: Copy
    where
        Self: 'a;

    /// Makes segments `0..count` usable, filled with zeros where they are new. Calls do not overlap.
    ///
    /// # Errors
    /// When there is no space. What was usable stays.
    fn ensure_segments(&self, count: u64) -> Result<(), OutOfSpace>;

    /// The line with this number in a segment.
    fn line(&self, segment: u64, number: u32) -> Self::Line<'_>;

    /// Loads a word (Acquire).
    fn load(&self, line: Self::Line<'_>, word: u32) -> u64;

    /// Stores a word (Release).
    fn store(&self, line: Self::Line<'_>, word: u32, value: u64);

    /// Starts loading a line.
    fn prefetch(&self, line: Self::Line<'_>);

    /// Makes a line durable, where that means something. Nothing in DRAM.
    fn persist(&self, line: Self::Line<'_>);

    /// Makes all lines of a segment durable, where that means something. Nothing in DRAM.
    fn persist_segment(&self, segment: u64);

    /// Bytes of all segments made usable so far.
    fn bytes(&self) -> u64;
}

/// A cache line of words.
#[derive(Debug)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(64))]
pub struct Line([AtomicU64; BUCKET_WORDS as usize]);

/// Lines that small tables have without a system call: 4 KiB.
const FIRST_LINES: usize = 64;

/// Words in DRAM.
#[derive(Debug)]
pub struct DramWords {
    lines: Arena<Line>,
    geometry: HashGeometry,
}

impl DramWords {
    /// No segments yet. `huge_pages` asks the system for 2 MiB pages once the table is that large:
    /// fewer address-translation misses, for up to 2 MiB of memory not needed yet.
    pub fn new(geometry: HashGeometry, huge_pages: bool) -> Self {
        Self {
            lines: Arena::new((geometry.buckets() as usize).max(FIRST_LINES), huge_pages),
            geometry,
        }
    }
}

impl Words for DramWords {
    type Line<'a> = &'a Line;

    fn ensure_segments(&self, count: u64) -> Result<(), OutOfSpace> {
        let lines = count.checked_mul(u64::from(self.geometry.buckets())).ok_or(OutOfSpace)?;
        self.lines.ensure(lines).map_err(|_| OutOfSpace)
    }

    #[inline(always)]
    fn line(&self, segment: u64, number: u32) -> &Line {
        let index = (segment << self.geometry.bucket_bits()) | u64::from(number);
        self.lines.get(index).expect("a segment that was ensured")
    }

    #[inline(always)]
    fn load(&self, line: &Line, word: u32) -> u64 {
        line.0[word as usize].load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store(&self, line: &Line, word: u32, value: u64) {
        line.0[word as usize].store(value, Ordering::Release);
    }

    #[inline(always)]
    fn prefetch(&self, line: &Line) {
        prefetch_read(line);
    }

    #[inline(always)]
    fn persist(&self, _line: &Line) {}

    #[inline(always)]
    fn persist_segment(&self, _segment: u64) {}

    fn bytes(&self) -> u64 {
        self.lines.count() * size_of::<Line>() as u64
    }
}
