//! How a journal becomes longer and shorter, and what a crash leaves of one whose capacity changes.

use super::altered::Altered;
use super::*;

/// Most that the journals here may have: a small multiple of what they begin with.
const MOST: u64 = 4 * CAPACITY;

/// A change of a file.
#[derive(Clone, Debug)]
enum Change {
    Wrote(u64, Vec<u8>),
    Length(u64),
    Synced,
}

/// The changes of several files, in order, each with the number of the file.
type Log = Arc<Mutex<Vec<(usize, Change)>>>;

/// A file of which everything is kept that was done to it.
struct Kept {
    number: usize,
    inner: Arc<dyn File>,
    log: Log,
    storage_max: AtomicU64,
    in_next_sync: Mutex<Option<Hook>>,
}

type Hook = Box<dyn FnOnce() + Send>;

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Kept {
    fn note(&self, change: Change) {
        lock(&self.log).push((self.number, change));
    }
}

impl Altered for Kept {
    fn inner(&self) -> &dyn File {
        &*self.inner
    }
    fn on_allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        if offset + length > self.storage_max.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let before = self.inner.length()?;
        self.inner.allocate(offset, length)?;
        let after = self.inner.length()?;
        if after != before {
            self.note(Change::Length(after));
        }
        Ok(())
    }
    fn on_set_length(&self, length: u64) -> io::Result<()> {
        self.inner.set_length(length)?;
        self.note(Change::Length(length));
        Ok(())
    }
    fn on_write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, bytes)?;
        self.note(Change::Wrote(offset, bytes.to_vec()));
        Ok(())
    }
    fn on_sync(&self) -> io::Result<()> {
        let hook = lock(&self.in_next_sync).take();
        if let Some(hook) = hook {
            hook();
        }
        self.note(Change::Synced);
        Ok(())
    }
}

/// A file as changes leave it: all of them, and those that a sync covers.
#[derive(Clone, Default)]
struct Left {
    now: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<(u64, Vec<u8>)>,
}

impl Left {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Wrote(at, bytes) => {
                write(&mut self.now, *at, bytes);
                self.unsynced.push((*at, bytes.clone()));
            }
            Change::Length(length) => self.now.resize(*length as usize, 0),
            Change::Synced => {
                self.durable = self.now.clone();
                self.unsynced.clear();
            }
        }
    }

    /// What a power loss may leave: any of the writes since the last sync, and either length.
    fn survivors(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for part in 0..1_u32 << self.unsynced.len().min(6) {
            for length in [self.durable.len(), self.now.len()] {
                let mut bytes = self.durable.clone();
                bytes.resize(length, 0);
                let writes = self.unsynced.iter().enumerate();
                for (_, (at, content)) in writes.filter(|(bit, _)| part >> bit & 1 == 1) {
                    if *at as usize + content.len() <= length {
                        write(&mut bytes, *at, content);
                    }
                }
                all.push(bytes);
            }
        }
        all
    }
}

fn write(into: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let end = at as usize + bytes.len();
    into.resize(into.len().max(end), 0);
    into[at as usize..end].copy_from_slice(bytes);
}

/// A pool of one data file, of whose files everything is kept.
struct Place {
    pool: Arc<Pool>,
    files: [Arc<Kept>; 2],
    log: Log,
}

const JOURNAL: usize = 0;
const DATA: usize = 1;

impl Place {
    /// With a journal that begins at this position.
    fn new(capacity_max: u64, position: u64) -> Self {
        Self::with(CAPACITY, capacity_max, position)
    }

    /// With a journal of this capacity, which begins at this position.
    fn with(capacity: u64, capacity_max: u64, position: u64) -> Self {
        let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
        open(&files, "data").allocate(0, DATA_BYTES).unwrap();
        let log = Log::default();
        let kept = |(number, name)| {
            let inner = open(&files, name);
            let (log, storage_max) = (log.clone(), AtomicU64::new(u64::MAX));
            Arc::new(Kept { number, inner, log, storage_max, in_next_sync: Mutex::default() })
        };
        let files_kept = [(JOURNAL, "journal"), (DATA, "data")].map(kept);
        let [journal_file, data_file] = &files_kept;
        Journal::format(&**journal_file, 7, 99, capacity, BOOT).unwrap();
        let header = Header::read(&**journal_file).unwrap().unwrap();
        Header { start: position, ..header }.begin(&**journal_file).unwrap();
        let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
        let (file, clock) = (journal_file.clone(), environment.clone());
        let journal = Journal::open(file, capacity_max, GROUP, clock).unwrap();
        let memory = Hardware::new(HardwareOptions::default()).unwrap();
        memory.use_journal(journal).unwrap();
        let mapped: Arc<dyn File> = data_file.clone();
        memory.map(0, &mapped, 0, DATA_BYTES).unwrap();
        let pool = Arc::new(Pool { files, environment, memory });
        Self { pool, files: files_kept, log }
    }

