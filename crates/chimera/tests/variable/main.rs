//! Stores of records of any size.

#[path = "../tools/mod.rs"]
mod tools;

mod damage;
mod full;
mod spill;

use std::collections::BTreeMap;

use chimera::{Db, Error, Geometry, Options, Swap};

use tools::{assert_sound, scratch};

/// Small pages and blocks: 504 bytes of log in a page, 2040 in a block that is one page.
const SMALL: Geometry =
    Geometry { page_bytes: 512, pages_per_block: 4, block_shift_bytes: 0, segment_bytes: 64 << 10 };

fn small() -> Options {
    Options::new()
        .viper(|viper| viper.geometry(SMALL))
        .populate_ahead_bytes(0)
        .reclaim_percent(0)
        .huge_pages(false)
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(db: &Db) -> Model {
    let mut all = Model::new();
    db.for_each(|key, value| {
        assert!(all.insert(key.to_vec(), value.to_vec()).is_none(), "{key:?} comes twice");
        true
    })
    .expect("a listing");
    all
}

/// Bytes that follow from a number.
fn bytes(number: u64, length: usize) -> Vec<u8> {
    let mut state = number;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn sizes_at_every_edge_come_back_after_reopening() {
    let directory = scratch();
    let mut model = Model::new();
    let db = Db::open(directory.path(), &small()).expect("a store");
    // Of a page, of a block that is one page, and around them; keys of every remainder of eight.
    let edges = [
        0, 1, 7, 8, 9, 200, 440, 447, 448, 455, 456, 457, 463, 464, 472, 480, 500, 512, 1000, 1500,
    ];
    for (number, length) in edges.into_iter().enumerate() {
        for key_bytes in [1, 2, 8, 15, 16, 100] {
            let mut key = bytes(number as u64, key_bytes);
            key[0] = number as u8;
            let value = bytes(length as u64, length);
            let is_new = db.put(&key, &value).expect("room");
            assert_eq!(is_new, model.insert(key, value).is_none());
        }
    }
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    db.close().expect("closing");
    let db = Db::open(directory.path(), &Options::new()).expect("the store");
    assert_eq!(contents(&db), model);
    for (key, value) in &model {
        assert_eq!(db.get(key).expect("a read").as_ref(), Some(value));
    }
    assert_sound(&db);
}

#[test]
fn what_is_too_long_or_empty_is_refused() {
    let directory = scratch();
    let db = Db::open(directory.path(), &small()).expect("a store");
    assert!(matches!(db.put(b"", b"x"), Err(Error::KeyLength { found: 0, .. })));
    let Err(Error::KeyLength { most, .. }) = db.put([1; 5000], b"x") else {
        panic!("a long key was taken")
    };
    db.put(vec![1; most], b"x").expect("the longest key");
    let Err(Error::ValueLength { most, .. }) = db.put(b"k", vec![1; (1 << 30) + 1]) else {
        panic!("a long value was taken")
    };
    assert_eq!(most, 1 << 30);
    assert_eq!(contents(&db).len(), 1);
}

/// Values on both sides of every bound: a page, a block, what the length in front of a record can say.
#[test]
fn values_of_all_sizes_come_back() {
    let directory = scratch();
    for (name, options) in [("small", small()), ("default", Options::new())] {
        let path = directory.path().join(name);
        // Also where a record with a key of five bytes fills a page and a block, and where chunks begin.
        let sizes = [0, 7, 200, 4056, 4096, 20_512, 24_536, 24_576, 65_520, 65_535, 1 << 20];
        let around = |size: usize| [size.saturating_sub(1), size, size + 1];
        let sizes: Vec<usize> = sizes.into_iter().flat_map(around).collect();
        let key = |number: usize| format!("key {number}").into_bytes();
        let db = Db::open(&path, &options).expect("a store");
        for (number, size) in sizes.iter().enumerate() {
            db.put(key(number), bytes(number as u64, *size)).expect("a put");
        }
        let verify = |db: &Db, turn: u64| {
            for (number, size) in sizes.iter().enumerate() {
                let found = db.get(key(number)).expect("a read").expect("it was put");
                assert!(found == bytes(number as u64 + turn, *size), "{size} bytes");
            }
            assert_sound(db);
        };
        verify(&db, 0);
        for (number, size) in sizes.iter().enumerate() {
            db.put(key(number), bytes(number as u64 + 9, *size)).expect("an overwrite");
        }
        verify(&db, 9);
        drop(db);
        let db = Db::open(&path, &options).expect("a store");
        verify(&db, 9);
        for number in 0..sizes.len() {
            assert!(db.delete(key(number)).expect("a delete"));
        }
        assert_eq!(contents(&db).len(), 0);
        assert_sound(&db);
    }
}

/// With the longest keys, which leave little room for values in their page.
#[test]
fn the_longest_keys_take_values_of_all_sizes() {
    let directory = scratch();
    for (name, options) in [("small", small()), ("default", Options::new().reclaim_percent(0))] {
        let path = directory.path().join(name);
        let db = Db::open(&path, &options).expect("a store");
        let Err(Error::KeyLength { most, .. }) = db.put([7; 5000], b"") else {
            panic!("a long key was taken")
        };
        let mut model = Model::new();
        let block = if name == "small" { 2048 } else { 24_576 };
        let rest = block - 8 - 24 - most.next_multiple_of(8);
        let sizes = [0, 1, 8, 32, 40, 41, 500, rest - 8, rest, rest + 1, block, 65_536, 100_000];
        for key_bytes in [most - 1, most] {
            for (number, size) in sizes.into_iter().enumerate() {
                let mut key = bytes(key_bytes as u64, key_bytes);
                key[0] = number as u8;
                assert!(db.put(&key, b"to be replaced").expect("room"));
                let value = bytes(number as u64, size);
                assert!(!db.put(&key, &value).expect("room"));
                assert!(db.get(&key).expect("a read").as_ref() == Some(&value), "{size}");
                model.insert(key, value);
            }
        }
        db.close().expect("nobody else has it");
        let db = Db::open(&path, &options).expect("a store");
        assert!(contents(&db) == model);
        assert_sound(&db);
        for key in model.keys() {
            assert!(db.delete(key).expect("a delete"));
        }
        assert_eq!(db.compact(1, None).expect("compaction").moved_records, 0);
        assert_eq!((contents(&db).len(), db.stats().blocks_used), (0, 0));
    }
}

/// Their blocks come back, too.
#[test]
fn a_value_of_64_mib_is_replaced_again_and_again() {
    let directory = scratch();
    let options = Options::new().capacity_bytes(160 << 20);
    let db = Db::open(directory.path(), &options).expect("a store");
    let value = |turn: u64| {
        let mut value = vec![turn as u8; 64 << 20];
        value[..1000].copy_from_slice(&bytes(turn, 1000));
        value
    };
    for turn in 0..5 {
        db.put(b"large", value(turn)).expect("a put");
        assert!(db.get(b"large").expect("a read").expect("it was put") == value(turn));
    }
    assert!(matches!(db.put(b"second", vec![1; 128 << 20]), Err(Error::PoolFull { .. })));
    assert_eq!(
        db.fetch_add_u64(b"large", 32 << 20, 1).expect("an update"),
        Some(0x0404_0404_0404_0404)
    );
    drop(db);
    let db = Db::open(directory.path(), &options).expect("a store");
    let mut expected = value(4);
    expected[32 << 20] += 1;
    assert!(db.get(b"large").expect("a read").expect("it was put") == expected);
    assert!(db.delete(b"large").expect("a delete"));
    db.put(b"second", vec![1; 120 << 20]).expect("the space is free");
    assert_sound(&db);
}

#[test]
fn random_operations_agree_with_a_model_across_reopening() {
    for seed in 0..6 {
        let directory = scratch();
        let options = small().capacity_bytes(96 << 10);
        let mut model = Model::new();
        let mut state = seed;
        let mut below = |end: u64| {
            state = bytes(state + 1, 8).iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            state % end
        };
        for _ in 0..5 {
            let db = Db::open(directory.path(), &options).expect("a store");
            let mut session = db.session();
            for _ in 0..600 {
                let number = below(60);
                let key = bytes(number, 1 + number as usize % 40);
                match below(10) {
                    0..5 => {
                        let length = [0, 3, 30, 100, 300, 700, 3000][below(7) as usize];
                        let value = bytes(below(1 << 40), length);
                        match session.put(&key, &value) {
                            Ok(is_new) => {
                                assert_eq!(is_new, model.insert(key, value).is_none());
                            }
                            Err(Error::PoolFull { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    5 | 6 => {
                        let was_there = session.delete(&key).expect("a delete");
                        assert_eq!(was_there, model.remove(&key).is_some());
                    }
                    7 => {
                        let at = 8 * below(4) as usize;
                        let outcome = session.fetch_add_u64(&key, at, 5);
                        match model.get_mut(&key) {
                            None => assert!(matches!(outcome, Ok(None)), "{outcome:?}"),
                            Some(value) if value.len() < at + 8 => {
                                assert!(matches!(outcome, Err(Error::FieldOutOfRange { .. })));
                            }
                            Some(value) => {
                                let field = value[at..at + 8].try_into().expect("8 bytes");
                                let before = u64::from_le_bytes(field);
                                assert_eq!(outcome.expect("an update"), Some(before));
                                let after = before.wrapping_add(5).to_le_bytes();
                                value[at..at + 8].copy_from_slice(&after);
                            }
                        }
                    }
                    8 => {
                        let expected = model.get(&key).cloned().unwrap_or_default();
                        let new = bytes(below(1 << 40), below(50) as usize);
                        match session.compare_and_swap(&key, &expected, &new) {
                            Ok(Swap::Swapped) => {
                                assert!(model.insert(key, new).is_some());
                            }
                            Ok(Swap::Missing) => assert!(!model.contains_key(&key)),
                            Ok(Swap::Different) => panic!("it is as expected"),
                            Err(Error::PoolFull { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    _ => assert_eq!(session.get(&key).expect("a read"), model.get(&key).cloned()),
                }
            }
            drop(session);
            assert_eq!(contents(&db), model);
            assert_sound(&db);
            db.close().expect("closing");
        }
    }
}

#[test]
fn a_store_that_was_emptied_takes_as_much_again() {
    let directory = scratch();
    let options = small().capacity_bytes(64 << 10);
    let db = Db::open(directory.path(), &options).expect("a store");
    let mut first = None;
    for round in 0..5_u64 {
        // Small ones in one round, large ones in the next: blocks change their kind.
        let length = if round % 2 == 0 { 60 } else { 900 };
        let mut count = 0_u64;
        while db.put(count.to_le_bytes(), bytes(round, length)).is_ok() {
            count += 1;
        }
        let most = first.get_or_insert([0; 2]);
        let most = &mut most[round as usize % 2];
        assert!(count >= *most && count > 20, "round {round}: {count} records, {most} before");
        *most = count;
        for number in 0..count {
            assert!(db.delete(number.to_le_bytes()).expect("a delete"));
        }
        assert_sound(&db);
    }
}
