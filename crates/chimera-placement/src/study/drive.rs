//! [`drive`]: threads that work on a database and time each operation, as db_bench's do.

use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::database::Database;
use crate::error::{Error, Result};
use crate::workload::{Draw, Operation, Shared, Values, key};

/// Longest latency that is told from longer ones: a minute.
const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// Digits of latencies.
const DIGITS: u8 = 3;

/// What each thread does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Threads.
    pub(super) threads: usize,
    /// Operations of each.
    pub(super) operations: u64,
    /// Bytes of a key.
    pub(super) key_bytes: usize,
    /// Bytes of a value.
    pub(super) value_bytes: usize,
    /// Seed.
    pub(super) seed: u64,
}

/// What came out.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// Latencies of gets, in nanoseconds.
    pub(super) reads: Histogram<u64>,
    /// Latencies of puts, in nanoseconds.
    pub(super) writes: Histogram<u64>,
    /// From the first operation of any thread to the last one, in seconds.
    pub(super) seconds: f64,
}

impl Measured {
    /// Without operations.
    ///
    /// # Errors
    /// Never: the bounds are those above.
    pub(super) fn new() -> Result<Self> {
        Ok(Self { reads: histogram()?, writes: histogram()?, seconds: 0.0 })
    }

    /// Adds the latencies of another run.
    pub(super) fn add(&mut self, other: &Self) {
        // Bounds and digits are the same, so nothing is too large.
        let _ = self.reads.add(&other.reads);
        let _ = self.writes.add(&other.writes);
    }

    /// Operations per second.
    pub(super) fn ops_per_s(&self) -> f64 {
        (self.reads.len() + self.writes.len()) as f64 / self.seconds.max(1e-9)
    }

    /// Mean latency of all operations, in microseconds.
    pub(super) fn mean_us(&self) -> f64 {
        let (reads, writes) = (self.reads.len() as f64, self.writes.len() as f64);
        let sum_ns = self.reads.mean() * reads + self.writes.mean() * writes;
        sum_ns / (reads + writes).max(1.0) / 1000.0
    }
}

fn histogram() -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS)
        .map_err(|error| Error::Option(format!("no histogram: {error}")))
}

/// Writes `records` records in the order of their keys, and compacts.
///
/// # Errors
/// As RocksDB says.
pub(super) fn fill(database: &Database, records: u64, load: &Load) -> Result<()> {
    let mut values = Values::new(load.seed, u64::MAX);
    let mut bytes = Vec::new();
    for record in 0..records {
        key(record, load.key_bytes, &mut bytes);
        database.put(&bytes, values.next(load.value_bytes))?;
    }
    database.flush()?;
    database.compact()
}

/// Runs a load and times each operation.
///
/// # Errors
/// The first one of any thread.
pub(super) fn drive(database: &Database, shared: &Shared, load: &Load) -> Result<Measured> {
    let barrier = Barrier::new(load.threads);
    let outcomes: Vec<Result<Worker>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..load.threads as u64)
            .map(|thread| {
                let barrier = &barrier;
                scope.spawn(move || work(database, shared, load, thread, barrier))
            })
            .collect();
        let panicked = || Err(Error::Option("a thread of the load panicked".to_owned()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    });
    let mut all = Measured::new()?;
    let mut span: Option<(Instant, Instant)> = None;
    for outcome in outcomes {
        let worker = outcome?;
        all.add(&worker.measured);
        let (begin, end) = span.unwrap_or((worker.begin, worker.end));
        span = Some((begin.min(worker.begin), end.max(worker.end)));
    }
    all.seconds = span.map_or(0.0, |(begin, end)| end.duration_since(begin).as_secs_f64());
    Ok(all)
}

/// What one thread measured.
struct Worker {
    measured: Measured,
    begin: Instant,
    end: Instant,
}

fn work(
    database: &Database,
    shared: &Shared,
    load: &Load,
    thread: u64,
    barrier: &Barrier,
) -> Result<Worker> {
    let measured = Measured::new();
    let mut values = Values::new(load.seed, thread);
    let mut draw = Draw::new(shared, load.seed, thread);
    let (mut bytes, mut value) = (Vec::new(), Vec::new());
    // All threads come here, whatever went wrong before.
    barrier.wait();
    let mut measured = measured?;
    let begin = Instant::now();
    let mut before = begin;
    for _ in 0..load.operations {
        // Drawing is part of an operation, as in db_bench.
        let operation = draw.draw();
        let histogram = match operation {
            Operation::Get(record) => {
                key(record, load.key_bytes, &mut bytes);
                database.get(&bytes, &mut value)?;
                &mut measured.reads
            }
            Operation::Put(record) => {
                key(record, load.key_bytes, &mut bytes);
                database.put(&bytes, values.next(load.value_bytes))?;
                &mut measured.writes
            }
        };
        let now = Instant::now();
        histogram.saturating_record(now.duration_since(before).as_nanos() as u64);
        before = now;
    }
    Ok(Worker { measured, begin, end: before })
}

/// Removes a database.
///
/// # Errors
/// When files cannot be removed.
pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::System { what: "removing", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
