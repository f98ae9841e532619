//! What others do to the directory of an open store: it is renamed, another store takes its place, it is removed.

use std::fs;
use std::path::Path;

use chimera::{Db, Error};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::assert_holds;
use crate::tools::{assert_fails, assert_sound, names, scratch};

pub(crate) const TESTS: &[Test] = tests![
    a_renamed_store_and_one_in_its_old_place_do_not_touch_each_other,
    a_removed_store_refuses_to_grow_and_to_be_closed,
    a_removed_store_cannot_be_synced,
];

/// How many segments a directory has.
fn segments(path: &Path) -> usize {
    names(path).iter().filter(|name| name.to_string_lossy().starts_with("segment-")).count()
}

/// Puts version 1 of keys from `first` on until the store in `path` has so many segments; the number of the next key.
fn grow(configuration: &Configuration, db: &Db, first: u64, path: &Path, most: usize) -> u64 {
    let (mut session, mut number) = (db.session(), first);
    while segments(path) < most {
        configuration.fill(&mut session, number..number + 10, 1);
        number += 10;
        assert!(number < 100_000, "{} segments after {number} records", segments(path));
    }
    number
}

fn a_renamed_store_and_one_in_its_old_place_do_not_touch_each_other(configuration: &Configuration) {
    let directory = scratch();
    let (old, new) = (directory.path().join("a"), directory.path().join("b"));
    let first = configuration.open(&old);
    let first_end = grow(configuration, &first, 0, &old, 2);
    fs::rename(&old, &new).expect("renamed");
    let second = configuration.open(&old);
    // In turns, so that each has the next segment first once.
    let second_end = grow(configuration, &second, 50_000, &old, 3);
    let first_end = grow(configuration, &first, first_end, &new, 4);
    let second_end = grow(configuration, &second, second_end, &old, 5);
    first.sync().expect("all of it is in its place");
    first.close().expect("all of it is in its place");
    second.close().expect("all of it is in its place");
    for (path, numbers) in [(&new, 0..first_end), (&old, 50_000..second_end)] {
        let db = configuration.open(path);
        assert_sound(&db);
        assert_holds(&db, &configuration.records(numbers, 1));
    }
}

fn a_removed_store_refuses_to_grow_and_to_be_closed(configuration: &Configuration) {
    let directory = scratch();
    let path = directory.path().join("store");
    let db = configuration.open(&path);
    configuration.fill(&mut db.session(), 0..20, 1);
    fs::remove_dir_all(&path).expect("removed");
    let mut session = db.session();
    let put = |number| session.put(configuration.key(number), configuration.value(number, 1));
    let error = (20..10_000).map(put).find_map(Result::err).expect("it has to grow");
    assert!(matches!(error, Error::Removed { .. }), "{error}");
    assert_fails(Err::<(), _>(error), &[&path.display().to_string(), "was removed or replaced"]);
    drop(session);
    // What it had is still to be read.
    let found = db.get(configuration.key(7)).expect("get");
    assert_eq!(found, Some(configuration.value(7, 1)));
    assert_fails(db.close().map_err(Error::from), &["was removed or replaced"]);
    assert!(!path.exists(), "nothing was made in its place");
}

fn a_removed_store_cannot_be_synced(configuration: &Configuration) {
    let directory = scratch();
    let path = directory.path().join("store");
    let db = configuration.open(&path);
    configuration.fill(&mut db.session(), 0..20, 1);
    fs::remove_dir_all(&path).expect("removed");
    assert_fails(db.sync(), &["was removed or replaced"]);
    let put = db.put(configuration.key(0), configuration.value(0, 2));
    assert_fails(put, &["refuses writes", "was removed or replaced"]);
    assert_fails(db.close().map_err(Error::from), &["was removed or replaced"]);
}
