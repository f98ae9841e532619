mod accepted;
mod altered;
mod bytes;
mod capacity;
mod checkpoint;
mod direct;
mod failing;
mod flushed;
mod giving;
mod headers;
mod holes;
mod interval;
mod lines;
mod loss;
mod making;
mod mapped;
mod pace;
mod recovery;
mod room;
mod shared;
mod staged;
mod taken;
mod watched;
mod windows;
mod written;

use std::path::Path;

use super::*;
use crate::environment::{FileProvider, MemoryFiles, OpenMode};
use crate::{Hardware, HardwareOptions, Medium, Pmem, Site, SteppedEnvironment};

const SITE: Site = Site::new("test");
const CAPACITY: u64 = 16 << 10;
/// The start of the machine that tests are in, and the next one.
const BOOT: u64 = 5;
const NEXT_BOOT: u64 = 6;
const DATA_BYTES: u64 = 64 << 10;

/// A pool of one data file with a journal, on files that are not mapped.
struct Pool {
    files: Arc<dyn FileProvider>,
    environment: Arc<SteppedEnvironment>,
    memory: Hardware,
}

impl Pool {
    fn create(policy: SyncPolicy) -> Self {
        let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
        let data = files.open(Path::new("data"), OpenMode::CreateNew).unwrap();
        data.allocate(0, DATA_BYTES).unwrap();
        let journal = files.open(Path::new("journal"), OpenMode::CreateNew).unwrap();
        Journal::format(&*journal, 7, 99, CAPACITY, BOOT).unwrap();
        Self::open(files, policy)
    }

    /// Replays and opens.
    fn open(files: Arc<dyn FileProvider>, policy: SyncPolicy) -> Self {
        let file = open(&files, "journal");
        let data = open(&files, "data");
        let contents = Contents::read(&*file, BOOT, &no_data).unwrap().unwrap();
        contents.lines().for_each_run(|at, bytes| data.write_at(at, bytes)).unwrap();
        contents.empty(&*file, BOOT, CAPACITY).unwrap();
        let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
        let journal = Journal::open(file, CAPACITY, policy, environment.clone()).unwrap();
        let memory = Hardware::new(HardwareOptions::default()).unwrap();
        memory.use_journal(journal).unwrap();
        memory.map(0, &data, 0, DATA_BYTES).unwrap();
        Self { files, environment, memory }
    }

    fn journal(&self) -> &Arc<Journal> {
        self.memory.journal().unwrap()
    }

    /// Stores, flushes and fences a word.
    fn put(&self, at: u64, value: u64) {
        self.memory.store_u64(at, value, SITE);
        self.memory.flush(self.memory.check(at, 8).unwrap(), SITE);
        self.memory.fence(SITE);
    }

