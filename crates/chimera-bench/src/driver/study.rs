//! The primitives study: each cell timed, uncached and cached, and counted.
//!
//! Contenders of a figure take turns batch by batch. Uncached: each has an array of its own, more than twice the last-level
//! cache, and every operation goes to a place of it that none has gone to before. Cached: a few places, which fit the
//! first-level cache, are made anew before each round. Counted: on a cold modelled cache, in a memory of its own.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use chimera_pmem::environment::{AnonymousFile, File};
use chimera_pmem::instrumented::{InstrumentedOptions, Profile};
use chimera_pmem::{Hardware, HardwareOptions, Instrumented, Operation, Pmem};
use chimera_primitives::operation::{self, Cell, Experiment, Measured, Places, Region, Trial};

use super::backend::Backend;
use crate::error::{BenchError, Result};
use crate::results::statistics::{median, spread};
use crate::results::study::{StudyCounters, StudyRow, Timing};

/// Bytes that are in the cache after a round.
const CACHED_BYTES: u64 = 16 << 10;
/// Operations of a batch of cached ones, in rounds.
const CACHED_OPERATIONS: u64 = 400;
/// A batch of uncached operations takes about so long, if it does not end before.
const BATCH_NS: f64 = 8e6;
/// Operations that show how long one takes.
const PROBES: u64 = 8;
/// Memory that cells are counted in.
const COUNTED_BYTES: u64 = 16 << 20;
/// Operations that are counted.
const COUNTED_OPERATIONS: u64 = 32;

/// Loads of a batch that show what one takes.
const LOADS: u64 = 10_000;

/// What all cells have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) profile: Profile,
    pub(crate) repetitions: usize,
    /// Most operations of a batch.
    pub(crate) operations: u64,
    /// Bytes of each contender's array.
    pub(crate) array_bytes: u64,
    pub(crate) seed: u64,
}

/// Memory of so many bytes without a file.
fn memory<B: Backend>(bytes: u64, instrumented: InstrumentedOptions) -> Result<B> {
    let failed = |source| BenchError::Memory { what: "the arrays of the study", source };
    let reserve_bytes = bytes.next_multiple_of(1 << 21) + (1 << 21);
    let hardware = HardwareOptions { reserve_bytes, ..HardwareOptions::default() };
    let pmem = B::make(hardware, instrumented).map_err(failed)?;
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(bytes));
    pmem.map(0, &file, 0, bytes).map_err(failed)?;
    pmem.populate(0, bytes).map_err(failed)?;
    Ok(pmem)
}

/// The memory that cells are timed in, with an array for each of so many contenders.
pub(crate) fn arrays<B: Backend>(plan: &Plan, contenders: usize) -> Result<B> {
    memory(plan.array_bytes * contenders as u64, InstrumentedOptions::timed(plan.profile))
}

/// Nanoseconds of a load of a word that is in every cache: with a profile, what the model of the device needs to know that.
pub(crate) fn load_ns<B: Backend>(plan: &Plan, pmem: &B) -> f64 {
    let mut batches = Vec::new();
    for _ in 0..plan.repetitions {
        let started = Instant::now();
        let sum = (0..LOADS).fold(0_u64, |sum, _| sum.wrapping_add(pmem.load_u64(black_box(0))));
        batches.push(started.elapsed().as_nanos() as f64 / LOADS as f64);
        black_box(sum);
    }
    median(&batches)
}

/// Times and counts the cells of one figure, which differ in their contenders alone.
pub(crate) fn measure<B: Backend + Measured>(
    plan: &Plan,
    pmem: &B,
    cells: &[Cell],
) -> Result<Vec<StudyRow>> {
    let uncached = uncached(plan, pmem, cells)?;
    let cached = cached(plan, pmem, cells)?;
    let counting: Instrumented<Hardware> =
        memory(COUNTED_BYTES, InstrumentedOptions::counting(plan.profile))?;
    let mut rows = Vec::new();
    for ((cell, uncached), cached) in cells.iter().zip(uncached).zip(cached) {
        rows.push(StudyRow {
            experiment: cell.experiment.to_string(),
            contender: cell.contender.to_string(),
            layout: cell.contender.layout().map(|kind| kind.to_string()),
            size: cell.size,
            position: cell.position.name().to_owned(),
            uncached,
            cached,
            counters: count(&counting, cell)?,
        });
    }
    Ok(rows)
}

/// The array of a contender.
fn region(plan: &Plan, number: usize) -> Region {
    Region { at: plan.array_bytes * number as u64, bytes: plan.array_bytes }
}

fn timing(batches: &[f64]) -> Timing {
    Timing { median_ns: median(batches), spread: spread(batches) }
}

