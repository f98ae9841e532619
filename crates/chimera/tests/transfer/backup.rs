//! Backups, and what is left of interrupted ones.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use chimera::baselines::RecordLayout;
use chimera::{BackupOptions, Db, Error, Options};
use chimera_pmem::{Environment, Hardware, RealEnvironment, SteppedEnvironment};

use crate::tools::device::Device;
use crate::tools::{
    SMALL, assert_sound, bytes_of, contents, copy_store, faults, fill, open, scratch, small,
};
use crate::{any_size, store_of};

#[test]
fn a_backup_is_a_store_like_the_one_it_was_made_of() {
    let directory = scratch();
    let published = small().viper(|viper| viper.layout(RecordLayout::Published));
    for (number, options) in [small(), published, any_size()].iter().enumerate() {
        let db = open(&directory.path().join(format!("{number}")), options);
        fill(&mut db.session(), 0..500, 1);
        let path = directory.path().join(format!("{number}-backup"));
        let report = db.backup(&path, &BackupOptions::new()).expect("a backup");
        assert_eq!(report.records, 500);
        // Opens with the very options, and a session of it may go on.
        let copy = open(&path, options);
        assert!(copy.stats().recovery.clean);
        assert!(contents(&copy) == contents(&db));
        assert_eq!(copy.stats().pmem_bytes, report.bytes);
        let layout = |db: &Db| db.stats().viper().expect("Viper").layout;
        assert_eq!(layout(&copy), layout(&db));
        assert_sound(&copy);
        fill(&mut copy.session(), 0..10, 2);
        copy.close().expect("nobody else has it");
        assert_sound(&open(&path, options));
    }
}

#[test]
fn a_backup_of_large_values() {
    let directory = scratch();
    let options = Options::new().segment_bytes(32 << 20);
    let (db, model) =
        store_of(&directory.path().join("one"), &options, &[0, 5000, 100_000, 3 << 20]);
    let path = directory.path().join("copy");
    db.backup(&path, &BackupOptions::new()).expect("a backup");
    assert!(contents(&open(&path, &options)) == model);
}

#[test]
fn what_is_at_the_path_already_is_left_alone() {
    let directory = scratch();
    let path = directory.path().join("one");
    let db = open(&path, &small());
    fill(&mut db.session(), 0..10, 1);
    let refused = |path: &Path| {
        let outcome = db.backup(path, &BackupOptions::new());
        assert!(matches!(outcome, Err(Error::AlreadyExists { .. })), "{outcome:?}");
    };
    refused(&path);
    let other = directory.path().join("other");
    db.backup(&other, &BackupOptions::new()).expect("a backup");
    let before = bytes_of(&other);
    refused(&other);
    assert!(bytes_of(&other) == before);
    let foreign = directory.path().join("foreign");
    std::fs::create_dir(&foreign).expect("a directory");
    std::fs::write(foreign.join("letter"), "dear").expect("a file");
    refused(&foreign);
    assert_eq!(bytes_of(&foreign).len(), 1);
    // A directory that is there and empty, as a mount point is.
    let empty = directory.path().join("empty");
    std::fs::create_dir(&empty).expect("a directory");
    db.backup(&empty, &BackupOptions::new()).expect("a backup");
    assert_eq!(contents(&open(&empty, &small())).len(), 10);
}

/// What a killed process leaves at any moment of it.
#[test]
fn a_backup_that_was_interrupted_never_opens_as_a_store() {
    let directory = scratch();
    let db = open(&directory.path().join("one"), &small());
    fill(&mut db.session(), 0..2000, 1);
    let path = directory.path().join("backup");
    let copies = Arc::new(Mutex::new(Vec::new()));
    let progress = {
        let (path, copies, root) = (path.clone(), copies.clone(), directory.path().to_owned());
        move |done: u64, _: u64| {
            let copy = root.join(format!("copy-{done}"));
            copy_store(&path, &copy);
            copies.lock().expect("nobody panics").push((done, copy));
        }
    };
    let options = BackupOptions::new().progress(Arc::new(progress));
    let pmem = Hardware::new(small().hardware_options()).expect("address space");
    // Nothing in the background while files are copied.
    let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::new(1));
    db.backup_on(pmem, &environment, &path, &options).expect("a backup");
    let copies = std::mem::take(&mut *copies.lock().expect("nobody panics"));
    assert!(copies.len() > 5);
    for (done, copy) in copies {
        for options in
            [Options::new(), Options::new().read_only(true), Options::new().salvage(true)]
        {
            let outcome = Db::open(&copy, &options);
            assert!(matches!(outcome, Err(Error::Incomplete { .. })), "{done}: {outcome:?}");
        }
        let outcome = db.backup(&copy, &BackupOptions::new());
        assert!(matches!(outcome, Err(Error::AlreadyExists { .. })), "{outcome:?}");
        // What it holds is not lost.
        let part = open(&copy, &Options::new().read_only(true).salvage(true));
        assert_eq!(contents(&part).len() as u64, done);
    }
    assert_eq!(contents(&open(&path, &small())).len(), 2000);
}

#[test]
fn a_backup_that_fails_stays_incomplete() {
    let directory = scratch();
    let db = open(&directory.path().join("one"), &small());
    fill(&mut db.session(), 0..2000, 1);
    // A disk that is full.
    let full = Arc::new(faults::Faults::default());
    full.space.store(60_000, Ordering::Relaxed);
    let path = directory.path().join("full");
    let pmem = || Hardware::new(small().hardware_options()).expect("address space");
    let environment = faults::environment(&full);
    let outcome = db.backup_on(pmem(), &environment, &path, &BackupOptions::new());
    assert!(matches!(outcome, Err(Error::PoolFull { .. })), "{outcome:?}");
    assert!(matches!(Db::open(&path, &small()), Err(Error::Incomplete { .. })));
    // A file in its place.
    let file = directory.path().join("file");
    std::fs::write(&file, "dear").expect("a file");
    let outcome = db.backup(&file, &BackupOptions::new());
    assert!(matches!(outcome, Err(Error::NotAStore { .. })), "{outcome:?}");
    // The store itself is as it was, and so is the next backup.
    let again = directory.path().join("again");
    let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::new());
    db.backup_on(pmem(), &environment, &again, &BackupOptions::new()).expect("a backup");
    assert!(contents(&open(&again, &small())) == contents(&db));
}

/// A device has no second name.
#[test]
fn a_backup_onto_a_device() {
    let directory = scratch();
    let geometry = chimera::Geometry { segment_bytes: 2 << 20, ..SMALL };
    let db = open(&directory.path().join("one"), &small().viper(|viper| viper.geometry(geometry)));
    fill(&mut db.session(), 0..500, 1);
    let device = Device::filled(8 << 20, 2 << 20, 0);
    let pmem = || Hardware::new(small().hardware_options()).expect("address space");
    let backup =
        || db.backup_on(pmem(), &device.environment(), device.path(), &BackupOptions::new());
    backup().expect("a backup");
    let outcome = backup();
    assert!(matches!(outcome, Err(Error::AlreadyExists { .. })), "{outcome:?}");
    let copy = device.open(&Options::new()).expect("a store");
    assert!(contents(&copy) == contents(&db));
    assert_sound(&copy);
}