    fn journal(&self) -> &Arc<Journal> {
        self.pool.journal()
    }

    fn length(&self) -> u64 {
        self.files[JOURNAL].length().unwrap()
    }

    /// Puts `count` words, each with a value of its own.
    fn put(&self, count: u64) {
        for number in 0..count {
            self.pool.put(number % 700 * 64, self.journal().tail_at() + 1);
            self.journal().settle().unwrap();
        }
    }

    /// What the pool should hold.
    fn expected(&self) -> Vec<u64> {
        (0..DATA_BYTES / 8).map(|word| self.pool.memory.load_u64(word * 8)).collect()
    }

    /// Does `work`, during which nothing is put, and checks what the end of the process and of the power leave at each moment
    /// of it: an empty journal or none, of one of these capacities, and everything that was put.
    fn check_crashes(&self, capacities: &[u64], work: impl FnOnce(&Journal)) {
        self.journal().sync().unwrap();
        let (before, expected) = (lock(&self.log).len(), self.expected());
        work(self.journal());
        let log = lock(&self.log).clone();
        assert!(log.len() > before, "nothing was done");
        let mut left = [Left::default(), Left::default()];
        left[DATA].apply(&Change::Length(DATA_BYTES));
        left[DATA].apply(&Change::Synced);
        for (number, (file, change)) in log.iter().enumerate() {
            left[*file].apply(change);
            if number + 1 < before {
                continue;
            }
            let what = format!("after step {} of {}", number + 1 - before, log.len() - before);
            let [journal, data] = &left;
            check(&journal.now, &data.now, BOOT, &expected, capacities, &what);
            for journal in journal.survivors() {
                for data in [&data.durable, &data.now] {
                    check(&journal, data, NEXT_BOOT, &expected, capacities, &what);
                    // Either copy of the header alone is enough.
                    for copy in [0, 4096] {
                        let mut journal = journal.clone();
                        journal[copy + 40] ^= 1;
                        check(&journal, data, NEXT_BOOT, &expected, capacities, &what);
                    }
                }
            }
        }
    }
}

/// Opens what a crash has left.
fn check(journal: &[u8], data: &[u8], boot: u64, expected: &[u64], capacities: &[u64], what: &str) {
    let file = watched::file_of(journal);
    let contents =
        Contents::read(&*file, boot, &no_data).unwrap_or_else(|error| panic!("{what}: {error}"));
    let contents = contents.unwrap_or_else(|| panic!("{what}: a journal that is blank"));
    assert_eq!(contents.damage(), None, "{what}, boot {boot}");
    assert!(capacities.contains(&contents.capacity()), "{what}: {}", contents.capacity());
    let mut bytes = data.to_vec();
    contents.lines().put_over(0..DATA_BYTES, &mut bytes);
    let word = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap());
    let differs = (0..expected.len()).find(|at| word(*at) != expected[*at]);
    assert_eq!(differs, None, "{what}, boot {boot}");
    // And it can be used again.
    contents.empty(&*file, boot, CAPACITY).unwrap();
    let again = Contents::read(&*file, boot, &no_data).unwrap().unwrap();
    assert!(again.damage().is_none() && again.lines().is_empty(), "{what}, boot {boot}");
}

#[test]
fn a_journal_begins_with_a_part_of_what_it_may_have() {
    let sizes: [(u64, u64); 8] = [
        (16 << 10, 16 << 10),
        (64 << 10, 16 << 10),
        (4 << 20, 16 << 10),
        (5 << 20, 20 << 10),
        (8 << 20, 32 << 10),
        (64 << 20, 256 << 10),
        (512 << 20, 256 << 10),
        (1 << 30, 256 << 10),
    ];
    for (most, first) in sizes {
        assert_eq!(first_capacity(most), first, "of {most}");
    }
}

