//! A store that is destroyed while somebody opens it.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use chimera::{Db, Error, Options, Result};
use chimera_pmem::environment::{File, FileProvider, OpenMode, RealFiles};
use chimera_pmem::{Environment, SteppedEnvironment};

use crate::hardware;
use crate::tools::{contents, fill, filled_store, scratch, small};

/// Real files. Right after the lock was opened for the first time, something happens.
struct Racing(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl fmt::Debug for Racing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Racing").finish_non_exhaustive()
    }
}

impl FileProvider for Racing {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = RealFiles.open(path, mode)?;
        if path.ends_with("lock")
            && let Some(race) = self.0.lock().expect("no panic").take()
        {
            race();
        }
        Ok(file)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        RealFiles.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        RealFiles.list(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        RealFiles.is_directory(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealFiles.remove(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        RealFiles.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealFiles.sync_directory(path)
    }
}

/// The real files, where the store at `path` is destroyed when its lock is opened.
fn racing(path: &Path) -> Arc<dyn Environment> {
    let path = path.to_owned();
    let race = move || Db::destroy(&path).expect("its lock is open, not locked");
    Arc::new(SteppedEnvironment::with_files(1, Arc::new(Racing(Mutex::new(Some(Box::new(race)))))))
}

fn open_racing(path: &Path, options: &Options) -> Result<Db> {
    Db::open_on(hardware(), &racing(path), path, options)
}

#[test]
fn nobody_creates_a_store_under_a_lock_that_is_gone() {
    let directory = scratch();
    let path = directory.path();
    // So that the directory stays.
    fs::write(path.join("notes"), "text").expect("written");
    filled_store(path, &small(), 20);
    let db = open_racing(path, &small()).expect("a new store is made");
    assert!(contents(&db).is_empty());
    fill(&mut db.session(), 0..3, 1);
    assert!(matches!(Db::open(path, &small()), Err(Error::Locked { .. })));
    db.close().expect("nobody else has it");
    assert_eq!(contents(&Db::open(path, &small()).expect("the new store")).len(), 3);
}

#[test]
fn whoever_comes_second_finds_no_store() {
    for options in [small().create(false), small().read_only(true)] {
        let directory = scratch();
        let path = directory.path().join("store");
        filled_store(&path, &small(), 20);
        assert!(matches!(open_racing(&path, &options), Err(Error::NotFound { .. })));
    }
    let directory = scratch();
    let path = directory.path().join("store");
    filled_store(&path, &small(), 20);
    let outcome = Db::destroy_on(&hardware(), &racing(&path), &path);
    assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}");
}
