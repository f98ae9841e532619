//! When entries are synced, who waits, and what a failure does.

use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicUsize;

use super::altered::Altered;
use super::*;

#[test]
fn a_sync_starts_within_the_delay_of_the_first_operation() {
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    pool.environment.advance(7);
    journal.start().unwrap();
    while pool.environment.step_tasks() {}
    pool.put(0, 1);
    journal.settle().unwrap();
    let tail = journal.tail_at();
    pool.environment.advance(49_999_999);
    while pool.environment.step_tasks() {}
    assert!(journal.durable() < tail, "not before its time");
    pool.environment.advance(1);
    while pool.environment.step_tasks() {}
    assert_eq!(journal.durable(), tail);
    // Idle: nothing to do however late it is.
    pool.environment.advance(1 << 40);
    assert!(!pool.environment.step_tasks());
}

#[test]
fn a_clock_that_goes_back_makes_no_sync_late() {
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    journal.start().unwrap();
    pool.environment.advance(1 << 40);
    while pool.environment.step_tasks() {}
    pool.put(0, 1);
    journal.settle().unwrap();
    while pool.environment.step_tasks() {}
    pool.environment.rewind(1 << 39);
    pool.environment.advance(50_000_000);
    while pool.environment.step_tasks() {}
    assert_eq!(journal.durable(), journal.tail_at());
}

#[test]
fn a_writer_syncs_by_itself_also_when_the_clock_went_back() {
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    pool.environment.advance(1 << 40);
    pool.put(0, 1);
    journal.settle().unwrap();
    pool.environment.rewind(1 << 39);
    pool.put(0, 2);
    journal.settle().unwrap();
    assert!(journal.durable() < journal.tail_at(), "a new window has begun");
    pool.environment.advance(120_000_000);
    journal.settle().unwrap();
    assert_eq!(journal.durable(), journal.tail_at(), "two windows are behind");
}

#[test]
fn a_writer_syncs_by_itself_when_nobody_does() {
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    pool.put(0, 1);
    journal.settle().unwrap();
    pool.put(0, 2);
    pool.environment.advance(60_000_000);
    journal.settle().unwrap();
    assert!(journal.durable() < journal.tail_at(), "the background task is given time");
    pool.environment.advance(60_000_000);
    journal.settle().unwrap();
    assert_eq!(journal.durable(), journal.tail_at(), "two windows are behind");
}

#[test]
fn immediate_waits_for_what_was_written_and_for_what_was_read() {
    let pool = Pool::create(SyncPolicy::Immediate);
    let journal = pool.journal();
    pool.put(0, 1);
    journal.settle().unwrap();
    assert_eq!(journal.durable(), journal.tail_at());
    std::thread::scope(|scope| {
        scope.spawn(|| pool.put(0, 2));
    });
    assert!(journal.durable() < journal.tail_at());
    journal.settle_read().unwrap();
    assert_eq!(journal.durable(), journal.tail_at(), "a read shows nothing that can be lost");
    std::thread::scope(|scope| {
        scope.spawn(|| pool.put(0, 3));
    });
    journal.settle().unwrap();
    assert_eq!(journal.durable(), journal.tail_at(), "nor does a write that changed nothing");
}

/// A file whose sync fails from some time on, and takes its time; and that knows what was written, in order.
#[derive(Debug)]
pub(super) struct Slow {
    inner: Arc<dyn File>,
    syncs: AtomicUsize,
    fails: AtomicBool,
    pub(super) writes: Mutex<Vec<(u64, Vec<u8>)>>,
}

impl Altered for Slow {
    fn inner(&self) -> &dyn File {
        &*self.inner
    }
    fn on_write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        lock(&self.writes).push((offset, bytes.to_vec()));
        self.inner.write_at(offset, bytes)
    }
    fn on_sync(&self) -> io::Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.syncs.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(2));
        self.inner.sync()
    }
    fn on_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

pub(super) fn slow(policy: SyncPolicy) -> (Arc<Slow>, Pool) {
    let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
    let data = files.open(Path::new("data"), OpenMode::CreateNew).unwrap();
    data.allocate(0, DATA_BYTES).unwrap();
    let inner = files.open(Path::new("journal"), OpenMode::CreateNew).unwrap();
    Journal::format(&*inner, 7, 99, 1 << 20, BOOT).unwrap();
    let file = Arc::new(Slow {
        inner,
        syncs: AtomicUsize::new(0),
        fails: AtomicBool::new(false),
        writes: Mutex::default(),
    });
    let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
    let journal = Journal::open(file.clone(), CAPACITY, policy, environment.clone()).unwrap();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.use_journal(journal).unwrap();
    memory.map(0, &data, 0, DATA_BYTES).unwrap();
    (file, Pool { files, environment, memory })
}

#[test]
fn operations_that_wait_at_the_same_time_share_a_sync() {
    let (file, pool) = slow(SyncPolicy::Immediate);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..25 {
                    pool.put(thread * 64, round);
                    pool.journal().settle().unwrap();
                }
            });
        }
    });
    let syncs = file.syncs.load(Ordering::Relaxed);
    assert!((25..150).contains(&syncs), "{syncs} syncs for 200 operations of 8 threads");
}

#[test]
fn nothing_is_written_after_a_failed_sync() {
    for policy in [SyncPolicy::Immediate, GROUP] {
        let (file, pool) = slow(policy);
        let journal = pool.journal();
        pool.put(0, 1);
        journal.sync().unwrap();
        file.fails.store(true, Ordering::Relaxed);
        pool.put(0, 2);
        assert!(journal.sync().unwrap_err().to_string().contains("cannot sync"));
        file.fails.store(false, Ordering::Relaxed);
        let tail = journal.tail_at();
        pool.put(0, 3);
        assert_eq!(journal.tail_at(), tail, "an entry after the failure");
        assert!(journal.settle().is_err(), "a later sync would not bring the pages back");
        assert!(journal.sync().is_err());
        assert!(journal.checkpoint().is_err());
        assert!(journal.close().is_err());
        journal.settle_read().unwrap();
    }
}
