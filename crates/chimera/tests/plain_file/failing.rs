//! A device that stops syncing.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use chimera::Error;
use chimera_pmem::environment::{File, MemoryFiles, OpenMode};

use super::*;
use crate::tools::faults::{self, Faults};
use crate::tools::{assert_fails, contents, fill, key, open, scratch_on_disk, value};

/// Files whose syncs can be made to fail.
#[derive(Debug)]
struct Failing {
    inner: MemoryFiles,
    fails: Arc<AtomicBool>,
}

#[derive(Debug)]
struct FailingFile {
    inner: Arc<dyn File>,
    fails: Arc<AtomicBool>,
}

impl FileProvider for Failing {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, mode)?;
        Ok(Arc::new(FailingFile { inner, fails: self.fails.clone() }))
    }
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.create_directory(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(path)
    }
    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        self.inner.is_directory(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_directory(path)
    }
}

impl File for FailingFile {
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.allocate(offset, length)
    }
    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.punch(offset, length)
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, into)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, bytes)
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.inner.set_length(length)
    }
    fn sync(&self) -> io::Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("the device is gone"));
        }
        self.inner.sync()
    }
    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.inner.try_lock(exclusive)
    }
    fn medium(&self) -> io::Result<Medium> {
        self.inner.medium()
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn is_read_only(&self) -> bool {
        self.inner.is_read_only()
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_never_taken_for_one_that_is_missing() {
    let directory = scratch_on_disk();
    let db = open(directory.path(), &options(GROUP));
    fill(&mut db.session(), 0..20, 1);
    let expected = contents(&db);
    db.close().expect("nobody else has it");
    for number in 0.. {
        let faults = Arc::new(Faults { opens: AtomicI64::new(number), ..Faults::default() });
        match faults::open(&faults, directory.path(), &options(GROUP)) {
            Err(error) => assert_fails(Err::<(), _>(error), &["too many open files"]),
            Ok(db) => {
                assert!(faults.opens.load(Ordering::Relaxed) >= 0, "opened without file {number}");
                assert!(number > 4);
                assert_eq!(contents(&db), expected);
                break;
            }
        }
    }
}

/// Nothing is made in a store before it says that it is open.
#[test]
fn a_store_that_cannot_grow_when_it_is_opened_was_marked_as_open_before() {
    let directory = scratch_on_disk();
    let process = options(Durability::Process);
    let db = open(directory.path(), &process);
    fill(&mut db.session(), 0..20, 1);
    db.close().expect("nobody else has it");
    // In either copy word 8 says 1 while the store is closed.
    let closings = || {
        let bytes = std::fs::read(directory.path().join("superblock")).expect("a superblock");
        [64, 4096 + 64].map(|at| bytes[at])
    };
    assert_eq!(closings(), [1, 1]);
    let faults = Arc::new(Faults::default());
    let populating = process.clone().populate_at_open(true).capacity_bytes(1 << 20);
    faults.space.store(16 << 10, Ordering::Relaxed);
    let refused = faults::open(&faults, directory.path(), &populating).expect_err("no space");
    assert!(matches!(refused, Error::PoolFull { .. }), "{refused}");
    assert_eq!(closings(), [2, 2]);
    assert_eq!(contents(&open(directory.path(), &process)).len(), 20);
}

#[test]
fn a_failed_sync_ends_writing_and_not_reading() {
    for durability in [Durability::Immediate, GROUP] {
        let fails = Arc::new(AtomicBool::new(false));
        let inner = MemoryFiles::new().on(Medium::File);
        let files = Arc::new(Failing { inner, fails: fails.clone() });
        let path = Path::new("store");
        let (db, environment) =
            open_at(1, files.clone(), path, &options(durability)).expect("opens");
        fill(&mut db.session(), 0..20, 1);
        db.sync().expect("a device that works");

        fails.store(true, Ordering::Relaxed);
        let first = db.put(key(20), value(20, 1));
        if durability == Durability::Immediate {
            assert_fails(first, &["make a write durable", "the device is gone"]);
        } else {
            first.expect("not synced yet");
            environment.advance(60_000_000);
            while environment.step_tasks() {}
            assert_fails(db.put(key(21), value(21, 1)), &["the device is gone"]);
        }
        fails.store(false, Ordering::Relaxed);
        let refused = db.put(key(22), value(22, 1));
        assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
        assert_eq!(db.get(key(3)).expect("reads go on"), Some(value(3, 1)));
        // Writes that were acknowledged were never made durable.
        assert_fails(db.close().map_err(Error::from), &["the device is gone"]);

        let (db, _) = open_at(1, files, path, &options(durability)).expect("opens");
        let found = contents(&db).len();
        assert!((20..=22).contains(&found), "{found} records");
    }
}

/// Without a journal, too: the kernel does not write again what it could not write, so a later sync says nothing.
#[test]
fn a_failed_sync_without_a_journal_is_not_forgotten() {
    let directory = scratch_on_disk();
    let faults = Arc::new(Faults::default());
    let options = options(Durability::Process);
    let db = faults::open(&faults, directory.path(), &options).expect("opens");
    if !is_plain(&db) {
        return;
    }
    fill(&mut db.session(), 0..20, 1);
    db.sync().expect("a disk that works");
    fill(&mut db.session(), 20..30, 1);
    faults.sync_fails.store(true, Ordering::Relaxed);
    assert_fails(db.sync(), &["sync", "the disk is broken"]);
    faults.sync_fails.store(false, Ordering::Relaxed);
    assert_fails(db.sync(), &["sync", "the disk is broken"]);
    assert!(matches!(db.put(key(30), value(30, 1)), Err(Error::Poisoned { .. })));
    assert_eq!(db.get(key(25)).expect("reads go on"), Some(value(25, 1)));
    assert_fails(db.close().map_err(Error::from), &["the disk is broken"]);
    let db = faults::open(&faults, directory.path(), &options).expect("the machine went on");
    assert_eq!(contents(&db).len(), 30);
    assert!(!db.stats().recovery.clean, "it was not closed in order");
}

/// A sync that fails when the store is closed, and not before.
#[test]
fn a_sync_that_fails_at_close_is_told_and_nothing_is_lost() {
    for durability in [Durability::Immediate, GROUP, Durability::Process] {
        let directory = scratch_on_disk();
        let faults = Arc::new(Faults::default());
        let options = options(durability);
        let db = faults::open(&faults, directory.path(), &options).expect("opens");
        if !is_plain(&db) {
            return;
        }
        fill(&mut db.session(), 0..20, 1);
        faults.sync_fails.store(true, Ordering::Relaxed);
        assert_fails(db.close().map_err(Error::from), &["the disk is broken"]);
        faults.sync_fails.store(false, Ordering::Relaxed);
        let db = faults::open(&faults, directory.path(), &options).expect("the machine went on");
        assert_eq!(contents(&db).len(), 20, "{durability}");
        db.close().expect("a disk that works");
    }
}
