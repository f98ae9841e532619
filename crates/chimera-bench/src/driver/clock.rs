//! [`drive`]: the loops that operations run in.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::error::Result;
use crate::results::measured::{Measured, histogram};

/// Operations between two looks at the clock when a phase has a duration.
const DURATION_STRIDE: u64 = 256;

/// What is measured of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Operations per second; no clock is read between operations.
    Throughput,
    /// The time of each operation. Contains one reading of the clock, 20 to 40 ns.
    Latency,
}

/// How long a phase is, and in which shape.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Operations of each thread.
    pub(crate) shares: Vec<u64>,
    /// End earlier after this time.
    pub(crate) duration: Option<Duration>,
    pub(crate) measure: Measure,
    /// Whether each operation depends on the result of the one before.
    pub(crate) chained: bool,
}

/// Runs `step` again and again on a thread for each worker; all start together. Gives the workers
/// back.
///
/// A step is handed a word that it adds to the record number it uses, and returns a word of its
/// result. The word handed in is always zero; in the chained shape it is computed from the last
/// result, so that the processor cannot begin with an operation before it has that result. Where the
/// result is only whether the operation succeeded, the processor may predict that: on both sides of a
/// comparison with a floor.
///
/// # Errors
/// The first error of a step; other threads finish before.
pub(crate) fn drive<W, S>(workers: Vec<W>, load: &Load, step: S) -> Result<(Measured, Vec<W>)>
where
    W: Send,
    S: Fn(&mut W, u64) -> Result<u64> + Sync,
{
    let barrier = Barrier::new(workers.len());
    let outcomes: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = workers
            .into_iter()
            .zip(&load.shares)
            .map(|(mut worker, share)| {
                let (barrier, step) = (&barrier, &step);
                scope.spawn(move || {
                    barrier.wait();
                    let begun = Instant::now();
                    let done = run_thread(&mut worker, *share, load, step);
                    (begun, Instant::now(), done, worker)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let begun = outcomes.iter().map(|outcome| outcome.0).min();
    let ended = outcomes.iter().map(|outcome| outcome.1).max();
    let elapsed = begun.zip(ended).map(|(begun, ended)| ended - begun).unwrap_or_default();
    let mut measured = Measured { operations: 0, elapsed, histogram: None };
    let mut workers = Vec::new();
    for (_, _, done, worker) in outcomes {
        let done = done?;
        measured.operations += done.operations;
        if let Some(latencies) = done.latencies {
            let all = measured.histogram.get_or_insert_with(histogram);
            all.add(latencies).expect("both have the same bounds");
        }
        workers.push(worker);
    }
    Ok((measured, workers))
}

/// What one thread has done.
struct Done {
    operations: u64,
    latencies: Option<Histogram<u64>>,
}

fn run_thread<W, S>(worker: &mut W, share: u64, load: &Load, step: &S) -> Result<Done>
where
    S: Fn(&mut W, u64) -> Result<u64>,
{
    let latencies = (load.measure == Measure::Latency).then(histogram);
    let end = load.duration.map(|duration| Instant::now() + duration);
    match (latencies, load.chained) {
        (None, false) => throughput::<false, W, S>(worker, share, end, step),
        (None, true) => throughput::<true, W, S>(worker, share, end, step),
        (Some(latencies), false) => latency::<false, W, S>(worker, share, end, latencies, step),
        (Some(latencies), true) => latency::<true, W, S>(worker, share, end, latencies, step),
    }
}

fn throughput<const CHAINED: bool, W, S>(
    worker: &mut W,
    share: u64,
    end: Option<Instant>,
    step: &S,
) -> Result<Done>
where
    S: Fn(&mut W, u64) -> Result<u64>,
{
    // The processor does not know that this is zero.
    let zero = black_box(0);
    let (mut operations, mut last, mut sum) = (0, 0, 0_u64);
    while operations < share && end.is_none_or(|end| Instant::now() < end) {
        let stride = if end.is_some() { DURATION_STRIDE } else { share };
        let stop = share.min(operations.saturating_add(stride));
        while operations < stop {
            last = step(worker, if CHAINED { last & zero } else { 0 })?;
            sum = sum.wrapping_add(last);
            operations += 1;
        }
    }
    black_box(sum);
    Ok(Done { operations, latencies: None })
}

fn latency<const CHAINED: bool, W, S>(
    worker: &mut W,
    share: u64,
    end: Option<Instant>,
    mut latencies: Histogram<u64>,
    step: &S,
) -> Result<Done>
where
    S: Fn(&mut W, u64) -> Result<u64>,
{
    let zero = black_box(0);
    let (mut operations, mut last, mut sum) = (0, 0, 0_u64);
    while operations < share {
        let begun = Instant::now();
        if end.is_some_and(|end| begun >= end) {
            break;
        }
        last = step(worker, if CHAINED { last & zero } else { 0 })?;
        latencies.saturating_record(begun.elapsed().as_nanos() as u64);
        sum = sum.wrapping_add(last);
        operations += 1;
    }
    black_box(sum);
    Ok(Done { operations, latencies: Some(latencies) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(shares: &[u64], measure: Measure, chained: bool) -> Load {
        Load { shares: shares.to_vec(), duration: None, measure, chained }
    }

    #[test]
    fn every_worker_does_its_share_in_every_shape() {
        for measure in [Measure::Throughput, Measure::Latency] {
            for chained in [false, true] {
                let load = load(&[1000, 7], measure, chained);
                let step = |worker: &mut u64, after: u64| {
                    assert_eq!(after, 0);
                    *worker += 1;
                    Ok(u64::MAX)
                };
                let (measured, workers) = drive(vec![0, 0], &load, step).expect("no step fails");
                assert_eq!(workers, [1000, 7]);
                assert_eq!(measured.operations, 1007);
                let recorded = measured.histogram.map(|histogram| histogram.len());
                assert_eq!(recorded, (measure == Measure::Latency).then_some(1007));
            }
        }
    }

    #[test]
    fn a_duration_ends_a_phase_early() {
        for measure in [Measure::Throughput, Measure::Latency] {
            let mut load = load(&[u64::MAX], measure, false);
            load.duration = Some(Duration::from_millis(5));
            let (measured, _) = drive(vec![()], &load, |(), _| Ok(0)).expect("no step fails");
            assert!(measured.operations > 0);
            assert!(measured.ops_per_second() > 0.0);
        }
    }

    #[test]
    fn an_error_comes_out() {
        let step = |worker: &mut u64, _| {
            *worker += 1;
            if *worker == 10 {
                Err(crate::BenchError::Arguments("at ten".to_owned()))
            } else {
                Ok(0)
            }
        };
        let outcome = drive(vec![0, 100], &load(&[50, 5], Measure::Throughput, false), step);
        assert!(outcome.is_err_and(|error| error.to_string().contains("at ten")));
    }
}
