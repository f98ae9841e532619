//! [`run_bursts`]: bursts of puts over a steady load of gets.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::clock::{Load, Measure, drive};
use super::ledger::split;
use super::store::Store;
use super::worker::{Data, Worker};
use crate::error::Result;
use crate::results::measured::{Measured, histogram};

/// A window has so many gets at least, so that ten of them are above its 99th percentile.
const SAMPLES_MIN: u64 = 1000;

/// How gets and puts follow each other: rest, burst, rest, burst, ..., rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) bursts: usize,
    /// Gets alone, before the first burst, between two, and after the last one.
    pub(crate) rest: Duration,
    /// Puts of a burst, of all writers together.
    pub(crate) puts: u64,
    pub(crate) writers: usize,
    /// Shortest time that a percentile is told of.
    pub(crate) window: Duration,
}

/// Some gets, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// From the first get of all.
    pub(crate) from: Duration,
    pub(crate) elapsed: Duration,
    pub(crate) gets: u64,
    /// Puts meanwhile.
    pub(crate) puts: u64,
    pub(crate) get_p99_ns: u64,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) windows: Vec<Window>,
    /// Gets while there were no puts, and during bursts.
    pub(crate) rest: Measured,
    pub(crate) burst: Measured,
    /// All bursts, one after the other.
    pub(crate) puts: Measured,
    /// The reader had a processor to itself.
    pub(crate) is_pinned: bool,
}

/// What reader and writers share.
#[derive(Default)]
struct Shared {
    is_burst: AtomicBool,
    is_over: AtomicBool,
    puts: Puts,
}

/// On lines of its own, so that counting puts does not delay gets.
#[derive(Default)]
#[repr(align(128))]
struct Puts(AtomicU64);

/// Ends the reader, also when what it is beside of panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Processors: one for the reader, and the others for everybody else. This thread, and those that it starts, leave the
/// reader's alone until this is dropped.
pub(crate) struct Processors {
    before: CpuSet,
    reader: CpuSet,
}

impl Processors {
    /// `None` where there is one processor, or the system does not let us choose.
    pub(crate) fn divide() -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let mut all = (0..CpuSet::MAX_CPU).filter(|&processor| before.is_set(processor));
        let first = all.next()?;
        let (mut reader, mut others) = (CpuSet::new(), CpuSet::new());
        reader.set(first);
        all.for_each(|processor| others.set(processor));
        if others.count() == 0 {
            return None;
        }
        sched_setaffinity(None, &others).ok()?;
        Some(Self { before, reader })
    }
}

impl Drop for Processors {
    fn drop(&mut self) {
        // It was in force before.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Gets any of the records `0..records` on one thread all the time, and overwrites any of them in bursts on others.
///
/// # Errors
/// When a get or a put fails.
pub(crate) fn run_bursts<S: Store>(
    store: &S,
    data: &Data,
    records: u64,
    course: Course,
    (processors, stream): (Option<&Processors>, u64),
) -> Result<Seen> {
    let shared = Shared::default();
    let reader = Worker::new(store, data, 0..0, stream << 8);
    let (put, read) = thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let pinned = processors.map(|it| sched_setaffinity(None, &it.reader).is_ok());
            let reader = Reader::new(reader, records, course.window);
            reader.run(&shared).map(|seen| (seen, pinned == Some(true)))
        });
        let over = Over(&shared.is_over);
        let put = put_in_bursts(store, data, records, course, (&shared, stream));
        drop(over);
        (put, reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let ((windows, [rest, burst]), is_pinned) = read?;
    Ok(Seen { windows, rest, burst, puts: put?, is_pinned })
}

/// The bursts, with rests around them.
fn put_in_bursts<S: Store>(
    store: &S,
    data: &Data,
    records: u64,
    course: Course,
    (shared, stream): (&Shared, u64),
) -> Result<Measured> {
    let mut all = Measured { operations: 0, elapsed: Duration::ZERO, histogram: None };
    for burst in 0..course.bursts as u64 {
        thread::sleep(course.rest);
        let shares = split(course.puts, course.writers);
        let first = (stream << 8) + 1 + burst * course.writers as u64;
        let workers = (0..course.writers as u64)
            .map(|writer| Worker::new(store, data, 0..0, first + writer))
            .collect();
        let load = Load { shares, duration: None, measure: Measure::Latency, chained: false };
        shared.is_burst.store(true, Ordering::Relaxed);
        let step = |worker: &mut Worker<'_, S>, after: u64| {
            let number = worker.random.below(records) + after;
            let word = worker.overwrite(number)?;
            shared.puts.0.fetch_add(1, Ordering::Relaxed);
            Ok(word)
        };
        let (measured, _) = drive(workers, &load, step)?;
        shared.is_burst.store(false, Ordering::Relaxed);
        all = all.and(measured);
    }
    thread::sleep(course.rest);
    Ok(all)
}

/// Gets alone, and during bursts.
type Parts = [Measured; 2];

/// The thread whose gets are measured.
struct Reader<'a, S: Store> {
    worker: Worker<'a, S>,
    records: u64,
    window: Duration,
    /// Latencies of the current window.
    latencies: Histogram<u64>,
    windows: Vec<Window>,
    parts: Parts,
    puts: u64,
}

impl<'a, S: Store> Reader<'a, S> {
    fn new(worker: Worker<'a, S>, records: u64, window: Duration) -> Self {
        let none =
            || Measured { operations: 0, elapsed: Duration::ZERO, histogram: Some(histogram()) };
        let parts = [none(), none()];
        let (latencies, windows) = (histogram(), Vec::new());
        Self { worker, records, window, latencies, windows, parts, puts: 0 }
    }

    /// Gets until it is over, a window at least.
    fn run(mut self, shared: &Shared) -> Result<(Vec<Window>, Parts)> {
        let begun = Instant::now();
        let (mut window_begun, mut now) = (begun, begun);
        while self.windows.is_empty() || !shared.is_over.load(Ordering::Relaxed) {
            let is_burst = shared.is_burst.load(Ordering::Relaxed);
            let number = self.worker.random.below(self.records);
            let called = Instant::now();
            self.worker.get(number)?;
            let before = std::mem::replace(&mut now, Instant::now());
            let took_ns = (now - called).as_nanos() as u64;
            self.latencies.saturating_record(took_ns);
            let part = &mut self.parts[usize::from(is_burst)];
            part.operations += 1;
            part.elapsed += now - before;
            part.histogram.iter_mut().for_each(|all| all.saturating_record(took_ns));
            let elapsed = now - window_begun;
            if elapsed >= self.window && self.latencies.len() >= SAMPLES_MIN {
                self.end_window(window_begun - begun, elapsed, shared);
                (window_begun, now) = (Instant::now(), Instant::now());
            }
        }
        Ok((self.windows, self.parts))
    }

    fn end_window(&mut self, from: Duration, elapsed: Duration, shared: &Shared) {
        let all = shared.puts.0.load(Ordering::Relaxed);
        let puts = all - std::mem::replace(&mut self.puts, all);
        let (gets, get_p99_ns) = (self.latencies.len(), self.latencies.value_at_percentile(99.0));
        self.windows.push(Window { from, elapsed, gets, puts, get_p99_ns });
        self.latencies.reset();
    }
}
