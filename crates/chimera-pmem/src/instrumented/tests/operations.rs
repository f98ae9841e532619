use super::{DeviceParameters, SITE, counted, extent, instance, persist};
use crate::{Operation, Pmem};

#[test]
fn a_nested_operation_is_booked_apart() {
    let pmem = instance(|_| {});
    pmem.operation_begin(Operation::Insert, 3);
    persist(&pmem, 0, 8);
    pmem.operation_begin(Operation::BlockHandOut, 3);
    persist(&pmem, 4096, 200);
    pmem.operation_begin(Operation::Recovery, 3);
    pmem.fence(SITE);
    pmem.operation_acknowledge();
    pmem.operation_acknowledge();
    persist(&pmem, 0, 8);
    pmem.operation_is(Operation::Overwrite);
    assert_eq!(pmem.snapshot().operations_open, 1);
    pmem.operation_acknowledge();

    let counters = pmem.snapshot();
    assert_eq!(counters.operations_open, 0);
    assert_eq!(counters.of(Operation::Insert).operations, 0, "it turned out to be an overwrite");
    let overwrite = counters.of(Operation::Overwrite);
    assert_eq!((overwrite.operations, overwrite.fences, overwrite.lines_flushed), (1, 2, 1));
    assert_eq!(overwrite.lines_reflushed, 1, "seen before the nested operation");
    let hand_out = counters.of(Operation::BlockHandOut);
    assert_eq!((hand_out.operations, hand_out.fences, hand_out.lines_flushed), (1, 1, 4));
    let innermost = counters.of(Operation::Recovery);
    assert_eq!((innermost.operations, innermost.fences, innermost.lines_flushed), (1, 1, 0));
    assert_eq!(counters.total().fences, 4);
}

#[test]
fn relabelling_touches_the_innermost_operation_only() {
    let pmem = instance(|_| {});
    pmem.operation_begin(Operation::Insert, 0);
    pmem.operation_begin(Operation::Get, 0);
    pmem.operation_is(Operation::Recovery);
    pmem.operation_acknowledge();
    pmem.operation_acknowledge();
    let counters = pmem.snapshot();
    assert_eq!(counters.of(Operation::Recovery).operations, 1);
    assert_eq!(counters.of(Operation::Insert).operations, 1);
    assert_eq!(counters.operations.len(), 2);
}

#[test]
fn what_is_outside_of_operations_is_other() {
    let pmem = instance(|_| {});
    persist(&pmem, 0, 8);
    persist(&pmem, 0, 8);
    pmem.load_u64(0);
    let other = pmem.snapshot().of(Operation::Other);
    assert_eq!((other.operations, other.fences), (0, 2));
    assert_eq!(
        (other.lines_flushed, other.lines_reflushed),
        (2, 0),
        "a fence ends the distinctness"
    );
    assert_eq!(other.means(), None);
}

#[test]
fn an_operation_under_way_is_booked_so_far() {
    let pmem = instance(|_| {});
    pmem.operation_begin(Operation::Delete, 0);
    pmem.fence(SITE);
    let counters = pmem.snapshot();
    assert_eq!(counters.of(Operation::Delete).fences, 1);
    assert_eq!((counters.of(Operation::Delete).operations, counters.operations_open), (0, 1));
    pmem.reset();
    pmem.fence(SITE);
    pmem.operation_acknowledge();
    let delete = pmem.snapshot().of(Operation::Delete);
    assert_eq!((delete.operations, delete.fences), (1, 1));
}

#[test]
#[should_panic(expected = "not acknowledged")]
fn operations_that_are_never_acknowledged_are_noticed() {
    let pmem = instance(|_| {});
    for _ in 0..1000 {
        pmem.operation_begin(Operation::Get, 0);
    }
}

#[test]
fn means_are_per_operation() {
    let pmem = instance(|_| {});
    for record in 0..4 {
        let bytes = if record == 0 { 128 } else { 64 };
        counted(&pmem, Operation::Insert, || persist(&pmem, record * 4096, bytes));
    }
    let insert = pmem.snapshot().per_operation(Operation::Insert).unwrap();
    assert_eq!((insert.lines_flushed, insert.fences), (1.25, 1.0));
    assert_eq!((insert.bytes_stored, insert.lines_read()), (80.0, 1.25));
    assert_eq!(pmem.snapshot().per_operation(Operation::Get), None);
}

