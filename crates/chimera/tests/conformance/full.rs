//! Stores without room: a clear error, nothing half-written, and room again after deletes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chimera::{Db, EngineKind, ErrorKind, Result, Session, Swap};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, at_once};
use crate::tools::faults::{self, Faults};
use crate::tools::{assert_fails, assert_sound, contents, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    a_full_store_refuses_writes_and_loses_nothing,
    a_full_store_opens_and_has_room_where_it_is_given_more,
    deletes_in_a_full_store_need_no_room: needs room_to_delete,
    deletes_make_room: needs reclaim,
    several_sessions_fill_a_store_up: needs reclaim,
    a_store_above_its_capacity_takes_puts_once_there_is_room: needs room_to_delete room_again,
    a_full_file_system_loses_nothing: needs room_to_open,
];

fn full_store(configuration: &Configuration, path: &std::path::Path) -> Db {
    open(path, &configuration.options().capacity_bytes(configuration.full_bytes))
}

fn a_full_store_refuses_writes_and_loses_nothing(configuration: &Configuration) {
    let directory = scratch();
    let db = full_store(configuration, directory.path());
    let (mut session, mut records) = (db.session(), Records::new());
    let count = configuration.fill_up(&mut session, &mut records);
    assert!(count >= 100, "{count} records are no test");
    // What is new finds no room, time and again. Another version of what is there may find room, or not.
    let new = configuration.value(count, 1);
    for _ in 0..10 {
        let outcome = session.put(configuration.key(count), &new);
        assert_fails(outcome, &["the pool is full", "delete records"]);
    }
    assert_eq!(session.get(configuration.key(count)).expect("get"), None);
    let mut refused = 0;
    let mut done = |outcome: Result<()>| match outcome {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Full, "{error}");
            refused += 1;
            false
        }
    };
    for number in (0..count).step_by(7) {
        let key = configuration.key(number);
        for version in 2..5 {
            let value = configuration.value(number, version);
            let outcome = match version {
                2 => session.put(&key, &value).map(|is_new| assert!(!is_new)),
                3 => session.update(&key, |it| it.clone_from(&value)).map(|found| assert!(found)),
                _ => session
                    .compare_and_swap(&key, &records[&key], &value)
                    .map(|swap| assert_eq!(swap, Swap::Swapped)),
            };
            if done(outcome) {
                records.insert(key.clone(), value);
            }
            let found = session.get(&key).expect("get");
            assert_eq!(found.as_ref(), records.get(&key), "key {number} is half-written");
        }
    }
    assert!(refused > 0, "there was room for everything");
    // Of records that are put together, those before the first one without room are there.
    let key = configuration.key(0);
    if configuration.lacks(&["room_to_delete"]).is_none() {
        session.delete(&key).expect("it is there");
        records.remove(&key);
    }
    let puts: Vec<_> =
        (0..count).map(|number| (configuration.key(count + number), new.clone())).collect();
    assert_fails(session.multi_put(&puts), &["the pool is full"]);
    let there = |(key, _): &&(Vec<u8>, Vec<u8>)| session.contains_key(key).expect("get");
    records.extend(puts.iter().take_while(there).cloned());
    assert_holds(&db, &records);
}

fn a_full_store_opens_and_has_room_where_it_is_given_more(configuration: &Configuration) {
    let directory = scratch();
    let db = full_store(configuration, directory.path());
    let mut records = Records::new();
    let count = configuration.fill_up(&mut db.session(), &mut records);
    db.close().expect("closing needs no room");
    let db = full_store(configuration, directory.path());
    assert_holds(&db, &records);
    drop(db);
    let db = open(directory.path(), &configuration.options().read_only(true));
    assert_holds(&db, &records);
    drop(db);
    let db = configuration.open(directory.path());
    configuration.fill(&mut db.session(), count..2 * count, 1);
    records.extend(configuration.records(count..2 * count, 1));
    assert_holds(&db, &records);
}

fn deletes_in_a_full_store_need_no_room(configuration: &Configuration) {
    let directory = scratch();
    let db = full_store(configuration, directory.path());
    let (mut session, mut records) = (db.session(), Records::new());
    let count = configuration.fill_up(&mut session, &mut records);
    for number in 0..count {
        let key = configuration.key(number);
        assert_eq!(session.get(&key).expect("reads go on").as_ref(), records.get(&key));
        assert!(session.delete(&key).expect("deletes go on"));
        records.remove(&key);
        if number % (count / 5) == 0 {
            assert_holds(&db, &records);
        }
    }
    assert_holds(&db, &records);
    drop(session);
    drop(db);
    assert!(full_store(configuration, directory.path()).is_empty());
}

fn deletes_make_room(configuration: &Configuration) {
    let directory = scratch();
    let db = full_store(configuration, directory.path());
    let mut records = Records::new();
    let count = configuration.fill_up(&mut db.session(), &mut records);
    for round in 2..5 {
        for number in (0..count).filter(|number| number % 4 != 0) {
            let key = configuration.key(number);
            assert_eq!(db.delete(&key).expect("delete"), records.remove(&key).is_some());
        }
        db.compact(1, None).expect("compaction");
        assert_holds(&db, &records);
        // Half of what was there has room for certain.
        let numbers = || (0..count).filter(|number| number % 4 == 1 || number % 4 == 2);
        for number in numbers() {
            let value = configuration.value(number, 1);
            let outcome = db.put(configuration.key(number), &value);
            outcome.unwrap_or_else(|error| panic!("round {round}, key {number}: {error}"));
        }
        records.extend(configuration.records(numbers(), 1));
        assert_holds(&db, &records);
    }
}

