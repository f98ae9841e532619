//! What is read from a journal that was found, and how it becomes durable.

use super::watched::{Step, WatchedPool, file_of};
use super::*;
use crate::journal::read::Walk;

/// Bytes of each entry of a file.
fn lengths_in(file: &dyn File) -> Vec<u64> {
    let header = Header::read(file).unwrap().unwrap();
    let mut walk = Walk::new(file, header, header.start, header.start + header.capacity);
    let mut lengths = Vec::new();
    while let Some(entry) = walk.next().unwrap() {
        lengths.push(entry.length());
    }
    lengths
}

fn runs_of(lines: &Lines) -> Vec<(u64, Vec<u8>)> {
    let mut runs = Vec::new();
    lines
        .for_each_run(|at, bytes| {
            runs.push((at, bytes.to_vec()));
            Ok(())
        })
        .unwrap();
    runs
}

#[test]
fn a_fence_fills_each_entry_up_to_an_eighth_of_the_journal() {
    let watched = WatchedPool::create(CAPACITY, DATA_BYTES);
    let journal = watched.pool.journal();
    let check = |expected: &[u64]| {
        assert_eq!(lengths_in(&*watched.journal), expected);
        journal.checkpoint().unwrap();
    };
    watched.fill(0, 31, 1);
    check(&[32 + 8 + 31 * 64]);
    watched.fill(0, 32, 2);
    check(&[32 + 8 + 31 * 64, 32 + 8 + 64]);
    // Lines apart, each a run of its own.
    for count in [3, 28, 29] {
        for line in 0..count {
            watched.pool.memory.flush(watched.pool.memory.check(line * 128, 8).unwrap(), SITE);
        }
        watched.pool.memory.fence(SITE);
        let whole = 32 + count.min(28) * 72;
        check(&[whole, 104][..if count > 28 { 2 } else { 1 }]);
    }
    let watched = WatchedPool::create(4 << 20, 512 << 10);
    watched.fill(0, 8192, 3);
    let lengths = lengths_in(&*watched.journal);
    // 4095 lines and the words beside them are the most of 256 KiB.
    assert_eq!(lengths, [40 + 4095 * 64, 40 + 4095 * 64, 40 + 2 * 64]);
}

#[test]
fn a_journal_that_was_found_holds_each_line_once_in_order_and_says_whose_it_is() {
    let pool = Pool::create(GROUP);
    for (line, value) in [(3, 1), (1, 2), (9, 3), (2, 4), (3, 5), (1, 6)] {
        pool.put(line * 64, value);
    }
    let contents = Contents::read(&*open(&pool.files, "journal"), BOOT, &no_data).unwrap().unwrap();
    assert_eq!((contents.pool_id(), contents.capacity()), (7, CAPACITY));
    assert!(!contents.is_closed());
    assert_eq!(contents.lines().end(), 640);
    let line = |value: u64| [&value.to_le_bytes()[..], &[0; 56]].concat();
    let expected = [(64, [line(6), line(4), line(5)].concat()), (576, line(3))];
    assert_eq!(runs_of(&contents.into_lines()), expected);
}

/// After the end of a process, and after a sync that failed, entries may be in the kernel's memory only.
#[test]
fn what_was_found_is_durable_before_it_is_used() {
    const CAPACITY: u64 = 2 << 20;
    let watched = WatchedPool::create(CAPACITY, 256 << 10);
    for number in 0..19 {
        watched.fill(number % 4 * (64 << 10), 1024, number as u8);
    }
    watched.pool.journal().checkpoint().unwrap();
    // Around the end of the ring.
    for number in 0..25 {
        watched.fill(number % 4 * (64 << 10), 1024, 100 + number as u8);
    }
    let file = &*watched.journal;
    let found = Contents::read(file, BOOT, &no_data).unwrap().unwrap();
    let start = watched.pool.journal().start_at();
    assert!(start < CAPACITY && found.end() > CAPACITY + (600 << 10));
    let survives = || {
        Contents::read(&*file_of(&watched.journal.survives()), NEXT_BOOT, &no_data)
            .unwrap()
            .unwrap()
    };
    assert!(survives().lines().is_empty(), "a power loss takes all of them");

    watched.journal.forget_unsynced();
    watched.take_log();
    found.make_durable(file).unwrap();
    assert_eq!((survives().end(), survives().damage()), (found.end(), None));
    assert_eq!(runs_of(survives().lines()), runs_of(found.lines()));
    // Each byte is written once, in large pieces, and one sync covers them.
    let mut log = watched.take_log();
    assert_eq!(log.pop(), Some(Step::Sync("journal")));
    let mut position = start;
    for step in &log {
        let Step::Write(_, range) = step else { panic!("{step:?} before all is written") };
        assert_eq!(range.start, DATA_AT + position % CAPACITY);
        assert!((1..=512 << 10).contains(&(range.end - range.start)), "{range:?}");
        position += range.end - range.start;
    }
    assert_eq!(position, found.end());
    assert_eq!(log.len(), 4, "two pieces before the end of the ring and two behind it");
}

