use std::sync::Arc;
use std::thread;

use super::super::{Profile, Timing};
use super::{
    Counters, DeviceParameters, Heap, Instrumented, SITE, counted, extent, instance, persist,
};
use crate::{Operation, Pmem};

fn inserts(pmem: &Instrumented<Heap>, session: u32, count: u64) {
    for record in 0..count {
        pmem.operation_begin(Operation::Insert, session);
        persist(pmem, u64::from(session) * 65_536 + record % 16 * 4096, 200);
        pmem.operation_acknowledge();
    }
}

#[test]
fn threads_are_added_up_alive_or_ended() {
    let pmem = Arc::new(instance(|_| {}));
    for _ in 0..2 {
        let threads: Vec<_> = (0..4)
            .map(|session| {
                let pmem = Arc::clone(&pmem);
                thread::spawn(move || inserts(&pmem, session, 100))
            })
            .collect();
        inserts(&pmem, 4, 100);
        for thread in threads {
            thread.join().unwrap();
        }
    }
    let counters = pmem.snapshot();
    let insert = counters.of(Operation::Insert);
    assert_eq!((insert.operations, insert.fences, insert.lines_flushed), (1000, 1000, 4000));
    assert_eq!(insert.bytes_stored, 200_000);
    assert_eq!(counters.sessions.len(), 5);
    for lines in counters.sessions.values() {
        assert_eq!(lines.written.iter().sum::<u64>(), 800);
    }
    pmem.reset();
    assert_eq!(pmem.snapshot().total().operations, 0);
}

#[test]
fn operations_of_threads_do_not_mix() {
    let pmem = instance(|_| {});
    pmem.operation_begin(Operation::Insert, 0);
    thread::scope(|scope| {
        scope.spawn(|| pmem.fence(SITE));
    });
    pmem.operation_acknowledge();
    assert_eq!(pmem.snapshot().of(Operation::Insert).fences, 0);
    assert_eq!(pmem.snapshot().of(Operation::Other).fences, 1);
}

#[test]
fn instances_do_not_mix() {
    let first = instance(|_| {});
    let second = instance(|_| {});
    first.operation_begin(Operation::Insert, 0);
    second.fence(SITE);
    first.fence(SITE);
    first.operation_acknowledge();
    drop(first);
    let third = instance(|_| {});
    third.fence(SITE);
    assert_eq!(second.snapshot().total().fences, 1);
    assert_eq!(third.snapshot().of(Operation::Other).fences, 1);
}

#[test]
fn a_thread_may_outlive_the_instance() {
    let pmem = Arc::new(instance(|_| {}));
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let thread = {
        let pmem = Arc::clone(&pmem);
        thread::spawn(move || {
            pmem.fence(SITE);
            drop(pmem);
            receiver.recv().unwrap();
        })
    };
    while Arc::strong_count(&pmem) > 1 {
        thread::yield_now();
    }
    assert_eq!(pmem.snapshot().total().fences, 1);
    drop(pmem);
    sender.send(()).unwrap();
    thread.join().unwrap();
}

/// A few thousand calls of every kind, chosen by a fixed sequence.
fn script() -> Counters {
    let pmem = instance(|options| {
        options.cache.bytes = 64 << 10;
        let device = Profile::OPTANE_100.device();
        // What becomes old depends on the clock.
        let timing = Timing { age_ns: u64::MAX, ..device.timing.unwrap() };
        options.device = Some(DeviceParameters { timing: Some(timing), ..device });
    });
    let mut state = 42_u64;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..3000 {
        let operation = Operation::ALL[next(10) as usize];
        counted(&pmem, operation, || {
            let range = extent(next(8000) * 64, 8 * (1 + next(60)));
            match next(6) {
                0 => persist(&pmem, range.offset(), range.length() as usize),
                1 => pmem.copy_nt(extent(range.offset(), 256), &[3; 256], SITE),
                2 => pmem.read(range, &mut vec![0; range.length() as usize]),
                3 => pmem.prefetch(range),
                4 => drop(pmem.cas_u64(range.offset(), 0, 1, SITE)),
                _ => pmem.fence(SITE),
            }
        });
    }
    pmem.drain(Operation::Other);
    pmem.snapshot()
}

#[test]
fn one_thread_counts_the_same_every_time() {
    let counters = script();
    let total = counters.total();
    assert_eq!(total.operations, 3000);
    assert!(total.media_reads > 0 && total.lines_evicted > 0 && total.latency_ns > 0);
    assert_eq!(script(), counters);
    assert_eq!(thread::spawn(script).join().unwrap(), counters);
}
