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
    /// These bytes were written.
    Written(String, Range<u64>),
    Removed(String),
    /// The first one took the name of the second one.
    Replaced(String, String),
    /// Only to be refused: no account is kept.
    Read(String),
    /// Of a directory: what was made and removed in it.
    SyncedEntries(String),
}

type Hook = Arc<dyn Fn(&Deed) + Send + Sync>;
type Refusal = Arc<dyn Fn(&Deed) -> Option<io::ErrorKind> + Send + Sync>;

#[derive(Default)]
struct Account {
    deeds: Mutex<Vec<Deed>>,
    hook: Mutex<Option<Hook>>,
    refusal: Mutex<Option<Refusal>>,
    /// What was opened for reading only.
    read_only: Mutex<Vec<String>>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").finish_non_exhaustive()
    }
}

impl Account {
    /// As [`note`](Self::note), of what is done unless it is refused.
    fn attempt<T>(&self, deed: Deed, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.check(&deed)?;
        let done = work()?;
        self.note(deed);
        Ok(done)
    }

    fn check(&self, deed: &Deed) -> io::Result<()> {
        let refusal = self.refusal.lock().unwrap().clone();
        refusal.and_then(|refusal| refusal(deed)).map_or(Ok(()), |kind| Err(kind.into()))
    }

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

    /// What was opened for reading only since the last call.
    pub(crate) fn take_opened_for_reading(&self) -> Vec<String> {
        std::mem::take(&mut *self.account.read_only.lock().unwrap())
    }

    /// From now on this is called after each deed, before the one who did it goes on.
    pub(crate) fn set_hook(&self, hook: impl Fn(&Deed) + Send + Sync + 'static) {
        *self.account.hook.lock().unwrap() = Some(Arc::new(hook));
    }

    /// From now on this says of opening, allocating, punching, writing, syncing, removing and renaming which error there is
    /// instead.
    pub(crate) fn refuse(
        &self,
        refusal: impl Fn(&Deed) -> Option<io::ErrorKind> + Send + Sync + 'static,
    ) {
        *self.account.refusal.lock().unwrap() = Some(Arc::new(refusal));
    }
}

impl FileProvider for Watched {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let name = name_of(path);
        let deed = Deed::Opened(name.clone());
        let file = self.account.attempt(deed, || self.files.open(path, mode))?;
        if mode == OpenMode::Read {
            self.account.read_only.lock().unwrap().push(name.clone());
        }
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
        self.account.attempt(Deed::Removed(name_of(path)), || self.files.remove(path))
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.files.remove_directory(path)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        let deed = Deed::Replaced(name_of(from), name_of(to));
        self.account.attempt(deed, || self.files.replace(from, to))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let deed = Deed::SyncedEntries(name_of(path));
        self.account.attempt(deed, || self.files.sync_directory(path))
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
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
        let deed = Deed::Allocated(self.name.clone(), offset..offset + length);
        self.account.attempt(deed, || self.file.allocate(offset, length))
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        let deed = Deed::Punched(self.name.clone(), offset..offset + length);
        self.account.check(&deed)?;
        self.account.note(deed);
        self.file.punch(offset, length)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.account.check(&Deed::Read(self.name.clone()))?;
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let deed = Deed::Written(self.name.clone(), offset..offset + bytes.len() as u64);
        self.account.attempt(deed, || self.file.write_at(offset, bytes))
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.account.attempt(Deed::Synced(self.name.clone()), || self.file.sync())
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
