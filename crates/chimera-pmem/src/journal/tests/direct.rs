//! Lines that go to their place ahead of their entry.

use super::staged::{Did, Stage, beside_failing_sync, stage};
use super::watched::{Step, WatchedPool, file_of};
use super::*;

/// Bytes of an entry that names one direct run.
const DIRECT_ENTRY: u64 = 32 + 24;

/// Stores, flushes and fences bytes whose place was empty when `emptied` was fenced.
fn put_new(memory: &Hardware, at: u64, bytes: &[u8], emptied: Fenced) {
    let range = memory.check(at, bytes.len() as u64).unwrap();
    memory.copy(range, bytes, SITE);
    memory.flush_new(range, emptied, SITE);
    memory.fence(SITE);
}

/// What a machine that lost power finds in these files.
pub(super) fn found(journal: &[u8], data: &[u8], boot_id: u64) -> Contents {
    let data = data.to_vec();
    let read = move |number: u16, offset: u64, into: &mut [u8]| {
        let offset = offset as usize;
        let bytes = (number == 0).then(|| data.get(offset..offset + into.len())).flatten();
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    };
    Contents::read(&*file_of(journal), boot_id, &read).unwrap().unwrap()
}

/// A pool of one file with room for its journal.
fn watched() -> WatchedPool {
    let watched = WatchedPool::create(CAPACITY, 256 << 10);
    watched.pool.journal().write_new_from(512);
    watched.take_log();
    watched
}

#[test]
fn what_is_new_is_written_once_and_synced_before_its_entry() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    put_new(&pool.memory, 4096, &[7; 2048], Fenced::default());
    let steps = watched.take_log();
    assert_eq!(steps[0], Step::Write("data", 4096..4096 + 2048));
    let is_of_journal = |step: &Step| matches!(step, Step::Write("journal", _));
    assert!(steps[1..].iter().all(is_of_journal), "{steps:?}");
    let figures = journal.figures();
    assert_eq!((figures.appended_bytes, figures.direct_bytes), (DIRECT_ENTRY, 2048));
    journal.sync().unwrap();
    assert_eq!(watched.take_log(), [Step::Sync("data"), Step::Sync("journal")]);
    assert_eq!(watched.data.survives()[4096..4096 + 2048], [7; 2048]);
    // Nothing is left for a checkpoint to write there.
    journal.checkpoint().unwrap();
    let steps = watched.take_log();
    assert!(!steps.iter().any(|step| matches!(step, Step::Write("data", _))), "{steps:?}");
    // Nor is the file synced again.
    pool.put(0, 1);
    watched.take_log();
    journal.sync().unwrap();
    assert_eq!(watched.take_log(), [Step::Sync("journal")]);
}

#[test]
fn lines_at_both_ends_pass_the_journal() {
    let watched = watched();
    put_new(&watched.pool.memory, 4096 + 8, &[7; 1024], Fenced::default());
    let steps = watched.take_log();
    assert_eq!(steps[0], Step::Write("data", 4096 + 64..4096 + 1024));
    let appended = watched.pool.journal().figures().appended_bytes;
    assert_eq!(appended, DIRECT_ENTRY + 2 * (8 + 64));
    let (journal, data) = (watched.journal.now(), watched.data.now());
    let found = found(&journal, &data, BOOT);
    let mut bytes = data;
    found.lines().put_over(0..8192, &mut bytes[..8192]);
    assert_eq!(bytes[4096..4104], [0; 8]);
    assert_eq!(bytes[4104..4104 + 1024], [7; 1024]);
    assert_eq!(bytes[4104 + 1024..4104 + 1088], [0; 64]);
}

