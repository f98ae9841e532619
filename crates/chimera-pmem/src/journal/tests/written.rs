//! What is long and goes to a place that is taken: it is written to the mapped file rather than stored.

use std::io;
use std::sync::Mutex;

use super::*;
use crate::environment::RealFiles;
use crate::{Medium, sum};

const PAGE: u64 = 4096;
/// What is written rather than stored, at least.
const LONG: u64 = 4 * PAGE;

/// A real file that tells what was written to it.
#[derive(Debug)]
struct TellingFile {
    file: Arc<dyn File>,
    /// Offset and length of each write.
    writes: Mutex<Vec<(u64, u64)>>,
    fails: AtomicBool,
}

impl File for TellingFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file.allocate(offset, length)
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file.punch(offset, length)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        lock(&self.writes).push((offset, bytes.len() as u64));
        if self.fails.load(Ordering::Relaxed) {
            // As much as there was room for.
            self.file.write_at(offset, &bytes[..bytes.len() / 2])?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_at(offset, bytes)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.file.try_lock(exclusive)
    }

    fn medium(&self) -> io::Result<Medium> {
        self.file.medium()
    }

    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.file.descriptor()
    }

    fn is_read_only(&self) -> bool {
        false
    }
}

struct Told {
    _directory: tempfile::TempDir,
    data: Vec<Arc<TellingFile>>,
    memory: Hardware,
    journal: Arc<Journal>,
}

impl Told {
    /// Two files, one behind the other.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file =
            |name| RealFiles.open(&directory.path().join(name), OpenMode::CreateNew).unwrap();
        let ring = file("journal");
        Journal::format(&*ring, 7, 99, 1 << 20, BOOT).unwrap();
        let environment = Arc::new(SteppedEnvironment::new(1));
        environment.set_relax_hook(|attempt| match attempt {
            0..16 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_millis(1)),
        });
        let journal = Journal::open(ring, 1 << 20, GROUP, environment).unwrap();
        let memory = Hardware::new(HardwareOptions::default()).unwrap();
        memory.use_journal(journal.clone()).unwrap();
        let mut data = Vec::new();
        for (number, name) in (0..).zip(["first", "second"]) {
            let file = file(name);
            file.allocate(0, DATA_BYTES).unwrap();
            let told =
                TellingFile { file, writes: Mutex::default(), fails: AtomicBool::new(false) };
            let told = Arc::new(told);
            let mapped: Arc<dyn File> = told.clone();
            memory.map(number * DATA_BYTES, &mapped, 0, DATA_BYTES).unwrap();
            data.push(told);
        }
        Self { _directory: directory, data, memory, journal }
    }

    fn take(&self, pages: std::ops::Range<u64>) {
        let place = self.memory.check(pages.start * PAGE, (pages.end - pages.start) * PAGE);
        self.memory.take_new(place.unwrap(), place.unwrap(), Fenced::default());
    }

    /// Copies so many bytes to an offset, with their sum or without; what was written to the first file meanwhile.
    fn copy(&self, at: u64, length: u64, salt: u64, with_sum: bool) -> Vec<(u64, u64)> {
        let bytes = pattern(length, salt);
        let to = self.memory.check(at, length).unwrap();
        if with_sum {
            assert_eq!(self.memory.copy_sum(to, &bytes, SITE), sum(&bytes));
        } else {
            self.memory.copy(to, &bytes, SITE);
        }
        assert!(self.memory.compare(to, &bytes));
        // The rest of the last word is zero.
        let (word, rest) = (at + length / 8 * 8, length % 8);
        assert!(rest == 0 || self.memory.load_u64(word) >> (8 * rest) == 0);
        std::mem::take(&mut *lock(&self.data[0].writes))
    }

    fn is_in_file(&self, pages: std::ops::Range<u64>, at: u64, length: u64, salt: u64) -> bool {
        let bytes = pattern(length, salt);
        let (start, end) = (at.max(pages.start * PAGE), (at + length).min(pages.end * PAGE));
        let mut found = vec![0; (end - start) as usize];
        self.data[0].read_at(start, &mut found).unwrap();
        found == bytes[(start - at) as usize..(end - at) as usize]
    }
}

fn pattern(length: u64, salt: u64) -> Vec<u8> {
    (0..length).map(|at| (((at + salt) * 37) >> 3) as u8 | 1).collect()
}

