//! Paths that are no stores, stores that others hold, stores open for reading only.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chimera::{Db, Error};

use crate::tools::faults::{self, Faults};
use crate::tools::{
    assert_fails, assert_sound, bytes_of, contents, copy_store, fill, filled_store, key, open,
    scratch, small, value,
};

const RECORDS: u64 = 25;

#[test]
fn links_directories_and_foreign_files_are_refused() {
    let (directory, other) = (scratch(), scratch());
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    for name in ["superblock", "lock", "segment-000000"] {
        let file = path.join(name);
        let away = other.path().join(name);
        fs::rename(&file, &away).or_else(|_| fs::copy(&file, &away).map(|_| ())).expect("moved");
        let _ = fs::remove_file(&file);
        symlink(&away, &file).expect("a link");
        assert_fails(Db::open(path, &small()), &["cannot open", name]);
        fs::remove_file(&file).expect("the link");
        fs::create_dir(&file).expect("a directory");
        assert_fails(Db::open(path, &small()), &["cannot open", name]);
        fs::remove_dir(&file).expect("the directory");
        fs::copy(&away, &file).expect("put back");
    }
    let db = open(path, &small());
    assert_eq!(contents(&db).len() as u64, RECORDS);
}

#[test]
fn files_are_for_their_owner_only() {
    let directory = scratch();
    let path = directory.path().join("store");
    filled_store(&path, &small(), RECORDS);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for name in ["superblock", "lock", "segment-000000"] {
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
}

fn assert_refuses_writes(db: &Db) {
    let mut session = db.session();
    let read_only = |outcome: chimera::Result<()>| {
        assert!(matches!(outcome, Err(Error::ReadOnly)), "{outcome:?}");
        assert_fails(outcome, &["open for reading only", "open it without `read_only`"]);
    };
    for number in [1, 1000] {
        read_only(session.put(key(number), value(number, 2)).map(drop));
        read_only(session.delete(key(number)).map(drop));
        read_only(session.update(key(number), |value| value[0] ^= 1).map(drop));
        read_only(session.fetch_add_u64(key(number), 0, 1).map(drop));
        read_only(session.fetch_add_u64(key(number), 1, 1).map(drop));
        read_only(session.compare_and_swap_u64(key(number), 0, 1, 2).map(drop));
        let swap = session.compare_and_swap(key(number), value(number, 1), value(number, 2));
        read_only(swap.map(drop));
        read_only(db.put(key(number), value(number, 2)).map(drop));
    }
}

#[test]
fn a_store_open_for_reading_takes_no_writes_and_changes_nothing() {
    // Blocks to spare, and none: a put must not even try to find one.
    for records in [RECORDS, 240] {
        let (directory, copy) = (scratch(), scratch());
        let writer = open(directory.path(), &small());
        fill(&mut writer.session(), 0..records, 1);
        // Closed in order, and as it is while somebody writes.
        copy_store(directory.path(), copy.path());
        writer.close().expect("nobody else has it");
        for path in [directory.path(), copy.path()] {
            let before = bytes_of(path);
            let db = open(path, &small().read_only(true));
            assert_eq!(contents(&db).len() as u64, records);
            assert_refuses_writes(&db);
            assert_sound(&db);
            db.sync().expect("nothing to do");
            assert_eq!(contents(&db).len() as u64, records);
            db.close().expect("nobody else has it");
            assert!(bytes_of(path) == before, "a reader changed the store");
        }
    }
}

/// The root of a system may write anywhere, so the refusal is simulated, too.
#[test]
fn a_read_only_directory_is_an_error_for_writers_only() {
    let directory = scratch();
    let path = directory.path().join("store");
    filled_store(&path, &small(), RECORDS);
    let faults = Arc::new(Faults::default());
    faults.read_only.store(true, Ordering::Relaxed);
    let words = ["cannot open", "lock", "read-only"];
    assert_fails(faults::open(&faults, &path, &small()), &words);
    let new = directory.path().join("new");
    assert_fails(faults::open(&faults, &new, &small()), &["cannot create the directory", "new"]);
    let db = faults::open(&faults, &path, &small().read_only(true)).expect("readers may");
    assert_eq!(contents(&db).len() as u64, RECORDS);
    drop(db);

    let locked = directory.path().join("locked");
    fs::create_dir(&locked).expect("a directory");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).expect("read-only");
    if fs::write(locked.join("probe"), b"").is_ok() {
        eprintln!("skipped: this user may write into read-only directories");
        return;
    }
    assert_fails(Db::open(&locked, &small()), &["cannot open", "lock", "denied"]);
    assert_fails(Db::open(locked.join("new"), &small()), &["cannot create", "denied"]);
}

/// Only a store on persistent memory survives the machine while it is open.
#[test]
fn a_store_that_the_machine_went_down_under_is_refused() {
    let (directory, copy) = (scratch(), scratch());
    let db = open(directory.path(), &small());
    fill(&mut db.session(), 0..RECORDS, 1);
    copy_store(directory.path(), copy.path());
    db.close().expect("nobody else has it");
    let rebooted = Arc::new(Faults { boot_id: Some(12345), ..Faults::default() });
    let outcome = faults::open(&rebooted, copy.path(), &small());
    assert!(matches!(outcome, Err(Error::PowerLost { .. })), "{outcome:?}");
    let words = ["the machine went down", "restore a copy", "salvage"];
    assert_fails(outcome, &words);
    assert_fails(faults::open(&rebooted, copy.path(), &small().read_only(true)), &words);
    let db = faults::open(&rebooted, copy.path(), &small().salvage(true)).expect("salvaged");
    assert_eq!(contents(&db).len() as u64, RECORDS);
    drop(db);
    // A store that was closed does not care.
    let db = faults::open(&rebooted, directory.path(), &small()).expect("it was closed");
    assert_eq!(contents(&db).len() as u64, RECORDS);
}