#[test]
fn what_was_emptied_lately_and_what_is_short_pass_the_journal() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    let is_direct = |at: u64, bytes: &[u8], emptied| {
        let before = journal.figures().direct_bytes;
        put_new(&pool.memory, at, bytes, emptied);
        journal.figures().direct_bytes > before
    };
    assert!(!is_direct(8192, &[1; 448], Fenced::default()));
    assert!(is_direct(4096, &[1; 512], Fenced::default()));
    pool.put(4096, 2);
    let emptied = pool.memory.fenced();
    assert!(!is_direct(4096, &[3; 512], emptied), "a crash may bring back what was there");
    journal.sync().unwrap();
    assert!(!is_direct(4096, &[4; 512], emptied), "a checkpoint may write what was there");
    journal.checkpoint().unwrap();
    assert!(is_direct(4096, &[5; 512], emptied));
    assert!(!is_direct(4096, &[6; 512], pool.memory.fenced()));
}

#[test]
fn usually_4_kib_are_written_ahead() {
    let Stage { pool, .. } = stage(GROUP);
    put_new(&pool.memory, 0, &[1; 4096 - 64], Fenced::default());
    assert_eq!(pool.journal().figures().direct_bytes, 0);
    put_new(&pool.memory, 8192, &[1; 4096], Fenced::default());
    assert_eq!(pool.journal().figures().direct_bytes, 4096);
}

#[test]
fn an_operation_that_waits_for_a_sync_writes_only_much_ahead() {
    let Stage { pool, .. } = stage(SyncPolicy::Immediate);
    put_new(&pool.memory, 0, &vec![1; 32 << 10], Fenced::default());
    assert_eq!(pool.journal().figures().direct_bytes, 0);
    let directory = tempfile::tempdir().unwrap();
    let files = crate::environment::RealFiles;
    let data = files.open(&directory.path().join("data"), OpenMode::CreateNew).unwrap();
    data.allocate(0, 1 << 20).unwrap();
    let file = files.open(&directory.path().join("journal"), OpenMode::CreateNew).unwrap();
    Journal::format(&*file, 7, 99, CAPACITY, BOOT).unwrap();
    let environment = Arc::new(SteppedEnvironment::new(1));
    let journal = Journal::open(file, CAPACITY, SyncPolicy::Immediate, environment).unwrap();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.use_journal(journal.clone()).unwrap();
    memory.map(0, &data, 0, 1 << 20).unwrap();
    let bytes: Vec<u8> = (0..300 << 10).map(|byte| byte as u8).collect();
    put_new(&memory, 4096, &bytes, Fenced::default());
    journal.settle().unwrap();
    let figures = journal.figures();
    assert_eq!((figures.direct_bytes, figures.unsynced_bytes), (300 << 10, 0));
    // Five runs of 64 KiB at most.
    assert_eq!(figures.appended_bytes, 32 + 5 * 24);
    let mut written = vec![0; bytes.len()];
    data.read_at(4096, &mut written).unwrap();
    assert!(written == bytes);
    let mut read = vec![0; bytes.len()];
    memory.read(memory.check(4096, bytes.len() as u64).unwrap(), &mut read);
    assert!(read == bytes);
}

/// A power loss leaves any of the two files as it was synced, or as it was written.
#[test]
fn entries_end_before_the_first_one_whose_lines_are_not_there() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    pool.put(0, 1);
    journal.sync().unwrap();
    pool.put(64, 2);
    let synced = (watched.journal.survives(), watched.data.survives());
    let end = journal.tail_at();
    put_new(&pool.memory, 4096, &[7; 1024], Fenced::default());
    pool.put(128, 3);
    put_new(&pool.memory, 8192, &[8; 1024], Fenced::default());
    pool.put(192, 4);
    let whole = journal.tail_at();
    let (journal_now, data_now) = (watched.journal.now(), watched.data.now());

    let all = found(&journal_now, &data_now, NEXT_BOOT);
    assert_eq!((all.end(), all.damage()), (whole, None));
    let of_data = |offset, length| NewLines { file: 0, offset, length };
    assert_eq!(all.new_lines(), [of_data(4096, 1024), of_data(8192, 1024)]);
    assert_eq!(all.lines().end(), 256);

    for (data, what) in [(&synced.1, "none"), (&vec![], "the file is not there")] {
        let none = found(&journal_now, data, NEXT_BOOT);
        assert_eq!((none.end(), none.damage()), (end, None), "{what}");
        assert_eq!((none.lines().end(), none.new_lines()), (128, &[][..]), "{what}");
    }

    let mut second_lost = data_now.clone();
    second_lost[8192 + 1023] ^= 1;
    let first = found(&journal_now, &second_lost, NEXT_BOOT);
    assert_eq!((first.lines().end(), first.new_lines()), (192, &[of_data(4096, 1024)][..]));
    assert_eq!(first.damage(), None);

    let neither = found(&synced.0, &synced.1, NEXT_BOOT);
    assert_eq!((neither.lines().end(), neither.damage()), (64, None));
}

