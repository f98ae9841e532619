//! What every later call says when an entry could not be written, or a sync has failed.

use super::staged::{Stage, beside_failing_sync, stage};
use super::*;

/// What is said of an entry that could not be written.
const REFUSED: &str = "no storage space";

#[test]
fn an_entry_that_cannot_be_written_is_told_by_every_later_call() {
    for policy in [SyncPolicy::Immediate, GROUP] {
        let Stage { journal_file, pool, .. } = stage(policy);
        let journal = pool.journal();
        pool.put(0, 1);
        // Nothing is left to sync or to write back: no later call comes to look at the file.
        journal.checkpoint().unwrap();
        let tail = journal.tail_at();
        journal_file.refuses_writes.store(true, Ordering::Relaxed);
        pool.put(0, 2);
        journal_file.refuses_writes.store(false, Ordering::Relaxed);
        pool.put(64, 3);
        assert_eq!(journal.tail_at(), tail, "an entry after the failure");
        for told in [journal.settle(), journal.sync(), journal.checkpoint(), journal.close()] {
            let error = told.unwrap_err().to_string();
            assert_eq!(error, REFUSED, "{policy:?}");
        }
        journal.settle_read().unwrap();
        let words = pool.replayed();
        assert_eq!((words[0], words[8]), (1, 0), "{policy:?}: nor was it closed");
    }
}

#[test]
fn the_first_failure_is_the_one_that_is_told() {
    let Stage { journal_file, pool, .. } = stage(GROUP);
    let journal = pool.journal();
    pool.put(0, 1);
    let (inner, file) = (pool.clone(), Arc::downgrade(&journal_file));
    journal_file.in_next_sync(move || {
        file.upgrade().unwrap().refuses_writes.store(true, Ordering::Relaxed);
        inner.put(0, 2);
        Err(io::ErrorKind::BrokenPipe.into())
    });
    for told in [journal.sync(), journal.sync(), journal.settle()] {
        assert_eq!(told.unwrap_err().to_string(), REFUSED);
    }
}

#[test]
fn what_was_durable_before_a_failure_is_acknowledged_after_it() {
    let Stage { journal_file, pool, .. } = stage(SyncPolicy::Immediate);
    let journal = pool.journal();
    pool.put(0, 1);
    journal.sync().unwrap();
    let durable = journal.durable();
    pool.put(0, 2);
    journal_file.in_next_sync(|| Err(io::ErrorKind::BrokenPipe.into()));
    assert!(journal.sync().is_err());
    // An operation that had looked for a failure before, and waits for its entries now.
    journal.sync_to(durable).unwrap();
    assert!(journal.sync_to(durable + 1).is_err());
}

#[test]
fn the_task_that_syncs_ends_with_a_failure() {
    let Stage { journal_file, pool, .. } = stage(GROUP);
    let journal = pool.journal();
    pool.environment.advance(1 << 40);
    journal.start().unwrap();
    while pool.environment.step_tasks() {}
    pool.put(0, 1);
    journal.settle().unwrap();
    while pool.environment.step_tasks() {}
    journal_file.refuses_writes.store(true, Ordering::Relaxed);
    pool.put(0, 2);
    pool.environment.advance(50_000_000);
    assert!(pool.environment.step_tasks(), "its window is over");
    pool.environment.advance(1 << 40);
    assert!(!pool.environment.step_tasks(), "it would try again and again");
    assert_eq!(journal.figures().syncs, 0);
}

/// Of two who sync a file at once the kernel tells one that pages could not be written.
#[test]
fn nobody_syncs_beside_a_sync_that_fails() {
    let Stage { journal_file, pool, .. } = stage(SyncPolicy::Immediate);
    let journal = pool.journal();
    pool.put(0, 1);
    journal.sync().unwrap();
    // The header's.
    let settled = beside_failing_sync(&journal_file, &pool, |pool| {
        pool.put(64, 2);
        pool.journal().settle()
    });
    journal.checkpoint().unwrap_err();
    let settled = settled();
    assert!(settled.is_err(), "acknowledged, and perhaps not on the device");
    assert!(journal.durable() < journal.tail_at());
}
