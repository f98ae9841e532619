//! [`Faults`]: the real environment with file operations that fail on demand.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use chimera::{Db, Options, Result};
use chimera_pmem::environment::{Directory, File, OpenMode, RealEnvironment, Task, TaskBody};
use chimera_pmem::{Environment, Hardware, Medium};

/// What fails.
#[derive(Debug)]
pub(crate) struct Faults {
    /// Bytes that can still be allocated.
    pub(crate) space: AtomicI64,
    /// What has been allocated: files, and numbers of pieces of them. Doing it again is free.
    pub(crate) allocated: Mutex<BTreeSet<(PathBuf, u64)>>,
    /// Opening for writing and creating fails, as on a read-only mount.
    pub(crate) read_only: AtomicBool,
    /// Syncing fails, as on a broken disk.
    pub(crate) sync_fails: AtomicBool,
    /// Syncs that still succeed before they fail.
    pub(crate) syncs: AtomicI64,
    /// Files and directories that can still be removed.
    pub(crate) removals: AtomicI64,
    /// Names of files that cannot be removed.
    pub(crate) kept: Mutex<BTreeSet<PathBuf>>,
    /// Opened files that the process can still have more of: one fails, and later ones do not.
    pub(crate) opens: AtomicI64,
    /// The boot id, where it is not the machine's.
    pub(crate) boot_id: Option<u64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            space: AtomicI64::new(i64::MAX),
            allocated: Mutex::default(),
            read_only: AtomicBool::new(false),
            sync_fails: AtomicBool::new(false),
            syncs: AtomicI64::new(i64::MAX),
            removals: AtomicI64::new(i64::MAX),
            kept: Mutex::default(),
            opens: AtomicI64::new(i64::MAX),
            boot_id: None,
        }
    }
}

/// Bytes that are allocated together.
const PIECE_BYTES: u64 = 512;

impl Faults {
    fn allocated(&self) -> MutexGuard<'_, BTreeSet<(PathBuf, u64)>> {
        self.allocated.lock().expect("no operation on it panics")
    }

    /// Refuses what a read-only mount refuses.
    fn check_opening(&self, mode: OpenMode, exists: bool) -> io::Result<()> {
        let writes = mode == OpenMode::CreateNew || (mode == OpenMode::ReadWrite && exists);
        if writes && self.read_only.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        if self.opens.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(io::Error::other("too many open files"));
        }
        Ok(())
    }

    /// Fails where syncs do.
    fn check_sync(&self) -> io::Result<()> {
        if self.sync_fails.load(Ordering::Relaxed)
            || self.syncs.fetch_sub(1, Ordering::Relaxed) <= 0
        {
            return Err(io::Error::other("the disk is broken"));
        }
        Ok(())
    }

    /// Books a removal, if it is not one too many.
    fn book_removal(&self) -> io::Result<()> {
        if self.removals.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Err(io::Error::other("nothing is removed any more"));
        }
        Ok(())
    }

    /// Books the space for a range of a file, if there is enough.
    fn book(&self, path: &Path, offset: u64, length: u64) -> io::Result<()> {
        let mut allocated = self.allocated();
        let pieces = offset / PIECE_BYTES..(offset + length).div_ceil(PIECE_BYTES);
        let new: Vec<_> = pieces
            .map(|piece| (path.to_owned(), piece))
            .filter(|piece| !allocated.contains(piece))
            .collect();
        let bytes = (new.len() as u64 * PIECE_BYTES) as i64;
        if self.space.load(Ordering::Relaxed) < bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.space.fetch_sub(bytes, Ordering::Relaxed);
        allocated.extend(new);
        Ok(())
    }
}

/// Opens a store in an environment with these faults.
pub(crate) fn open(faults: &Arc<Faults>, path: &Path, options: &Options) -> Result<Db> {
    let environment = environment(faults);
    let pmem = Hardware::new(options.hardware_options()).expect("address space");
    Db::open_on(pmem, &environment, path, options)
}

/// The real environment with these faults.
pub(crate) fn environment(faults: &Arc<Faults>) -> Arc<dyn Environment> {
    Arc::new(FaultyEnvironment { real: RealEnvironment::new(), faults: Arc::clone(faults) })
}