#[test]
fn what_an_entry_says_was_synced_is_not_written_again() {
    let watched = WatchedPool::create(CAPACITY, DATA_BYTES);
    let (pool, file) = (&watched.pool, &*watched.journal);
    watched.fill(0, 100, 1);
    pool.journal().sync().unwrap();
    let synced = pool.journal().tail_at();
    // Nothing says it yet.
    let written = |found: &Contents| {
        watched.take_log();
        found.make_durable(file).unwrap();
        let mut log = watched.take_log();
        assert_eq!(log.pop(), Some(Step::Sync("journal")));
        log
    };
    let start = pool.journal().start_at();
    let whole = |from, to| vec![Step::Write("journal", DATA_AT + from..DATA_AT + to)];
    assert_eq!(
        written(&Contents::read(file, BOOT, &no_data).unwrap().unwrap()),
        whole(start, synced)
    );
    pool.put(64, 2);
    watched.journal.forget_unsynced();
    let found = Contents::read(file, BOOT, &no_data).unwrap().unwrap();
    assert_eq!(written(&found), whole(synced / 4096 * 4096, found.end()));
    let survives = Contents::read(&*file_of(&watched.journal.survives()), NEXT_BOOT, &no_data);
    assert_eq!(survives.unwrap().unwrap().end(), found.end());
}

#[test]
fn only_a_journal_that_fits_its_mark_is_used() {
    let pool = Pool::create(GROUP);
    let file = open(&pool.files, "journal");
    let read = |boot_id| Contents::read(&*file, boot_id, &no_data).unwrap().unwrap();
    read(BOOT).compare(MarkState::Unused).unwrap();
    pool.put(0, 1);
    pool.put(64, 2);
    let (start, end) = (pool.journal().start_at(), pool.journal().tail_at());
    let at = DATA_AT + end % CAPACITY;
    let used = |journal_id, position, tail| MarkState::Used { journal_id, position, tail };
    for boot_id in [BOOT, NEXT_BOOT] {
        read(boot_id).compare(used(99, start, end)).unwrap();
        read(boot_id).compare(used(99, end, end)).unwrap();
        for (kept, what, entries, bytes) in [
            (MarkState::Unused, "none was in use", 0, 0),
            (used(98, start, end), "is not the one that was in use last", 0, 0),
            (used(99, end + 104, end + 104), "an earlier moment than the other files", 1, 104),
            (used(99, end + 8, end + 208), "an earlier moment than the other files", 1, 8),
        ] {
            let mut contents = read(boot_id);
            let damage = contents.compare(kept).unwrap_err();
            assert!(damage.what.contains(what), "{damage:?}");
            assert_eq!((damage.at, damage.entries, damage.bytes), (at, entries, bytes), "{what}");
            assert!(contents.lines().is_empty(), "{what}: the data files may be ahead of it");
        }
    }
    // What it has is right where its last entries alone are missing; after a power loss they may be.
    let mut contents = read(BOOT);
    let damage = contents.compare(used(99, start, end + 208)).unwrap_err();
    assert!(damage.what.contains("ends before entries that were written"), "{damage:?}");
    assert_eq!((damage.at, damage.entries, damage.bytes), (at, 1, 208));
    assert_eq!(contents.lines().end(), 128);
    read(NEXT_BOOT).compare(used(99, start, end + 208)).unwrap();
}
