//! Syncs that several operations share, each step in a fixed order.

use std::sync::atomic::AtomicUsize;

use super::staged::{Stage, spawn, stage};
use super::*;

/// Counts how often somebody gives others a moment.
fn count_moments(pool: &Pool) -> Arc<AtomicUsize> {
    let moments = Arc::new(AtomicUsize::new(0));
    let count = moments.clone();
    pool.environment.set_relax_hook(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    moments
}

fn put(pool: &Pool, at: u64) -> io::Result<()> {
    pool.put(at, 1);
    pool.journal().settle()
}

/// Waits until a thread waits for the sync that goes on.
fn until_somebody_waits(pool: &Pool) {
    while pool.journal().waiting() == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn who_is_alone_gives_nobody_a_moment() {
    let pool = Pool::create(SyncPolicy::Immediate);
    let moments = count_moments(&pool);
    (0..5).for_each(|number| put(&pool, number * 64).unwrap());
    assert_eq!(pool.journal().figures().syncs, 5);
    assert_eq!(moments.load(Ordering::Relaxed), 0);
}

#[test]
fn those_who_were_there_together_share_the_next_sync() {
    let Stage { journal_file, pool, .. } = stage(SyncPolicy::Immediate);
    let (second, third) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let moments = Arc::new(AtomicUsize::new(0));
    // A second thread comes while the sync of the first one goes on.
    let (inner, thread) = (pool.clone(), second.clone());
    journal_file.in_next_sync(move || {
        *lock(&thread) = Some(spawn(&inner, |pool| put(pool, 64)));
        until_somebody_waits(&inner);
        Ok(())
    });
    // It syncs next, and gives the first one a moment: somebody comes at once.
    let (inner, thread, count) = (pool.clone(), third.clone(), moments.clone());
    pool.environment.set_relax_hook(move |_| {
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            *lock(&thread) = Some(spawn(&inner, |pool| put(pool, 128)));
            until_somebody_waits(&inner);
        }
    });
    put(&pool, 0).unwrap();
    lock(&second).take().unwrap().join().unwrap().unwrap();
    let third = lock(&third).take().expect("the first one was given a moment");
    third.join().unwrap().unwrap();
    assert_eq!(pool.journal().figures().syncs, 2, "one for the first, one for the others");
    assert_eq!(moments.load(Ordering::Relaxed), 1, "no longer than until the other one was there");
    assert_eq!(pool.journal().durable(), pool.journal().tail_at());

    // One who is alone again hopes for the other one once, and for a limited time.
    let moments = count_moments(&pool);
    put(&pool, 0).unwrap();
    let hoped = moments.load(Ordering::Relaxed);
    assert!((1..100).contains(&hoped), "{hoped}");
    put(&pool, 0).unwrap();
    assert_eq!(moments.load(Ordering::Relaxed), hoped);
}

#[test]
fn a_sync_that_fails_is_told_to_all_who_wait_for_it() {
    for policy in [SyncPolicy::Immediate, GROUP] {
        let Stage { journal_file, pool, .. } = stage(policy);
        let journal = pool.journal();
        pool.put(0, 1);
        journal.sync().unwrap();
        let other = Arc::new(Mutex::new(None));
        let (inner, thread) = (pool.clone(), other.clone());
        journal_file.in_next_sync(move || {
            *lock(&thread) = Some(spawn(&inner, |pool| {
                pool.put(64, 2);
                pool.journal().sync()
            }));
            until_somebody_waits(&inner);
            Err(io::ErrorKind::BrokenPipe.into())
        });
        pool.put(128, 3);
        let here = journal.sync();
        let there = lock(&other).take().unwrap().join().unwrap();
        for told in [here, there, journal.sync(), journal.settle(), journal.checkpoint()] {
            let error = told.unwrap_err().to_string();
            assert_eq!(error, "cannot sync: broken pipe");
        }
        assert_eq!(journal.waiting(), 0);
        let figures = journal.figures();
        assert_eq!(
            (figures.syncs, figures.unsynced_bytes),
            (1, 2 * 104),
            "it made nothing durable"
        );
    }
}

#[test]
fn a_failure_is_told_at_once_to_those_who_wait_for_a_sync() {
    let Stage { journal_file, pool, .. } = stage(SyncPolicy::Immediate);
    let (inner, file) = (pool.clone(), Arc::downgrade(&journal_file));
    let told = Arc::new(Mutex::new(None));
    let tell = told.clone();
    journal_file.in_next_sync(move || {
        let waits = spawn(&inner, |pool| put(pool, 64));
        until_somebody_waits(&inner);
        let file = file.upgrade().unwrap();
        file.refuses_writes.store(true, Ordering::Relaxed);
        inner.put(128, 2);
        // The sync has not ended, and may take seconds.
        *lock(&tell) = Some(waits.join().unwrap());
        Ok(())
    });
    let _ = put(&pool, 0);
    let error = lock(&told).take().unwrap().unwrap_err();
    assert!(error.to_string().contains("storage"), "{error}");
}
