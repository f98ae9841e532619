//! When a checkpoint is made: at the limits, and at none before.

use super::staged::{Stage, put_lines};
use super::*;

/// A journal with a data file whose entries have just so many bytes: of one line, and of two.
fn filled(policy: SyncPolicy, singles: u64, doubles: u64) -> Stage {
    let stage = Stage::new(policy);
    stage.add_data(0, 0, DATA_BYTES);
    for line in 0..doubles {
        put_lines(&stage.journal, line, 2);
    }
    for line in 0..singles {
        stage.put(line);
    }
    assert_eq!(stage.journal.pending_bytes(), singles * 104 + doubles * 168);
    stage
}

#[test]
fn an_operation_makes_room_when_less_than_an_eighth_is_free() {
    let Stage { journal, .. } = &filled(GROUP, 128, 6);
    assert_eq!(journal.free_bytes(), CAPACITY / 8);
    journal.settle().unwrap();
    assert_eq!(journal.free_bytes(), CAPACITY / 8, "an eighth is enough");
    put_lines(journal, 0, 1);
    journal.settle().unwrap();
    assert_eq!(journal.pending_bytes(), 0);
}

#[test]
fn a_journal_is_filled_to_the_last_byte_and_no_further() {
    let Stage { journal, .. } = &filled(GROUP, 138, 12);
    assert_eq!(journal.free_bytes(), 0);
    put_lines(journal, 0, 1);
    assert_eq!(journal.pending_bytes(), 104, "all before it was written back");

    let Stage { journal, .. } = &filled(GROUP, 150, 4);
    assert_eq!(journal.free_bytes(), 96, "the end marks keep their place");
    put_lines(journal, 0, 1);
    assert_eq!(journal.pending_bytes(), 104);
}

#[test]
fn the_checkpointer_runs_when_half_the_journal_is_used() {
    let Stage { journal, environment, .. } = &filled(SyncPolicy::Immediate, 0, 0);
    journal.start().unwrap();
    while environment.step_tasks() {}
    put_lines(journal, 0, 1);
    journal.settle().unwrap();
    assert!(!environment.step_tasks(), "it was woken for nothing");
    for line in 0..80 {
        put_lines(journal, line, 1);
    }
    journal.settle().unwrap();
    assert!(journal.pending_bytes() > 0);
    while environment.step_tasks() {}
    assert_eq!(journal.pending_bytes(), 0);
}

#[test]
fn nothing_runs_in_the_background_after_a_stop() {
    let Stage { journal, environment, .. } = &filled(GROUP, 0, 0);
    journal.start().unwrap();
    while environment.step_tasks() {}
    journal.stop();
    for line in 0..80 {
        put_lines(journal, line, 1);
    }
    journal.settle().unwrap();
    environment.advance(1 << 40);
    assert!(!environment.step_tasks());
    assert_eq!(journal.pending_bytes(), 80 * 104);
}

#[test]
fn a_quarter_of_the_journal_is_synced_whatever_the_time() {
    let Stage { journal, .. } = &filled(GROUP, 19, 12);
    for _ in 0..3 {
        journal.settle().unwrap();
        assert_eq!(journal.figures().syncs, 0);
    }
    put_lines(journal, 0, 1);
    assert_eq!(journal.figures().unsynced_bytes, CAPACITY / 4);
    journal.settle().unwrap();
    assert_eq!(journal.figures().unsynced_bytes, 0);
}

#[test]
fn figures_count_what_was_appended_synced_and_written_back() {
    // Behind a life before, so that positions do not begin at 0.
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    assert!(journal.start_at() > 0);
    let expect = |appended, unsynced, pending, syncs| {
        let expected = JournalFigures {
            capacity_bytes: CAPACITY,
            appended_bytes: appended,
            unsynced_bytes: unsynced,
            pending_bytes: pending,
            syncs,
        };
        assert_eq!(journal.figures(), expected);
    };
    expect(0, 0, 0, 0);
    pool.put(0, 1);
    pool.put(64, 1);
    expect(208, 208, 208, 0);
    journal.sync().unwrap();
    expect(208, 0, 208, 1);
    pool.put(0, 2);
    expect(312, 104, 312, 1);
    journal.checkpoint().unwrap();
    expect(312, 0, 0, 2);
    pool.put(0, 3);
    expect(416, 104, 104, 2);
}

#[test]
fn flushing_nothing_appends_nothing() {
    let stage = Stage::new(GROUP);
    put_lines(&stage.journal, 5, 0);
    assert_eq!(stage.journal.pending_bytes(), 0);
}

#[test]
fn runs_are_joined_where_they_overlap_or_touch_and_only_there() {
    let joined = |runs: &[(u64, u64)]| {
        let mut runs: Vec<_> =
            runs.iter().map(|&(first, count)| marks::Run { first, count }).collect();
        marks::join(&mut runs);
        runs.iter().map(|run| (run.first, run.count)).collect::<Vec<_>>()
    };
    assert_eq!(joined(&[(4, 2), (3, 2)]), [(3, 3)]);
    assert_eq!(joined(&[(3, 2), (5, 1)]), [(3, 3)]);
    assert_eq!(joined(&[(7, 1), (5, 1)]), [(5, 1), (7, 1)]);
    assert_eq!(joined(&[(3, 9), (5, 1), (20, 1), (12, 1)]), [(3, 10), (20, 1)]);
    assert_eq!(joined(&[(30, 1), (20, 2), (21, 2), (10, 1)]), [(10, 1), (20, 3), (30, 1)]);
}

#[test]
fn a_thread_keeps_what_it_flushed_in_one_journal_when_it_turns_to_another() {
    let (one, other) = (Stage::new(GROUP), Stage::new(GROUP));
    one.journal.mark(crate::Extent::new_checked(64, 64));
    other.put(2);
    one.journal.append(|_, into| into.fill(1));
    assert_eq!((one.journal.pending_bytes(), other.journal.pending_bytes()), (104, 104));
}

#[test]
fn a_thread_does_not_remember_journals_that_are_gone() {
    let remembered = std::thread::spawn(|| {
        for _ in 0..5 {
            Stage::new(GROUP).put(1);
        }
        marks::count()
    });
    assert_eq!(remembered.join().unwrap(), 1);
}
