//! A device that stops syncing.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use chimera::Error;
use chimera::pmem::environment::{File, MemoryFiles, OpenMode};

use super::*;
use crate::tools::{assert_fails, contents, fill, key, value};

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
        let first = db.put(&key(20), &value(20, 1));
        if durability == Durability::Immediate {
            assert_fails(first, &["make a write durable", "the device is gone"]);
        } else {
            first.expect("not synced yet");
            environment.advance(60_000_000);
            while environment.step_tasks() {}
            assert_fails(db.put(&key(21), &value(21, 1)), &["the device is gone"]);
        }
        fails.store(false, Ordering::Relaxed);
        let refused = db.put(&key(22), &value(22, 1));
        assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
        assert_eq!(db.get(&key(3)).expect("reads go on"), Some(value(3, 1)));
        db.close().expect("nothing is written");

        let (db, _) = open_at(1, files, path, &options(durability)).expect("opens");
        let found = contents(&db).len();
        assert!((20..=22).contains(&found), "{found} records");
    }
}
