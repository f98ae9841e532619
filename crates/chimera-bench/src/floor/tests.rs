//! What the floors do, counted.

use chimera_pmem::environment::AnonymousFile;
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{Hardware, HardwareOptions, Instrumented};

use super::*;
use crate::driver::clock::Measure;
use crate::driver::setup::Setup;
use crate::workload::{Keys, Values};

fn floor(records: u64, data: &Data) -> Floor<Instrumented<Hardware>> {
    let hardware = Hardware::new(HardwareOptions::default()).expect("address space");
    let pmem = Instrumented::new(hardware, InstrumentedOptions::default());
    let bytes = region_bytes(data, records, records, 1);
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(bytes));
    Floor::new(pmem, &file, data, (records, records), 1, 26 * records).expect("memory")
}

fn data(key_bytes: u32, value_bytes: u32) -> Data {
    let setup = Setup { key_bytes, value_bytes, ..Setup::small() };
    Data {
        keys: Keys::new(key_bytes as usize, 1),
        values: Values::new(value_bytes as usize, 1),
        ..Data::new(&setup)
    }
}

#[test]
fn floors_have_the_fences_of_their_protocols() {
    let data = data(16, 200);
    let floor = floor(5000, &data);
    let fences_and_lines = [
        (FloorAction::Insert, 2.0, 3.0..6.0),
        (FloorAction::Get, 0.0, 0.0..0.001),
        (FloorAction::Update, 1.0, 1.0..1.001),
        (FloorAction::Overwrite, 3.0, 4.0..7.0),
        (FloorAction::Delete, 1.0, 1.0..1.001),
    ];
    for (action, fences, lines) in fences_and_lines {
        floor.pmem.reset();
        for chained in [false, true] {
            run(&floor, &data, action, (1, 2000), (Measure::Throughput, chained), 1)
                .expect("every record is there");
        }
        let means = floor.pmem.snapshot().per_operation(action.class()).expect("counted");
        assert!((means.fences - fences).abs() < 1e-9, "{action:?}: {}", means.fences);
        assert!(lines.contains(&means.lines_flushed), "{action:?}: {}", means.lines_flushed);
        assert_eq!(floor.pmem.snapshot().of(action.class()).operations, 4000);
    }
}

#[test]
fn records_of_all_sizes_have_places() {
    for (key, value) in [(8, 8), (16, 0), (8, 200), (32, 500), (100, 900), (16, 9000)] {
        let data = data(key, value);
        let floor = floor(300, &data);
        for action in [FloorAction::Insert, FloorAction::Overwrite, FloorAction::Get] {
            run(&floor, &data, action, (2, 1000), (Measure::Latency, false), 1)
                .expect("every record is there");
        }
    }
}

#[test]
fn a_wrong_record_is_noticed() {
    let data = data(16, 200);
    let floor = floor(10, &data);
    floor.pmem.store_u64(floor.key(floor.find(3)).offset(), 0, FLOOR);
    let outcome = run(&floor, &data, FloorAction::Get, (1, 1000), (Measure::Throughput, false), 1);
    assert!(matches!(outcome, Err(BenchError::WrongAnswer { number: 3, .. })), "{outcome:?}");
}
