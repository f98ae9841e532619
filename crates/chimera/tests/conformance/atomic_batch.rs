//! Batches: all of their writes are made, or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chimera::{Batch, Db, Error, ErrorKind, Session, Version};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, at_once, word};
use crate::tools::faults::{self, Faults};
use crate::tools::{Chance, assert_fails, assert_sound, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    all_writes_of_a_batch_are_made: needs atomic_batch,
    writes_to_one_key_follow_one_another: needs atomic_batch,
    a_condition_that_does_not_hold_leaves_all_as_it_is: needs atomic_batch,
    a_batch_that_cannot_be_is_refused_whole: needs atomic_batch,
    batches_agree_with_a_model: needs atomic_batch,
    a_large_batch_is_made: needs atomic_batch,
    batches_of_many_sessions_do_not_mix: needs atomic_batch,
    single_writes_beside_batches_are_not_lost: needs atomic_batch,
    a_batch_in_a_full_store_is_made_or_not: needs atomic_batch,
    batches_of_many_sessions_in_a_full_store: needs atomic_batch,
    batches_of_many_sessions_on_a_full_disk: needs atomic_batch,
    a_store_for_reading_refuses_batches: needs atomic_batch,
    batches_leave_no_room_in_use: needs atomic_batch room_again,
    a_batch_writes_to_several_keyspaces: needs atomic_batch any_size ordered,
    scans_find_what_batches_wrote: needs atomic_batch ordered,
];

pub(crate) fn db(configuration: &Configuration) -> (tempfile::TempDir, Db) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    (directory, db)
}

/// Puts version `version` of keys `numbers`.
pub(crate) fn batch_of(
    configuration: &Configuration,
    numbers: impl IntoIterator<Item = u64>,
    version: u64,
) -> Batch {
    let mut batch = Batch::new();
    for number in numbers {
        batch.put(configuration.key(number), configuration.value(number, version));
    }
    batch
}

fn delete_all(
    configuration: &Configuration,
    batch: &mut Batch,
    numbers: impl IntoIterator<Item = u64>,
) {
    for number in numbers {
        batch.delete(configuration.key(number));
    }
}

fn all_writes_of_a_batch_are_made(configuration: &Configuration) {
    let (directory, db) = db(configuration);
    let mut session = db.session();
    configuration.fill(&mut session, 0..20, 1);
    let mut batch = batch_of(configuration, 15..30, 2);
    delete_all(configuration, &mut batch, 0..5);
    batch.delete(configuration.key(99));
    assert_eq!(batch.len(), 21);
    session.write(&batch).expect("room");
    let mut expected = configuration.records(5..15, 1);
    expected.extend(configuration.records(15..30, 2));
    assert_holds(&db, &expected);
    assert_eq!(db.len(), 25);
    let stats = session.stats();
    assert_eq!((stats.batches, stats.inserts, stats.overwrites, stats.deletes), (1, 30, 5, 5));
    // All of it is so already.
    session.write(&batch).expect("nothing to do");
    db.write(&Batch::new()).expect("nothing to do");
    assert_eq!(session.stats().batches, 2);
    assert_holds(&db, &expected);
    assert_sound(&db);
    drop(session);
    db.close().expect("nobody else has it");
    let db = configuration.open(directory.path());
    assert_holds(&db, &expected);
    assert_sound(&db);
}

fn writes_to_one_key_follow_one_another(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let [one, two] = [1, 2].map(|version| configuration.value(7, version));
    let (key, other) = (configuration.key(7), configuration.key(8));
    let mut batch = Batch::new();
    batch.put(&key, &two).add_u64(&key, 8, 5, []).delete(&other).put(&other, &one);
    batch.delete(&key).put(&key, &one).add_u64(&key, 8, 1, []).add_u64(&key, 8, 1, []);
    batch.add_u64(configuration.key(9), 16, 3, configuration.value(9, 1));
    if configuration.sizes().is_some() {
        // A value of no bytes is none of the store's.
        batch = Batch::new();
        batch.put(&key, &one).put(&other, &one);
        batch.add_u64(&key, 8, 1, &one).add_u64(&key, 8, 1, &two);
        batch.add_u64(configuration.key(9), 16, 3, configuration.value(9, 1));
    }
    db.write(&batch).expect("room");
    let mut expected = one.clone();
    expected[8..16].copy_from_slice(&word(&one, 8).wrapping_add(2).to_le_bytes());
    assert_eq!(db.get(&key).expect("a get"), Some(expected));
    assert_eq!(db.get(&other).expect("a get"), Some(one));
    let mut added = configuration.value(9, 1);
    let number = word(&added, 16).wrapping_add(3);
    added[16..24].copy_from_slice(&number.to_le_bytes());
    assert_eq!(db.get(configuration.key(9)).expect("a get"), Some(added));
}

