//! Room in the journal: who makes it and when, and which files lines are written back to.

use super::staged::{Did, Staged, append, stage};
use super::*;
use crate::Extent;

/// An entry of one line.
const ENTRY: u64 = 104;

/// Appends until `bytes` of room are left.
fn leave(pool: &Pool, bytes: u64) {
    append(pool, pool.journal().free_bytes() - bytes);
    assert_eq!(pool.journal().free_bytes(), bytes);
}

/// Runs tasks until none has anything to do.
fn settle_tasks(pool: &Pool) {
    while pool.environment.step_tasks() {}
}

#[test]
fn entries_take_all_but_what_is_spare_and_then_make_room() {
    let pool = Pool::create(GROUP);
    let start = pool.journal().start_at();
    leave(&pool, ENTRY);
    pool.put(8192, 1);
    assert_eq!(pool.journal().start_at(), start, "it fitted exactly");
    let pending = pool.journal().pending_bytes();
    assert_eq!(pending, CAPACITY - 16 - 64, "but for two end marks and two entries without runs");
    assert_eq!(pool.replayed()[1024], 1);

    let pool = Pool::create(GROUP);
    leave(&pool, ENTRY - 8);
    pool.put(8192, 1);
    assert_eq!(pool.journal().pending_bytes(), ENTRY, "what was before is written back");
    assert_eq!(pool.replayed()[1024], 1);
}

#[test]
fn whoever_makes_room_lets_others_append() {
    let stage = stage(GROUP);
    leave(&stage.pool, ENTRY - 8);
    let is_free = Arc::new(AtomicBool::new(false));
    let (pool, seen) = (stage.pool.clone(), is_free.clone());
    stage.data_file.in_next_sync(move || {
        seen.store(pool.journal().tail.try_lock().is_ok(), Ordering::Relaxed);
        Ok(())
    });
    stage.pool.put(8192, 1);
    assert_eq!(stage.pool.journal().pending_bytes(), ENTRY);
    assert!(is_free.load(Ordering::Relaxed), "the lock of the tail is held during a checkpoint");
}

#[test]
fn a_writer_makes_room_itself_when_less_than_an_eighth_is_left() {
    for (left, waits) in [(CAPACITY / 8, false), (CAPACITY / 8 - 8, true)] {
        let pool = Pool::create(GROUP);
        leave(&pool, left);
        let pending = pool.journal().pending_bytes();
        pool.journal().settle().unwrap();
        let expected = if waits { 0 } else { pending };
        assert_eq!(pool.journal().pending_bytes(), expected, "{left} bytes are left");
    }
}

#[test]
fn the_background_writes_back_when_more_than_half_is_used() {
    let pool = Pool::create(SyncPolicy::Immediate);
    let journal = pool.journal();
    journal.start().unwrap();
    settle_tasks(&pool);
    leave(&pool, CAPACITY / 2);
    journal.settle().unwrap();
    assert!(!pool.environment.step_tasks(), "nobody is woken for that");
    pool.put(0, 1);
    let pending = journal.pending_bytes();
    journal.settle().unwrap();
    assert_eq!(journal.pending_bytes(), pending, "the writer does not do it");
    settle_tasks(&pool);
    assert_eq!(journal.pending_bytes(), 0);
}

#[test]
fn nothing_happens_in_the_background_after_it_was_stopped() {
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    journal.start().unwrap();
    settle_tasks(&pool);
    leave(&pool, CAPACITY / 4);
    journal.settle().unwrap();
    let before = journal.figures();
    journal.stop();
    pool.environment.advance(1 << 40);
    assert!(!pool.environment.step_tasks());
    assert_eq!(journal.figures(), before);
    assert!(before.unsynced_bytes > 0 && before.pending_bytes > CAPACITY / 2, "{before:?}");
}

