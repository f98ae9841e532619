//! [`PlainFiles`]: a [`Disk`] as the files of an environment, with a snapshot before each change.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chimera_pmem::environment::{File, FileProvider, OpenMode};
use chimera_pmem::{Medium, Site};

use super::chance::Chance;
use super::disk::{Contents, Disk, Node, is_segment};

/// A device that does not do what it is told: for tests that must fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Syncs of the journal do nothing.
    Journal,
    /// Syncs of all other files do nothing.
    Homes,
    /// Syncs of directories do nothing.
    Directories,
}

/// What was promised at some moment, in numbers of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Promise {
    /// Operations begun.
    pub(super) begun: usize,
    /// Operations acknowledged.
    pub(super) acknowledged: usize,
    /// Of these, those acknowledged before a sync that has ended began.
    pub(super) synced: usize,
}

/// Who writes: the one who runs everything, and one who writes while files are synced and written.
pub(super) const WRITERS: usize = 2;

/// What a file is at when somebody else may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// The journal is synced.
    SyncJournal,
    /// Another file is synced.
    SyncHome,
    /// A file that is not the journal is written.
    WriteHome,
    /// A file that is not the journal is read: its pages may be given back.
    ReadHome,
}

/// Of so many stores to mapped pages one counts as a change, and one leaves a content that a power loss may bring back whatever
/// is stored to the page later.
const STORES_A_CHANGE: u64 = 64;
const STORES_A_VERSION: u64 = 4;

/// Called in the middle, while nothing is locked.
pub(super) type Hook = Arc<dyn Fn(Doing) + Send + Sync>;

/// The disk just before a change.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) disk: Disk,
    pub(super) promise: Promise,
    /// The same of the other writer.
    pub(super) beside: Promise,
    /// What was about to happen.
    pub(super) before: String,
    /// The seed of the start of the machine that it is in.
    pub(super) boot: u64,
}

/// Files that remember what of them is durable.
#[derive(Debug)]
pub(super) struct PlainFiles {
    state: Arc<Mutex<State>>,
}

struct State {
    disk: Disk,
    /// Of each writer.
    promises: [Promise; WRITERS],
    lie: Option<Lie>,
    /// A check that stores on these files leave out.
    left_out: Option<Site>,
    /// Stores write to their place ahead of the journal.
    writes_ahead: bool,
    /// Whoever asks for a sync says what it makes durable. Of places that are taken while files are synced no sync of a file
    /// says anything.
    is_told_of_syncs: bool,
    /// Of segments, by the numbers of their files: what was acknowledged when the last sync began that has ended.
    before_homes: BTreeMap<usize, [usize; WRITERS]>,
    /// Syncs that succeed before one fails.
    syncs_left: Option<u64>,
    has_failed: bool,
    /// A file was created since somebody asked.
    has_created: bool,
    hook: Option<Hook>,
    /// Take one snapshot in so many changes; none for 0.
    one_in: u64,
    chance: Chance,
    snapshots: Vec<Snapshot>,
    boot: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("promises", &self.promises).finish_non_exhaustive()
    }
}

impl State {
    /// Whether this is the sync that fails.
    fn fails_now(&mut self) -> bool {
        let fails = self.syncs_left == Some(0);
        self.syncs_left = self.syncs_left.and_then(|left| left.checked_sub(1));
        self.has_failed |= fails;
        fails
    }

    /// What of each writer a sync that begins now makes durable. Of the journal: what was acknowledged before, and, while other
    /// files have what was written ahead of it, before the last sync of them.
    fn begin_sync(&self, is_journal: bool) -> [usize; WRITERS] {
        let now = self.promises.map(|promise| promise.acknowledged);
        if !is_journal || !self.writes_ahead {
            return now;
        }
        self.disk.unsynced_segments().fold(now, |least, segment| {
            let before = self.before_homes.get(&segment).copied().unwrap_or_default();
            std::array::from_fn(|writer| least[writer].min(before[writer]))
        })
    }

