//! A file whose every operation a test sees, and may hold up or refuse.

use std::os::fd::BorrowedFd;

use super::*;

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Allocate,
    Write(u64),
    Sync,
}

type Hook = Box<dyn Fn(Asked) -> io::Result<()> + Send + Sync>;

pub(super) struct Staged {
    inner: Arc<dyn File>,
    hook: OnceLock<Hook>,
    asked: Mutex<Vec<Asked>>,
}

impl Staged {
    pub(super) fn new(inner: Arc<dyn File>) -> Arc<Self> {
        Arc::new(Self { inner, hook: OnceLock::new(), asked: Mutex::default() })
    }

    /// `hook` is called before each write, sync and allocation from now on.
    pub(super) fn hook(&self, hook: impl Fn(Asked) -> io::Result<()> + Send + Sync + 'static) {
        assert!(self.hook.set(Box::new(hook)).is_ok());
    }

    /// What was asked since this was called last.
    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *lock(&self.asked))
    }

    fn ask(&self, asked: Asked) -> io::Result<()> {
        lock(&self.asked).push(asked);
        self.hook.get().map_or(Ok(()), |hook| hook(asked))
    }
}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl File for Staged {
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.ask(Asked::Allocate)?;
        self.inner.allocate(offset, length)
    }
    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.punch(offset, length)
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, into)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.ask(Asked::Write(offset))?;
        self.inner.write_at(offset, bytes)
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.inner.set_length(length)
    }
    fn sync(&self) -> io::Result<()> {
        self.ask(Asked::Sync)?;
        self.inner.sync()
    }
    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.inner.try_lock(exclusive)
    }
    fn medium(&self) -> io::Result<Medium> {
        self.inner.medium()
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
    fn is_read_only(&self) -> bool {
        false
    }
}

/// A journal on a file in memory that is staged, without data files.
pub(super) struct Stage {
    pub(super) file: Arc<Staged>,
    pub(super) environment: Arc<SteppedEnvironment>,
    pub(super) journal: Arc<Journal>,
}

impl Stage {
    pub(super) fn new(policy: SyncPolicy) -> Self {
        let files = MemoryFiles::new();
        let inner = files.open(Path::new("journal"), OpenMode::CreateNew).unwrap();
        Journal::format(&*inner, 7, 99, CAPACITY, BOOT).unwrap();
        let file = Staged::new(inner);
        let environment = Arc::new(SteppedEnvironment::in_memory(1));
        let journal = Journal::open(file.clone(), policy, environment.clone()).unwrap();
        Self { file, environment, journal }
    }

    /// Fences a line in the calling thread: an entry of 104 bytes.
    pub(super) fn put(&self, line: u64) {
        put_lines(&self.journal, line, 1);
    }

    /// Waits, for ten seconds at most, until so many threads wait for a sync.
    pub(super) fn await_waiting(journal: &Journal, count: usize) {
        for _ in 0..10_000 {
            if lock(&journal.syncing).waiting == count {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("nobody waits for the sync");
    }

    /// A data file that is staged.
    pub(super) fn add_data(&self, at: u64, file_offset: u64, length: u64) -> Arc<Staged> {
        let files = MemoryFiles::new();
        let inner = files.open(Path::new("data"), OpenMode::CreateNew).unwrap();
        inner.set_length(file_offset + length).unwrap();
        let file = Staged::new(inner);
        let added: Arc<dyn File> = file.clone();
        self.journal.add_data_file(at, &added, file_offset, length);
        file
    }
}

/// Fences lines, each full of its number: an entry of 40 bytes and 64 for each.
pub(super) fn put_lines(journal: &Journal, first: u64, count: u64) {
    let range = crate::Extent::new_checked(first * 64, count * 64);
    journal.mark(range);
    journal.append(|at, into| into.fill((at / 64) as u8));
}
