//! A pool of threads that serve or apply changes of the order of keys: all that there are, divided as is decided
//! (HiKV, section 3.2.2).

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chimera::Db;
use chimera::baselines::{SampledOperations, ThreadSplit};

use super::backend::Backend;
use super::worker::{Data, Worker};
use crate::error::Result;
use crate::workload::random::reduce;

/// How long operations are sampled before the threads are divided anew.
const WINDOW: Duration = Duration::from_millis(10);
/// Operations between two looks at the clock and at the division.
const BATCH: u64 = 64;
/// Of these, so many follow one another as gets or as inserts, so that each kind is timed without a clock for each.
const SOME: u64 = 16;

/// How a pool is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// As [`ThreadSplit::of`] decides at the end of each window.
    Adaptive,
    /// So many threads serve.
    Serving(usize),
}

/// What a pool is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) threads: usize,
    pub(crate) division: Division,
    /// Operations of all threads together.
    pub(crate) operations: u64,
    /// Gets for each insert.
    pub(crate) gets: u64,
    /// Records that are there: their numbers are below this, and inserts go on from there.
    pub(crate) records: u64,
}

/// What a pool has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) inserted: u64,
    /// Until all was served, and all changes were in the tree.
    pub(crate) seconds: f64,
    pub(crate) decisions: u64,
    /// Threads that served, on average over decisions; as given where there were none.
    pub(crate) serving_mean: f64,
}

/// What threads have counted and timed so far.
#[derive(Debug, Default)]
struct Counts {
    gets: AtomicU64,
    get_ns: AtomicU64,
    inserts: AtomicU64,
    insert_ns: AtomicU64,
    applied: AtomicU64,
    apply_ns: AtomicU64,
}

/// A pool at work.
struct Pool<'a, B: Backend> {
    db: &'a Db<B>,
    work: Work,
    serving: AtomicUsize,
    /// Operations that nobody has begun.
    left: AtomicU64,
    next_record: AtomicU64,
    is_over: AtomicBool,
    counts: Counts,
}

/// Decisions so far, and what the last one was made of.
struct Decisions {
    begun: Instant,
    before: [u64; 6],
    count: u64,
    serving_sum: u64,
}

/// Does the work on a store whose order of keys has no background threads of its own.
pub(crate) fn run<B: Backend>(db: &Db<B>, data: &Data, work: Work, stream: u64) -> Result<Done> {
    let serving = match work.division {
        Division::Adaptive => work.threads.div_ceil(2),
        Division::Serving(threads) => threads,
    };
    let pool = Pool {
        db,
        work,
        serving: AtomicUsize::new(serving),
        left: AtomicU64::new(work.operations),
        next_record: AtomicU64::new(work.records),
        is_over: AtomicBool::new(false),
        counts: Counts::default(),
    };
    let begun = Instant::now();
    let outcomes: Vec<Result<(u64, u64)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..work.threads)
            .map(|number| {
                let pool = &pool;
                scope.spawn(move || {
                    let outcome = pool.thread(number, data, stream << 8 | number as u64);
                    if outcome.is_err() {
                        pool.is_over.store(true, Ordering::Release);
                    }
                    outcome
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        joined.collect()
    });
    // Changes that still wait are work of the pool, too.
    while db.apply_changes(0, 1) > 0 {}
    let seconds = begun.elapsed().as_secs_f64();
    let (mut decisions, mut serving_sum) = (0, 0);
    for outcome in outcomes {
        let (count, sum) = outcome?;
        decisions += count;
        serving_sum += sum;
    }
    let serving_mean =
        if decisions > 0 { serving_sum as f64 / decisions as f64 } else { serving as f64 };
    let inserted = pool.next_record.load(Ordering::Acquire) - work.records;
    Ok(Done { inserted, seconds, decisions, serving_mean })
}

impl<B: Backend> Pool<'_, B> {
    /// Serves or applies, as is decided, until all is served. Decisions, and the sum of the threads that were to serve.
    fn thread(&self, number: usize, data: &Data, stream: u64) -> Result<(u64, u64)> {
        let mut worker = Worker::new(self.db, data, 0..0, stream);
        let mut decisions =
            Decisions { begun: Instant::now(), before: [0; 6], count: 0, serving_sum: 0 };
        while !self.is_over.load(Ordering::Acquire) {
            let serving = self.serving.load(Ordering::Relaxed);
            if number >= serving {
                self.apply(number - serving, self.work.threads - serving);
            } else if !self.serve(&mut worker)? {
                self.is_over.store(true, Ordering::Release);
            }
            // The first thread always serves.
            if number == 0 && self.work.division == Division::Adaptive {
                self.decide(&mut decisions);
            }
        }
        Ok((decisions.count, decisions.serving_sum))
    }

    /// Applies changes that fall to one of `count` threads.
    fn apply(&self, number: usize, count: usize) {
        let begun = Instant::now();
        match self.db.apply_changes(number, count) {
            0 => std::thread::yield_now(),
            applied => add(&self.counts.applied, &self.counts.apply_ns, applied, begun),
        }
    }

    /// Serves a batch. `false` when there is nothing left to serve.
    fn serve(&self, worker: &mut Worker<'_, Db<B>>) -> Result<bool> {
        let taken = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
            (left > 0).then(|| left.saturating_sub(BATCH))
        });
        let Ok(left) = taken else { return Ok(false) };
        let mut batch = left.min(BATCH);
        while batch > 0 {
            let some = batch.min(SOME);
            batch -= some;
            let is_insert = reduce(worker.random.next(), self.work.gets + 1) == 0;
            let begun = Instant::now();
            if is_insert {
                let first = self.next_record.fetch_add(some, Ordering::AcqRel);
                (worker.next, worker.end) = (first, first + some);
                (0..some).try_for_each(|_| worker.insert(0).map(drop))?;
                add(&self.counts.inserts, &self.counts.insert_ns, some, begun);
            } else {
                for _ in 0..some {
                    let number = reduce(worker.random.next(), self.work.records);
                    worker.get(number)?;
                }
                add(&self.counts.gets, &self.counts.get_ns, some, begun);
            }
        }
        Ok(true)
    }

    /// Divides the threads anew at the end of a window.
    fn decide(&self, decisions: &mut Decisions) {
        if decisions.begun.elapsed() < WINDOW {
            return;
        }
        let now = self.counts.all();
        let [gets, get_ns, writes, write_ns, applied, apply_ns] =
            std::array::from_fn(|at| now[at] - decisions.before[at]);
        let mean = |sum: u64, count: u64| sum / count.max(1);
        let sampled = SampledOperations {
            gets,
            writes,
            get_ns: mean(get_ns, gets),
            write_ns: mean(write_ns, writes),
            apply_ns: mean(apply_ns, applied),
            ..SampledOperations::default()
        };
        decisions.begun = Instant::now();
        // Without a change that was applied nothing is known of its time.
        if applied > 0 || writes == 0 {
            let serving = ThreadSplit::of(&sampled, self.work.threads).serving;
            self.serving.store(serving, Ordering::Relaxed);
            decisions.before = now;
        }
        decisions.count += 1;
        decisions.serving_sum += self.serving.load(Ordering::Relaxed) as u64;
    }
}

impl Counts {
    fn all(&self) -> [u64; 6] {
        [&self.gets, &self.get_ns, &self.inserts, &self.insert_ns, &self.applied, &self.apply_ns]
            .map(|count| count.load(Ordering::Relaxed))
    }
}

fn add(counts: &AtomicU64, times: &AtomicU64, count: u64, begun: Instant) {
    counts.fetch_add(count, Ordering::Relaxed);
    times.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
}
