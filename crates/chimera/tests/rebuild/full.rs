//! Pools that are full before it is known what of them is free.

use std::path::Path;

use chimera::{Db, Error, Options};

use crate::tools::{copy_store, key_of, scratch, value_of};
use crate::{Model, Stepped, assert_exact, assert_same_when_opened_again, options, put, sizes};

/// Room for some hundred records.
fn small() -> Options {
    options().capacity_bytes(60 * 1024)
}

/// Puts records until there is no room. How many there were.
fn put_all(db: &Db, model: &mut Model, from: u64, value_bytes: usize) -> u64 {
    let mut session = db.session();
    for number in from.. {
        let (key, value) = (key_of(number, 16), value_of(number, 1, value_bytes));
        match session.put(&key, &value) {
            Ok(_) => drop(model.insert(key, value)),
            Err(Error::PoolFull { .. }) => return number - from,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("no pool is that large")
}

/// A full store of which every `keep`th record is left.
fn thinned(path: &Path, keep: u64, value_bytes: usize) -> Model {
    let db = Stepped::open(path, &small()).db;
    let mut model = Model::new();
    let count = put_all(&db, &mut model, 0, value_bytes);
    for number in (0..count).filter(|number| number % keep > 0) {
        assert!(db.delete(key_of(number, 16)).expect("a delete"));
        model.remove(&key_of(number, 16));
    }
    db.close().expect("nobody else has it");
    model
}

#[test]
fn a_pool_that_looks_full_is_looked_through_first() {
    for (keep, steps) in [(2, 0), (2, 3), (3, 1), (9, 0), (9, 5)] {
        let (directory, copy) = (scratch(), scratch());
        let mut model = thinned(directory.path(), keep, 40);
        copy_store(directory.path(), copy.path());
        let at_once = Db::open(copy.path(), &small().verify_at_open(true)).expect("a store");
        let room = put_all(&at_once, &mut model.clone(), 1_000_000, 40);
        let store = Stepped::open(directory.path(), &small());
        store.step(steps);
        assert!(!sizes(&store.db).space_is_rebuilt);
        let count = put_all(&store.db, &mut model, 1_000_000, 40);
        assert!(sizes(&store.db).space_is_rebuilt, "full, and it is not known what is free");
        assert!(count > 40 && count >= room * 9 / 10, "{count} of {room}");
        assert_exact(&store.db, &model);
        assert!(!store.environment.step_tasks() || !store.environment.step_tasks());
        store.db.close().expect("nobody else has it");
        assert_same_when_opened_again(directory.path(), &model);
    }
}

#[test]
fn overwriting_in_a_full_pool_goes_on() {
    let directory = scratch();
    let mut model = thinned(directory.path(), 2, 40);
    let store = Stepped::open(directory.path(), &small());
    let mut session = store.db.session();
    let numbers: Vec<u64> = (0..).step_by(2).take(model.len()).collect();
    for version in 2..12 {
        for number in &numbers {
            put(&mut session, &mut model, *number, version);
        }
    }
    store.finish();
    assert_exact(&store.db, &model);
}

/// The index needs a run, and only runs without items, which nobody knows yet, have room for it.
#[test]
fn the_index_grows_into_space_that_is_found_free() {
    let directory = scratch();
    let mut model = thinned(directory.path(), 60, 1000);
    let store = Stepped::open(directory.path(), &small());
    let segments = sizes(&store.db).index_segments;
    let mut session = store.db.session();
    for number in 2_000_000..2_000_200 {
        let (key, value) = (key_of(number, 16), Vec::new());
        session.put(&key, &value).expect("room");
        model.insert(key, value);
    }
    drop(session);
    store.finish();
    assert!(sizes(&store.db).index_segments > segments);
    assert_exact(&store.db, &model);
}

/// An item that goes to fresh space may take the last of it, which a split of the index needs.
#[test]
fn what_fits_where_it_is_known_what_is_free_is_not_refused_before() {
    let mut fitting = 0;
    for blocks in 10..26 {
        let directory = scratch();
        let tiny = |verifies| {
            let options = options().segment_bytes(8192).capacity_bytes(256 * blocks);
            options.verify_at_open(verifies).hikv(|hikv| {
                hikv.partitions(1).index_segment_bytes(256).heap_run_bytes(512).walked_first(0)
            })
        };
        let db = Stepped::open(directory.path(), &tiny(false)).db;
        put_all(&db, &mut Model::new(), 0, 40);
        assert!(db.delete(key_of(0, 16)).expect("a delete"));
        db.close().expect("nobody else has it");
        for number in 1000..1008 {
            let fits = [true, false].map(|verifies| {
                let copy = scratch();
                copy_store(directory.path(), copy.path());
                let db = Stepped::open(copy.path(), &tiny(verifies)).db;
                db.put(key_of(number, 16), value_of(number, 1, 40)).is_ok()
            });
            assert!(!fits[0] || fits[1], "{blocks} blocks, key {number}");
            fitting += u32::from(fits[0]);
        }
    }
    assert!(fitting > 20, "{fitting} puts fit");
}
