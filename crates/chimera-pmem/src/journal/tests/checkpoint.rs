//! When lines are written back, which ones, and in which order.

use super::watched::{Step, WatchedPool, file_of};
use super::*;
use crate::journal::read::SPARE_BYTES;

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

/// What recovery makes of two files after a power loss.
fn recovered(journal: &[u8], mut data: Vec<u8>) -> Vec<u64> {
    let contents = Contents::read(&*file_of(journal), NEXT_BOOT, &no_data).unwrap().unwrap();
    assert_eq!(contents.damage(), None);
    contents.lines().put_over(0..data.len() as u64, &mut data);
    words(&data)
}

#[test]
fn a_checkpoint_leaves_alone_what_is_not_durable() {
    let watched = WatchedPool::create(CAPACITY, DATA_BYTES);
    let journal = watched.pool.journal();
    watched.pool.put(0, 1);
    // Behind the entry that is being synced come two more: one of them of the same line.
    let pool = watched.pool.clone();
    watched.journal.during_sync(move || {
        pool.put(8, 2);
        pool.put(64, 3);
    });
    // What a power loss leaves when nothing but the data file has come further than the last sync.
    let (file, data) = (watched.journal.clone(), watched.data.clone());
    watched.data.during_sync(move || {
        let left = recovered(&file.survives(), data.now());
        assert_eq!((left[0], left[1], left[8]), (1, 0, 0), "ahead of the journal");
    });
    journal.checkpoint().unwrap();
    let data = words(&watched.data.survives());
    assert_eq!((data[0], data[1], data[8]), (1, 0, 0));
    assert_eq!(journal.pending_bytes(), 2 * 104);
    journal.checkpoint().unwrap();
    let data = words(&watched.data.survives());
    assert_eq!((data[0], data[1], data[8]), (1, 2, 3));
}

#[test]
fn a_checkpoint_syncs_the_journal_the_data_files_and_each_header_in_this_order() {
    const MARKS: [u64; 2] = [60_000, 62_000];
    let watched = WatchedPool::create(CAPACITY, DATA_BYTES);
    let journal = watched.pool.journal();
    let (mark, _) = Mark::read(watched.data.clone(), MARKS).unwrap();
    journal.keep_mark(mark).unwrap();
    watched.pool.put(64, 1);
    watched.take_log();
    journal.checkpoint().unwrap();
    let marks = MARKS.map(|at| Step::Write("data", at..at + 32));
    let header = |at| [Step::Write("journal", at..at + 80), Step::Sync("journal")];
    let mut expected =
        vec![Step::Sync("journal"), Step::Write("data", 64..128), Step::Sync("data")];
    expected.extend(marks.clone());
    expected.extend([header(0), header(4096)].concat());
    assert_eq!(watched.take_log(), expected);
    journal.close().unwrap();
    let closed = [&header(0)[..], &header(4096), &marks].concat();
    assert_eq!(watched.take_log(), closed, "nothing was left to write back");
}

#[test]
fn a_checkpoint_writes_the_newest_content_of_each_line_once() {
    let watched = WatchedPool::create(CAPACITY, DATA_BYTES);
    let journal = watched.pool.journal();
    let written = || {
        let data = |step| match step {
            Step::Write("data", range) => Some(range),
            _ => None,
        };
        watched.take_log().into_iter().filter_map(data).collect::<Vec<_>>()
    };
    for (at, value) in [(192, 1), (64, 2), (192, 3), (128, 4), (192, 5), (1024, 6)] {
        watched.pool.put(at, value);
    }
    journal.checkpoint().unwrap();
    assert_eq!(written(), [64..256, 1024..1088]);
    let data = words(&watched.data.survives());
    assert_eq!((data[8], data[16], data[24], data[128]), (2, 4, 5, 6));
    watched.pool.put(128, 7);
    journal.checkpoint().unwrap();
    assert_eq!(written(), vec![128..192], "what the last checkpoint wrote is not written again");
}

#[test]
fn after_a_data_file_failed_nothing_is_written_back_any_more() {
    let watched = WatchedPool::create(CAPACITY, DATA_BYTES);
    let journal = watched.pool.journal();
    watched.pool.put(64, 1);
    watched.data.fails.store(true, Ordering::Relaxed);
    assert_eq!(journal.checkpoint().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(journal.durable(), journal.tail_at(), "the journal itself was synced");
    // The next sync of the data file would succeed and say nothing of the pages of the one that failed.
    watched.data.fails.store(false, Ordering::Relaxed);
    watched.take_log();
    assert!(journal.checkpoint().is_err());
    assert!(journal.make_room(CAPACITY - SPARE_BYTES).is_err());
    assert!(journal.close().is_err());
    assert_eq!(journal.checkpoint_step(), TaskStep::Done);
    assert_eq!(watched.take_log(), []);
    let contents = Contents::read(&*watched.journal, NEXT_BOOT, &no_data).unwrap().unwrap();
    assert!(!contents.is_closed() && contents.lines().end() == 128, "the entry is still there");
}

#[test]
fn a_checkpoint_runs_in_the_background_when_less_than_half_is_free() {
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    journal.start().unwrap();
    while pool.environment.step_tasks() {}
    // Entries of a line each.
    for number in 0..78 {
        pool.put(number * 64, 1);
    }
    assert_eq!(journal.free_bytes(), CAPACITY / 2);
    let start = journal.start_at();
    journal.settle().unwrap();
    while pool.environment.step_tasks() {}
    assert_eq!(journal.start_at(), start, "there is room enough");
    pool.put(0, 2);
    journal.settle().unwrap();
    assert_eq!(journal.start_at(), start, "the writer does not do it");
    while pool.environment.step_tasks() {}
    assert_eq!(journal.start_at(), journal.tail_at());
}

#[test]
fn room_that_is_there_is_not_made() {
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    // No more than a quarter is ever asked for.
    while journal.free_bytes() >= CAPACITY / 4 {
        pool.put(0, 1);
    }
    let start = journal.start_at();
    journal.make_room(journal.free_bytes()).unwrap();
    assert_eq!(journal.start_at(), start);
    journal.make_room(journal.free_bytes() + 1).unwrap();
    assert_eq!(journal.pending_bytes(), 0);
}

#[test]
fn nothing_runs_in_the_background_after_a_close() {
    let pool = Pool::create(GROUP);
    pool.journal().start().unwrap();
    pool.put(0, 1);
    pool.journal().settle().unwrap();
    pool.journal().close().unwrap();
    pool.environment.advance(1 << 40);
    assert!(!pool.environment.step_tasks());
}
