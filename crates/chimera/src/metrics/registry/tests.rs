use chimera_pmem::SteppedEnvironment;

use super::*;
use crate::metrics::Meter;
use crate::types::operations::{Count, Timed};

/// Operations of session `number` that are timed, of `operations`.
fn timed(every: u32, number: u32, operations: u32) -> Vec<u32> {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let registry = Registry::new(environment.clone(), every);
    let mut meter = Meter::new(registry.clone(), number);
    let mut timed = Vec::new();
    for operation in 0..operations {
        let started = meter.begin();
        environment.advance(100);
        let before = meter.totals().latencies[0].samples();
        meter.end(started, Timed::Get);
        if meter.totals().latencies[0].samples() > before {
            timed.push(operation);
        }
    }
    let latency = registry.totals().stats().latency.get;
    assert_eq!(latency.samples, timed.len() as u64);
    assert_eq!(latency.sum_ns, 100 * timed.len() as u64);
    timed
}

#[test]
fn one_in_so_many_is_timed_and_the_same_ones_each_time() {
    assert_eq!(timed(0, 0, 1000), []);
    assert_eq!(timed(1, 0, 100), (0..100).collect::<Vec<_>>());
    let some = timed(8, 3, 8000);
    assert_eq!(some, timed(8, 3, 8000));
    assert_ne!(some, timed(8, 4, 8000));
    assert!((900..1100).contains(&some.len()), "{} of 8000", some.len());
    let odd = some.iter().filter(|operation| *operation % 2 == 1).count();
    assert!((400..600).contains(&odd), "{odd} odd ones of {}", some.len());
}

#[test]
fn a_session_is_counted_once_before_and_after_its_end() {
    let registry = Registry::new(Arc::new(SteppedEnvironment::in_memory(1)), 1);
    let mut meters: Vec<_> = (0..3).map(|number| Meter::new(registry.clone(), number)).collect();
    for (number, meter) in meters.iter_mut().enumerate() {
        let started = meter.begin();
        meter.count_many(Count::GetHits, 1 + number as u64);
        meter.end(started, Timed::Delete);
    }
    let check = |open, each: &[(u32, u64)]| {
        let stats = registry.totals().stats();
        assert_eq!((stats.get_hits, stats.latency.delete.samples), (6, 3));
        assert_eq!(registry.session_counts(), (open, 3));
        let mut sessions = registry.sessions();
        sessions.sort_by_key(|session| session.number);
        let found = sessions.iter().map(|session| (session.number, session.operations.get_hits));
        assert_eq!(found.collect::<Vec<_>>(), each);
    };
    check(3, &[(0, 1), (1, 2), (2, 3)]);
    meters.remove(1);
    check(2, &[(0, 1), (2, 3)]);
    meters.clear();
    check(0, &[]);
}
