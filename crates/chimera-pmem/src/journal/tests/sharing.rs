//! Who syncs, who waits for it, and who does neither.

use super::staged::{Asked, Stage, put_lines};
use super::*;

/// `put` in a thread of its own.
fn put_elsewhere(stage: &Stage, line: u64) {
    std::thread::scope(|scope| {
        scope.spawn(|| stage.put(line));
    });
}

#[test]
fn an_operation_waits_for_its_own_entries_only_and_one_without_for_all() {
    let stage = Stage::new(SyncPolicy::Immediate);
    let journal = &stage.journal;
    stage.put(1);
    journal.sync().unwrap();
    put_elsewhere(&stage, 2);
    journal.settle().unwrap();
    assert_eq!(journal.figures().unsynced_bytes, 104, "its own was durable");
    journal.settle().unwrap();
    assert_eq!(journal.figures().unsynced_bytes, 0, "it may have seen all");
}

#[test]
fn what_was_forgotten_is_not_what_the_next_operation_waits_for() {
    let stage = Stage::new(SyncPolicy::Immediate);
    let journal = &stage.journal;
    stage.put(1);
    journal.forget();
    journal.sync().unwrap();
    put_elsewhere(&stage, 2);
    journal.settle().unwrap();
    assert_eq!(journal.figures().unsynced_bytes, 0, "the next one only read");
}

#[test]
fn a_sync_gives_those_who_shared_the_last_one_a_moment() {
    let stage = Stage::new(SyncPolicy::Immediate);
    let journal = &stage.journal;
    let relaxed = Arc::new(Mutex::new(Vec::new()));
    let attempts = relaxed.clone();
    let (weak, asker) = (journal.me.clone(), Mutex::new(None));
    let is_joined = Arc::new(AtomicBool::new(false));
    let joins = is_joined.clone();
    stage.environment.set_relax_hook(move |attempt| {
        lock(&attempts).push(attempt);
        if joins.swap(false, Ordering::Relaxed) {
            let journal = weak.upgrade().unwrap();
            let joining = journal.clone();
            *lock(&asker) = Some(std::thread::spawn(move || joining.sync()));
            Stage::await_waiting(&journal, 1);
        }
    });
    let relaxes = || std::mem::take(&mut *lock(&relaxed)).len();
    let weak = journal.me.clone();
    let is_shared = Arc::new(AtomicBool::new(false));
    let shares = is_shared.clone();
    stage.file.hook(move |asked| {
        if asked == Asked::Sync && shares.swap(false, Ordering::Relaxed) {
            Stage::await_waiting(&weak.upgrade().unwrap(), 1);
        }
        Ok(())
    });
    let alone = || {
        stage.put(1);
        journal.sync().unwrap();
        relaxes()
    };
    let shared = || {
        stage.put(1);
        is_shared.store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| journal.sync().unwrap());
            }
        });
        assert_eq!(lock(&journal.syncing).waiting, 0);
        relaxes()
    };
    assert_eq!((alone(), alone()), (0, 0), "nobody shared it");
    assert_eq!(shared(), 0);
    assert!(alone() > 1, "one more may come");
    assert_eq!(alone(), 0, "none came");
    shared();
    is_joined.store(true, Ordering::Relaxed);
    assert_eq!(alone(), 1, "it came at once");
}

#[test]
fn a_young_window_waits_for_no_sync_and_an_old_one_for_the_sync_that_runs() {
    let stage = Stage::new(GROUP);
    let journal = &stage.journal;
    let (weak, environment) = (journal.me.clone(), stage.environment.clone());
    let is_first = AtomicBool::new(true);
    stage.file.hook(move |asked| {
        if asked != Asked::Sync || !is_first.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let journal = weak.upgrade().unwrap();
        let writer = journal.clone();
        let settled = std::thread::spawn(move || {
            put_lines(&writer, 2, 1);
            writer.settle().unwrap();
            writer.settle().unwrap();
        });
        for _ in 0..10_000 {
            if settled.is_finished() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(settled.is_finished(), "a young window waited");
        environment.advance(50_000_000);
        std::thread::spawn(move || journal.settle().unwrap());
        Stage::await_waiting(&weak.upgrade().unwrap(), 1);
        Ok(())
    });
    stage.environment.advance(1);
    stage.put(1);
    journal.sync().unwrap();
    assert_eq!(journal.figures().unsynced_bytes, 104);
}

#[test]
fn an_operation_syncs_by_itself_at_twice_the_delay() {
    let stage = Stage::new(GROUP);
    stage.put(1);
    stage.environment.advance(1);
    stage.journal.settle().unwrap();
    stage.environment.advance(99_999_999);
    stage.journal.settle().unwrap();
    assert_eq!(stage.journal.figures().syncs, 0);
    stage.environment.advance(1);
    stage.journal.settle().unwrap();
    assert_eq!(stage.journal.figures().unsynced_bytes, 0);
}

#[test]
fn a_sync_ends_the_window_and_the_next_operation_has_one_of_its_own() {
    let stage = Stage::new(GROUP);
    let journal = &stage.journal;
    stage.environment.advance(1);
    stage.put(1);
    journal.settle().unwrap();
    journal.sync().unwrap();
    journal.settle().unwrap();
    assert_eq!(journal.sync_step(), TaskStep::Wait, "nothing is left to do");
    stage.environment.advance(60_000_000);
    stage.put(2);
    journal.settle().unwrap();
    stage.environment.advance(10_000_000);
    let left = Duration::from_millis(40);
    assert_eq!(journal.sync_step(), TaskStep::WaitAtMost(left));
    stage.environment.advance(40_000_000);
    assert_eq!(journal.sync_step(), TaskStep::Again);
    assert_eq!(journal.figures().unsynced_bytes, 0);
}

/// An operation may open a window for entries that a sync covers at that moment.
#[test]
fn a_window_without_entries_is_closed_when_it_is_old() {
    let stage = Stage::new(GROUP);
    let journal = &stage.journal;
    stage.put(1);
    journal.sync().unwrap();
    journal.window.store(1, Ordering::SeqCst);
    stage.environment.advance(60_000_000);
    assert_eq!(journal.sync_step(), TaskStep::Again);
    assert_eq!(journal.sync_step(), TaskStep::Wait);
    assert_eq!(journal.figures().syncs, 1);
}