fn a_condition_that_does_not_hold_leaves_all_as_it_is(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    configuration.fill(&mut db.session(), 0..4, 1);
    let before = configuration.records(0..4, 1);
    let [there, gone] = [1, 9].map(|number| configuration.key(number));
    let [now, other] = [1, 2].map(|version| configuration.value(1, version));
    let fail = |batch: &mut Batch, number: usize| match number {
        0 => batch.require_absent(&there).len(),
        1 => batch.require_value(&there, &other).len(),
        2 => batch.require_version(&there, Version::of(&other)).len(),
        3 => batch.require_value(&gone, &other).len(),
        _ => batch.require_version(&gone, Version::of(&other)).len(),
    };
    for number in 0..5 {
        let mut batch = batch_of(configuration, 0..8, 2);
        // These hold. What the batch itself writes does not count.
        batch.require_absent(&gone).require_value(&there, &now);
        batch.require_version(&there, Version::of(&now));
        fail(&mut batch, number);
        let error = db.write(&batch).expect_err("a condition does not hold");
        assert!(matches!(error, Error::ConditionFailed { condition: 3 }), "{number}: {error}");
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_holds(&db, &before);
    }
    let mut batch = batch_of(configuration, 0..8, 2);
    batch.require_absent(&gone).require_version(&there, Version::of(&now));
    db.write(&batch).expect("all hold");
    assert_holds(&db, &configuration.records(0..8, 2));
    let mut condition = Batch::new();
    condition.require_value(&there, &now);
    assert_fails(db.write(&condition), &["condition 0", "nothing was written"]);
    assert_eq!(db.stats().operations.swaps_refused, 6);
    assert_sound(&db);
}

fn a_batch_that_cannot_be_is_refused_whole(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    configuration.fill(&mut db.session(), 0..3, 1);
    let (key, value) = (configuration.key(0), configuration.value(0, 1));
    let long = vec![1; 70_000];
    let refused = |change: &dyn Fn(&mut Batch) -> usize| {
        let mut batch = batch_of(configuration, 0..6, 2);
        change(&mut batch);
        let error = db.write(&batch).expect_err("it cannot be");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert_holds(&db, &configuration.records(0..3, 1));
    };
    refused(&|batch| batch.put(&long, &value).len());
    refused(&|batch| batch.delete(&long).len());
    refused(&|batch| batch.require_absent(&long).len());
    refused(&|batch| batch.add_u64(&long, 0, 1, &value).len());
    // The value that the batch itself puts is the one that is added to.
    for at in [configuration.value(0, 2).len() - 7, usize::MAX] {
        refused(&|batch| batch.add_u64(&key, at, 1, &value).put(&key, &value).len());
    }
    if let Some((_, bytes)) = configuration.sizes() {
        refused(&|batch| batch.put(&key, vec![1; bytes + 1]).len());
    }
    assert_sound(&db);
}

fn batches_agree_with_a_model(configuration: &Configuration) {
    let (directory, mut db) = db(configuration);
    let mut chance = Chance::new(5);
    let mut model = Records::new();
    for round in 0..4_u64 {
        let mut session = db.session();
        for version in round * 60 + 1..(round + 1) * 60 {
            one_batch(configuration, &mut session, &mut model, &mut chance, version);
        }
        drop(session);
        assert_holds(&db, &model);
        assert_sound(&db);
        if round == 2 {
            db.compact(1, None).expect("compaction");
        }
        db.close().expect("nobody else has it");
        db = configuration.open(directory.path());
        assert_holds(&db, &model);
    }
}

