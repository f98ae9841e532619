//! [`ReadModel`]: reads of memory that lies behind a modelled device, and that no backend of ours carries out.
//!
//! [`Instrumented`](super::Instrumented) charges what goes through the seam. Software that reads memory through pointers of its
//! own, such as a block cache, has no seam. Its owner says here what was read, and the calling thread waits as long as the
//! device would have taken.
//!
//! # Rules
//! - A read fetches each media unit that it touches once. With a modelled processor cache, only lines that the cache does not
//!   have are fetched.
//! - Fetches of one read overlap. Each begins when the media is free. The first one decides the latency: *sequential* if it is
//!   the unit that this thread fetched last or next to it, else *random*. A read ends when its last fetch has begun and the
//!   latency has passed.
//! - Stores wait for nothing. Lines that are stored to are in the modelled processor cache from then on.
//!
//! # Thread safety
//! All of it may be used from any number of threads, which share the device.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cache::{CacheModel, CacheParameters};
use super::clock;
use super::counters::OperationCounters;
use super::device::{Device, DeviceParameters, Timing};
use super::pace::PS;
use crate::CACHE_LINE;

thread_local! {
    /// The unit that this thread fetched last.
    static LAST_UNIT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// What was read through a [`ReadModel`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ReadCounts {
    /// Calls.
    pub reads: u64,
    /// Calls that had to fetch.
    pub reads_fetching: u64,
    /// Units that the media read. Further lines of a unit come from the device's read buffer.
    pub media_reads: u64,
    /// Latency charged, in nanoseconds, without waits for the media.
    pub latency_ns: u64,
    /// What threads were made to wait beyond the time that the call took by itself, in nanoseconds. Depends on the machine.
    pub waited_ns: u64,
}

/// A device that is only read.
#[derive(Debug)]
pub struct ReadModel {
    device: Device,
    cache: Option<CacheModel>,
    reads: AtomicU64,
    fetching: AtomicU64,
    media_reads: AtomicU64,
    latency_ns: AtomicU64,
    waited_ns: AtomicU64,
}

impl ReadModel {
    /// A device with empty buffers, behind a modelled processor cache or, with `None`, behind none: then every read fetches.
    ///
    /// # Panics
    /// When the parameters make no sense, as their documentation says.
    #[must_use]
    pub fn new(device: DeviceParameters, cache: Option<CacheParameters>) -> Self {
        if device.timing.is_some() {
            // The first use of the clock takes milliseconds; not in a read.
            clock::now_ns();
        }
        Self {
            device: Device::new(device),
            cache: cache.map(CacheModel::new),
            reads: AtomicU64::new(0),
            fetching: AtomicU64::new(0),
            media_reads: AtomicU64::new(0),
            latency_ns: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// How the device is built.
    pub fn device(&self) -> &DeviceParameters {
        self.device.parameters()
    }

    /// Reads `length` bytes from offset `at` of the device, and waits as long as that takes.
    ///
    /// # Cost
    /// Without a modelled processor cache about 50 ns for each unit, which are part of what is waited; with one about 50 ns for
    /// each line.
    pub fn read(&self, at: u64, length: u64) {
        if length == 0 {
            return;
        }
        let timing = self.device().timing;
        let start_ns = if timing.is_some() { clock::now_ns() } else { 0 };
        self.reads.fetch_add(1, Ordering::Relaxed);
        let Some(fetched) = self.fetch(at, length, start_ns * PS) else { return };
        self.fetching.fetch_add(1, Ordering::Relaxed);
        self.media_reads.fetch_add(fetched.media_reads, Ordering::Relaxed);
        let last = LAST_UNIT.replace(Some(fetched.last));
        let Some(timing) = timing else { return };
        let latency_ns = latency_ns(&timing, last, fetched.first);
        let until_ns = fetched.begun_ps / PS + latency_ns;
        // What has passed since the beginning is no waiting: the machine may have run another thread meanwhile.
        let wait_ns = until_ns.saturating_sub(clock::now_ns());
        clock::wait_until(until_ns);
        self.latency_ns.fetch_add(latency_ns, Ordering::Relaxed);
        self.waited_ns.fetch_add(wait_ns, Ordering::Relaxed);
    }

    /// Says that `length` bytes from offset `at` were stored: the modelled processor cache has them now. Waits for nothing.
    pub fn stored(&self, at: u64, length: u64) {
        let Some(cache) = &self.cache else { return };
        for line in lines(at, length) {
            cache.touch(line, false);
        }
    }

    /// Everything read so far.
    pub fn counts(&self) -> ReadCounts {
        ReadCounts {
            reads: self.reads.load(Ordering::Relaxed),
            reads_fetching: self.fetching.load(Ordering::Relaxed),
            media_reads: self.media_reads.load(Ordering::Relaxed),
            latency_ns: self.latency_ns.load(Ordering::Relaxed),
            waited_ns: self.waited_ns.load(Ordering::Relaxed),
        }
    }

    /// Fetches what a read misses; nothing when the processor cache has all of it.
    fn fetch(&self, at: u64, length: u64, now_ps: u64) -> Option<Fetched> {
        let unit_bytes = self.device().xpline_bytes;
        let mut counters = OperationCounters::default();
        let mut fetched: Option<Fetched> = None;
        let mut take = |line: u64| {
            let unit = line * CACHE_LINE / unit_bytes;
            if fetched.as_ref().is_some_and(|fetched| fetched.last == unit) {
                return;
            }
            let begun_ps = self.device.read(line, now_ps, &mut counters).at_ps;
            let so_far = fetched.get_or_insert(Fetched {
                first: unit,
                last: unit,
                begun_ps,
                media_reads: 0,
            });
            so_far.last = unit;
            so_far.begun_ps = so_far.begun_ps.max(begun_ps);
        };
        match &self.cache {
            None => {
                let units = at / unit_bytes..=(at + length - 1) / unit_bytes;
                units.for_each(|unit| take(unit * unit_bytes / CACHE_LINE));
            }
            Some(cache) => {
                lines(at, length).filter(|line| !cache.touch(*line, false).hit).for_each(take);
            }
        }
        fetched.map(|fetched| Fetched { media_reads: counters.media_reads, ..fetched })
    }
}

/// What a read fetched.
struct Fetched {
    first: u64,
    last: u64,
    /// When the media began with the last unit.
    begun_ps: u64,
    media_reads: u64,
}

/// The lines that some bytes lie in.
fn lines(at: u64, length: u64) -> std::ops::Range<u64> {
    at / CACHE_LINE..(at + length).div_ceil(CACHE_LINE)
}

fn latency_ns(timing: &Timing, last: Option<u64>, first: u64) -> u64 {
    let is_near = last.is_some_and(|last| last.abs_diff(first) <= 1);
    u64::from(if is_near { timing.read_sequential_ns } else { timing.read_random_ns })
}