    /// What a crash leaves now.
    fn replayed(&self) -> Vec<u64> {
        let file = open(&self.files, "journal");
        let mut bytes = vec![0; DATA_BYTES as usize];
        open(&self.files, "data").read_at(0, &mut bytes).unwrap();
        let data = open(&self.files, "data");
        let read = |_: u16, offset: u64, into: &mut [u8]| data.read_at(offset, into);
        if let Some(contents) = Contents::read(&*file, BOOT, &read).unwrap() {
            assert_eq!(contents.damage(), None);
            contents.lines().put_over(0..DATA_BYTES, &mut bytes);
        }
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

fn open(files: &Arc<dyn FileProvider>, name: &str) -> Arc<dyn File> {
    let path = Path::new(name);
    files
        .open(path, OpenMode::ReadWrite)
        .or_else(|_| files.open(path, OpenMode::CreateNew))
        .unwrap()
}

const GROUP: SyncPolicy = SyncPolicy::Group { max_delay: Duration::from_millis(50) };

#[test]
fn what_was_fenced_is_replayed_and_nothing_else() {
    let pool = Pool::create(GROUP);
    pool.put(64, 1);
    pool.memory.store_u64(128, 2, SITE);
    pool.memory.flush(pool.memory.check(128, 8).unwrap(), SITE);
    pool.memory.store_u64(192, 3, SITE);
    let words = pool.replayed();
    assert_eq!((words[8], words[16], words[24]), (1, 0, 0), "only the first was fenced");
    pool.memory.fence(SITE);
    let words = pool.replayed();
    assert_eq!((words[8], words[16], words[24]), (1, 2, 0), "the third was never flushed");
}

#[test]
fn the_content_of_a_line_is_that_of_the_fence() {
    let pool = Pool::create(GROUP);
    let line = pool.memory.check(0, 64).unwrap();
    pool.memory.store_u64(0, 1, SITE);
    pool.memory.flush(line, SITE);
    std::thread::scope(|scope| {
        scope.spawn(|| pool.put(8, 2));
    });
    pool.memory.fence(SITE);
    assert_eq!(pool.replayed()[..2], [1, 2], "an older copy came after a newer one");
}

#[test]
fn lines_past_the_cache_and_overlapping_flushes_are_written_once() {
    let pool = Pool::create(GROUP);
    let before = pool.journal().pending_bytes();
    pool.memory.copy_nt(pool.memory.check(256, 128).unwrap(), &[7; 128], SITE);
    for (at, length) in [(256, 64), (320, 8), (248, 16), (256, 128)] {
        pool.memory.flush(pool.memory.check(at, length).unwrap(), SITE);
    }
    pool.memory.fence(SITE);
    let bytes = pool.journal().pending_bytes() - before;
    assert_eq!(bytes, 32 + 8 + 3 * 64, "one entry of one run of three lines");
    assert_eq!(pool.replayed()[32], u64::from_le_bytes([7; 8]));
    pool.memory.fence(SITE);
    assert_eq!(pool.journal().pending_bytes() - before, bytes, "a fence alone writes nothing");
}

#[test]
fn a_large_fence_makes_several_entries() {
    let pool = Pool::create(GROUP);
    for round in 1..5 {
        let whole = pool.memory.check(0, 9000 / 8 * 8).unwrap();
        pool.memory.copy(whole, &[round; 9000], SITE);
        pool.memory.flush(whole, SITE);
        pool.memory.fence(SITE);
        assert_eq!(pool.replayed()[..1125], [u64::from_le_bytes([round; 8]); 1125]);
    }
}

#[test]
fn laps_and_lives_follow_each_other() {
    let mut pool = Pool::create(GROUP);
    for life in 0..5 {
        for round in 0..2000 {
            let value = life * 2000 + round + 1;
            pool.put(round % 500 * 64, value);
            pool.journal().settle().unwrap();
            if round % 97 == 0 {
                assert_eq!(pool.replayed()[(round % 500 * 8) as usize], value);
            }
            if round % 300 == 0 {
                pool.environment.advance(60_000_000);
            }
        }
        let words = pool.replayed();
        let files = pool.files.clone();
        drop(pool);
        pool = Pool::open(files, GROUP);
        assert_eq!(pool.replayed(), words, "replaying twice is replaying once");
        assert_eq!(pool.memory.load_u64(0), words[0]);
    }
    pool.journal().close().unwrap();
    let contents = Contents::read(&*open(&pool.files, "journal"), BOOT, &no_data).unwrap().unwrap();
    assert!(contents.is_closed() && contents.lines().is_empty());
}

#[test]
fn punched_pages_read_as_zeros_now_and_after_a_crash() {
    let pool = Pool::create(GROUP);
    pool.put(4096, 1);
    pool.put(8192, 2);
    pool.memory.punch(pool.memory.check(4096, 4096).unwrap(), SITE).unwrap();
    assert_eq!((pool.memory.load_u64(4096), pool.memory.load_u64(8192)), (0, 2));
    assert_eq!((pool.replayed()[512], pool.replayed()[1024]), (0, 2));
    pool.put(4104, 3);
    assert_eq!(pool.replayed()[513], 3);
}

#[test]
fn a_mapped_journal_and_private_files_hold_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let files = crate::environment::RealFiles;
    let data = files.open(&directory.path().join("data"), OpenMode::CreateNew).unwrap();
    data.allocate(0, DATA_BYTES).unwrap();
    data.write_at(4096, b"before!!").unwrap();
    let path = directory.path().join("journal");
    let file = files.open(&path, OpenMode::CreateNew).unwrap();
    Journal::format(&*file, 7, 99, CAPACITY, BOOT).unwrap();
    let journal =
        Journal::open(file, CAPACITY, GROUP, Arc::new(SteppedEnvironment::new(1))).unwrap();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.use_journal(journal.clone()).unwrap();
    memory.map(0, &data, 0, DATA_BYTES).unwrap();
    assert_eq!(memory.load_u64(4096), u64::from_le_bytes(*b"before!!"));
    for round in 0..3000_u64 {
        memory.store_u64(round % 700 * 64, round, SITE);
        memory.flush(memory.check(round % 700 * 64, 8).unwrap(), SITE);
        memory.fence(SITE);
    }
    let in_file = |at: u64| {
        let mut word = [0; 8];
        data.read_at(at, &mut word).unwrap();
        u64::from_le_bytes(word)
    };
    let again = files.open(&path, OpenMode::Read).unwrap();
    let contents = Contents::read(&*again, BOOT, &no_data).unwrap().unwrap();
    let mut bytes = vec![0; DATA_BYTES as usize];
    data.read_at(0, &mut bytes).unwrap();
    contents.lines().put_over(0..DATA_BYTES, &mut bytes);
    for line in 0..700 {
        let word = bytes[line * 64..line * 64 + 8].try_into().unwrap();
        assert_eq!(u64::from_le_bytes(word), memory.load_u64(line as u64 * 64));
    }
    assert_ne!(in_file(199 * 64), memory.load_u64(199 * 64), "the data file lags behind");
    journal.checkpoint().unwrap();
    assert_eq!(in_file(199 * 64), memory.load_u64(199 * 64));
}

/// No data files for what lies in its place.
fn no_data(_: u16, _: u64, _: &mut [u8]) -> io::Result<()> {
    Err(io::ErrorKind::NotFound.into())
}
