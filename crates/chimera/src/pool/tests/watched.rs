//! [`Watched`]: files in memory that keep account of what is done to them.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use chimera_pmem::Medium;
use chimera_pmem::environment::{File, FileIdentity, FileProvider, MemoryFiles, OpenMode};

/// What was done to a file, by the last part of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It was opened, or made.
    Opened(String),
    /// Storage was allocated for these bytes.
    Allocated(String, Range<u64>),
    /// The storage of these bytes was given back.
    Punched(String, Range<u64>),
    Synced(String),
}

type Hook = Arc<dyn Fn(&Deed) + Send + Sync>;

#[derive(Default)]
struct Account {
    deeds: Mutex<Vec<Deed>>,
    hook: Mutex<Option<Hook>>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").finish_non_exhaustive()
    }
}

impl Account {
    fn note(&self, deed: Deed) {
        let hook = self.hook.lock().unwrap().clone();
        if let Some(hook) = hook {
            hook(&deed);
        }
        self.deeds.lock().unwrap().push(deed);
    }
}

/// See the module. Clones are the same files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    /// Whoever uses these is not watched.
    pub(crate) files: Arc<MemoryFiles>,
    account: Arc<Account>,
}

impl Watched {
    pub(crate) fn of(files: MemoryFiles) -> Self {
        Self { files: Arc::new(files), account: Arc::default() }
    }

    /// What was done since the last call, and is one of these.
    pub(crate) fn take(&self, is_meant: impl Fn(&Deed) -> bool) -> Vec<Deed> {
        let mut deeds = std::mem::take(&mut *self.account.deeds.lock().unwrap());
        deeds.retain(is_meant);
        deeds
    }

    /// From now on this is called after each deed, before the one who did it goes on.
    pub(crate) fn set_hook(&self, hook: impl Fn(&Deed) + Send + Sync + 'static) {
        *self.account.hook.lock().unwrap() = Some(Arc::new(hook));
    }
}

impl FileProvider for Watched {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.files.open(path, mode)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.account.note(Deed::Opened(name.clone()));
        Ok(Arc::new(WatchedFile { file, name, account: self.account.clone() }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.files.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.files.list(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        self.files.is_directory(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.files.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.files.sync_directory(path)
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn File>,
    name: String,
    account: Arc<Account>,
}

impl File for WatchedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.account.note(Deed::Allocated(self.name.clone(), offset..offset + length));
        self.file.allocate(offset, length)
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.account.note(Deed::Punched(self.name.clone(), offset..offset + length));
        self.file.punch(offset, length)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.account.note(Deed::Synced(self.name.clone()));
        self.file.sync()
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.file.try_lock(exclusive)
    }

    fn medium(&self) -> io::Result<Medium> {
        self.file.medium()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }

    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        self.file.identity()
    }

    fn is_read_only(&self) -> bool {
        self.file.is_read_only()
    }
}
