//! Sampling: repeatable, and without an effect on anything else.

use chimera::LatencyStats;
use chimera_pmem::environment::Environment;

use super::stepped;
use super::tools::{key, small, value};

/// Puts and gets, the clock moving on inside of a get by as much as its number.
fn run(every: u32) -> (LatencyStats, u64, Vec<Vec<u8>>) {
    let (db, environment) = stepped(&small().latency_sampling(every));
    let mut session = db.session();
    for number in 0..2000 {
        session.put(key(number % 50), value(number % 50, number)).unwrap();
        session.get_with(key(number % 50), |_| environment.advance(number + 1)).unwrap();
    }
    let mut records = Vec::new();
    db.for_each(|_, value| {
        records.push(value.to_vec());
        true
    })
    .unwrap();
    (db.stats().operations.latency.get, environment.random_u64(), records)
}

#[test]
fn which_operations_are_timed_is_repeatable() {
    let (some, ..) = run(16);
    assert_eq!(some, run(16).0);
    assert!((60..200).contains(&some.samples), "{some:?}");
    let (all, ..) = run(1);
    assert_eq!((all.samples, all.sum_ns, all.max_ns), (2000, 2000 * 2001 / 2, 2000));
    assert!((1000..=1032).contains(&all.p50_ns), "{all:?}");
    assert!((1980..=2000).contains(&all.p99_ns), "{all:?}");
    assert_eq!(run(0).0, LatencyStats::default());
}

#[test]
fn what_a_store_does_is_the_same_whatever_is_timed() {
    let (_, random, records) = run(0);
    for every in [1, 16, u32::MAX] {
        let (_, same_random, same_records) = run(every);
        assert_eq!((same_random, &same_records), (random, &records), "one in {every}");
    }
}