#[test]
fn a_journal_doubles_where_it_is_full_and_not_beyond_what_it_may_have() {
    let place = Place::new(3 * CAPACITY, 0);
    let mut seen = vec![CAPACITY];
    for _ in 0..2000 {
        place.put(1);
        let capacity = place.journal().capacity();
        if seen.last() != Some(&capacity) {
            seen.push(capacity);
        }
        assert_eq!(place.length(), DATA_AT + capacity);
    }
    assert_eq!(seen, [CAPACITY, 2 * CAPACITY, 3 * CAPACITY]);
    assert_eq!(place.pool.replayed(), place.expected());
    assert_eq!(place.journal().figures().capacity_bytes, 3 * CAPACITY);
}

/// Neither what a new one has, nor what doubling makes of that.
#[test]
fn a_journal_of_any_capacity_that_is_valid_is_used_and_doubles_from_there() {
    for capacity in [20 << 10, 28 << 10, 36 << 10, 60 << 10] {
        let place = Place::with(capacity, MOST, 3 * capacity + 8);
        assert_eq!(place.journal().capacity(), capacity);
        place.put(3000);
        assert_eq!((place.journal().capacity(), place.length()), (MOST, DATA_AT + MOST));
        assert_eq!(place.pool.replayed(), place.expected());
        place.journal().close().unwrap();
        assert_eq!(place.length(), DATA_AT + CAPACITY);
        assert_eq!(place.pool.replayed(), place.expected());
    }
}

/// As after a crash while it was cut, or changed by somebody else.
#[test]
fn a_journal_longer_than_its_header_says_is_read_and_cut_and_a_shorter_one_is_refused() {
    for longer in [1, 8, 4095, 4096, 3 * CAPACITY] {
        let pool = Pool::create(GROUP);
        pool.put(64, 7);
        let expected = pool.replayed();
        let files = pool.files.clone();
        drop(pool);
        let file = open(&files, "journal");
        file.set_length(DATA_AT + CAPACITY + longer).unwrap();
        let pool = Pool::open(files, GROUP);
        assert_eq!(pool.replayed(), expected, "{longer} bytes more");
        assert_eq!(file.length().unwrap(), DATA_AT + CAPACITY, "{longer} bytes more");
    }
    for shorter in [1, 8, 4095, 4096, CAPACITY] {
        let pool = Pool::create(GROUP);
        let file = open(&pool.files, "journal");
        let length = DATA_AT + CAPACITY - shorter;
        file.set_length(length).unwrap();
        let error = Contents::read(&*file, BOOT, &no_data).unwrap_err();
        let expected = format!("it has {length} bytes instead of 24576: it was cut");
        assert_eq!(error.to_string(), expected);
    }
}

/// A fence that does not fit waits for no more room than there is.
#[test]
fn a_journal_doubles_for_a_fence_that_finds_no_room() {
    let place = Place::new(MOST, 0);
    let whole = place.pool.memory.check(0, DATA_BYTES).unwrap();
    place.pool.memory.copy(whole, &vec![3; DATA_BYTES as usize], SITE);
    place.pool.memory.flush(whole, SITE);
    place.pool.memory.fence(SITE);
    assert_eq!(place.journal().capacity(), MOST);
    assert_eq!(place.pool.replayed(), place.expected());
}

#[test]
fn a_journal_doubles_when_checkpoints_in_the_background_follow_each_other_soon() {
    for (pause_ns, doubles) in [(1_000_000_000, false), (999_999_999, true)] {
        let place = Place::new(MOST, 0);
        place.journal().start().unwrap();
        for expected in [CAPACITY, if doubles { 2 * CAPACITY } else { CAPACITY }] {
            while !place.journal().needs_checkpoint() {
                place.put(1);
            }
            place.pool.environment.advance(pause_ns);
            place.journal().settle().unwrap();
            while place.pool.environment.step_tasks() {}
            assert_eq!(place.journal().pending_bytes(), 0);
            assert_eq!(place.journal().capacity(), expected, "after {pause_ns}");
        }
    }
}