#[test]
fn where_no_power_was_lost_lines_that_are_not_there_are_damage() {
    let watched = watched();
    let pool = &watched.pool;
    pool.put(0, 1);
    let end = pool.journal().tail_at();
    put_new(&pool.memory, 4096, &[7; 1024], Fenced::default());
    let (journal, mut data) = (watched.journal.now(), watched.data.now());
    assert_eq!(found(&journal, &data, BOOT).damage(), None);
    data[5000] ^= 1;
    let lost = found(&journal, &data, BOOT);
    let damage = lost.damage().expect("noticed");
    assert!(damage.what.contains("of the other files is not there"), "{damage:?}");
    assert_eq!((damage.at, damage.entries), (DATA_AT + end % CAPACITY, 1));
    assert_eq!((lost.lines().end(), lost.new_lines()), (64, &[][..]));
    assert_eq!(found(&journal, &data, NEXT_BOOT).damage(), None, "a power loss may do that");
}

#[test]
fn lines_that_a_later_entry_says_are_durable_are_not_read() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    put_new(&pool.memory, 4096, &[7; 1024], Fenced::default());
    let read = |bytes: &[u8]| {
        let never = |_: u16, _: u64, _: &mut [u8]| panic!("read");
        Contents::read(&*file_of(bytes), BOOT, &never).unwrap().unwrap()
    };
    journal.sync().unwrap();
    pool.put(0, 1);
    let contents = read(&watched.journal.now());
    assert_eq!((contents.lines().end(), contents.new_lines()), (64, &[][..]));
}

/// What is stored to such lines later changes them in the data file before `start` moves on.
#[test]
fn lines_that_change_later_are_not_compared_any_more() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    put_new(&pool.memory, 4096, &[7; 1024], Fenced::default());
    pool.put(4096 + 512, 1);
    let end = journal.tail_at();
    let left: Arc<Mutex<Option<[Vec<u8>; 2]>>> = Arc::default();
    let (kept, files) = (left.clone(), [watched.journal.clone(), watched.data.clone()]);
    journal.sync().unwrap();
    watched.data.during_sync(move || {
        *lock(&kept) = Some([files[0].survives(), files[1].now()]);
    });
    journal.checkpoint().unwrap();
    let [in_journal, in_data] = lock(&left).take().expect("a sync");
    assert_eq!(in_data[4096 + 512..][..8], 1_u64.to_le_bytes(), "it is written over the line");
    for boot_id in [BOOT, NEXT_BOOT] {
        let found = found(&in_journal, &in_data, boot_id);
        assert_eq!((found.end(), found.damage(), found.new_lines()), (end, None, &[][..]));
    }
    // Headers are written twice for that, and not for lines that nothing is stored to.
    let headers = |steps: Vec<Step>| {
        steps.iter().filter(|step| **step == Step::Write("journal", 0..80)).count()
    };
    assert_eq!(headers(watched.take_log()), 2);
    put_new(&pool.memory, 8192, &[7; 1024], Fenced::default());
    pool.put(4096, 1);
    journal.checkpoint().unwrap();
    assert_eq!(headers(watched.take_log()), 1);
}

