//! Allocators against what they say.

use std::collections::BTreeSet;
use std::sync::Arc;

use chimera_pmem::environment::AnonymousFile;
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{Hardware, HardwareOptions, Instrumented, Operation, Pmem, Site};

use super::*;

const BYTES: u64 = 1 << 20;

fn memory() -> Instrumented<Hardware> {
    let options = HardwareOptions { reserve_bytes: 1 << 26, ..HardwareOptions::default() };
    let hardware = Hardware::new(options).expect("address space");
    let file: Arc<dyn chimera_pmem::environment::File> = Arc::new(AnonymousFile::new(BYTES));
    hardware.map(0, &file, 0, BYTES).expect("memory");
    Instrumented::new(hardware, InstrumentedOptions::default())
}

fn fences(pmem: &Instrumented<Hardware>, work: impl FnOnce()) -> (u64, u64) {
    pmem.reset();
    pmem.operation_begin(Operation::Other, 0);
    work();
    pmem.operation_acknowledge();
    let counters = pmem.snapshot().of(Operation::Other);
    (counters.fences, counters.lines_flushed)
}

#[test]
fn nodes_are_taken_once_and_come_back() {
    let pmem = memory();
    let mut each = PerNode::open(&pmem, 4096, 256, 100).expect("zeros");
    let links: Vec<u64> = (0..100).map(|number| 8 * number).collect();
    let taken: BTreeSet<u64> =
        links.iter().map(|link| each.allocate(&pmem, *link).expect("free")).collect();
    assert_eq!(taken.len(), 100);
    assert!(each.allocate(&pmem, 800).is_err());
    for link in &links[..50] {
        each.deallocate(&pmem, *link).expect("taken");
        assert_eq!(pmem.load_u64(*link), 0);
        assert!(each.deallocate(&pmem, *link).is_err(), "twice");
    }
    let again = PerNode::open(&pmem, 4096, 256, 100).expect("there");
    assert_eq!(again.free_count(), 50);
}

#[test]
fn groups_take_each_node_once() {
    let pmem = memory();
    let mut groups = Grouped::open(&pmem, 4096, 256, 100).expect("zeros");
    let taken: BTreeSet<u64> = (0..100).map(|_| groups.allocate(&pmem).expect("free")).collect();
    assert_eq!(taken.len(), 100);
    assert!(groups.allocate(&pmem).is_err());
    for node in taken.iter().filter(|node| **node % 3 == 0) {
        groups.deallocate(&pmem, *node);
        assert_eq!(groups.node_of(groups.node_at(*node)).expect("a node"), *node);
    }
    let mut again = Grouped::open(&pmem, 4096, 256, 100).expect("there");
    assert_eq!(again.taken_count(), 66);
    assert_eq!(again.retain(&pmem, |node| node % 2 == 0), 50);
    assert_eq!(again.taken_count(), 50);
}

/// I5: what a group saves.
#[test]
fn groups_cost_one_fence_and_nodes_by_themselves_three() {
    let pmem = memory();
    let mut each = PerNode::open(&pmem, 4096, 1024, 10).expect("zeros");
    let mut groups = Grouped::open(&pmem, 512 << 10, 1024, 10).expect("zeros");
    let of_each = fences(&pmem, || drop(each.allocate(&pmem, 0)));
    let of_groups = fences(&pmem, || drop(groups.allocate(&pmem)));
    // The node's 16 lines, the record's, the state's and the link's.
    assert_eq!((of_each, of_groups), ((3, 19), (1, 1)));
    assert_eq!(fences(&pmem, || drop(each.deallocate(&pmem, 0))), (3, 3));
    assert_eq!(fences(&pmem, || groups.deallocate(&pmem, 0)), (1, 1));
}

#[test]
fn damage_is_an_error() {
    const SITE: Site = Site::new("test.damage");
    let pmem = memory();
    for (at, value) in [(4096, 7), (4096 + 64, 2)] {
        pmem.store_u64(at, value, SITE);
        assert!(PerNode::open(&pmem, 4096, 256, 100).is_err());
        pmem.store_u64(at, 0, SITE);
    }
    pmem.store_u64(4096 + 8, u64::MAX, SITE);
    assert!(Grouped::open(&pmem, 4096, 256, 100).is_err());
    assert!(Grouped::open(&pmem, 4096, 256, 1 << 40).is_err());
}
