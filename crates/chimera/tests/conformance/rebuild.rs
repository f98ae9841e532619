//! The order of keys is made while the store that was opened is used.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use chimera::{Db, Error, ErrorKind, Options, Result, TreeUpdates};
use chimera_pmem::{Environment, Hardware, SteppedEnvironment};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{End, Records, assert_holds, at_once, come_and_go};
use crate::tools::{Chance, assert_fails, assert_sound, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    writes_beside_the_rebuild_are_scanned: needs ordered,
    the_same_with_a_tree_that_is_changed_at_once: needs ordered,
    a_scan_makes_the_order_itself: needs ordered,
    a_scan_need_not_wait: needs ordered,
    progress_is_told_until_the_order_is_made: needs ordered,
    a_change_that_is_kept_is_the_last_one: needs ordered,
    a_store_closes_before_its_order_is_made: needs ordered,
    a_store_without_keys_is_ready: needs ordered,
    a_reader_has_all_keys_from_the_start: needs ordered,
    threads_write_and_scan_while_the_order_is_made: needs ordered,
];

/// An order that is made in many steps, and queues that are full soon.
fn ordered(configuration: &Configuration) -> Options {
    let small = |order: chimera::OrderOptions| {
        order.node_bytes(256).queues(2).queue_requests(8).part_keys(16)
    };
    configuration.options().ordered(true).order(small)
}

/// A closed store with version 1 of keys `0..count`, which knows nothing of their order; what it holds.
fn filled_store(configuration: &Configuration, path: &Path, count: u64) -> Records {
    let db = open(path, &configuration.options().ordered(false));
    configuration.fill(&mut db.session(), 0..count, 1);
    db.close().expect("nobody else has it");
    configuration.records(0..count, 1)
}

/// Opens a store in which nothing goes on by itself.
fn open_stepped(path: &Path, options: &Options) -> (Db, Arc<SteppedEnvironment>) {
    let environment = Arc::new(SteppedEnvironment::new(1));
    let shared: Arc<dyn Environment> = environment.clone();
    let pmem = Hardware::new(options.hardware_options()).expect("address space");
    (Db::open_on(pmem, &shared, path, options).expect("a store"), environment)
}

fn is_ready(db: &Db) -> bool {
    db.stats().order.expect("ordered").is_ready
}

fn scanned(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    db.scan(..).expect("ordered").collect::<Result<_>>().expect("no damage")
}

fn assert_scans(db: &Db, records: &Records) {
    let found = scanned(db);
    let expected = records.iter().map(|(key, value)| (key.clone(), value.clone()));
    assert!(found.iter().cloned().eq(expected), "{} of {} records", found.len(), records.len());
}

/// Some random writes: of new keys, of keys that are there, and of keys that were deleted.
fn write(
    configuration: &Configuration,
    db: &Db,
    records: &mut Records,
    chance: &mut Chance,
    count: u64,
) {
    let mut session = db.session();
    for _ in 0..count {
        let number = chance.below(400);
        let key = configuration.key(number);
        if chance.below(5) < 2 {
            let was_there = session.delete(&key).expect("delete");
            assert_eq!(was_there, records.remove(&key).is_some());
        } else {
            let value = configuration.value(number, chance.below(1000));
            let is_new = session.put(&key, &value).expect("put");
            assert_eq!(is_new, records.insert(key, value).is_none());
        }
    }
}

fn beside_the_rebuild(configuration: &Configuration, options: &Options) {
    for seed in 0..12 {
        let (directory, mut chance) = (scratch(), Chance::new(seed));
        let mut records = filled_store(configuration, directory.path(), 300);
        let (db, environment) = open_stepped(directory.path(), options);
        let mut gathered = 0;
        assert!(!is_ready(&db), "nobody made it");
        for step in 0.. {
            assert!(step < 1000, "it is never ready");
            let stats = db.stats().order.expect("ordered");
            assert!(stats.keys_gathered >= gathered);
            gathered = stats.keys_gathered;
            if stats.is_ready {
                break;
            }
            let most = chance.below(30);
            write(configuration, &db, &mut records, &mut chance, most);
            // In half of the stores a scan does the rest.
            if seed % 2 == 0 && step == 5 {
                assert_scans(&db, &records);
                assert!(is_ready(&db));
            }
            environment.step_tasks();
        }
        assert!(gathered > 0);
        write(configuration, &db, &mut records, &mut chance, 20);
        assert_scans(&db, &records);
        assert_holds(&db, &records);
    }
}