#[test]
fn what_is_long_is_written_where_its_place_is_taken_and_stored_elsewhere() {
    let told = Told::new();
    told.take(2..8);
    let pages = told.journal.pages.get().unwrap();
    for (salt, with_sum) in [(0, false), (100, true)] {
        // From the middle of a page before to the middle of one behind, and no whole word.
        let (at, length) = (PAGE + 64, 9 * PAGE + 3);
        assert_eq!(told.copy(at, length, salt, with_sum), [(2 * PAGE, 6 * PAGE)]);
        assert!(told.is_in_file(2..8, at, length, salt));
        assert!(
            !told.is_in_file(1..2, at, length, salt) && !told.is_in_file(8..10, at, length, salt)
        );
        // Those around them have stores of their own.
        assert_eq!(pages.private_bytes(), 4 * PAGE);
        // Inside of a place, to no whole word: that is stored to the file.
        let length = LONG + 5;
        let written = told.copy(3 * PAGE + 8, length, salt + 1, with_sum);
        assert_eq!(written, [(3 * PAGE + 8, length / 8 * 8)]);
        assert!(told.is_in_file(3..8, 3 * PAGE + 8, length, salt + 1));
        // What is short is stored, which is in the file, too.
        assert_eq!(told.copy(4 * PAGE, LONG - 8, salt + 2, with_sum), []);
        assert!(told.is_in_file(4..8, 4 * PAGE, LONG - 8, salt + 2));
    }
    told.journal.sync().unwrap();
    assert_eq!(told.copy(2 * PAGE, 6 * PAGE, 7, false), [], "no place is taken any more");
}

#[test]
fn where_writing_fails_it_is_stored() {
    let told = Told::new();
    told.take(0..8);
    told.data[0].fails.store(true, Ordering::Relaxed);
    for with_sum in [false, true] {
        let salt = u64::from(with_sum);
        assert_eq!(told.copy(64, 7 * PAGE, salt, with_sum), [(64, 7 * PAGE)]);
        assert!(told.is_in_file(0..8, 64, 7 * PAGE, salt));
    }
    told.journal.sync().unwrap();
}

/// No write goes on behind the end of its file.
#[test]
fn what_lies_in_two_files_goes_to_both() {
    let told = Told::new();
    let end = DATA_BYTES / PAGE;
    told.take(end - 5..end);
    told.take(end..end + 5);
    let (at, length) = (DATA_BYTES - 5 * PAGE, 10 * PAGE);
    told.copy(at, length, 3, true);
    assert!(told.is_in_file(end - 5..end, at, length, 3));
    assert_eq!(told.data[0].length().unwrap(), DATA_BYTES);
    let mut found = vec![0; 5 * PAGE as usize];
    told.data[1].read_at(0, &mut found).unwrap();
    assert_eq!(found, pattern(length, 3)[5 * PAGE as usize..]);
}

/// Whoever takes places back waits for a write, and what is copied later passes the journal.
#[test]
fn copies_beside_syncs_lose_nothing() {
    let told = Arc::new(Told::new());
    let is_done = Arc::new(AtomicBool::new(false));
    let syncer = {
        let (told, is_done) = (told.clone(), is_done.clone());
        std::thread::spawn(move || {
            while !is_done.load(Ordering::Acquire) {
                told.journal.sync().unwrap();
                std::thread::yield_now();
            }
        })
    };
    let mut by_file = 0;
    for round in 0..200 {
        told.take(0..8);
        let copied = told.memory.check(0, 8 * PAGE).unwrap();
        by_file += told.copy(0, 8 * PAGE, round, round % 2 > 0).len();
        told.memory.flush(copied, SITE);
        told.memory.fence(SITE);
        assert!(told.memory.compare(copied, &pattern(8 * PAGE, round)), "round {round}");
        if round % 16 == 15 {
            // Pages without stores of their own can be taken again.
            told.journal.checkpoint().unwrap();
            told.journal.give_pages_back(&mut lock(&told.journal.checkpoint), 0).unwrap();
        }
    }
    is_done.store(true, Ordering::Release);
    syncer.join().unwrap();
    // How many depends on the machine.
    println!("{by_file} copies by the file");
    told.journal.checkpoint().unwrap();
    assert!(told.is_in_file(0..8, 0, 8 * PAGE, 199));
}
