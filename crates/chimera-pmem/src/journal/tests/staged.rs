//! A file that a test stops in the middle of a sync, that refuses what it is told to, and that knows what was done.

use std::fmt;
use std::thread::JoinHandle;

use super::altered::Altered;
use super::*;

/// What was done to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Did {
    Wrote { at: u64, bytes: Vec<u8> },
    Synced,
}

/// What happens in the middle of a sync.
type InSync = Box<dyn FnOnce() -> io::Result<()> + Send>;

pub(super) struct Staged {
    inner: Arc<dyn File>,
    done: Mutex<Vec<Did>>,
    in_next_sync: Mutex<Option<InSync>>,
    pub(super) refuses_writes: AtomicBool,
    pub(super) refuses_storage: AtomicBool,
}

impl Staged {
    pub(super) fn new(inner: Arc<dyn File>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            done: Mutex::default(),
            in_next_sync: Mutex::default(),
            refuses_writes: AtomicBool::new(false),
            refuses_storage: AtomicBool::new(false),
        })
    }

    /// What the next sync does before it ends, and whether it fails.
    pub(super) fn in_next_sync(&self, work: impl FnOnce() -> io::Result<()> + Send + 'static) {
        *lock(&self.in_next_sync) = Some(Box::new(work));
    }

    /// What was done since this was asked last.
    pub(super) fn take_done(&self) -> Vec<Did> {
        std::mem::take(&mut *lock(&self.done))
    }
}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Altered for Staged {
    fn inner(&self) -> &dyn File {
        &*self.inner
    }
    fn on_allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        if self.refuses_storage.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inner.allocate(offset, length)
    }
    fn on_write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.refuses_writes.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        lock(&self.done).push(Did::Wrote { at: offset, bytes: bytes.to_vec() });
        self.inner.write_at(offset, bytes)
    }
    fn on_sync(&self) -> io::Result<()> {
        let work = lock(&self.in_next_sync).take();
        if let Some(work) = work {
            work()?;
        }
        lock(&self.done).push(Did::Synced);
        self.inner.sync()
    }
}

/// A pool whose journal and whose data file are staged.
pub(super) struct Stage {
    pub(super) journal_file: Arc<Staged>,
    pub(super) data_file: Arc<Staged>,
    pub(super) pool: Arc<Pool>,
}

pub(super) fn stage(policy: SyncPolicy) -> Stage {
    let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
    let data_file = Staged::new(open(&files, "data"));
    data_file.allocate(0, DATA_BYTES).unwrap();
    let journal_file = Staged::new(open(&files, "journal"));
    Journal::format(&*journal_file, 7, 99, CAPACITY, BOOT).unwrap();
    let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
    let journal =
        Journal::open(journal_file.clone(), CAPACITY, policy, environment.clone()).unwrap();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.use_journal(journal).unwrap();
    let mapped: Arc<dyn File> = data_file.clone();
    memory.map(0, &mapped, 0, DATA_BYTES).unwrap();
    Stage { journal_file, data_file, pool: Arc::new(Pool { files, environment, memory }) }
}

/// Does `work` with the pool on a thread of its own.
pub(super) fn spawn<T: Send + 'static>(
    pool: &Arc<Pool>,
    work: impl FnOnce(&Pool) -> T + Send + 'static,
) -> JoinHandle<T> {
    let pool = pool.clone();
    std::thread::spawn(move || work(&pool))
}

/// Lets the next sync of a file fail, in the middle of which a thread of its own begins `work`. What that thread said.
pub(super) fn beside_failing_sync(
    file: &Staged,
    pool: &Arc<Pool>,
    work: impl FnOnce(&Pool) -> io::Result<()> + Send + 'static,
) -> Box<dyn FnOnce() -> io::Result<()>> {
    let (told, thread) = std::sync::mpsc::channel();
    let pool = pool.clone();
    file.in_next_sync(move || {
        let thread = spawn(&pool, work);
        // Long enough for a sync that does not wait.
        for _ in 0..200 {
            if !thread.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        told.send(thread).unwrap();
        Err(io::ErrorKind::BrokenPipe.into())
    });
    Box::new(move || thread.recv().unwrap().join().unwrap())
}

/// Whether a thread comes to its end while a sync goes on: it waits for that sync otherwise.
pub(super) fn ends<T>(pool: &Pool, thread: &JoinHandle<T>) -> bool {
    loop {
        if thread.is_finished() {
            return true;
        }
        if pool.journal().waiting() > 0 {
            return false;
        }
        std::thread::yield_now();
    }
}

/// Appends entries of `bytes` in all, each of one run of lines from the start of the pool.
pub(super) fn append(pool: &Pool, bytes: u64) {
    const LINES_MAX: u64 = 31;
    let before = pool.journal().tail_at();
    // In words: 5 and 8 for each line.
    let words = bytes / 8;
    let lines_of = |entries: u64| {
        let lines = words.checked_sub(5 * entries).filter(|left| left.is_multiple_of(8))? / 8;
        (entries..=LINES_MAX * entries).contains(&lines).then_some((entries, lines))
    };
    let (entries, lines) = (1..=words / 13).find_map(lines_of).expect("a sum of entries");
    for entry in 0..entries {
        let lines = lines / entries + u64::from(entry < lines % entries);
        let whole = pool.memory.check(0, lines * 64).unwrap();
        pool.memory.copy(whole, &vec![entry as u8; lines as usize * 64], SITE);
        pool.memory.flush(whole, SITE);
        pool.memory.fence(SITE);
    }
    assert_eq!(pool.journal().tail_at() - before, bytes);
}