fn writes_beside_the_rebuild_are_scanned(configuration: &Configuration) {
    beside_the_rebuild(configuration, &ordered(configuration));
}

fn the_same_with_a_tree_that_is_changed_at_once(configuration: &Configuration) {
    let at_once = |order: chimera::OrderOptions| order.updates(TreeUpdates::Synchronous);
    beside_the_rebuild(configuration, &ordered(configuration).order(at_once));
}

fn a_scan_makes_the_order_itself(configuration: &Configuration) {
    let directory = scratch();
    let mut records = filled_store(configuration, directory.path(), 300);
    let (db, environment) = open_stepped(directory.path(), &ordered(configuration));
    let first = records.pop_first().expect("a record").0;
    assert!(db.delete(&first).expect("delete"));
    assert_scans(&db, &records);
    assert!(is_ready(&db));
    // Who comes too late finds nothing to do.
    while environment.step_tasks() {}
    assert_scans(&db, &records);
}

fn a_scan_need_not_wait(configuration: &Configuration) {
    let directory = scratch();
    let mut records = filled_store(configuration, directory.path(), 300);
    let options = ordered(configuration).order(|order| order.wait(false));
    let (db, environment) = open_stepped(directory.path(), &options);
    environment.step_tasks();
    let (key, value) = records.pop_first().expect("a record");
    assert_eq!(db.get(&key).expect("no damage"), Some(value), "gets do not wait");
    assert!(db.delete(&key).expect("delete"));
    let done_now = || {
        let error = db.scan(..).map(drop).expect_err("not ready");
        assert_eq!(error.kind(), ErrorKind::NotReady);
        let Error::NotYetOrdered { done, total } = error else { panic!("{error}") };
        assert!(total == 300 && done < 100, "{done} of {total}");
        done
    };
    // The part that the first step looks at may have no key.
    while done_now() == 0 {
        environment.step_tasks();
    }
    let words = ["still being made", "of 300 keys", "later"];
    assert_fails(db.session().scan_with(.., 1, |_, _| true), &words);
    assert!(db.metrics_text().contains("chimera_order_ready 0"));
    while !is_ready(&db) {
        assert!(environment.step_tasks(), "it is never ready");
    }
    assert!(db.metrics_text().contains("chimera_order_ready 1"));
    assert_scans(&db, &records);
}

fn progress_is_told_until_the_order_is_made(configuration: &Configuration) {
    let directory = scratch();
    let records = filled_store(configuration, directory.path(), 300);
    for read_only in [false, true] {
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = told.clone();
        let tell = move |done, whole| telling.lock().expect("no panic").push((done, whole));
        // It forgets an order that was written when it was closed.
        drop(open(directory.path(), &configuration.options().ordered(false)));
        let options = ordered(configuration).read_only(read_only).recovery_threads(1);
        let options = options.order(|order| order.progress(Arc::new(tell)));
        let (db, environment) = open_stepped(directory.path(), &options);
        assert_eq!(told.lock().expect("no panic").is_empty(), !read_only);
        environment.step_tasks();
        assert_scans(&db, &records);
        let all = told.lock().expect("no panic").clone();
        assert!(all.len() > 10 && all.is_sorted() && all.iter().all(|(_, whole)| *whole == 300));
        assert_eq!(all.last(), Some(&(300, 300)), "{all:?}");
        while environment.step_tasks() {}
        assert_eq!(told.lock().expect("no panic").len(), all.len(), "told too late");
    }
}

