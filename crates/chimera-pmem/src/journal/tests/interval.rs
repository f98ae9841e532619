//! Writing back by the clock.

use super::watched::WatchedPool;
use super::*;

const INTERVAL_NS: u64 = 1_000_000_000;
const INTERVAL: Duration = Duration::from_nanos(INTERVAL_NS);
const WINDOW_NS: u64 = 50_000_000;

fn run(environment: &SteppedEnvironment) {
    while environment.step_tasks() {}
}

fn started(policy: SyncPolicy) -> Pool {
    let pool = Pool::create(policy);
    pool.journal().checkpoint_every(INTERVAL);
    pool.journal().start().unwrap();
    run(&pool.environment);
    pool
}

fn pass(pool: &Pool, ns: u64) {
    pool.environment.advance(ns);
    run(&pool.environment);
}

#[test]
fn everything_is_written_back_an_interval_after_the_first_sync() {
    let pool = started(GROUP);
    let journal = pool.journal();
    pass(&pool, 7 * INTERVAL_NS);
    for number in 0..3 {
        pool.put(64 * number, 1);
        journal.settle().unwrap();
        run(&pool.environment);
        pass(&pool, WINDOW_NS);
        assert_eq!(journal.durable(), journal.tail_at());
    }
    pass(&pool, INTERVAL_NS - 2 * WINDOW_NS - 1);
    assert_eq!(journal.pending_bytes(), 3 * 104, "not before its time");
    pass(&pool, 1);
    assert_eq!(journal.pending_bytes(), 0);
    let capacity = journal.figures().capacity_bytes;
    assert_eq!(capacity, CAPACITY, "a journal that is written back by the clock is not too small");
    // Idle: nothing to do however late it is.
    pool.environment.advance(1 << 50);
    assert!(!pool.environment.step_tasks());
}

#[test]
fn each_interval_begins_with_a_sync() {
    let pool = started(SyncPolicy::Immediate);
    let journal = pool.journal();
    for number in 0..5 {
        pass(&pool, 3 * INTERVAL_NS / 2);
        pool.put(64 * number, 1);
        journal.settle().unwrap();
        run(&pool.environment);
        pass(&pool, INTERVAL_NS - 1);
        assert_eq!(journal.pending_bytes(), 104, "{number}");
        pass(&pool, 1);
        assert_eq!(journal.pending_bytes(), 0, "{number}");
    }
}

#[test]
fn what_is_appended_meanwhile_has_an_interval_of_its_own() {
    let watched = WatchedPool::create(CAPACITY, DATA_BYTES);
    let pool = watched.pool.clone();
    let journal = pool.journal();
    journal.checkpoint_every(INTERVAL);
    journal.start().unwrap();
    pool.put(0, 1);
    journal.sync().unwrap();
    run(&pool.environment);
    // Synced while the interval before has not ended yet: that one's checkpoint does not have it.
    let during = pool.clone();
    watched.data.during_sync(move || {
        during.put(64, 2);
        during.journal().sync().unwrap();
    });
    pass(&pool, INTERVAL_NS);
    assert_eq!(journal.pending_bytes(), 104);
    pass(&pool, INTERVAL_NS - 1);
    assert_eq!(journal.pending_bytes(), 104);
    pass(&pool, 1);
    assert_eq!(journal.pending_bytes(), 0);
}

#[test]
fn a_clock_that_goes_back_makes_no_checkpoint_late() {
    let pool = started(GROUP);
    let journal = pool.journal();
    pass(&pool, 1 << 50);
    pool.put(0, 1);
    journal.sync().unwrap();
    run(&pool.environment);
    pool.environment.rewind(1 << 49);
    pool.put(64, 1);
    journal.sync().unwrap();
    pass(&pool, INTERVAL_NS);
    assert_eq!(journal.pending_bytes(), 0);
}

#[test]
fn without_an_interval_entries_stay_for_as_long_as_there_is_room() {
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    journal.start().unwrap();
    pool.put(0, 1);
    journal.sync().unwrap();
    run(&pool.environment);
    pass(&pool, 1 << 60);
    assert_eq!(journal.pending_bytes(), 104);
}

#[test]
fn a_full_ring_is_written_back_before_its_interval_ends() {
    let pool = started(GROUP);
    let journal = pool.journal();
    for number in 0..2000 {
        pool.put(64 * (number % 64), number);
        journal.settle().unwrap();
        if number % 100 == 0 {
            run(&pool.environment);
        }
    }
    run(&pool.environment);
    assert!(journal.pending_bytes() < CAPACITY / 2);
    pass(&pool, INTERVAL_NS + WINDOW_NS);
    assert_eq!(journal.pending_bytes(), 0);
}

/// Also where it is asked for in the middle of a checkpoint, which does not have all of it.
#[test]
fn what_is_to_be_written_back_soon_is_whatever_the_interval() {
    let watched = Arc::new(WatchedPool::create(CAPACITY, DATA_BYTES));
    let (pool, journal) = (watched.pool.clone(), watched.pool.journal().clone());
    journal.checkpoint_every(Duration::MAX);
    journal.start().unwrap();
    pool.put(0, 1);
    journal.write_back_soon();
    let other = pool.clone();
    watched.data.during_sync(move || {
        other.put(64, 2);
        other.journal().write_back_soon();
    });
    run(&pool.environment);
    assert_eq!(journal.pending_bytes(), 0);
    pool.put(0, 3);
    run(&pool.environment);
    assert!(journal.pending_bytes() > 0, "asked for once");
}
