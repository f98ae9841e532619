//! [`Instrumented`]: the hardware with exact counters, a device model and injected latency.
//!
//! Every call is carried out by the inner backend first and then recorded. What is recorded depends
//! only on the sequence of calls and on stated models, never on the machine:
//! - `counters`: what is counted, by class of operation and by session.
//! - `cache`: which lines a modelled processor cache holds, and so which reads miss.
//! - `device`: what interleaved DIMMs with a media unit larger than a line read and write, and when.
//! - `profile`: instances of the device; `pace`: who waits for it; `clock`: how.
//! - `reads`: reads that no backend carries out, on the same device.
//! - `recorder`, `lines`: one thread's stack of operations; `shared`: all threads.
//!
//! Absent on purpose: any knowledge of engines, and any look at the contents of memory.
//!
//! # Thread safety
//! All of it may be used from any number of threads. With one thread every count is repeatable to the
//! bit; with more, only what depends on the order in which threads meet in the cache and the device
//! (misses, media reads and writes) varies.

mod cache;
mod clock;
mod counters;
mod device;
mod lines;
mod pace;
mod profile;
mod reads;
mod recorder;
mod shared;
mod wrapped;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Hardware, Operation, Pmem};

pub use cache::CacheParameters;
pub use counters::{Counters, OperationCounters, OperationMeans, SessionLines, Spread};
pub use device::{Access, Device, DeviceParameters, Timing};
pub use profile::{
    HIKV_PERSIST_NS, HIKV_PERSIST_NS_MAX, HIKV_PERSIST_NS_MIN, OPTANE_DIMMS, OPTANE_DIMMS_MAX,
    Profile, ProfileError,
};
pub use reads::{ReadCounts, ReadModel};

/// What an [`Instrumented`] does. All of it is fixed for the life of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InstrumentedOptions {
    /// Whether to count. Default true. When false, snapshots are empty.
    pub counters: bool,
    /// The device model. Without one no media accesses and no lines per DIMM are counted, which saves time, and nothing
    /// waits. Default as [`DeviceParameters::default`], which counts and takes no time. Timings on a device that takes time
    /// are modelled.
    pub device: Option<DeviceParameters>,
    /// The cache model that decides which reads miss. Default as [`CacheParameters::default`].
    pub cache: CacheParameters,
}

impl Default for InstrumentedOptions {
    fn default() -> Self {
        Self {
            counters: true,
            device: Some(DeviceParameters::default()),
            cache: CacheParameters::default(),
        }
    }
}

impl InstrumentedOptions {
    /// What counts on the device of `profile`, and takes no time: counts are exact.
    #[must_use]
    pub fn counting(profile: Profile) -> Self {
        Self { device: Some(profile.device().untimed()), ..Self::default() }
    }

    /// What takes the time of `profile`, and counts nothing.
    #[must_use]
    pub fn timed(profile: Profile) -> Self {
        Self { counters: false, device: Some(profile.device()), ..Self::default() }
    }
}

/// A backend that counts what goes through it, models the device behind it, and slows it down.
///
/// # Cost
/// Measured on a virtual machine with two processors: with counters and device model about 100 ns per
/// call and 100 ns per line, 1 to 2 us for a whole insert of 216 bytes; half of that without the device
/// model. Nearly nothing with `counters: false` and a device that takes no time. Latency starts when
/// the inner call is done; the time spent recording that call is part of it, that of calls which
/// wait for nothing is not.
pub struct Instrumented<P: Pmem = Hardware> {
    inner: P,
    options: InstrumentedOptions,
    /// Whether anything is to be recorded at all.
    active: bool,
    shared: Arc<shared::Shared>,
}

impl<P: Pmem> Instrumented<P> {
    /// Wraps a backend.
    ///
    /// # Panics
    /// When the parameters of the cache or the device make no sense, as their documentation says.
    #[must_use]
    pub fn new(inner: P, options: InstrumentedOptions) -> Self {
        let timing = options.device.and_then(|device| device.timing);
        let needs_cache = timing.is_some_and(|timing| timing.needs_cache());
        let cache = cache::CacheModel::new(options.cache);
        let active = options.counters || timing.is_some();
        let models = recorder::Models {
            cache: (options.counters || needs_cache).then_some(cache),
            device: options.device.filter(|_| active).map(Device::new),
        };
        if timing.is_some() {
            // The first use of the clock takes milliseconds; not in an operation.
            clock::now_ns();
        }
        Self { inner, options, active, shared: shared::Shared::new(models) }
    }

    /// The backend inside.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// What it was made to do.
    pub fn options(&self) -> &InstrumentedOptions {
        &self.options
    }

    /// Everything counted since the beginning or the last [`reset`](Self::reset), over all threads;
    /// empty with `counters: false`.
    #[must_use]
    pub fn snapshot(&self) -> Counters {
        if !self.options.counters {
            return Counters::default();
        }
        let totals = self.shared.totals();
        let device = self.shared.models().device.as_ref();
        Counters {
            operations: totals.operations,
            sessions: totals.sessions,
            operations_open: totals.operations_open,
            media_unit_bytes: device.map_or(0, |device| device.parameters().xpline_bytes),
        }
    }

    /// Sets every count to zero. The cache and the device's buffers keep what they hold, and
    /// operations under way go on.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// Writes what the device's write buffers hold to the media, booked under `operation`: the class
    /// that a phase consisted of. Without it, up to a buffer per DIMM stays uncounted.
    pub fn drain(&self, operation: Operation) {
        self.shared.record(|recorder, models| {
            let mut counters = OperationCounters::default();
            if let Some(device) = &models.device {
                device.drain(&mut counters);
            }
            recorder.book(operation, counters);
        });
    }

    /// Empties the cache model and the device's read buffers, so that the next touch of every line
    /// misses. Dirty lines are written back, booked as evicted by the innermost operation.
    pub fn empty_cache(&self) {
        self.shared.record(|recorder, models| {
            recorder.empty_cache(models);
            if let Some(device) = &models.device {
                device.forget_reads();
            }
        });
    }

    /// Books `bytes` of keys and values written by the user under `operation`, for write
    /// amplification.
    pub fn user_bytes(&self, operation: Operation, bytes: u64) {
        if self.active {
            let counters = OperationCounters { user_bytes: bytes, ..Default::default() };
            self.shared.record(|recorder, _| recorder.book(operation, counters));
        }
    }
}

impl<P: Pmem> fmt::Debug for Instrumented<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instrumented").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Locks a mutex, whether or not a thread panicked while holding it: counts are still counts.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