#[test]
fn a_journal_that_fills_soon_doubles_also_where_the_clock_writes_it_back() {
    let place = Place::new(MOST, 0);
    let journal = place.journal();
    journal.checkpoint_every(Duration::from_secs(1));
    journal.start().unwrap();
    let run = || while place.pool.environment.step_tasks() {};
    run();
    for capacity in [CAPACITY, 2 * CAPACITY] {
        // More than half of what it has, in 0.6 seconds.
        for _ in 0..6 {
            place.put(CAPACITY / 2 / 104 / 6 + 1);
            place.pool.environment.advance(100_000_000);
            run();
        }
        assert_eq!(journal.capacity(), capacity);
    }
}

#[test]
fn a_crash_while_a_journal_grows_leaves_an_empty_one() {
    // The tail lies in the first half of the longer ring, in its second half, and at the ends of both.
    let entry = 104;
    for lap in [0, CAPACITY, 3 * CAPACITY] {
        for start in [0, 8, CAPACITY - entry, CAPACITY - 8] {
            let place = Place::new(MOST, lap + start);
            place.put(1);
            for capacity in [CAPACITY, 2 * CAPACITY] {
                place.check_crashes(&[capacity, 2 * capacity], |journal| {
                    journal.grow(&mut lock(&journal.checkpoint)).unwrap();
                });
                assert_eq!(place.journal().capacity(), 2 * capacity);
                place.put(9);
                assert_eq!(place.pool.replayed(), place.expected());
            }
        }
    }
}

/// It lies in the second half of the longer ring, where it would be looked for.
#[test]
fn what_is_appended_while_a_journal_begins_to_grow_is_written_back_first() {
    let place = Place::new(MOST, CAPACITY);
    place.put(1);
    let pool = place.pool.clone();
    let append = move || pool.put(8 * 64, 77);
    *lock(&place.files[DATA].in_next_sync) = Some(Box::new(append));
    place.journal().grow(&mut lock(&place.journal().checkpoint)).unwrap();
    assert_eq!(place.journal().capacity(), 2 * CAPACITY);
    let expected = place.expected();
    assert_eq!(expected[64], 77);
    assert_eq!(place.pool.replayed(), expected);
    place.put(9);
    assert_eq!(place.pool.replayed(), place.expected());
}

#[test]
fn a_crash_while_a_journal_is_trimmed_leaves_an_empty_one() {
    for start in [0, 8, CAPACITY - 8, CAPACITY, 2 * CAPACITY + 104, MOST - 8] {
        let place = Place::new(MOST, start);
        place.put(1000);
        assert_eq!(place.journal().capacity(), MOST);
        place.check_crashes(&[CAPACITY, MOST], |journal| journal.trim().unwrap());
        assert_eq!((place.journal().capacity(), place.length()), (CAPACITY, DATA_AT + CAPACITY));
        // It goes on, is not trimmed in vain, and grows where that is needed.
        place.put(9);
        assert_eq!(place.pool.replayed(), place.expected());
        place.journal().trim().unwrap();
        place.put(1000);
        assert_eq!(place.journal().capacity(), MOST);
        assert_eq!(place.pool.replayed(), place.expected());
    }
}

/// Whoever asked for it had seen a longer ring, which was trimmed before.
#[test]
fn room_that_the_ring_does_not_have_is_not_waited_for() {
    let place = Place::with(CAPACITY, CAPACITY, 0);
    place.put(100);
    place.journal().make_room(4 * CAPACITY).unwrap();
    assert!(place.journal().free_bytes() >= CAPACITY / 4);
    place.put(9);
    assert_eq!(place.pool.replayed(), place.expected());

    // A fence with more than the trimmed ring holds.
    let place = Place::new(64 * CAPACITY, 0);
    place.put(20_000);
    assert_eq!(place.journal().capacity(), 64 * CAPACITY);
    place.journal().trim().unwrap();
    place.journal().make_room(16 * CAPACITY).unwrap();
    place.put(9);
    assert_eq!(place.pool.replayed(), place.expected());
}

/// Its place in the shorter ring is another one.
#[test]
fn what_is_appended_while_a_journal_begins_to_be_trimmed_is_written_back_first() {
    let place = Place::new(MOST, 0);
    place.put(1000);
    let pool = place.pool.clone();
    let append = move || pool.put(8 * 64, 77);
    *lock(&place.files[DATA].in_next_sync) = Some(Box::new(append));
    place.journal().trim().unwrap();
    assert_eq!(place.journal().capacity(), CAPACITY);
    let expected = place.expected();
    assert_eq!(expected[64], 77);
    assert_eq!(place.pool.replayed(), expected);
}

