//! Space reclamation: nothing is lost by it, and the space comes back.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use chimera::{Db, Options};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, at_once, word};
use crate::tools::{Chance, assert_sound, contents, copy_store, open, scratch, scratch_on_disk};

pub(crate) const TESTS: &[Test] = tests![
    space_of_deleted_records_comes_back: needs reclaim,
    space_of_replaced_records_comes_back: needs reclaim,
    a_store_without_records_takes_next_to_nothing: needs reclaim,
    space_comes_back_on_plain_files: needs reclaim,
    the_background_task_does_the_same: needs reclaim,
    nothing_is_lost_beside_writers_and_readers,
    a_compacted_store_that_is_killed_is_whole,
];

/// Fills a store until it takes as much as a small one may; the number of records.
fn filled(configuration: &Configuration, db: &Db) -> u64 {
    let (mut session, mut count) = (db.session(), 0);
    while db.stats().pmem_bytes < configuration.full_bytes {
        configuration.fill(&mut session, count..count + 50, 1);
        count += 50;
    }
    count
}

/// Deletes all but one in ten; what is left.
fn thinned(configuration: &Configuration, db: &Db, count: u64) -> Records {
    for number in (0..count).filter(|number| number % 10 != 0) {
        assert!(db.delete(configuration.key(number)).expect("delete"));
    }
    configuration.records((0..count).step_by(10), 1)
}

fn comes_back(configuration: &Configuration, path: &std::path::Path, options: &Options) {
    let db = open(path, options);
    let count = filled(configuration, &db);
    let left = thinned(configuration, &db, count);
    let before = db.stats();
    let reclaimed = db.compact(1, None).expect("compaction");
    let after = db.stats();
    assert!(reclaimed.moved_records > 0 && reclaimed.passes > 0, "{reclaimed:?}");
    assert!(reclaimed.moved_bytes >= 32 * reclaimed.moved_records, "{reclaimed:?}");
    assert!(after.pmem_bytes < before.pmem_bytes / 2, "{before:?} {after:?}");
    assert!(after.reclaim.debt_bytes < before.reclaim.debt_bytes, "{before:?} {after:?}");
    assert_holds(&db, &left);
    db.close().expect("nobody else has it");
    let db = open(path, options);
    assert!(db.stats().pmem_bytes < before.pmem_bytes / 2, "{:?}", db.stats());
    assert_holds(&db, &left);
    configuration.fill(&mut db.session(), 0..count, 2);
    assert_holds(&db, &configuration.records(0..count, 2));
}

fn space_of_deleted_records_comes_back(configuration: &Configuration) {
    comes_back(configuration, scratch().path(), &configuration.options());
}

/// What the journal still holds for files that go must not be in the way.
fn space_comes_back_on_plain_files(configuration: &Configuration) {
    let options = configuration.options().journal_bytes(256 << 10);
    comes_back(configuration, scratch_on_disk().path(), &options);
}

fn space_of_replaced_records_comes_back(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let count = filled(configuration, &db);
    let full = db.stats().pmem_bytes;
    for version in 2..8 {
        configuration.fill(&mut db.session(), 0..count, version);
        db.compact(20, None).expect("compaction");
        assert_holds(&db, &configuration.records(0..count, version));
    }
    let after = db.stats().pmem_bytes;
    assert!(after < 2 * full, "{after} bytes for what took {full}");
}

fn a_store_without_records_takes_next_to_nothing(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let count = filled(configuration, &db);
    let full = db.stats().pmem_bytes;
    (0..count).for_each(|number| assert!(db.delete(configuration.key(number)).expect("delete")));
    db.compact(1, None).expect("compaction");
    assert!(db.stats().pmem_bytes <= full / 8, "{:?}", db.stats());
    assert_holds(&db, &Records::new());
    drop(db);
    let db = configuration.open(directory.path());
    assert_holds(&db, &Records::new());
    configuration.fill(&mut db.session(), 0..count, 2);
    assert_holds(&db, &configuration.records(0..count, 2));
}