/// A batch of some of sixty keys, whose condition may hold or not.
fn one_batch(
    configuration: &Configuration,
    session: &mut Session,
    model: &mut Records,
    chance: &mut Chance,
    version: u64,
) {
    let (mut batch, mut after) = (Batch::new(), model.clone());
    for _ in 0..chance.below(12) {
        let number = chance.below(60);
        let (key, new) = (configuration.key(number), configuration.value(number, version));
        match chance.below(4) {
            0 => {
                batch.delete(&key);
                after.remove(&key);
            }
            1 => {
                batch.add_u64(&key, 8, version, &new);
                let value = after.entry(key).or_insert(new);
                let number = word(value, 8).wrapping_add(version);
                value[8..16].copy_from_slice(&number.to_le_bytes());
            }
            _ => {
                batch.put(&key, &new);
                after.insert(key, new);
            }
        }
    }
    let key = configuration.key(chance.below(60));
    batch.require_absent(&key);
    match session.write(&batch) {
        Ok(()) => {
            assert!(!model.contains_key(&key));
            *model = after;
        }
        Err(error) => {
            assert!(matches!(error, Error::ConditionFailed { condition: 0 }), "{error}");
            assert!(model.contains_key(&key));
        }
    }
}

fn a_large_batch_is_made(configuration: &Configuration) {
    let (directory, db) = db(configuration);
    let mut session = db.session();
    configuration.fill(&mut session, 0..300, 1);
    let mut batch = batch_of(configuration, 200..900, 2);
    delete_all(configuration, &mut batch, 0..100);
    session.write(&batch).expect("room");
    let mut expected = configuration.records(100..200, 1);
    expected.extend(configuration.records(200..900, 2));
    assert_holds(&db, &expected);
    session.write(&batch_of(configuration, [3, 4], 3)).expect("room");
    expected.extend(configuration.records([3, 4], 3));
    drop(session);
    db.close().expect("nobody else has it");
    assert_holds(&configuration.open(directory.path()), &expected);
}

const KEYS: u64 = 12;