#[test]
fn figures_count_what_is_appended_unsynced_and_pending() {
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    let put = |count| (0..count).for_each(|number| pool.put(number * 64, 1));
    put(2);
    journal.checkpoint().unwrap();
    put(3);
    journal.sync().unwrap();
    put(1);
    let expected = JournalFigures {
        capacity_bytes: CAPACITY,
        appended_bytes: 6 * ENTRY,
        unsynced_bytes: ENTRY,
        pending_bytes: 4 * ENTRY,
        direct_bytes: 0,
        // The checkpoint needed one.
        syncs: 2,
    };
    assert_eq!(journal.figures(), expected);
}

/// A journal of three data files, that lie in the pool one behind the other, and what they should hold.
struct Homes {
    journal: Arc<Journal>,
    files: [Arc<Staged>; 3],
    expected: Vec<u8>,
}

/// Where each begins, how long it is, and where in its file.
const HOMES: [(u64, u64, u64); 3] = [(0, 4096, 0), (4096, 4096, 8192), (8192, 8192, 4096)];
const HOMES_END: u64 = 16384;

impl Homes {
    fn new() -> Self {
        let memory: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
        let file = open(&memory, "journal");
        Journal::format(&*file, 7, 99, CAPACITY, BOOT).unwrap();
        let environment = Arc::new(SteppedEnvironment::with_files(1, memory.clone()));
        let journal = Journal::open(file, CAPACITY, GROUP, environment).unwrap();
        let files = ["a", "b", "c"].map(|name| Staged::new(open(&memory, name)));
        for (file, (at, length, offset)) in files.iter().zip(HOMES) {
            file.allocate(0, offset + length).unwrap();
            let file: Arc<dyn File> = file.clone();
            journal.add_data_file(at, &file, offset, length);
        }
        Self { journal, files, expected: vec![0; HOMES_END as usize] }
    }

    /// Appends these bytes of the pool, full of `value`.
    fn append(&mut self, at: u64, length: u64, value: u8) {
        self.journal.mark(Extent::new_checked(at, length));
        self.journal.append(|_, into| into.fill(value));
        if let Some(bytes) = self.expected.get_mut(at as usize..(at + length) as usize) {
            bytes.fill(value);
        }
    }

    fn found(&self) -> Vec<u8> {
        let parts = self.files.iter().zip(HOMES).map(|(file, (_, length, offset))| {
            let mut bytes = vec![0; length as usize];
            file.read_at(offset, &mut bytes).unwrap();
            bytes
        });
        parts.collect::<Vec<_>>().concat()
    }
}

#[test]
fn a_checkpoint_writes_and_syncs_the_files_that_lines_lie_in_and_no_others() {
    let cases: [(u64, u64, &[usize]); 7] = [
        (0, 64, &[0]),
        (4096 - 64, 64, &[0]),
        (4096, 64, &[1]),
        (4096 - 64, 128, &[0, 1]),
        (8192 - 64, 128, &[1, 2]),
        (16384 - 64, 64, &[2]),
        (0, HOMES_END, &[0, 1, 2]),
    ];
    let mut homes = Homes::new();
    for (value, (at, length, touched)) in (1..).zip(cases) {
        homes.append(at, length, value);
        homes.journal.checkpoint().unwrap();
        assert!(homes.found() == homes.expected, "{length} bytes at {at}");
        for (number, file) in homes.files.iter().enumerate() {
            let done = file.take_done();
            let synced = done.iter().filter(|done| **done == Did::Synced).count();
            let is_touched = touched.contains(&number);
            assert_eq!(!done.is_empty(), is_touched, "{length} bytes at {at}: file {number}");
            assert_eq!(synced > 0, is_touched, "{length} bytes at {at}: file {number}");
            if is_touched {
                assert_eq!(done.last(), Some(&Did::Synced), "file {number}");
            }
        }
    }
}

#[test]
fn a_line_that_lies_in_no_data_file_stays_in_the_journal() {
    for (at, length) in [(HOMES_END, 64), (HOMES_END - 64, 128)] {
        let mut homes = Homes::new();
        let start = homes.journal.start_at();
        homes.append(at, length, 1);
        let error = homes.journal.checkpoint().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
        assert_eq!(homes.journal.start_at(), start);
        assert!(homes.journal.sync().is_err(), "after a failure everything is refused");
    }
}