#[test]
fn a_crash_while_a_journal_is_closed_leaves_one_that_is_as_it_was_or_closed() {
    for lap in [0, 2 * CAPACITY] {
        let place = Place::new(MOST, lap);
        place.put(1000);
        assert_eq!(place.journal().capacity(), MOST);
        place.check_crashes(&[CAPACITY, MOST], |journal| journal.close().unwrap());
        assert_eq!(place.length(), DATA_AT + CAPACITY);
        let contents = Contents::read(&*place.files[JOURNAL], BOOT, &no_data).unwrap().unwrap();
        assert!(contents.is_closed() && contents.capacity() == CAPACITY);
    }
}

#[test]
fn a_journal_that_finds_no_storage_stays_as_long_as_it_is_and_does_not_ask_again() {
    let place = Place::new(MOST, 0);
    place.files[JOURNAL].storage_max.store(DATA_AT + 2 * CAPACITY, Ordering::Relaxed);
    place.put(2000);
    assert_eq!(
        (place.journal().capacity(), place.length()),
        (2 * CAPACITY, DATA_AT + 2 * CAPACITY)
    );
    place.files[JOURNAL].storage_max.store(u64::MAX, Ordering::Relaxed);
    place.put(2000);
    assert_eq!(place.journal().capacity(), 2 * CAPACITY);
    assert_eq!(place.pool.replayed(), place.expected());
    // Whoever takes it into use next may.
    place.journal().close().unwrap();
    assert_eq!(place.length(), DATA_AT + CAPACITY);
}

#[test]
fn a_failure_while_the_capacity_changes_is_told_by_every_later_call() {
    #[derive(Debug)]
    struct Failing(Arc<dyn File>, AtomicU64);
    impl Altered for Failing {
        fn inner(&self) -> &dyn File {
            &*self.0
        }
        fn on_sync(&self) -> io::Result<()> {
            match self.1.fetch_sub(1, Ordering::Relaxed) {
                0 => Err(io::ErrorKind::BrokenPipe.into()),
                _ => self.0.sync(),
            }
        }
    }
    for syncs in 0..3 {
        let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
        let file = open(&files, "journal");
        Journal::format(&*file, 7, 99, CAPACITY, BOOT).unwrap();
        let file = Arc::new(Failing(file, AtomicU64::new(u64::MAX)));
        let environment = Arc::new(SteppedEnvironment::in_memory(1));
        let journal = Journal::open(file.clone(), MOST, GROUP, environment).unwrap();
        file.1.store(syncs, Ordering::Relaxed);
        assert!(journal.grow(&mut lock(&journal.checkpoint)).is_err(), "sync {syncs}");
        assert!(
            journal.sync().is_err() && journal.checkpoint().is_err() && journal.close().is_err()
        );
        assert_eq!(journal.capacity(), CAPACITY);
    }
}

#[test]
fn a_journal_of_an_earlier_time_keeps_its_capacity_until_it_is_closed() {
    let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
    let file = open(&files, "journal");
    Journal::format(&*file, 7, 99, MOST, BOOT).unwrap();
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let contents = Contents::read(&*file, BOOT, &no_data).unwrap().unwrap();
    contents.empty(&*file, BOOT, CAPACITY).unwrap();
    let journal = Journal::open(file.clone(), MOST, GROUP, environment.clone()).unwrap();
    assert_eq!(journal.capacity(), MOST);
    journal.close().unwrap();
    drop(journal);
    assert_eq!(file.length().unwrap(), DATA_AT + CAPACITY);
    // One that was closed with a large one has what it needs from then on.
    let other = open(&files, "other");
    Journal::format(&*other, 7, 99, MOST, BOOT).unwrap();
    let header = Header::read(&*other).unwrap().unwrap();
    Header { is_closed: true, ..header }.write(&*other).unwrap();
    let contents = Contents::read(&*other, BOOT, &no_data).unwrap().unwrap();
    contents.empty(&*other, BOOT, CAPACITY).unwrap();
    let journal = Journal::open(other.clone(), MOST, GROUP, environment).unwrap();
    assert_eq!((journal.capacity(), other.length().unwrap()), (CAPACITY, DATA_AT + CAPACITY));
}