/// Keys that come and go again and again, applied before, between and after the parts that they are in.
fn a_change_that_is_kept_is_the_last_one(configuration: &Configuration) {
    let directory = scratch();
    let mut records = filled_store(configuration, directory.path(), 300);
    let (db, environment) = open_stepped(directory.path(), &ordered(configuration));
    let mut round = 0;
    while !is_ready(&db) {
        round += 1;
        for number in 295..305 {
            let (key, value) = (configuration.key(number), configuration.value(number, round));
            if (round + number) % 2 == 0 {
                db.put(&key, &value).expect("put");
                records.insert(key, value);
            } else {
                db.delete(&key).expect("delete");
                records.remove(&key);
            }
        }
        // All changes are applied: to what keeps them.
        environment.step_tasks();
    }
    assert!(round > 10, "{round} rounds");
    assert_scans(&db, &records);
}

fn a_store_closes_before_its_order_is_made(configuration: &Configuration) {
    let directory = scratch();
    let mut records = filled_store(configuration, directory.path(), 300);
    for steps in [0, 1, 5] {
        let (db, environment) = open_stepped(directory.path(), &ordered(configuration));
        let (key, value) = records.pop_first().expect("a record");
        assert!(db.delete(&key).expect("delete"));
        (0..steps).for_each(|_| assert!(environment.step_tasks()));
        assert!(!is_ready(&db));
        if steps == 1 {
            db.put(&key, &value).expect("put");
            records.insert(key, value);
        }
        db.close().expect("nobody else has it");
        assert!(!environment.step_tasks(), "a task is left");
    }
    for _ in 0..10 {
        drop(open(directory.path(), &configuration.options().ordered(false)));
        let db = open(directory.path(), &ordered(configuration).recovery_threads(3));
        db.close().expect("nobody else has it");
    }
    let db = open(directory.path(), &ordered(configuration));
    assert_scans(&db, &records);
    assert_holds(&db, &records);
}

fn a_store_without_keys_is_ready(configuration: &Configuration) {
    let directory = scratch();
    let options = ordered(configuration).order(|order| order.wait(false));
    for _ in 0..2 {
        let (db, _environment) = open_stepped(directory.path(), &options);
        assert!(is_ready(&db));
        assert_scans(&db, &Records::new());
    }
}

fn a_reader_has_all_keys_from_the_start(configuration: &Configuration) {
    let directory = scratch();
    let records = filled_store(configuration, directory.path(), 300);
    let options = ordered(configuration).read_only(true).recovery_threads(3);
    let db = open(directory.path(), &options.order(|order| order.wait(false)));
    assert!(is_ready(&db));
    assert_eq!(db.stats().order.expect("ordered").keys_gathered, 300);
    assert_scans(&db, &records);
}

/// Keys that nobody changes; that are overwritten; that come and go.
const STILL: std::ops::Range<u64> = 0..150;
const HOT: std::ops::Range<u64> = 150..300;
const COMING: std::ops::Range<u64> = 300..350;

fn threads_write_and_scan_while_the_order_is_made(configuration: &Configuration) {
    let directory = scratch();
    filled_store(configuration, directory.path(), HOT.end);
    for round in 0..8 {
        let options = ordered(configuration).recovery_threads(2).order(|order| order.part_keys(4));
        // It forgets an order that was written when it was closed.
        drop(open(directory.path(), &options.clone().ordered(false)));
        let db = open(directory.path(), &options);
        let is_over = AtomicBool::new(false);
        at_once(3, |thread| match thread {
            0 => {
                let mut session = db.session();
                for version in 1.. {
                    configuration.fill(&mut session, HOT, version);
                    if is_over.load(Ordering::Acquire) {
                        break;
                    }
                }
            }
            1 => come_and_go(configuration, &db, COMING, &is_over),
            _ => {
                let ends = End(&is_over);
                let found: Records = scanned(&db).into_iter().collect();
                for number in STILL.chain(HOT) {
                    let value = found.get(&configuration.key(number));
                    let value = value.unwrap_or_else(|| panic!("{number} is lost in {round}"));
                    configuration.version(number, value);
                }
                assert!(found.len() as u64 <= COMING.end);
                drop(ends);
            }
        });
        assert_eq!(scanned(&db).len() as u64, HOT.end);
        assert_sound(&db);
    }
}
