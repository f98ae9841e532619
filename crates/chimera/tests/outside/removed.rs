//! Files of an open store that are removed or replaced by hand.

use std::fs;
use std::path::Path;

use chimera::{Db, Durability, Error, ErrorKind, Options};

use crate::tools::{self, assert_fails, fill, scratch, scratch_on_disk, small};
use crate::{put_until_refused, segments};

/// Something done to a file, and its name.
type Deed = (&'static str, fn(&Path));

/// What is done to a file.
const DEEDS: [Deed; 3] = [
    ("removed", |path| fs::remove_file(path).expect("removed")),
    ("replaced by a copy", |path| {
        let copy = path.with_extension("copy");
        fs::copy(path, &copy).expect("copied");
        fs::rename(copy, path).expect("renamed");
    }),
    ("replaced by a directory", |path| {
        fs::remove_file(path).expect("removed");
        fs::create_dir(path).expect("made");
    }),
];

/// A store of two segments, whose `file` is gone.
fn store_without(path: &Path, options: &Options, file: &str, deed: fn(&Path)) -> Db {
    let db = tools::open(path, options);
    fill(&mut db.session(), 0..400, 1);
    assert_eq!(segments(path), 2);
    deed(&path.join(file));
    db
}

fn assert_removed(error: Error, file: &str) {
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    assert_fails(Err::<(), _>(error), &[file, "was removed or replaced", "backup"]);
}

/// That growth, sync and close find that `file` is gone.
fn assert_noticed(path: &Path, options: &Options, file: &str) {
    for (number, (what, deed)) in DEEDS.iter().enumerate() {
        println!("{file} is {what}");
        let path = |case: &str| path.join(format!("{file}-{number}-{case}"));
        let db = store_without(&path("sync"), options, file, *deed);
        assert_removed(db.sync().expect_err("it is gone"), file);
        assert_fails(db.put(b"12345678", [0; 24]), &["refuses writes", file]);
        assert_removed(db.close().expect_err("it is gone").into(), file);
        let db = store_without(&path("growth"), options, file, *deed);
        assert_removed(put_until_refused(&db, 400).1, file);
        assert_removed(db.close().expect_err("it is gone").into(), file);
        let db = store_without(&path("close"), options, file, *deed);
        assert_removed(db.close().expect_err("it is gone").into(), file);
    }
}

#[test]
fn a_file_of_an_open_store_that_is_gone_is_noticed() {
    let directory = scratch();
    for file in ["superblock", "lock", "segment-000000", "segment-000001"] {
        assert_noticed(directory.path(), &small(), file);
    }
}

#[test]
fn a_journal_that_is_gone_is_noticed() {
    let directory = scratch_on_disk();
    let options = small().durability(Durability::Immediate).journal_bytes(64 << 10);
    let db = tools::open(&directory.path().join("probe"), &options);
    if db.stats().medium.is_persistent_memory() || !directory.path().join("probe/journal").exists()
    {
        return;
    }
    assert_noticed(directory.path(), &options, "journal");
}

#[test]
fn a_lock_that_was_removed_lets_no_second_one_in() {
    let directory = scratch();
    let path = directory.path().join("store");
    let db = tools::open(&path, &small());
    fill(&mut db.session(), 0..20, 1);
    fs::remove_file(path.join("lock")).expect("removed");
    for options in [small(), small().read_only(true), small().salvage(true)] {
        let error = Db::open(&path, &options).expect_err("it is open");
        assert!(
            matches!(error, Error::Locked { .. }) || error.to_string().contains("lock"),
            "{error}"
        );
        fs::remove_file(path.join("lock")).ok();
    }
    assert_fails(Db::destroy(&path), &["lock"]);
    assert_eq!(db.stats().records, 20);
}

#[test]
fn a_lock_that_is_missing_is_made_again() {
    let directory = scratch();
    let path = directory.path().join("store");
    tools::filled_store(&path, &small(), 20);
    fs::remove_file(path.join("lock")).expect("removed");
    // Who only reads makes nothing.
    assert_fails(Db::open(&path, &small().read_only(true)), &["`lock` is missing"]);
    let db = tools::open(&path, &small().create(false));
    assert_eq!(db.stats().records, 20);
    db.close().expect("nobody else has it");
    assert_eq!(tools::open(&path, &small().read_only(true)).stats().records, 20);
}

#[test]
fn a_store_that_is_replaced_by_another_is_noticed() {
    let directory = scratch();
    let path = directory.path().join("store");
    let db = tools::open(&path, &small());
    fill(&mut db.session(), 0..10, 1);
    fs::remove_dir_all(&path).expect("removed");
    let other = tools::open(&path, &small());
    fill(&mut other.session(), 0..500, 2);
    assert_removed(put_until_refused(&db, 10).1, "store");
    assert_removed(db.close().expect_err("it is gone").into(), "store");
    other.close().expect("it is another one");
    let other = tools::open(&path, &small());
    assert_eq!(tools::contents(&other).len(), 500);
    tools::assert_sound(&other);
}

/// Whoever only reads loses nothing.
#[test]
fn a_reader_of_a_removed_store_goes_on() {
    let directory = scratch();
    let path = directory.path().join("store");
    tools::filled_store(&path, &small(), 100);
    let db = tools::open(&path, &small().read_only(true));
    fs::remove_dir_all(&path).expect("removed");
    assert_eq!(tools::contents(&db).len(), 100);
    db.close().expect("there is nothing to lose");
}

#[test]
fn a_removed_store_can_be_backed_up() {
    let directory = scratch();
    let (path, backup) = (directory.path().join("store"), directory.path().join("backup"));
    let db = tools::open(&path, &small());
    fill(&mut db.session(), 0..100, 1);
    fs::remove_dir_all(&path).expect("removed");
    assert_removed(db.sync().expect_err("it is gone"), "store");
    db.backup(&backup, &chimera::BackupOptions::new()).expect("a backup");
    let db = tools::open(&backup, &small());
    assert_eq!(tools::contents(&db).len(), 100);
    tools::assert_sound(&db);
}
