//! Simulated threads on a modelled device, in simulated time: what the device does to many threads, on any machine.
//!
//! Threads do the same thing again and again, each waiting for its own. What a thread takes on DRAM is given, varied by a
//! tenth, so that threads do not march in step. All else follows from the device.

mod pattern;
mod threads;

#[cfg(test)]
mod tests;

use chimera_pmem::instrumented::{Device, DeviceParameters, OperationCounters};

use crate::workload::random::Random;
pub(crate) use pattern::{Chunks, Logs, Pattern, Uniform};
use threads::Threads;

/// Part of the operations that come before any that count: buffers have to fill.
const WARM_UP: f64 = 0.3;
/// Picoseconds of a nanosecond.
const PS: u64 = 1000;
/// Bytes of a line.
const LINE: u64 = chimera_pmem::CACHE_LINE;

/// So many threads that do one thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) threads: usize,
    /// What an operation takes on DRAM, in nanoseconds.
    pub(crate) dram_ns: u64,
    /// Operations of all threads together.
    pub(crate) operations: u64,
    pub(crate) seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Mean time of an operation.
    pub(crate) ns: f64,
    /// Bytes that all threads wrote or read in a nanosecond.
    pub(crate) gb_per_s: f64,
    /// Bytes that the media wrote over bytes that threads wrote, the warm-up included.
    pub(crate) amplification: f64,
}

/// Each thread stores, writes back and fences what the pattern says.
pub(crate) fn persists(
    parameters: DeviceParameters,
    load: Load,
    pattern: &mut dyn Pattern,
) -> Outcome {
    let persist_ps = parameters.timing.map_or(0, |timing| u64::from(timing.persist_ns) * PS);
    simulate(parameters, load, pattern, |device, counters, _, issued_ps, lines| {
        let taken = lines.map(|line| device.write(line, issued_ps, counters).at_ps);
        taken.max().unwrap_or_default().max(issued_ps + persist_ps)
    })
}

/// Each thread reads what the pattern says. Of a pattern that goes on where it was, the processor fetches the next unit ahead.
pub(crate) fn reads(
    parameters: DeviceParameters,
    load: Load,
    pattern: &mut dyn Pattern,
) -> Outcome {
    let lines_of_unit = parameters.xpline_bytes / LINE;
    let latencies_ps = parameters.timing.map_or([0; 2], |timing| {
        [timing.read_random_ns, timing.read_sequential_ns].map(|ns| u64::from(ns) * PS)
    });
    // The unit behind the one that a thread is in, and when the media began with it, if the processor has asked for it.
    let mut ahead = vec![(u64::MAX, None); load.threads];
    simulate(parameters, load, pattern, |device, counters, thread, issued_ps, lines| {
        let mut fetch = |unit: u64| device.read(unit * lines_of_unit, issued_ps, counters).at_ps;
        let (first, last) = (lines.start / lines_of_unit, (lines.end - 1) / lines_of_unit);
        let (next, asked_ps) = ahead[thread];
        let goes_on = first == next || first + 1 == next;
        let latency_ps = latencies_ps[usize::from(goes_on)];
        let begun_ps = |unit: u64| match asked_ps {
            _ if goes_on && unit + 1 == next => issued_ps,
            Some(asked_ps) if unit == next => issued_ps.max(asked_ps),
            _ => fetch(unit),
        };
        let end_ps = (first..=last).map(begun_ps).max().unwrap_or(issued_ps) + latency_ps;
        if last + 1 != next {
            ahead[thread] = (last + 1, goes_on.then(|| fetch(last + 1)));
        }
        end_ps
    })
}

/// Runs threads in the order of their time. `operation` says when an operation that was issued then is done.
fn simulate(
    parameters: DeviceParameters,
    load: Load,
    pattern: &mut dyn Pattern,
    mut operation: impl FnMut(&Device, &mut OperationCounters, usize, u64, std::ops::Range<u64>) -> u64,
) -> Outcome {
    let device = Device::new(parameters);
    let mut random = Random::new(load.seed, load.threads as u64);
    let mut counters = OperationCounters::default();
    let mut threads = Threads::new(load.threads, load.dram_ns * PS, &mut random);
    let warm_up = (load.operations as f64 * WARM_UP) as u64;
    let (mut all_lines, mut lines_since, mut waited_ps, mut since_ps) = (0, 0, 0, 0);
    for number in 0..load.operations {
        let (thread, now_ps) = threads.next();
        if number == warm_up {
            since_ps = now_ps;
            lines_since = all_lines;
        }
        let dram_ps = vary(load.dram_ns * PS, &mut random);
        let lines = pattern.next(thread, &mut random);
        all_lines += lines.end - lines.start;
        let end_ps = operation(&device, &mut counters, thread, now_ps + dram_ps, lines);
        if number >= warm_up {
            waited_ps += end_ps - now_ps;
        }
        threads.goes_on(thread, end_ps);
    }
    let elapsed_ps = threads.last_ps().saturating_sub(since_ps).max(1);
    Outcome {
        ns: waited_ps as f64 / PS as f64 / (load.operations - warm_up) as f64,
        gb_per_s: ((all_lines - lines_since) * LINE) as f64 * 1000.0 / elapsed_ps as f64,
        amplification: (counters.media_writes() * parameters.xpline_bytes) as f64
            / (all_lines * LINE) as f64,
    }
}

/// A time, 0.9 to 1.1 times.
fn vary(ps: u64, random: &mut Random) -> u64 {
    (ps as f64 * (0.9 + 0.2 * random.fraction())) as u64
}
