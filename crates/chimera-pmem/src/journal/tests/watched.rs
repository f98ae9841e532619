//! [`Watched`]: a file that knows what was done to it, and what a power loss leaves of it.

use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use super::altered::Altered;
use super::*;

/// Something that was done to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The name of the file, and which bytes.
    Write(&'static str, Range<u64>),
    Sync(&'static str),
}

/// What was done to several files, in order.
pub(super) type Log = Arc<Mutex<Vec<Step>>>;

type Hook = Box<dyn FnOnce() + Send>;

/// A file of which a power loss leaves what was synced. A sync is of what was written when it began.
pub(super) struct Watched {
    name: &'static str,
    inner: Arc<dyn File>,
    log: Log,
    durable: Mutex<Vec<u8>>,
    unsynced: Mutex<Vec<Range<u64>>>,
    during_sync: Mutex<Option<Hook>>,
    pub(super) fails: AtomicBool,
}

impl Watched {
    /// Everything in `inner` is durable.
    pub(super) fn new(name: &'static str, inner: Arc<dyn File>, log: &Log) -> Arc<Self> {
        let watched = Self {
            name,
            inner,
            log: log.clone(),
            durable: Mutex::default(),
            unsynced: Mutex::default(),
            during_sync: Mutex::default(),
            fails: AtomicBool::new(false),
        };
        *lock(&watched.durable) = watched.now();
        Arc::new(watched)
    }

    /// What is in it.
    pub(super) fn now(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.inner.length().unwrap() as usize];
        self.inner.read_at(0, &mut bytes).unwrap();
        bytes
    }

    /// What a power loss leaves.
    pub(super) fn survives(&self) -> Vec<u8> {
        lock(&self.durable).clone()
    }

    /// The kernel takes all pages for clean, as it may after a sync that failed.
    pub(super) fn forget_unsynced(&self) {
        lock(&self.unsynced).clear();
    }

    /// What happens during the next sync.
    pub(super) fn during_sync(&self, hook: impl FnOnce() + Send + 'static) {
        *lock(&self.during_sync) = Some(Box::new(hook));
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Altered for Watched {
    fn inner(&self) -> &dyn File {
        &*self.inner
    }
    fn on_write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        assert!(!bytes.is_empty(), "a write of nothing, perhaps again and again");
        let range = offset..offset + bytes.len() as u64;
        lock(&self.log).push(Step::Write(self.name, range.clone()));
        lock(&self.unsynced).push(range);
        self.inner.write_at(offset, bytes)
    }
    fn on_sync(&self) -> io::Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let ranges = std::mem::take(&mut *lock(&self.unsynced));
        let bytes = self.now();
        if let Some(hook) = lock(&self.during_sync).take() {
            hook();
        }
        for range in ranges {
            let range = range.start as usize..range.end as usize;
            lock(&self.durable)[range.clone()].copy_from_slice(&bytes[range]);
        }
        lock(&self.log).push(Step::Sync(self.name));
        Ok(())
    }
    fn on_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A pool whose two files are watched.
pub(super) struct WatchedPool {
    pub(super) log: Log,
    pub(super) data: Arc<Watched>,
    pub(super) journal: Arc<Watched>,
    pub(super) pool: Arc<Pool>,
}

impl WatchedPool {
    pub(super) fn create(capacity: u64, data_bytes: u64) -> Self {
        let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
        let data = files.open(Path::new("data"), OpenMode::CreateNew).unwrap();
        data.allocate(0, data_bytes).unwrap();
        let file = files.open(Path::new("journal"), OpenMode::CreateNew).unwrap();
        Journal::format(&*file, 7, 99, capacity, BOOT).unwrap();
        let log = Log::default();
        let (data, file) = (Watched::new("data", data, &log), Watched::new("journal", file, &log));
        let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
        let journal = Journal::open(file.clone(), CAPACITY, GROUP, environment.clone()).unwrap();
        let memory = Hardware::new(HardwareOptions::default()).unwrap();
        memory.use_journal(journal).unwrap();
        let mapped: Arc<dyn File> = data.clone();
        memory.map(0, &mapped, 0, data_bytes).unwrap();
        let pool = Arc::new(Pool { files, environment, memory });
        Self { log, data, journal: file, pool }
    }

    pub(super) fn take_log(&self) -> Vec<Step> {
        std::mem::take(&mut *lock(&self.log))
    }

    /// Stores, flushes and fences `lines` lines.
    pub(super) fn fill(&self, at: u64, lines: u64, byte: u8) {
        let range = self.pool.memory.check(at, lines * 64).unwrap();
        self.pool.memory.copy(range, &vec![byte; lines as usize * 64], SITE);
        self.pool.memory.flush(range, SITE);
        self.pool.memory.fence(SITE);
    }
}

/// A file with this content.
pub(super) fn file_of(bytes: &[u8]) -> Arc<dyn File> {
    let file = MemoryFiles::new().open(Path::new("file"), OpenMode::CreateNew).unwrap();
    file.write_at(0, bytes).unwrap();
    file
}
