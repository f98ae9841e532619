//! `Group`: when a window opens, when it closes, and who waits at its end.

use super::staged::{Stage, append, ends, spawn, stage};
use super::*;

const DELAY_NS: u64 = 50_000_000;

fn is_all_durable(pool: &Pool) -> bool {
    pool.journal().durable() == pool.journal().tail_at()
}

fn put(pool: &Pool, at: u64) {
    pool.put(at, 1);
    pool.journal().settle().unwrap();
}

/// A pool whose task that syncs has started and waits.
fn started() -> Stage {
    let stage = stage(GROUP);
    stage.pool.environment.advance(1 << 40);
    stage.pool.journal().start().unwrap();
    while stage.pool.environment.step_tasks() {}
    stage
}

#[test]
fn an_operation_that_finds_everything_synced_wakes_nobody() {
    let Stage { pool, .. } = started();
    pool.journal().settle().unwrap();
    assert!(!pool.environment.step_tasks());
    pool.put(0, 1);
    pool.journal().sync().unwrap();
    pool.journal().settle().unwrap();
    assert!(!pool.environment.step_tasks());
}

#[test]
fn a_sync_closes_the_window() {
    let pool = Pool::create(GROUP);
    put(&pool, 0);
    pool.journal().sync().unwrap();
    pool.environment.advance(100 * DELAY_NS);
    put(&pool, 64);
    put(&pool, 128);
    assert!(!is_all_durable(&pool), "a new window has begun");
}

#[test]
fn what_was_synced_does_not_fill_the_window() {
    let pool = Pool::create(GROUP);
    for _ in 0..2 {
        append(&pool, CAPACITY / 8);
        pool.journal().sync().unwrap();
    }
    put(&pool, 0);
    put(&pool, 64);
    assert!(!is_all_durable(&pool));
}

#[test]
fn a_writer_syncs_by_itself_when_the_window_fills_a_quarter_of_the_journal() {
    for (bytes, syncs) in [(CAPACITY / 4 - 8, false), (CAPACITY / 4, true)] {
        let pool = Pool::create(GROUP);
        append(&pool, bytes);
        pool.journal().settle().unwrap();
        assert!(!is_all_durable(&pool), "the window has just been opened");
        pool.journal().settle().unwrap();
        assert_eq!(is_all_durable(&pool), syncs, "{bytes} bytes");
    }
}

#[test]
fn a_writer_syncs_by_itself_after_twice_the_delay_and_not_before() {
    let pool = Pool::create(GROUP);
    pool.environment.advance(1 << 40);
    put(&pool, 0);
    pool.environment.advance(2 * DELAY_NS - 1);
    pool.journal().settle().unwrap();
    assert!(!is_all_durable(&pool));
    pool.environment.advance(1);
    pool.journal().settle().unwrap();
    assert!(is_all_durable(&pool));
}

#[test]
fn a_writer_waits_for_the_sync_before_when_its_own_window_is_over_and_not_sooner() {
    let Stage { journal_file, pool, .. } = stage(GROUP);
    pool.environment.advance(1 << 40);
    pool.put(0, 1);
    let seen = Arc::new(Mutex::new((Vec::new(), None)));
    let (inner, tell) = (pool.clone(), seen.clone());
    journal_file.in_next_sync(move || {
        let (mut ended, mut last) = (Vec::new(), None);
        for passes_ns in [0, 0, DELAY_NS - 1, 1] {
            inner.environment.advance(passes_ns);
            let thread = spawn(&inner, |pool| put(pool, 64));
            ended.push(ends(&inner, &thread));
            last = Some(thread);
        }
        *lock(&tell) = (ended, last);
        Ok(())
    });
    pool.journal().sync().unwrap();
    let (ended, last) = std::mem::take(&mut *lock(&seen));
    last.unwrap().join().unwrap();
    assert_eq!(ended, [true, true, true, false]);
    let figures = pool.journal().figures();
    assert_eq!((figures.syncs, figures.unsynced_bytes), (1, 4 * 104), "it waits, and no more");
}

/// An operation looks whether everything is synced, and opens a window. A sync between the two covers it.
#[test]
fn a_window_that_was_covered_before_it_opened_is_closed() {
    let Stage { pool, .. } = started();
    let journal = pool.journal();
    put(&pool, 0);
    while pool.environment.step_tasks() {}
    let opened = journal.window.load(Ordering::SeqCst);
    journal.sync().unwrap();
    journal.window.store(opened, Ordering::SeqCst);
    pool.environment.advance(DELAY_NS);
    assert!(pool.environment.step_tasks());
    assert_eq!(journal.window.load(Ordering::SeqCst), 0);
    pool.environment.step_tasks();
    pool.environment.advance(1 << 40);
    assert!(!pool.environment.step_tasks(), "nothing to do however late it is");
    assert_eq!(journal.figures().syncs, 1);
}

/// By a clock that went back the window that opens during a sync began when the one before it did.
#[test]
fn a_window_that_opens_while_the_one_before_is_synced_is_not_closed_with_it() {
    let Stage { journal_file, pool, .. } = started();
    let journal = pool.journal();
    put(&pool, 0);
    while pool.environment.step_tasks() {}
    let opened = journal.window.load(Ordering::SeqCst);
    pool.environment.advance(DELAY_NS);
    let inner = pool.clone();
    journal_file.in_next_sync(move || {
        inner.environment.rewind(DELAY_NS);
        spawn(&inner, |pool| put(pool, 64)).join().unwrap();
        assert_eq!(inner.journal().window.load(Ordering::SeqCst), opened);
        Ok(())
    });
    while pool.environment.step_tasks() {}
    assert_eq!((journal.figures().syncs, is_all_durable(&pool)), (1, false));
    pool.environment.advance(DELAY_NS);
    while pool.environment.step_tasks() {}
    assert!(is_all_durable(&pool), "acknowledged, and no sync began within the delay");
}