    /// Called before each change.
    fn step(&mut self, action: &str, path: &Path) {
        if self.one_in > 0 && self.chance.one_in(self.one_in) {
            self.snapshots.push(Snapshot {
                disk: self.disk.clone(),
                promise: self.promises[0],
                beside: self.promises[1],
                before: format!("{action} {}", path.display()),
                boot: self.boot,
            });
        }
    }
}

impl PlainFiles {
    pub(super) fn new(disk: Disk, lie: Option<Lie>, one_in: u64, seed: u64) -> Self {
        let state = State {
            disk,
            promises: Default::default(),
            lie,
            left_out: None,
            writes_ahead: false,
            is_told_of_syncs: false,
            before_homes: BTreeMap::new(),
            syncs_left: None,
            has_failed: false,
            has_created: false,
            hook: None,
            one_in,
            chance: Chance::new(seed),
            snapshots: Vec::new(),
            boot: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Lets a sync fail, of a file or a directory, after so many that succeed. Those behind it succeed again.
    pub(super) fn fail_after(&self, syncs: u64) {
        self.state().syncs_left = Some(syncs);
    }

    /// Whether stores on the files write to their place ahead of the journal.
    pub(super) fn write_ahead(&self, writes_ahead: bool) {
        self.state().writes_ahead = writes_ahead;
    }

    /// From now on a sync of the journal's file makes nothing durable that was acknowledged, unless somebody says so.
    pub(super) fn be_told_of_syncs(&self) {
        self.state().is_told_of_syncs = true;
    }

    /// Stores that are opened on the files from now on leave out a check.
    pub(super) fn leave_out(&self, step: Option<Site>) {
        self.state().left_out = step;
    }

    pub(super) fn left_out(&self) -> Option<Site> {
        self.state().left_out
    }

    /// Whether that sync has come.
    pub(super) fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Whether a file was created since it was [said](Self::nothing_is_created) that none was.
    pub(super) fn has_created(&self) -> bool {
        self.state().has_created
    }

    pub(super) fn nothing_is_created(&self) {
        self.state().has_created = false;
    }

    /// Calls `hook` in the middle of syncs and writes from now on; nothing, if it is none.
    pub(super) fn set_hook(&self, hook: Option<Hook>) {
        self.state().hook = hook;
    }

    pub(super) fn promise(&self, change: impl FnOnce(&mut Promise)) {
        self.promise_of(0, change);
    }

    pub(super) fn promise_of(&self, writer: usize, change: impl FnOnce(&mut Promise)) {
        change(&mut self.state().promises[writer]);
    }

    /// A new start of the machine.
    pub(super) fn boot(&self, seed: u64) {
        self.state().boot = seed;
    }

    pub(super) fn take_snapshots(&self) -> Vec<Snapshot> {
        std::mem::take(&mut self.state().snapshots)
    }

    /// The disk as it is now.
    pub(super) fn disk(&self) -> Disk {
        self.state().disk.clone()
    }
}

impl FileProvider for PlainFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let path = normal(path);
        let mut state = self.state();
        let number = match (state.disk.names.get(&path), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::File(number)), _) => *number,
            (Some(Node::Directory), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (None, OpenMode::CreateNew) => {
                state.step("create", &path);
                state.has_created = true;
                state.disk.files.push(Contents::default());
                let number = state.disk.files.len() - 1;
                state.disk.names.insert(path.clone(), Node::File(number));
                number
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        let is_read_only = mode == OpenMode::Read;
        Ok(Arc::new(PlainFile { state: self.state.clone(), path, number, is_read_only }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut state = self.state();
        state.step("create directory", &path);
        for part in path.ancestors().filter(|part| *part != Path::new("")) {
            state.disk.names.insert(part.to_owned(), Node::Directory);
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let path = normal(path);
        let state = self.state();
        let inside = state.disk.names.keys().filter(|name| name.parent() == Some(&path));
        Ok(inside.filter_map(|name| name.file_name()).map(PathBuf::from).collect())
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        let path = normal(path);
        if path == Path::new("") {
            return Ok(Some(true));
        }
        Ok(self.state().disk.names.get(&path).map(|node| *node == Node::Directory))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut state = self.state();
        state.step("remove", &path);
        let removed = state.disk.names.remove(&path);
        removed.map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut state = self.state();
        state.step("sync directory", &path);
        if state.fails_now() {
            return Err(broken());
        }
        if state.lie != Some(Lie::Directories) {
            state.disk.sync_directory(&path);
        }
        Ok(())
    }
}

/// An open file.
#[derive(Debug)]
struct PlainFile {
    state: Arc<Mutex<State>>,
    path: PathBuf,
    number: usize,
    is_read_only: bool,
}

impl PlainFile {
    /// The state, before a change.
    fn change(&self, action: &str) -> io::Result<MutexGuard<'_, State>> {
        if self.is_read_only {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut state = lock(&self.state);
        state.step(action, &self.path);
        Ok(state)
    }

    /// Lets somebody else go on, where nobody would wait for whoever is here.
    fn pause(&self, doing: Doing) {
        let state = lock(&self.state);
        let hook = state.hook.clone().filter(|_| !state.disk.has_growing_journal());
        drop(state);
        if let Some(hook) = hook {
            hook(doing);
        }
    }

    fn is_journal(&self) -> bool {
        self.path.file_name().is_some_and(|name| name == "journal")
    }
}

impl File for PlainFile {
    fn length(&self) -> io::Result<u64> {
        Ok(lock(&self.state).disk.files[self.number].bytes.len() as u64)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let bytes = &mut self.change("allocate")?.disk.files[self.number].bytes;
        let end = (offset + length) as usize;
        if end > bytes.len() {
            bytes.resize(end, 0);
        }
        Ok(())
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        let zeros = vec![0; length as usize];
        self.change("punch")?.disk.files[self.number].write(offset as usize, &zeros);
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let state = lock(&self.state);
        let bytes = state.disk.files[self.number].bytes.get(offset as usize..);
        let bytes = bytes.and_then(|bytes| bytes.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        drop(state);
        if !self.is_journal() {
            self.pause(Doing::ReadHome);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if !self.is_journal() {
            self.pause(Doing::WriteHome);
        }
        self.change("write")?.disk.files[self.number].write(offset as usize, bytes);
        Ok(())
    }

    fn write_stored(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.is_read_only {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if !is_segment(&self.path) {
            self.change("write")?.disk.files[self.number].write(offset as usize, bytes);
            return Ok(());
        }
        let mut state = lock(&self.state);
        // There are many: a few moments among them are enough, and a few of the contents that a page has had.
        if state.chance.one_in(STORES_A_CHANGE) {
            state.step("store", &self.path);
        }
        let is_kept = state.chance.one_in(STORES_A_VERSION);
        state.disk.files[self.number].store(offset as usize, bytes, is_kept);
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.change("cut")?.disk.files[self.number].bytes.resize(length as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let (begun, acknowledged, fails) = {
            let mut state = self.change("sync")?;
            let fails = state.fails_now();
            let acknowledged = state.begin_sync(self.is_journal());
            (state.disk.files[self.number].begin_sync(), acknowledged, fails)
        };
        let is_journal = self.is_journal();
        self.pause(if is_journal { Doing::SyncJournal } else { Doing::SyncHome });
        let mut guard = self.change("end the sync of")?;
        let state = &mut *guard;
        let file = &mut state.disk.files[self.number];
        if fails {
            file.fail_sync(&begun, &mut state.chance);
            return Err(broken());
        }
        let lie = if is_journal { Lie::Journal } else { Lie::Homes };
        if state.lie != Some(lie) {
            file.end_sync(&begun);
        }
        if is_journal && !state.is_told_of_syncs {
            for (promise, acknowledged) in state.promises.iter_mut().zip(acknowledged) {
                promise.synced = promise.synced.max(acknowledged);
            }
        } else if !is_journal && is_segment(&self.path) {
            state.before_homes.insert(self.number, acknowledged);
        }
        Ok(())
    }

    fn try_lock(&self, _exclusive: bool) -> io::Result<bool> {
        Ok(true)
    }

    fn medium(&self) -> io::Result<Medium> {
        Ok(Medium::File)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }
}

fn broken() -> io::Error {
    io::Error::other("the device cannot write")
}

/// A path without its root; the empty path is the root.
fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
