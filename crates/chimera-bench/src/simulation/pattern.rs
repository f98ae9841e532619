//! [`Pattern`]: which lines a thread touches next.

use std::ops::Range;

use super::LINE;
use crate::workload::random::Random;

/// Where threads are spread over: far more than any buffer holds.
const SPACE_BYTES: u64 = 16 << 30;
/// Region of a thread, or of a log file, in the published measurement (Viper, PVLDB 2021, section 3.1).
const REGION_BYTES: u64 = 1 << 30;

/// Which lines a thread touches next.
pub(crate) trait Pattern {
    /// The lines of the next operation of a thread.
    fn next(&mut self, thread: usize, random: &mut Random) -> Range<u64>;
}

/// So many bytes anywhere, beginning at a multiple of 256 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uniform {
    pub(crate) bytes: u64,
}

impl Pattern for Uniform {
    fn next(&mut self, _: usize, random: &mut Random) -> Range<u64> {
        let first = random.below(SPACE_BYTES / 256) * 256 / LINE;
        first..first + self.bytes / LINE
    }
}

/// Log files that are written one line after the other, each by as many threads. The threads of one log take turns.
#[derive(Debug)]
pub(crate) struct Logs {
    /// The next line of each.
    next: Vec<u64>,
}

impl Logs {
    /// So many log files, which begin at any page of their regions.
    pub(crate) fn new(logs: usize, random: &mut Random) -> Self {
        let pages = REGION_BYTES / 4096 / 2;
        let first = |log: usize| (log as u64 * REGION_BYTES + random.below(pages) * 4096) / LINE;
        Self { next: (0..logs).map(first).collect() }
    }
}

impl Pattern for Logs {
    fn next(&mut self, thread: usize, _: &mut Random) -> Range<u64> {
        let log = thread % self.next.len();
        let first = self.next[log];
        self.next[log] += 1;
        first..first + 1
    }
}

/// Chunks of 4 KiB, one after the other in a region of each thread, that begin so many bytes behind a multiple of 4 KiB.
#[derive(Debug)]
pub(crate) struct Chunks {
    next: Vec<u64>,
}

impl Chunks {
    /// One region for each thread.
    pub(crate) fn new(threads: usize, offset_bytes: u64, random: &mut Random) -> Self {
        let Logs { next } = Logs::new(threads, random);
        Self { next: next.into_iter().map(|line| line + offset_bytes / LINE).collect() }
    }
}

impl Pattern for Chunks {
    fn next(&mut self, thread: usize, _: &mut Random) -> Range<u64> {
        let first = self.next[thread];
        self.next[thread] += 4096 / LINE;
        first..first + 4096 / LINE
    }
}
