//! The mapped ring of a real file: a sync of many entries lets go of their pages first.

use super::*;
use crate::environment::RealFiles;

const MAPPED_CAPACITY: u64 = 1 << 20;
/// Entries of 4 KiB that are synced one by one: as many as let go, and one less.
const MANY: u64 = 16;
const FEW: u64 = 15;

pub(super) struct Mapped {
    _directory: tempfile::TempDir,
    pub(super) data: Arc<dyn File>,
    pub(super) memory: Hardware,
    pub(super) journal: Arc<Journal>,
}

impl Mapped {
    pub(super) fn new() -> Self {
        Self::with_ring(MAPPED_CAPACITY)
    }

    /// With a ring of so many bytes, which may grow.
    fn with_ring(capacity: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = RealFiles.open(&directory.path().join("data"), OpenMode::CreateNew).unwrap();
        data.allocate(0, DATA_BYTES).unwrap();
        let file = RealFiles.open(&directory.path().join("journal"), OpenMode::CreateNew).unwrap();
        Journal::format(&*file, 7, 99, capacity, BOOT).unwrap();
        let environment = Arc::new(SteppedEnvironment::new(1));
        let journal = Journal::open(file, MAPPED_CAPACITY, GROUP, environment).unwrap();
        let memory = Hardware::new(HardwareOptions::default()).unwrap();
        memory.use_journal(journal.clone()).unwrap();
        memory.map(0, &data, 0, DATA_BYTES).unwrap();
        Self { _directory: directory, data, memory, journal }
    }

    fn append(&self, entries: u64) {
        for number in 0..entries {
            let page = self.memory.check(number % 2 * 4096, 4096).unwrap();
            self.memory.copy(page, &[number as u8; 4096], SITE);
            self.memory.flush(page, SITE);
            self.memory.fence(SITE);
        }
    }

    /// Pages of the ring that are in the page tables, from one position to another.
    fn pages_mapped(&self, from: u64, to: u64) -> usize {
        let window = lock(&self.journal.mapped).upgrade().unwrap();
        let page = rustix::param::page_size() as u64;
        let pages: std::collections::BTreeSet<_> =
            (from..to).step_by(8).map(|at| at % self.journal.capacity() / page * page).collect();
        pages.into_iter().filter(|at| window.is_mapped(*at as usize)).count()
    }
}

#[test]
fn a_sync_of_much_lets_go_of_its_pages_and_no_other() {
    let mapped = Mapped::new();
    let journal = &mapped.journal;
    for (entries, is_much) in [(MANY, true), (FEW, false), (100, true)] {
        let before = journal.tail_at();
        assert_eq!(before, journal.durable());
        mapped.append(entries);
        let tail = journal.tail_at();
        assert_eq!(tail - before >= 64 << 10, is_much);
        assert!(mapped.pages_mapped(before, tail) >= entries as usize);
        journal.sync().unwrap();
        assert_eq!(mapped.pages_mapped(before, tail) == 0, is_much, "{entries} entries");
    }
}

#[test]
fn what_a_sync_lets_go_of_is_read_again_around_the_end_of_the_ring() {
    let mapped = Mapped::new();
    let journal = &mapped.journal;
    let mut wraps = 0;
    for round in 0..12 {
        let before = journal.tail_at();
        mapped.append(40 + round);
        let tail = journal.tail_at();
        wraps += u64::from(before / MAPPED_CAPACITY < tail / MAPPED_CAPACITY);
        journal.sync().unwrap();
        assert_eq!(mapped.pages_mapped(before, tail), 0, "round {round}");
        journal.checkpoint().unwrap();
        assert_eq!(journal.start_at(), tail, "each entry was found as it was written");
    }
    assert!(wraps > 0);
}

#[test]
fn a_ring_that_has_grown_lets_go_too() {
    let mapped = Mapped::with_ring(256 << 10);
    let journal = &mapped.journal;
    let lets_go = |entries| {
        let before = journal.tail_at();
        mapped.append(entries);
        let tail = journal.tail_at();
        assert!(mapped.pages_mapped(before, tail) > 0);
        journal.sync().unwrap();
        assert_eq!(mapped.pages_mapped(before, tail), 0);
    };
    lets_go(20);
    journal.grow(&mut lock(&journal.checkpoint)).unwrap();
    assert_eq!(journal.capacity(), 512 << 10);
    lets_go(80);
}

/// Appending goes on while pages go: each entry is found as it was written.
#[test]
fn what_is_appended_while_pages_go_is_in_the_file() {
    let mapped = Mapped::new();
    let journal = mapped.journal.clone();
    let is_done = Arc::new(AtomicBool::new(false));
    let done = is_done.clone();
    let syncer = std::thread::spawn(move || {
        let mut large = 0;
        while !done.load(Ordering::Acquire) {
            let behind = journal.tail_at() - journal.durable();
            journal.sync().unwrap();
            large += u64::from(behind >= 64 << 10);
            std::thread::yield_now();
        }
        large
    });
    // Many laps: a checkpoint reads all that is written over.
    mapped.append(4000);
    is_done.store(true, Ordering::Release);
    // How many let go depends on the machine.
    println!("{} syncs of much", syncer.join().unwrap());
    mapped.journal.checkpoint().unwrap();
    assert_eq!(mapped.journal.start_at(), mapped.journal.tail_at());
}