/// Recovery writes what is left over such lines, and may be interrupted.
#[test]
fn what_recovery_has_made_durable_is_not_compared_when_it_begins_again() {
    let watched = watched();
    let pool = &watched.pool;
    put_new(&pool.memory, 4096, &[7; 1024], Fenced::default());
    pool.put(4096 + 512, 1);
    let (journal, mut data) = (watched.journal.now(), watched.data.now());
    let first = found(&journal, &data, BOOT);
    assert_eq!(first.new_lines().len(), 1);
    let file = file_of(&journal);
    first.make_durable(&*file).unwrap();
    first.lines().put_over(0..8192, &mut data[..8192]);
    let mut journal = vec![0; journal.len()];
    file.read_at(0, &mut journal).unwrap();
    for boot_id in [BOOT, NEXT_BOOT] {
        let again = found(&journal, &data, boot_id);
        assert_eq!((again.end(), again.damage(), again.new_lines()), (first.end(), None, &[][..]));
    }
}

#[test]
fn nothing_is_acknowledged_behind_a_sync_of_new_lines_that_failed() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    put_new(&pool.memory, 4096, &[7; 1024], Fenced::default());
    watched.data.fails.store(true, Ordering::Relaxed);
    journal.sync().unwrap_err();
    watched.data.fails.store(false, Ordering::Relaxed);
    for told in [journal.sync(), journal.settle(), journal.checkpoint(), journal.close()] {
        told.unwrap_err();
    }
    assert_eq!(journal.figures().unsynced_bytes, journal.figures().appended_bytes);
    assert!(!watched.take_log().contains(&Step::Sync("journal")), "its entry must not be durable");
}

#[test]
fn new_lines_that_cannot_be_written_end_the_use_of_the_journal() {
    let Stage { data_file, pool, .. } = stage(GROUP);
    pool.journal().write_new_from(512);
    data_file.refuses_writes.store(true, Ordering::Relaxed);
    put_new(&pool.memory, 4096, &[7; 1024], Fenced::default());
    data_file.refuses_writes.store(false, Ordering::Relaxed);
    assert_eq!(pool.journal().figures().appended_bytes, 0);
    pool.journal().settle().unwrap_err();
}

/// Of two who sync a file at once the kernel tells one that pages could not be written.
#[test]
fn nobody_syncs_data_files_beside_a_sync_that_fails() {
    let Stage { data_file, pool, .. } = stage(GROUP);
    pool.journal().write_new_from(512);
    let journal = pool.journal();
    pool.put(0, 1);
    // The checkpoint's.
    let synced = beside_failing_sync(&data_file, &pool, |pool| {
        put_new(&pool.memory, 4096, &[7; 1024], Fenced::default());
        pool.journal().sync()
    });
    journal.checkpoint().unwrap_err();
    assert!(synced().is_err(), "acknowledged, and perhaps not on the device");
}

/// What is written during a sync is covered by the next one.
#[test]
fn lines_written_during_a_sync_are_synced_by_the_next_one() {
    let Stage { data_file, pool, .. } = stage(GROUP);
    pool.journal().write_new_from(512);
    put_new(&pool.memory, 0, &[1; 1024], Fenced::default());
    let other = pool.clone();
    data_file.in_next_sync(move || {
        put_new(&other.memory, 4096, &[2; 1024], Fenced::default());
        Ok(())
    });
    pool.journal().sync().unwrap();
    assert!(pool.journal().figures().unsynced_bytes > 0);
    data_file.take_done();
    pool.journal().sync().unwrap();
    assert_eq!(data_file.take_done(), [Did::Synced]);
    assert_eq!(pool.journal().figures().unsynced_bytes, 0);
}

