//! Stores without room: a clear error, nothing half-written, and room again after deletes.

use chimera::{Db, ErrorKind, Result, Swap};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, at_once};
use crate::tools::{assert_fails, assert_sound, contents, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    a_full_store_refuses_writes_and_loses_nothing,
    a_full_store_opens_and_has_room_where_it_is_given_more,
    deletes_in_a_full_store_need_no_room: needs room_to_delete,
    deletes_make_room: needs reclaim,
    several_sessions_fill_a_store_up: needs reclaim,
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
        let outcome = session.put(&configuration.key(count), &new);
        assert_fails(outcome, &["the pool is full", "delete records"]);
    }
    assert_eq!(session.get(&configuration.key(count)).expect("get"), None);
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
            let outcome = db.put(&configuration.key(number), &value);
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
        assert!(db.delete(&key.expect("no damage")).expect("delete"));
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
                    refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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
