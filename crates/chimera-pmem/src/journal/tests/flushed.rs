//! What a thread has flushed, until its fence; and what its operation waits for.

use super::entry::Run;
use super::marks::join;
use super::*;

/// Does `work` on a thread of its own, to its end.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[test]
fn a_flush_of_nothing_makes_no_entry() {
    let pool = Pool::create(GROUP);
    pool.put(0, 1);
    let pending = pool.journal().pending_bytes();
    pool.memory.flush(pool.memory.check(64, 0).unwrap(), SITE);
    pool.memory.fence(SITE);
    assert_eq!(pool.journal().pending_bytes(), pending);
    pool.put(64, 2);
    assert_eq!((pool.replayed()[0], pool.replayed()[8]), (1, 2));
}

#[test]
fn runs_that_overlap_or_touch_become_one_and_others_stay() {
    type Runs = &'static [(u64, u64)];
    let cases: [(Runs, Runs); 9] = [
        (&[(4, 2)], &[(4, 2)]),
        (&[(4, 2), (4, 2)], &[(4, 2)]),
        (&[(4, 2), (6, 1)], &[(4, 3)]),
        (&[(6, 1), (4, 2)], &[(4, 3)]),
        (&[(4, 2), (7, 1)], &[(4, 2), (7, 1)]),
        (&[(4, 5), (5, 2)], &[(4, 5)]),
        (&[(9, 1), (0, 1), (4, 1)], &[(0, 1), (4, 1), (9, 1)]),
        (&[(0, 2), (4, 2), (5, 3), (8, 1), (20, 1)], &[(0, 2), (4, 5), (20, 1)]),
        (&[(8, 4), (0, 1), (3, 1), (12, 1), (2, 1)], &[(0, 1), (2, 2), (8, 5)]),
    ];
    for (given, expected) in cases {
        let runs = |runs: Runs| -> Vec<Run> {
            runs.iter().map(|&(first, count)| Run { first, count }).collect()
        };
        let mut joined = runs(given);
        join(&mut joined);
        assert_eq!(joined, runs(expected), "{given:?}");
    }
}

#[test]
fn two_flushes_that_touch_are_one_run_and_two_apart_leave_out_what_lies_between() {
    let pool = Pool::create(GROUP);
    let appended = |flushes: [u64; 2]| {
        let before = pool.journal().pending_bytes();
        for at in flushes {
            pool.memory.flush(pool.memory.check(at, 64).unwrap(), SITE);
        }
        pool.memory.fence(SITE);
        pool.journal().pending_bytes() - before
    };
    assert_eq!(appended([64, 0]), 32 + 8 + 2 * 64);
    assert_eq!(appended([64, 192]), 32 + 2 * 8 + 2 * 64);
}

#[test]
fn what_a_thread_flushed_waits_for_its_fence_while_it_uses_other_pools() {
    elsewhere(|| {
        let (one, other) = (Pool::create(GROUP), Pool::create(GROUP));
        one.memory.store_u64(0, 1, SITE);
        one.memory.flush(one.memory.check(0, 8).unwrap(), SITE);
        other.put(0, 2);
        one.memory.fence(SITE);
        assert_eq!((one.replayed()[0], other.replayed()[0]), (1, 2));
    });
}

#[test]
fn a_thread_keeps_nothing_of_journals_that_are_gone() {
    elsewhere(|| {
        for _ in 0..5 {
            Pool::create(GROUP).put(0, 1);
            assert_eq!(marks::known(), 1);
        }
        let pools = [Pool::create(GROUP), Pool::create(GROUP)];
        for pool in &pools {
            pool.put(0, 1);
        }
        assert_eq!(marks::known(), 2);
    });
}

#[test]
fn an_operation_waits_for_its_own_entries_and_not_for_those_behind() {
    let pool = Pool::create(SyncPolicy::Immediate);
    let journal = pool.journal();
    pool.put(0, 1);
    elsewhere(|| {
        pool.put(64, 2);
        journal.settle().unwrap();
        pool.put(128, 3);
    });
    assert_eq!(journal.figures().syncs, 1);
    journal.settle().unwrap();
    assert_eq!(journal.figures().syncs, 1, "the other thread's sync has covered this operation");
    assert!(journal.durable() < journal.tail_at());
}

#[test]
fn an_operation_that_only_saw_does_not_take_an_earlier_ones_entries_for_its_own() {
    let pool = Pool::create(SyncPolicy::Immediate);
    let journal = pool.journal();
    pool.put(0, 1);
    journal.forget();
    elsewhere(|| {
        journal.settle_read().unwrap();
        pool.put(64, 2);
    });
    assert!(journal.durable() < journal.tail_at());
    journal.settle().unwrap();
    assert_eq!(journal.durable(), journal.tail_at(), "it may have seen what was written since");
}