/// Each batch gives all keys one version; whoever reads them as one sees one.
fn batches_of_many_sessions_do_not_mix(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    db.write(&batch_of(configuration, 0..KEYS, 1)).expect("room");
    let seen = AtomicU64::new(0);
    at_once(4, |thread| {
        let mut session = db.session();
        for round in 0..100 {
            if thread < 2 {
                let version = 2 + round * 2 + thread;
                session.write(&batch_of(configuration, 0..KEYS, version)).expect("room");
                continue;
            }
            let versions = session.transaction(|keys| {
                (0..KEYS).map(|number| version(configuration, keys, number)).collect()
            });
            let versions: Vec<u64> = match versions {
                // With as many writers there may be no moment without one.
                Err(Error::Conflict { .. }) => continue,
                versions => versions.expect("gets"),
            };
            assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
            seen.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(seen.into_inner() > 0, "no transaction ended");
    assert_sound(&db);
}

fn version(
    configuration: &Configuration,
    keys: &mut chimera::Transaction<'_>,
    number: u64,
) -> chimera::Result<u64> {
    let value = keys.get(configuration.key(number))?.expect("it is always there");
    Ok(configuration.version(number, &value))
}

/// Batches and single sessions add to the same numbers.
fn single_writes_beside_batches_are_not_lost(configuration: &Configuration) {
    const ROUNDS: u64 = 150;
    let (_directory, db) = db(configuration);
    let absent = |number| {
        let mut value = configuration.value(number, 1);
        value[8..16].fill(0);
        value
    };
    at_once(4, |thread| {
        let mut session = db.session();
        for round in 0..ROUNDS {
            if thread < 2 {
                let mut batch = Batch::new();
                for number in 0..KEYS {
                    batch.add_u64(configuration.key(number), 8, 1, absent(number));
                }
                session.write(&batch).expect("room");
                continue;
            }
            let number = (round * 7 + thread) % KEYS;
            let key = configuration.key(number);
            let added = match round % 3 {
                0 => session.fetch_add_u64_or_insert(&key, 8, 1, absent(number)).map(drop),
                1 => {
                    let mut batch = Batch::new();
                    session.write(batch.add_u64(&key, 8, 1, absent(number)))
                }
                _ => {
                    let mut first = absent(number);
                    first[8] = 1;
                    let add = |value: &mut Vec<u8>| {
                        let new = word(value, 8) + 1;
                        value[8..16].copy_from_slice(&new.to_le_bytes());
                    };
                    session.update_or_insert(&key, &first, add).map(drop)
                }
            };
            added.expect("room");
        }
    });
    let sum: u64 = (0..KEYS)
        .map(|number| word(&db.get(configuration.key(number)).expect("a get").expect("there"), 8))
        .sum();
    assert_eq!(sum, 2 * ROUNDS * KEYS + 2 * ROUNDS);
    assert_sound(&db);
}

fn full_store(configuration: &Configuration, path: &std::path::Path) -> Db {
    open(path, &configuration.options().capacity_bytes(configuration.full_bytes))
}

fn a_batch_in_a_full_store_is_made_or_not(configuration: &Configuration) {
    let directory = scratch();
    let db = full_store(configuration, directory.path());
    let (mut session, mut records) = (db.session(), Records::new());
    let (mut next, mut made, mut refused, mut in_a_row) = (0, 0, 0, 0);
    // New keys, then also others, until there is no room for one for long.
    while in_a_row < 12 {
        let fresh = next..next + 6;
        let mut batch = batch_of(configuration, fresh.clone(), 1);
        let mut after = records.clone();
        after.extend(configuration.records(fresh, 1));
        let old = next / 2;
        if next > 60 && in_a_row % 3 < 2 {
            for number in old..old + 4 {
                batch.put(configuration.key(number), configuration.value(number, 2));
            }
            after.extend(configuration.records(old..old + 4, 2));
            batch.delete(configuration.key(old + 5));
            after.remove(&configuration.key(old + 5));
        }
        match session.write(&batch) {
            Ok(()) => {
                (made, in_a_row) = (made + 1, 0);
                records = after;
                next += 6;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                (refused, in_a_row) = (refused + 1, in_a_row + 1);
            }
        }
        if refused > 0 {
            assert_holds(&db, &records);
        }
    }
    assert!(made >= 15 && refused >= 12, "{made} made, {refused} refused");
    // What there is room for is put one by one.
    let filled = (next..next + 100_000).find(|number| {
        let (key, value) = (configuration.key(*number), configuration.value(*number, 1));
        let is_full = session.put(&key, &value).is_err();
        if !is_full {
            records.insert(key, value);
        }
        is_full
    });
    assert!(filled.is_some(), "the store was not full");
    for version in 3..9 {
        let numbers = || (0..30).map(|number| number * version);
        let mut batch = batch_of(configuration, numbers(), version);
        batch.delete(configuration.key(1));
        match session.write(&batch) {
            Ok(()) => {
                records.extend(configuration.records(numbers(), version));
                records.remove(&configuration.key(1));
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Full, "{error}"),
        }
        assert_holds(&db, &records);
    }
    assert_sound(&db);
    drop(session);
    drop(db);
    assert_holds(&configuration.open(directory.path()), &records);
}

fn batches_of_many_sessions_in_a_full_store(configuration: &Configuration) {
    let directory = scratch();
    let db = full_store(configuration, directory.path());
    fill_with_batches(configuration, &db);
}

/// The capacity has room, and the disk has none: with any number of blocks that are ready.
fn batches_of_many_sessions_on_a_full_disk(configuration: &Configuration) {
    for more in 0..8 {
        let directory = scratch();
        let faults = Arc::new(Faults::default());
        let db = faults::open(&faults, directory.path(), &configuration.options());
        let db = db.expect("a new store");
        let bytes = configuration.full_bytes as i64 + 1024 * more;
        faults.space.store(bytes, Ordering::Relaxed);
        fill_with_batches(configuration, &db);
        drop(db);
        assert_sound(&configuration.open(directory.path()));
    }
}

/// Batches of several sessions, and puts until one finds no room: each batch is made or not, and none is in doubt.
fn fill_with_batches(configuration: &Configuration, db: &Db) {
    let is_full = AtomicBool::new(false);
    let numbers = |thread: u64| (thread * 1000..).take(5);
    at_once(4, |thread| {
        let mut session = db.session();
        if thread == 3 {
            for number in 1_000_000.. {
                let outcome =
                    session.put(configuration.key(number), configuration.value(number, 1));
                if outcome.is_err() {
                    break;
                }
            }
            is_full.store(true, Ordering::Relaxed);
            return;
        }
        let mut held = Records::new();
        let (mut version, mut refused) = (1, 0);
        while refused < 40 && version < 400 {
            let batch = batch_of(configuration, numbers(thread), version);
            match session.write(&batch) {
                Ok(()) => held = configuration.records(numbers(thread), version),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    refused += 1;
                }
            }
            for number in numbers(thread) {
                let key = configuration.key(number);
                assert_eq!(session.get(&key).expect("a get").as_ref(), held.get(&key));
            }
            version += 1;
        }
    });
    assert!(is_full.into_inner());
    assert_sound(db);
}

fn a_store_for_reading_refuses_batches(configuration: &Configuration) {
    let directory = scratch();
    let records = configuration.filled_store(directory.path(), 5);
    let db = open(directory.path(), &configuration.options().read_only(true));
    let error = db.write(&batch_of(configuration, 3..8, 2)).expect_err("only for reading");
    assert_eq!(error.kind(), ErrorKind::WritesRefused);
    assert_holds(&db, &records);
}

/// Whatever batches took is free when the store is closed, or compacted.
fn batches_leave_no_room_in_use(configuration: &Configuration) {
    let directory = scratch();
    for round in 0..30 {
        let db = full_store(configuration, directory.path());
        db.write(&batch_of(configuration, 0..20, round)).expect("room");
        if round % 2 == 0 {
            db.compact(1, None).expect("compaction");
        }
        assert_sound(&db);
        db.close().expect("nobody else has it");
    }
    assert_holds(&configuration.open(directory.path()), &configuration.records(0..20, 29));
}

fn scans_find_what_batches_wrote(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &configuration.options().ordered(true));
    db.write(&batch_of(configuration, 0..40, 1)).expect("room");
    let mut batch = batch_of(configuration, 30..50, 2);
    delete_all(configuration, &mut batch, 0..10);
    db.write(&batch).expect("room");
    let mut expected = configuration.records(10..30, 1);
    expected.extend(configuration.records(30..50, 2));
    let found: Result<Records, Error> = db.scan(..).expect("it is ordered").collect();
    assert_eq!(found.expect("no damage"), expected);
}

fn a_batch_writes_to_several_keyspaces(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &configuration.options().ordered(true));
    let (orders, stock) =
        (db.keyspace("orders").expect("room"), db.keyspace("stock").expect("room"));
    stock.put("pears", [3]).expect("room");
    let typed = db.keyspace("typed").expect("room").typed::<u64, u64>();
    typed.put(&1, &10).expect("room");
    let mut batch = Batch::new();
    batch.put(orders.key_of("17"), "pears").put(stock.key_of("pears"), [2]);
    batch.put("pears", "of the store").require_absent(orders.key_of("17"));
    typed.put_in(&mut batch, &2, &20);
    typed.delete_in(&mut batch, &1);
    db.write(&batch).expect("room");
    assert!(matches!(db.write(&batch), Err(Error::ConditionFailed { condition: 0 })));
    let taken = db.transaction(|keys| {
        let left = keys.get(stock.key_of("pears"))?.expect("it is there")[0];
        keys.put(stock.key_of("pears"), [left - 1]);
        keys.put(orders.key_of("18"), "pears");
        let twenty = typed.get_in(keys, &2)?.expect("it is there");
        typed.put_in(keys, &3, &(twenty + 10));
        typed.delete_in(keys, &2);
        assert_eq!((typed.get_in(keys, &2)?, typed.get_in(keys, &3)?), (None, Some(30)));
        Ok::<_, Error>(left)
    });
    assert_eq!(taken.expect("room"), 2);
    assert_eq!(orders.count().expect("a count"), 2);
    assert_eq!(stock.get("pears").expect("a get"), Some(vec![1]));
    assert_eq!(db.get("pears").expect("a get"), Some("of the store".into()));
    let records: Result<Vec<_>, Error> = typed.scan(..).expect("it is ordered").collect();
    assert_eq!(records.expect("no damage"), [(3, 30)]);
}
