//! Every cell, and what the counters say of some.

use std::collections::BTreeSet;
use std::sync::Arc;

use chimera_pmem::environment::AnonymousFile;
use chimera_pmem::instrumented::{InstrumentedOptions, OperationCounters};
use chimera_pmem::{Hardware, HardwareOptions, Instrumented, Operation, Pmem};

use super::*;
use crate::atomicity::FailureAtomicity;
use crate::layout::{Geometry, LayoutKind, NodeShape, sizes};

const BYTES: u64 = 8 << 20;

fn memory() -> Instrumented<Hardware> {
    let options = HardwareOptions { reserve_bytes: 1 << 28, ..HardwareOptions::default() };
    let hardware = Hardware::new(options).expect("address space");
    let file: Arc<dyn chimera_pmem::environment::File> = Arc::new(AnonymousFile::new(BYTES));
    hardware.map(0, &file, 0, BYTES).expect("memory");
    Instrumented::new(hardware, InstrumentedOptions::default())
}

const REGION: Region = Region { at: 4096, bytes: BYTES - 4096 };

/// What one operation of a cell costs on average, with nothing in the cache.
fn cost(pmem: &Instrumented<Hardware>, cell: Cell, places: u64) -> OperationCounters {
    let mut trial = trial(&cell, pmem, REGION, places).expect("it fits");
    trial.prepare(pmem, 0, trial.places()).expect("it is made");
    pmem.empty_cache();
    pmem.reset();
    pmem.operation_begin(Operation::Get, 0);
    trial.step(pmem, 0).expect("it is done");
    pmem.operation_acknowledge();
    pmem.snapshot().of(Operation::Get)
}

#[test]
fn places_come_once_in_no_order() {
    for count in [1, 2, 3, 100, 1024, 5000] {
        let places: Vec<u64> = Places::new(count, 42).take(count as usize).collect();
        let distinct: BTreeSet<u64> = places.iter().copied().collect();
        assert_eq!(distinct.len() as u64, count, "{count}");
        assert!(places.iter().all(|place| *place < count));
        let neighbours = places.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(count < 100 || neighbours < count as usize / 10, "{neighbours} of {count}");
    }
}

#[test]
fn every_cell_can_be_made_and_done_again() {
    let pmem = memory();
    let mut count = 0;
    for cell in Experiment::ALL.into_iter().flat_map(cells) {
        let mut trial =
            trial(&cell, &pmem, REGION, 4).unwrap_or_else(|error| panic!("{cell:?}: {error}"));
        for _ in 0..2 {
            trial.prepare(&pmem, 0, trial.places()).expect("it is made");
            for place in 0..trial.places() {
                trial.step(&pmem, place).unwrap_or_else(|error| panic!("{cell:?}: {error}"));
            }
        }
        count += 1;
    }
    assert!(count > 500, "{count} cells");
}

/// The cells that have formulas store what these say.
#[test]
fn cells_store_what_the_formulas_say() {
    let pmem = memory();
    for experiment in [Experiment::E4, Experiment::E8, Experiment::E10] {
        for cell in cells(experiment) {
            let kind = cell.contender.layout().expect("a layout");
            let geometry = Geometry::new(NodeShape::published(kind, cell.size)).expect("it fits");
            let entries = geometry.entries;
            let rank = match cell.position {
                Position::Middle => entries / 2,
                Position::Last => entries - 1,
                _ => 0,
            };
            let expected = match experiment {
                Experiment::E4 => sizes::insert(&geometry, entries - 1, rank),
                Experiment::E8 => sizes::erase(&geometry, entries, rank),
                _ => sizes::merge(&geometry, entries / 2, entries / 2 - 1),
            };
            assert_eq!(cost(&pmem, cell, 4).bytes_stored, expected, "{cell:?}");
        }
    }
}

/// I2: a level costs a line of persistent memory, or none.
#[test]
fn each_level_is_a_line() {
    let pmem = memory();
    for levels in 1..=5_u32 {
        let cell = |in_dram| Cell {
            experiment: Experiment::E2,
            contender: Contender::Inner(in_dram),
            size: levels,
            position: Position::Any,
        };
        assert_eq!(cost(&pmem, cell(true), 4000).lines_read_demand, 1);
        let in_pmem = cost(&pmem, cell(false), 4000).lines_read_demand;
        assert_eq!(in_pmem, u64::from(levels) + 1);
    }
}

/// E1: probing hashes reads fewest lines where the key is at the end.
#[test]
fn hashes_save_lines() {
    let pmem = memory();
    let lines = |contender| {
        let cell =
            Cell { experiment: Experiment::E1, contender, size: 1024, position: Position::Last };
        cost(&pmem, cell, 4).lines_read_demand
    };
    let hashed = lines(Contender::Layout(LayoutKind::Hashing));
    assert!(hashed <= 3, "{hashed}");
    assert!(hashed < lines(Contender::Layout(LayoutKind::Unsorted)));
    assert!(hashed < lines(Contender::Layout(LayoutKind::Bitmap)));
}

/// I3: everything in a transaction is written twice, and costs fences.
#[test]
fn transactions_write_twice() {
    let pmem = memory();
    let costs = FailureAtomicity::ALL.map(|kind| {
        let contender = Contender::Moved(true, kind);
        let cell =
            Cell { experiment: Experiment::E6, contender, size: 4096, position: Position::Any };
        cost(&pmem, cell, 4)
    });
    assert_eq!(costs.map(|cost| cost.fences), [2, 5, 6]);
    let bytes = costs.map(|cost| cost.bytes_stored);
    assert!(bytes[1] < bytes[0] + 100, "{bytes:?}");
    assert!(bytes[2] > 2 * bytes[0], "{bytes:?}");
}