fn uncached<B: Measured>(plan: &Plan, pmem: &B, cells: &[Cell]) -> Result<Vec<Timing>> {
    let mut contenders = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        let mut trial = operation::trial(cell, pmem, region(plan, number), u64::MAX >> 8)?;
        let count = trial.places();
        trial.prepare(pmem, 0, count)?;
        let mut places = Places::new(count, plan.seed);
        let probes = PROBES.min(count / (plan.repetitions as u64 + 1)).max(1);
        let chosen: Vec<u64> = places.by_ref().take(probes as usize).collect();
        let started = Instant::now();
        black_box(steps(&mut *trial, pmem, &chosen)?);
        let probed_ns = started.elapsed().as_nanos() as f64 / probes as f64;
        let share = count.saturating_sub(probes) / plan.repetitions as u64;
        let operations = share.min(plan.operations).min((BATCH_NS / probed_ns) as u64).max(1);
        contenders.push((trial, places, operations, Vec::new()));
    }
    for _ in 0..plan.repetitions {
        for (trial, places, operations, batches) in &mut contenders {
            let operations = *operations;
            if operations * plan.repetitions as u64 >= trial.places() {
                // There are not enough places for one each.
                let count = trial.places();
                trial.prepare(pmem, 0, count)?;
            }
            let chosen: Vec<u64> = places.by_ref().take(operations as usize).collect();
            let started = Instant::now();
            let sum = steps(&mut **trial, pmem, &chosen)?;
            let nanoseconds = started.elapsed().as_nanos() as f64;
            black_box(sum);
            batches.push(nanoseconds / (operations * trial.units()) as f64);
        }
    }
    Ok(contenders.iter().map(|(_, _, _, batches)| timing(batches)).collect())
}

/// Carries the operation out at each of some places.
fn steps<P: Measured>(trial: &mut dyn Trial<P>, pmem: &P, places: &[u64]) -> Result<u64> {
    let mut sum = 0_u64;
    for place in places {
        sum = sum.wrapping_add(trial.step(pmem, *place)?);
    }
    Ok(sum)
}

/// Places whose structures are in the cache together.
fn cached_places(cell: &Cell) -> u64 {
    match cell.experiment {
        Experiment::E2 => 16,
        Experiment::E6 | Experiment::E7 => 1,
        _ => (CACHED_BYTES / (2 * u64::from(cell.size))).max(1),
    }
}

fn cached<B: Measured>(plan: &Plan, pmem: &B, cells: &[Cell]) -> Result<Vec<Timing>> {
    let mut contenders = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        let trial = operation::trial(cell, pmem, region(plan, number), cached_places(cell))?;
        contenders.push((trial, Vec::new()));
    }
    let is_long = |cell: &Cell| matches!(cell.experiment, Experiment::E6 | Experiment::E7);
    for repetition in 0..=plan.repetitions {
        for ((trial, batches), cell) in contenders.iter_mut().zip(cells) {
            let count = trial.places();
            let operations = if is_long(cell) { 8 } else { CACHED_OPERATIONS };
            let rounds = operations.min(plan.operations).div_ceil(count).max(1);
            let places: Vec<u64> = (0..count).collect();
            let mut nanoseconds = 0;
            for _ in 0..rounds {
                trial.prepare(pmem, 0, count)?;
                let started = Instant::now();
                let sum = steps(&mut **trial, pmem, &places)?;
                nanoseconds += started.elapsed().as_nanos();
                black_box(sum);
            }
            // The first batch brings everything into the caches.
            if repetition > 0 {
                batches.push(nanoseconds as f64 / (rounds * count * trial.units()) as f64);
            }
        }
    }
    Ok(contenders.iter().map(|(_, batches)| timing(batches)).collect())
}

fn count(pmem: &Instrumented<Hardware>, cell: &Cell) -> Result<StudyCounters> {
    let region = Region { at: 0, bytes: COUNTED_BYTES };
    let mut trial = operation::trial(cell, pmem, region, 4 * COUNTED_OPERATIONS)?;
    let places = trial.places();
    trial.prepare(pmem, 0, places)?;
    pmem.empty_cache();
    pmem.drain(Operation::Other);
    pmem.reset();
    let operations = COUNTED_OPERATIONS.min(places);
    for place in Places::new(places, 1).take(operations as usize) {
        pmem.operation_begin(Operation::Get, 0);
        black_box(trial.step(pmem, place)?);
        pmem.operation_acknowledge();
    }
    pmem.drain(Operation::Get);
    let total = pmem.snapshot().total();
    let mean = |number: u64| number as f64 / (operations * trial.units()) as f64;
    Ok(StudyCounters {
        bytes_modified: mean(total.bytes_stored),
        lines_flushed: mean(total.lines_flushed + total.lines_reflushed),
        fences: mean(total.fences),
        lines_read: mean(total.lines_read()),
        media_reads: mean(total.media_reads_all()),
        media_writes: mean(total.media_writes()),
    })
}
