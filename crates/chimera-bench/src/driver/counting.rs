//! [`count`]: the phases of a benchmark once more, with exact counters.

use chimera_pmem::instrumented::OperationCounters;
use chimera_pmem::{Hardware, Instrumented, Operation};

use super::clock::Measure;
use super::ledger::Ledger;
use super::pass::demand;
use super::phase::{self, Action, Extent, Phase};
use super::setup::Setup;
use super::store::Instrument;
use super::worker::Data;
use crate::error::Result;
use crate::results::rows::{ApartRow, Counted, Counters};

/// Most records and operations that are counted: the means of more would be the same.
pub(crate) const COUNTED_MAX: u64 = 200_000;

/// Classes that a workload's operations are booked under.
const CLASSES: [Operation; 6] = [
    Operation::Insert,
    Operation::Overwrite,
    Operation::Get,
    Operation::UpdateInPlace,
    Operation::Update,
    Operation::Delete,
];

/// Classes that are nested in them and booked apart.
const APART: [(Operation, &str); 2] =
    [(Operation::BlockHandOut, "block_hand_out"), (Operation::Batch, "batch_record")];

/// Counts the load phase, when it has a name, and each phase: the same operations as in the timed
/// passes, on one thread, in anonymous memory, with at most 200,000 records. The counts are exact,
/// and the same in every run with the same seed.
pub(crate) fn count<S: Instrument>(
    setup: &Setup,
    load_name: Option<&str>,
    phases: &[Phase],
    theta: f64,
) -> Result<Vec<(String, Counted)>> {
    let mut setup = setup.for_counting();
    setup.records = setup.records.min(COUNTED_MAX);
    setup.operations = setup.operations.min(setup.records);
    let data = Data::new(&setup).with_zipfian(setup.records, theta);
    let store = S::create_counting(&setup, &demand(&setup, phases, 1))?;
    let engine = store.facts().engine;
    let mut ledger = Ledger::default();
    let mut counted = Vec::new();
    let load = Phase::new(load_name.unwrap_or_default(), Action::Insert);
    for (number, phase) in std::iter::once(&load).chain(phases).enumerate() {
        let operations = if number == 0 { setup.records } else { phase.calls(setup.operations) };
        let extent =
            Extent { threads: 1, operations, duration: None, measure: Measure::Throughput };
        let (pmem, stream) = (store.counters(), number as u64);
        phase::prepare(&store, &data, &ledger, phase, extent, stream)?;
        begin_counting(pmem);
        let measured = phase::run(&store, &data, &mut ledger, phase, extent, stream)?;
        pmem.drain(phase.class());
        if number == 0 {
            ledger.settle();
        }
        if number > 0 || load_name.is_some() {
            let of_phase = summary(pmem, &engine, &phase.name, measured.operations);
            counted.push((phase.name.clone(), of_phase));
        }
    }
    Ok(counted)
}

/// Starts a phase of counting: with a cold cache and empty buffers, so that nothing depends on what
/// came before.
pub(crate) fn begin_counting(pmem: &Instrumented<Hardware>) {
    pmem.empty_cache();
    pmem.drain(Operation::Other);
    pmem.reset();
}

/// Means per operation of what was counted since then.
pub(crate) fn summary(
    pmem: &Instrumented<Hardware>,
    engine: &str,
    during: &str,
    operations: u64,
) -> Counted {
    let snapshot = pmem.snapshot();
    let mut total = OperationCounters::default();
    for class in CLASSES {
        total += snapshot.of(class);
    }
    let apart = APART.into_iter().filter_map(|(class, operation)| {
        let counters = snapshot.of(class);
        (counters.operations > 0).then(|| ApartRow {
            engine: engine.to_owned(),
            operation: operation.to_owned(),
            during: during.to_owned(),
            per_operation: counters.operations as f64 / operations.max(1) as f64,
            counters: means(&counters, counters.operations),
        })
    });
    Counted {
        counters: means(&total, operations),
        apart: apart.collect(),
        dimm_spread: snapshot.all_sessions().written_spread().map(|it| it.max_over_mean()),
    }
}

fn means(counters: &OperationCounters, operations: u64) -> Counters {
    let mean = |total: u64| total as f64 / operations.max(1) as f64;
    Counters {
        fences: mean(counters.fences),
        lines_flushed: mean(counters.lines_flushed),
        lines_reflushed: mean(counters.lines_reflushed),
        lines_read: mean(counters.lines_read()),
        media_writes: mean(counters.media_writes()),
        media_writes_partial: mean(counters.media_writes_partial()),
        media_reads: mean(counters.media_reads),
    }
}