#[test]
fn sessions_spread_over_the_dimms() {
    let pmem = instance(|_| {});
    for page in 0..6 {
        pmem.operation_begin(Operation::Insert, 1);
        persist(&pmem, page * 4096, 8);
        pmem.operation_acknowledge();
    }
    pmem.operation_begin(Operation::Insert, 2);
    persist(&pmem, 6 * 4096, 384);
    pmem.copy_nt(extent(4096, 64), &[1; 64], SITE);
    pmem.operation_acknowledge();
    persist(&pmem, 4096, 8);

    let counters = pmem.snapshot();
    assert_eq!(counters.sessions[&1].written, [1; 6]);
    assert_eq!(counters.sessions[&1].read, [1; 6]);
    let even = counters.sessions[&1].written_spread().unwrap();
    assert_eq!((even.max, even.mean, even.max_over_mean()), (1, 1.0, 1.0));
    assert_eq!(counters.sessions[&2].written, [6, 1, 0, 0, 0, 0]);
    assert_eq!(counters.sessions[&2].read, [6, 0, 0, 0, 0, 0]);
    let uneven = counters.sessions[&2].read_spread().unwrap();
    assert_eq!(Some(uneven.max_over_mean()), Some(6.0));
    assert_eq!(counters.all_sessions().written, [7, 2, 1, 1, 1, 1], "nobody's lines are in none");
}

#[test]
fn a_difference_of_snapshots_is_what_lies_between() {
    let pmem = instance(|_| {});
    counted(&pmem, Operation::Insert, || persist(&pmem, 0, 216));
    let earlier = pmem.snapshot();
    counted(&pmem, Operation::Delete, || persist(&pmem, 0, 8));
    let between = pmem.snapshot().since(&earlier);
    assert_eq!(between.operations.keys().collect::<Vec<_>>(), [&Operation::Delete]);
    assert_eq!(between.of(Operation::Delete).fences, 1);
    assert_eq!(between.sessions[&0].written, [1, 0, 0, 0, 0, 0]);
}

#[test]
fn reset_counts_from_zero_but_keeps_the_models() {
    let pmem = instance(|_| {});
    counted(&pmem, Operation::Insert, || persist(&pmem, 0, 192));
    pmem.reset();
    assert!(pmem.snapshot().operations.is_empty());
    let insert = counted(&pmem, Operation::Insert, || persist(&pmem, 0, 256));
    assert_eq!(insert.lines_missed, 1, "three lines are cached");
    assert_eq!(insert.media_writes_full, 1, "three lines were in the buffer");
}

/// Ten records of 200 bytes, one per page: 4 lines each, the last incomplete in nothing: a whole unit.
#[test]
fn write_amplification_is_media_bytes_over_user_bytes() {
    let pmem = instance(|_| {});
    assert_eq!(pmem.snapshot().media_write_amplification(), None);
    for record in 0..10 {
        counted(&pmem, Operation::Insert, || persist(&pmem, record * 4096, 200));
        pmem.user_bytes(Operation::Insert, 200);
    }
    persist(&pmem, 128 * 4096, 8);
    pmem.drain(Operation::Insert);
    let counters = pmem.snapshot();
    let amplification = counters.media_write_amplification();
    assert_eq!(amplification, Some(11.0 * 256.0 / 2000.0));
    assert_eq!(counters.line_bytes_written(), 41 * 64);
    assert_eq!(counters.of(Operation::Insert).user_bytes, 2000);
}

#[test]
fn the_number_of_dimms_is_a_parameter() {
    let pmem = instance(|options| {
        options.device = Some(DeviceParameters { dimms: 2, ..Default::default() });
    });
    counted(&pmem, Operation::Insert, || persist(&pmem, 0, 3 * 4096));
    assert_eq!(pmem.snapshot().sessions[&0].written, [128, 64]);
}