#[derive(Debug)]
struct FaultyEnvironment {
    real: RealEnvironment,
    faults: Arc<Faults>,
}

impl Environment for FaultyEnvironment {
    fn now_ns(&self) -> u64 {
        self.real.now_ns()
    }

    fn unix_seconds(&self) -> u64 {
        self.real.unix_seconds()
    }

    fn random_u64(&self) -> u64 {
        self.real.random_u64()
    }

    fn boot_id(&self) -> u64 {
        self.faults.boot_id.unwrap_or_else(|| self.real.boot_id())
    }

    fn process_id(&self) -> u32 {
        self.real.process_id()
    }

    fn origin(&self) -> chimera_pmem::environment::Origin {
        self.real.origin()
    }

    fn parallelism(&self) -> usize {
        self.real.parallelism()
    }

    fn spawn(&self, name: &str, body: TaskBody) -> io::Result<Box<dyn Task>> {
        self.real.spawn(name, body)
    }

    fn run_parallel(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        self.real.run_parallel(count, work);
    }

    fn relax(&self, attempt: u32) {
        self.real.relax(attempt);
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        let real = self.real.open_directory(path)?;
        let faults = Arc::clone(&self.faults);
        Ok(Arc::new(FaultyDirectory { real, path: path.to_owned(), faults }))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let exists = self.real.is_directory(path)?.is_some();
        self.faults.check_opening(mode, exists)?;
        let real = self.real.open(path, mode)?;
        Ok(Arc::new(FaultyFile { real, path: path.to_owned(), faults: Arc::clone(&self.faults) }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        if self.faults.read_only.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        self.real.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.real.list(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        self.real.is_directory(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.real.real_path(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.faults.book_removal()?;
        self.real.remove(path)?;
        self.faults.allocated().retain(|(file, _)| file != path);
        Ok(())
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.faults.book_removal()?;
        self.real.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.faults.check_sync()?;
        self.real.sync_directory(path)
    }
}

#[derive(Debug)]
struct FaultyDirectory {
    real: Arc<dyn Directory>,
    path: PathBuf,
    faults: Arc<Faults>,
}

impl Directory for FaultyDirectory {
    fn open(&self, name: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.faults.check_opening(mode, self.real.has(name)?)?;
        let real = self.real.open(name, mode)?;
        let faults = Arc::clone(&self.faults);
        Ok(Arc::new(FaultyFile { real, path: self.path.join(name), faults }))
    }

    fn list(&self) -> io::Result<Vec<PathBuf>> {
        self.real.list()
    }

    fn has(&self, name: &Path) -> io::Result<bool> {
        self.real.has(name)
    }

    fn has_file(&self, name: &Path, file: &dyn File) -> io::Result<bool> {
        self.real.has_file(name, file)
    }

    fn is_removed(&self) -> io::Result<bool> {
        self.real.is_removed()
    }

    fn remove(&self, name: &Path) -> io::Result<()> {
        self.faults.book_removal()?;
        if self.faults.kept.lock().expect("no operation on it panics").contains(name) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.real.remove(name)?;
        let path = self.path.join(name);
        self.faults.allocated().retain(|(file, _)| *file != path);
        Ok(())
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.replace(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.check_sync()?;
        self.real.sync()
    }
}

#[derive(Debug)]
struct FaultyFile {
    real: Arc<dyn File>,
    path: PathBuf,
    faults: Arc<Faults>,
}

impl File for FaultyFile {
    fn length(&self) -> io::Result<u64> {
        self.real.length()
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.faults.book(&self.path, offset, length)?;
        self.real.allocate(offset, length)
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.real.punch(offset, length)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.real.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.real.write_at(offset, bytes)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.real.set_length(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.check_sync()?;
        self.real.sync()
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.real.try_lock(exclusive)
    }

    fn medium(&self) -> io::Result<Medium> {
        self.real.medium()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.real.descriptor()
    }

    fn is_read_only(&self) -> bool {
        self.real.is_read_only()
    }
}
