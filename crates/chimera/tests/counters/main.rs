//! What each operation costs in flushes, fences, lines and media writes: exact and repeatable, so a
//! change that makes an operation dearer fails here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod chameleon;
mod fixed;
mod hikv;
mod large;
mod lines;
mod reclaim;
mod reuse;
mod updates;
mod variable;

use std::path::Path;
use std::sync::Arc;

use chimera::{Db, Options};
use chimera_pmem::instrumented::{Counters, InstrumentedOptions, OperationCounters};
use chimera_pmem::{Environment, Hardware, Instrumented, Operation, SteppedEnvironment};

use lines::Flushes;

type Counted = Instrumented<Hardware>;

/// A store in anonymous memory in which nothing happens in the background.
fn open(options: Options) -> Db<Counted> {
    let options = options.anonymous(64 << 20).segment_bytes(8 << 20).reclaim_percent(0);
    let hardware = Hardware::new(options.hardware_options()).unwrap();
    let pmem = Instrumented::new(hardware, InstrumentedOptions::default());
    let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::new(1));
    Db::open_on(pmem, &environment, Path::new(""), &options).unwrap()
}

/// What `work` costs, with the device's buffers emptied before and after.
fn counted(db: &Db<Counted>, operation: Operation, work: impl FnOnce()) -> Counters {
    db.pmem().drain(Operation::Other);
    let before = db.pmem().snapshot();
    work();
    db.pmem().drain(operation);
    let counters = db.pmem().snapshot().since(&before);
    assert_eq!(counters.operations_open, 0);
    counters
}

/// Asserts exact fences of every operation of a class.
fn assert_fences(counters: &Counters, operation: Operation, operations: u64, each: u64) {
    assert_all_fences(counters, operation, operations, each * operations);
}

/// Asserts exact fences of all operations of a class.
fn assert_all_fences(counters: &Counters, operation: Operation, operations: u64, all: u64) {
    let totals = counters.of(operation);
    assert_eq!(totals.operations, operations, "{operation:?}");
    assert_eq!(totals.fences, all, "fences of {operation:?}");
    assert_eq!(totals.lines_flushed_clean, 0, "no {operation:?} flushes a clean line");
}

fn flushes(totals: &OperationCounters) -> Flushes {
    Flushes { lines: totals.lines_flushed, again: totals.lines_reflushed }
}

/// Asserts that exactly these lines were flushed, and again.
fn assert_flushes(totals: &OperationCounters, expected: Flushes) {
    assert_eq!(flushes(totals), expected);
}

/// Asserts that nothing was changed.
fn assert_untouched(totals: &OperationCounters) {
    assert_eq!((totals.stores, totals.fences, flushes(totals)), (0, 0, Flushes::default()));
}
