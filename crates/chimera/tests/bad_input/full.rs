//! Running out of space, and media that fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chimera::{Db, Durability, Error};

use crate::tools::faults::{self, Faults};
use crate::tools::{
    assert_fails, assert_sound, bytes_of, contents, key, open, scratch, scratch_on_disk, small,
    value,
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The key whose value is updated in place.
const COUNTER: u64 = 3;

/// Puts new keys until the store is full.
fn fill_up(db: &Db, model: &mut Model) -> u64 {
    let mut session = db.session();
    for number in 0.. {
        match session.put(key(number), value(number, 1)) {
            Ok(_) => {
                if number == COUNTER {
                    // Ready for updates in place, for which there is room now.
                    session.fetch_add_u64(key(number), 8, 0).expect("there is room");
                }
                model.insert(key(number), value(number, 1))
            }
            Err(Error::PoolFull { .. }) => {
                // Again and again, and overwrites as well: a clear error each time.
                for other in [number, 0, number / 2] {
                    let outcome = session.put(key(other), value(other, 9));
                    assert_fails(outcome, &["the pool is full", "delete records"]);
                }
                return number;
            }
            Err(other) => panic!("{other}"),
        };
    }
    unreachable!("a pool is full some day")
}

/// What a full store must still do, and do again once there is room.
fn assert_works_when_full(db: &Db, model: &mut Model, count: u64) {
    assert_eq!(&contents(db), model, "something was half-written or lost");
    assert_sound(db);
    let mut session = db.session();
    // In place needs no room; anew does.
    let field = session.fetch_add_u64(key(COUNTER), 8, 5).expect("in place").expect("it is there");
    let changed = model.get_mut(&key(COUNTER)).expect("it is there");
    changed[8..16].copy_from_slice(&field.wrapping_add(5).to_le_bytes());
    assert_fails(session.fetch_add_u64(key(COUNTER), 0, 5), &["the pool is full"]);
    assert_eq!(session.get(key(COUNTER)).expect("get").as_ref(), model.get(&key(COUNTER)));
    for number in count / 2..count {
        assert!(session.delete(key(number)).expect("deletes need no room"));
        model.remove(&key(number));
    }
    for number in count / 2..count {
        session.put(key(number), value(number, 3)).expect("deletes have made room");
        model.insert(key(number), value(number, 3));
    }
    drop(session);
    assert_eq!(&contents(db), model);
    assert_sound(db);
}

#[test]
fn a_capacity_reached_is_an_error_that_loses_nothing() {
    for blocks in [1, 2, 23, 24, 25, 60] {
        let directory = scratch();
        let options = small().capacity_bytes(blocks * 512);
        let db = open(directory.path(), &options);
        let mut model = Model::new();
        let count = fill_up(&db, &mut model);
        assert_eq!(count, blocks * 10, "a full store is not full");
        assert_works_when_full(&db, &mut model, count);
        db.close().expect("nobody else has it");
        let db = open(directory.path(), &options);
        assert_eq!(contents(&db), model);
        let full = db.session().put(key(count), value(count, 1));
        assert_fails(full, &["the pool is full", "capacity"]);
        db.close().expect("nobody else has it");
        // More room.
        let db = open(directory.path(), &small());
        db.put(key(count), value(count, 1)).expect("there is room now");
    }
}

/// One free slot is enough for one record, wherever it is.
#[test]
fn a_single_delete_makes_room_for_a_single_put() {
    let directory = scratch();
    let db = open(directory.path(), &small().capacity_bytes(30 * 512));
    let mut model = Model::new();
    let count = fill_up(&db, &mut model);
    let mut session = db.session();
    for number in 0..count {
        session.delete(key(number)).expect("deletes need no room");
        let outcome = session.put(key(number), value(number, 2));
        assert!(outcome.is_ok(), "after a delete of key {number}: {outcome:?}");
    }
}

fn full_disk(path: &Path, space: i64) {
    let faults = Arc::new(Faults::default());
    let outcome = faults::open(&faults, path, &small());
    let db = outcome.expect("there is room to begin with");
    faults.space.store(space, Ordering::Relaxed);
    let mut model = Model::new();
    let count = fill_up(&db, &mut model);
    let words = ["the pool is full", "no space left for", "segment-", "give it more room"];
    if count > 0 {
        assert_fails(db.put(key(count), value(count, 1)), &words);
        if count >= 40 {
            assert_works_when_full(&db, &mut model, count);
        }
    }
    db.close().expect("closing needs no room");
    let db = faults::open(&faults, path, &small()).expect("opening needs no room");
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    faults.space.store(i64::MAX, Ordering::Relaxed);
    for number in count..count + 500 {
        db.put(key(number), value(number, 1)).expect("there is room again");
    }
    db.close().expect("nobody else has it");
    let db = open(path, &small());
    assert_eq!(contents(&db).len(), model.len() + 500);
}

/// The disk fills up while a segment is made, and while storage inside of one is allocated.
#[test]
fn a_full_disk_is_an_error_that_loses_nothing() {
    for space in [0, 1, 4095, 4096, 5000, 8000, 12_000, 17_000, 22_000, 40_000, 100_000] {
        full_disk(scratch().path(), space);
    }
    full_disk(scratch_on_disk().path(), 30_000);
}

#[test]
fn a_disk_too_full_for_a_new_store_is_an_error_that_leaves_nothing_behind() {
    let directory = scratch();
    let path = directory.path();
    let faults = Arc::new(Faults::default());
    faults.space.store(8191, Ordering::Relaxed);
    let outcome = faults::open(&faults, path, &small());
    assert!(matches!(outcome, Err(Error::PoolFull { .. })), "{outcome:?}");
    assert_fails(outcome, &["no space left for", "superblock"]);
    assert!(!bytes_of(path).contains_key(Path::new("superblock")));
    faults.space.store(1 << 20, Ordering::Relaxed);
    let db = faults::open(&faults, path, &small()).expect("there is room now");
    db.put(key(1), value(1, 1)).expect("there is room now");
}

#[test]
fn a_failed_sync_poisons_the_store_for_writers() {
    // Only ordinary files are synced.
    let directory = scratch_on_disk();
    let faults = Arc::new(Faults::default());
    // Nobody else syncs what this test is to sync.
    let options = small().durability(Durability::Group { max_delay: Duration::from_secs(3600) });
    let db = faults::open(&faults, directory.path(), &options).expect("a new store");
    db.put(key(1), value(1, 1)).expect("there is room");
    faults.sync_fails.store(true, Ordering::Relaxed);
    assert_fails(db.sync(), &["cannot sync", "the disk is broken"]);
    faults.sync_fails.store(false, Ordering::Relaxed);
    let words = ["refuses writes since an earlier failure", "disk is broken", "open it again"];
    assert_fails(db.put(key(2), value(2, 1)), &words);
    assert_fails(db.put(key(1), value(1, 2)), &words);
    assert_fails(db.delete(key(1)), &words);
    assert_fails(db.update(key(1), |value| value[0] = 1), &words);
    assert_fails(db.fetch_add_u64(key(1), 0, 1), &words);
    assert_eq!(db.get(key(1)).expect("reads go on"), Some(value(1, 1)));
    assert_sound(&db);
    drop(db);
    let db = open(directory.path(), &small());
    assert!(!db.stats().recovery.clean, "a store in doubt is not closed in order");
    assert_eq!(contents(&db).len(), 1);
    db.put(key(2), value(2, 1)).expect("a new beginning");
}

#[test]
fn a_close_that_fails_says_so() {
    let directory = scratch_on_disk();
    let faults = Arc::new(Faults::default());
    let db = faults::open(&faults, directory.path(), &small()).expect("a new store");
    db.put(key(1), value(1, 1)).expect("there is room");
    faults.sync_fails.store(true, Ordering::Relaxed);
    assert_fails(db.close().map_err(Error::from), &["cannot sync", "the disk is broken"]);
    let db = open(directory.path(), &small());
    assert!(!db.stats().recovery.clean);
    assert_eq!(contents(&db).len(), 1);
}