fn the_background_task_does_the_same(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let count = filled(configuration, &db);
    let left = thinned(configuration, &db, count);
    let before = db.stats().pmem_bytes;
    drop(db);
    let options = configuration.options().reclaim_percent(30);
    let db = open(directory.path(), &options.reclaim_bytes_per_second(u64::MAX));
    // As long as it takes: a store that does not get there hangs the test.
    while db.stats().pmem_bytes > before / 2 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(db.stats().reclaim.moved_records > 0);
    assert_holds(&db, &left);
}

const KEYS: u64 = 100;

/// Counts shared keys up, and puts and deletes keys of its own; what these have in the end, and how much was
/// added.
fn write(configuration: &Configuration, db: &Db, thread: u64) -> (BTreeMap<u64, u64>, u64) {
    let (mut session, mut chance) = (db.session(), Chance::new(thread));
    let (mut own, mut added) = (BTreeMap::new(), 0);
    for version in 1..4000 {
        let number = 1000 * (thread + 1) + chance.below(200);
        let key = configuration.key(number);
        match chance.below(4) {
            0 => {
                let key = configuration.key(chance.below(KEYS));
                let was = session.fetch_add_u64(&key, 16, 3).expect("fetch_add_u64");
                assert!(was.is_some(), "a key that is never deleted is gone");
                added += 3;
            }
            1 => {
                let was_there = session.delete(&key).expect("delete");
                assert_eq!(was_there, own.remove(&number).is_some(), "key {number}");
            }
            _ => {
                let is_new = session.put(&key, configuration.value(number, version));
                assert_eq!(is_new.expect("put"), own.insert(number, version).is_none());
            }
        }
    }
    (own, added)
}

/// No update is lost, nothing deleted comes back, a key that is there all the time is always found.
fn nothing_is_lost_beside_writers_and_readers(configuration: &Configuration) {
    const WRITERS: u64 = 2;
    let directory = scratch();
    let db = configuration.open(directory.path());
    for number in 0..KEYS {
        db.put(configuration.key(number), [0; 24]).expect("put");
    }
    let (writing, written) = (Mutex::new(WRITERS), Mutex::new(Vec::new()));
    let is_over = AtomicBool::new(false);
    let ends = || {
        let mut writing = writing.lock().expect("nobody panics");
        *writing -= 1;
        is_over.store(*writing == 0, Ordering::Release);
    };
    at_once(WRITERS + 2, |thread| match thread {
        0..WRITERS => {
            let end = OnDrop(&ends);
            let own = write(configuration, &db, thread);
            written.lock().expect("nobody panics").push(own);
            drop(end);
        }
        WRITERS => {
            while !is_over.load(Ordering::Acquire) {
                db.compact(5, None).expect("compaction");
            }
        }
        _ => {
            let mut session = db.session();
            while !is_over.load(Ordering::Acquire) {
                for number in 0..KEYS {
                    let found = session.get(configuration.key(number)).expect("get");
                    assert_eq!(found.expect("it is always there").len(), 24);
                }
            }
        }
    });
    let mut all = contents(&db);
    let mut sum = 0;
    for (own, added) in written.into_inner().expect("nobody panics") {
        for (number, version) in own {
            let found = all.remove(&configuration.key(number)).expect("it was put");
            assert_eq!(configuration.version(number, &found), version);
        }
        sum += added;
    }
    assert_eq!(all.len() as u64, KEYS, "something deleted has come back");
    assert_eq!(all.values().map(|value| word(value, 16)).sum::<u64>(), sum, "an update was lost");
    assert_sound(&db);
    let all = contents(&db);
    db.close().expect("nobody else has it");
    assert_holds(&configuration.open(directory.path()), &all);
}

/// Does something when it goes, after a panic as well.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn a_compacted_store_that_is_killed_is_whole(configuration: &Configuration) {
    let directory = scratch();
    let db = open(&directory.path().join("store"), &configuration.still());
    let count = filled(configuration, &db);
    let left = thinned(configuration, &db, count);
    for (round, percent) in [90, 50, 1, 1].into_iter().enumerate() {
        db.compact(percent, None).expect("compaction");
        let copy = directory.path().join(round.to_string());
        copy_store(&directory.path().join("store"), &copy);
        assert_holds(&configuration.open(&copy), &left);
    }
}
