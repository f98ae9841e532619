//! The mapped ring of a real file: a sync of many entries lets go of their pages first.

use super::*;
use crate::environment::RealFiles;

const MAPPED_CAPACITY: u64 = 1 << 20;
/// Entries of 4 KiB that are synced one by one: as many as let go, and one less.
const MANY: u64 = 16;
const FEW: u64 = 15;

struct Mapped {
    _directory: tempfile::TempDir,
    memory: Hardware,
    journal: Arc<Journal>,
}

impl Mapped {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = RealFiles.open(&directory.path().join("data"), OpenMode::CreateNew).unwrap();
        data.allocate(0, DATA_BYTES).unwrap();
        let file = RealFiles.open(&directory.path().join("journal"), OpenMode::CreateNew).unwrap();
        Journal::format(&*file, 7, 99, MAPPED_CAPACITY, BOOT).unwrap();
        let environment = Arc::new(SteppedEnvironment::new(1));
        let journal = Journal::open(file, MAPPED_CAPACITY, GROUP, environment).unwrap();
        let memory = Hardware::new(HardwareOptions::default()).unwrap();
        memory.use_journal(journal.clone()).unwrap();
        memory.map(0, &data, 0, DATA_BYTES).unwrap();
        Self { _directory: directory, memory, journal }
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
            (from..to).step_by(8).map(|at| at % MAPPED_CAPACITY / page * page).collect();
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