#[test]
fn pages_of_new_lines_are_given_back_when_their_entries_are_written_back() {
    let Stage { pool, .. } = stage(GROUP);
    let journal = pool.journal();
    put_new(&pool.memory, 4096, &[7; 8192], Fenced::default());
    journal.limit_pages(0);
    assert_eq!(journal.page_figures().private_bytes, 8192);
    journal.checkpoint().unwrap();
    assert_eq!(journal.page_figures().private_bytes, 0);
    let mut read = vec![0; 8192];
    pool.memory.read(pool.memory.check(4096, 8192).unwrap(), &mut read);
    assert_eq!(read, [7; 8192]);
}

#[test]
fn many_runs_make_several_entries() {
    let Stage { pool, .. } = stage(GROUP);
    pool.journal().write_new_from(512);
    // An entry has 2048 bytes here: 84 runs.
    for number in 0..60 {
        let at = number * 1024;
        let range = pool.memory.check(at, 512).unwrap();
        pool.memory.copy(range, &[number as u8; 512], SITE);
        pool.memory.flush_new(range, Fenced::default(), SITE);
        pool.memory.flush(pool.memory.check(at + 512, 8).unwrap(), SITE);
    }
    pool.memory.fence(SITE);
    let figures = pool.journal().figures();
    assert_eq!(figures.direct_bytes, 60 * 512);
    let lines = |count: u64| 32 + count * 72;
    let first = 32 + 60 * 24 + 8 * 72;
    assert_eq!(figures.appended_bytes, first + lines(28) + lines(24));
    assert_eq!(pool.replayed().len() as u64, DATA_BYTES / 8);
}

/// As [`put_new`], of a place that is shared.
fn put_new_shared(memory: &Hardware, at: u64, bytes: &[u8]) {
    let range = memory.check(at, bytes.len() as u64).unwrap();
    memory.copy(range, bytes, SITE);
    memory.flush_new_shared(range, Fenced::default(), SITE);
    memory.fence(SITE);
}

/// What a power loss leaves of the pool, once all is synced and written back.
fn written_back(stage: &Stage, at: u64, length: usize) -> Vec<u8> {
    stage.pool.journal().checkpoint().unwrap();
    let mut bytes = vec![0; length];
    stage.data_file.read_at(at, &mut bytes).unwrap();
    bytes
}

/// A word that a thread has just seen, and flushes when the place has another use.
#[test]
fn pages_that_a_pending_entry_names_pass_the_journal() {
    let stage = stage(GROUP);
    let Stage { pool, .. } = &stage;
    pool.journal().write_new_from(512);
    pool.put(4096 + 1024, 1);
    put_new_shared(&pool.memory, 1024, &[7; 11 << 10]);
    // From the page before to the end of the page behind it.
    assert_eq!(pool.journal().figures().direct_bytes, (3 << 10) + (4 << 10));
    assert!(written_back(&stage, 1024, 11 << 10) == [7; 11 << 10]);
    // Nothing is pending now.
    put_new_shared(&pool.memory, 1024, &[8; 11 << 10]);
    assert_eq!(pool.journal().figures().direct_bytes, (7 << 10) + (11 << 10));
    assert!(written_back(&stage, 1024, 11 << 10) == [8; 11 << 10]);
}

/// Flushes a word as one beside new lines.
fn put_beside(memory: &Hardware, at: u64, value: u64) {
    memory.store_u64(at, value, SITE);
    memory.flush_beside_new(memory.check(at, 8).unwrap(), SITE);
    memory.fence(SITE);
}

/// The fields of a chunk, and where it ends: what is new behind them in their page goes to its place.
#[test]
fn lines_beside_new_ones_keep_none_from_their_place() {
    let stage = stage(GROUP);
    let Stage { pool, .. } = &stage;
    pool.journal().write_new_from(512);
    put_beside(&pool.memory, 0, 1);
    // Its first line and its last one are beside new ones, too.
    put_new_shared(&pool.memory, 64 + 8, &[7; 1024]);
    put_new_shared(&pool.memory, 64 + 8 + 1024, &[8; 1024]);
    assert_eq!(pool.journal().figures().direct_bytes, 2 * (1024 - 64));
    let left = written_back(&stage, 0, 4096);
    assert_eq!(left[..8], 1_u64.to_le_bytes());
    assert!(left[72..1096] == [7; 1024] && left[1096..2120] == [8; 1024]);
}

