//! [`with_scans`]: a thread that scans so many times a second beside other work.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::ledger::Population;
use super::store::Store;
use super::worker::{Data, Worker};
use crate::error::Result;
use crate::results::measured::{Measured, histogram};

/// What the thread is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scans {
    pub(crate) per_second: u32,
    /// Records of each scan.
    pub(crate) records: usize,
}

/// Says that the work is over, also when it panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Does `work` while another thread scans from records of `live`, once at least. What was made of the work, and what was
/// measured of the scans: how many in which time, and how long each of them took from its call.
///
/// # Errors
/// The error of the work, or that of a scan; the work is done in any case.
pub(crate) fn with_scans<S: Store, T>(
    store: &S,
    data: &Data,
    live: Population,
    scans: Scans,
    stream: u64,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Measured)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = Worker::new(store, data, 0..0, stream);
        let scanner = scope.spawn(|| scan_until(&is_over, worker, live, scans));
        let over = Over(&is_over);
        let done = work();
        drop(over);
        let scanned = scanner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((done?, scanned?))
    })
}

/// Scans whenever a scan is due. Those that it was too late for are made up for, as fast as it can.
fn scan_until<S: Store>(
    is_over: &AtomicBool,
    mut worker: Worker<'_, S>,
    live: Population,
    scans: Scans,
) -> Result<Measured> {
    let mut latencies = histogram();
    let (begun, mut operations) = (Instant::now(), 0_u64);
    while operations == 0 || !is_over.load(Ordering::Acquire) {
        let number = live.draw(&mut worker.random);
        let called = Instant::now();
        black_box(worker.scan_exactly(number, scans.records)?);
        latencies.saturating_record(called.elapsed().as_nanos() as u64);
        operations += 1;
        thread::sleep(due(operations, scans.per_second).saturating_sub(begun.elapsed()));
    }
    Ok(Measured { operations, elapsed: begun.elapsed(), histogram: Some(latencies) })
}

/// When a scan is due, the first of them at once.
fn due(scan: u64, per_second: u32) -> Duration {
    let per_second = u64::from(per_second.max(1));
    Duration::from_secs(scan / per_second)
        + Duration::from_nanos(scan % per_second * 1_000_000_000 / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_are_due_at_even_intervals() {
        assert_eq!(due(0, 1000), Duration::ZERO);
        assert_eq!(due(1, 1000), Duration::from_millis(1));
        assert_eq!(due(3500, 1000), Duration::from_millis(3500));
        assert_eq!(due(2, 3), Duration::from_nanos(666_666_666));
        assert_eq!(due(u64::from(u32::MAX), u32::MAX), Duration::from_secs(1));
    }
}