/// Sessions insert until there is no room, and then delete what they have.
fn several_sessions_fill_a_store_up(configuration: &Configuration) {
    let directory = scratch();
    let db = full_store(configuration, directory.path());
    let capacity = configuration.fill_up(&mut db.session(), &mut Records::new());
    for key in db.keys() {
        assert!(db.delete(key.expect("no damage")).expect("delete"));
    }
    db.compact(1, None).expect("compaction");
    let refused = std::sync::atomic::AtomicU64::new(0);
    let held = std::sync::Mutex::new(Records::new());
    at_once(3, |thread| {
        let mut session = db.session();
        let mut own = Records::new();
        let first = (thread + 1) * 1_000_000;
        for number in first..first + 4 * capacity {
            let (key, value) = (configuration.key(number), configuration.value(number, 1));
            match session.put(&key, &value) {
                Ok(is_new) => assert!(is_new && own.insert(key, value).is_none()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    refused.fetch_add(1, Ordering::Relaxed);
                    for key in std::mem::take(&mut own).into_keys() {
                        assert!(session.delete(&key).expect("deletes go on"));
                    }
                    db.compact(1, None).expect("compaction");
                }
            }
        }
        held.lock().expect("nobody panics").extend(own);
    });
    assert!(refused.into_inner() > 0, "the store was never full");
    let held = held.into_inner().expect("nobody panics");
    assert!(contents(&db) == held);
    assert_sound(&db);
}

/// Puts of new keys, from this one on, are refused. The last records that fit are few.
fn assert_takes_no_more(
    configuration: &Configuration,
    session: &mut Session,
    records: &mut Records,
    first: u64,
) {
    let most = first / 10;
    for number in first..first + most {
        let (key, value) = (configuration.key(number), configuration.value(number, 1));
        match session.put(&key, &value) {
            Ok(is_new) => assert!(is_new && records.insert(key, value).is_none()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                assert_fails(session.put(&key, &value), &["the pool is full"]);
                assert_eq!(session.get(&key).expect("get"), None);
                return;
            }
        }
    }
    panic!("{most} records find room");
}

/// A store is opened with half of what it uses. Deletes go on, but for those that need room, as records do.
fn a_store_above_its_capacity_takes_puts_once_there_is_room(configuration: &Configuration) {
    let directory = scratch();
    let opened = |bytes| open(directory.path(), &configuration.options().capacity_bytes(bytes));
    let (full, half) = (configuration.full_bytes, configuration.full_bytes / 2);
    let mut records = Records::new();
    let count = configuration.fill_up(&mut opened(full).session(), &mut records);
    let mut left = 0..count;
    for bytes in [half, full] {
        let db = opened(bytes);
        let mut session = db.session();
        if bytes == half {
            assert_takes_no_more(configuration, &mut session, &mut records, count);
            assert_holds(&db, &records);
        }
        while let Some(number) = left.clone().next() {
            let key = configuration.key(number);
            assert_eq!(session.get(&key).expect("reads go on").as_ref(), records.get(&key));
            match session.delete(&key) {
                Ok(was_there) => assert!(was_there && records.remove(&key).is_some()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    assert!(bytes == half && configuration.engine == EngineKind::Chameleon);
                    break;
                }
            }
            left.start = number + 1;
        }
        assert_holds(&db, &records);
        drop(session);
        if configuration.lacks(&["reclaim"]).is_none() {
            db.compact(1, None).expect("compaction");
        }
        db.close().expect("closing needs no room");
    }
    let db = opened(half);
    configuration.fill(&mut db.session(), 0..count / 8, 2);
    records.extend(configuration.records(0..count / 8, 2));
    assert_holds(&db, &records);
}

/// The file system has less room than the capacity allows. Steps that make room may need some of it, too.
fn a_full_file_system_loses_nothing(configuration: &Configuration) {
    for parts in [1, 3] {
        let directory = scratch();
        let faults = Arc::new(Faults::default());
        let open = || faults::open(&faults, directory.path(), &configuration.options());
        let db = open().expect("a new store");
        let bytes = (configuration.full_bytes / parts).try_into().expect("small");
        faults.space.store(bytes, Ordering::Relaxed);
        let (mut session, mut records) = (db.session(), Records::new());
        let count = configuration.fill_up(&mut session, &mut records);
        assert!(count >= 50, "{count} records are no test");
        assert_takes_no_more(configuration, &mut session, &mut records, count);
        assert_holds(&db, &records);
        for number in (0..count).step_by(3) {
            let key = configuration.key(number);
            match session.delete(&key) {
                Ok(was_there) => assert!(was_there && records.remove(&key).is_some()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Full, "{error}"),
            }
            assert_eq!(session.get(&key).expect("reads go on").as_ref(), records.get(&key));
        }
        assert_holds(&db, &records);
        drop(session);
        db.close().expect("closing needs no room");
        let db = open().expect("opening needs no room");
        assert_holds(&db, &records);
        faults.space.store(i64::MAX, Ordering::Relaxed);
        configuration.fill(&mut db.session(), 2 * count..3 * count, 1);
        records.extend(configuration.records(2 * count..3 * count, 1));
        assert_holds(&db, &records);
    }
}