/// A word of others stays in their entry, however many entries behind it have lines beside new ones.
#[test]
fn an_entry_of_others_counts_until_the_page_is_written_back() {
    let stage = stage(GROUP);
    let Stage { pool, .. } = &stage;
    pool.journal().write_new_from(512);
    pool.put(1024, 1);
    put_beside(&pool.memory, 0, 1);
    put_new_shared(&pool.memory, 1024, &[7; 1024]);
    assert_eq!(pool.journal().figures().direct_bytes, 0);
    assert!(written_back(&stage, 1024, 1024) == [7; 1024]);
    // In the same entry, too.
    pool.memory.flush_beside_new(pool.memory.check(0, 8).unwrap(), SITE);
    pool.put(64, 1);
    put_new_shared(&pool.memory, 1024, &[8; 1024]);
    assert_eq!(pool.journal().figures().direct_bytes, 0);
    assert!(written_back(&stage, 1024, 1024) == [8; 1024]);
    put_beside(&pool.memory, 0, 2);
    put_new_shared(&pool.memory, 1024, &[9; 1024]);
    assert_eq!(pool.journal().figures().direct_bytes, 1024);
    assert!(written_back(&stage, 1024, 1024) == [9; 1024]);
}

#[test]
fn a_page_of_lines_beside_new_ones_is_given_back_when_they_are_written_back() {
    let Stage { pool, .. } = stage(GROUP);
    let journal = pool.journal();
    journal.limit_pages(0);
    put_beside(&pool.memory, 0, 1);
    assert_eq!(journal.page_figures().private_bytes, 4096);
    journal.checkpoint().unwrap();
    assert_eq!(journal.page_figures().private_bytes, 0);
    assert_eq!(pool.memory.load_u64(0), 1);
}

#[test]
fn a_part_that_is_short_beside_such_a_page_passes_the_journal() {
    let stage = stage(GROUP);
    let Stage { pool, .. } = &stage;
    pool.journal().write_new_from(512);
    pool.put(4096, 1);
    put_new_shared(&pool.memory, 4096 - 448, &[7; 8192 + 448]);
    assert_eq!(pool.journal().figures().direct_bytes, 4096);
    assert!(written_back(&stage, 4096 - 448, 8192 + 448) == [7; 8192 + 448]);
}

#[test]
fn that_a_pending_entry_may_name_the_page_is_looked_at() {
    let stage = stage(GROUP);
    let Stage { pool, .. } = &stage;
    pool.memory.skip(steps::UNNAMED);
    pool.put(4096, 1);
    put_new_shared(&pool.memory, 4096, &[7; 4096]);
    // With the look left out the older content goes over the newer one.
    assert!(written_back(&stage, 4096, 4096) != [7; 4096]);
}

/// An entry names a data file by 16 bits.
#[test]
fn with_more_files_than_entries_can_name_everything_passes_the_journal() {
    let Stage { data_file, pool, .. } = stage(GROUP);
    let journal = pool.journal();
    let file: Arc<dyn File> = data_file;
    let add = |number| journal.add_data_file(DATA_BYTES + number, &file, 0, 1);
    // With that of the pool 65,536.
    (0..65_535).for_each(add);
    put_new(&pool.memory, 0, &[1; 4096], Fenced::default());
    assert_eq!(journal.figures().direct_bytes, 4096);
    add(65_535);
    put_new(&pool.memory, 8192, &[1; 4096], Fenced::default());
    assert_eq!(journal.figures().direct_bytes, 4096);
    journal.settle().unwrap();
}
