//! After a failure every operation is told, and reads go on.

use std::sync::atomic::AtomicUsize;

use super::staged::{Asked, Stage};
use super::*;

/// Everything that has to be durable is refused for the same reason, for ever.
fn assert_failed(journal: &Journal, reason: &str) {
    let (tail, durable) = (journal.tail_at(), journal.durable());
    for _ in 0..2 {
        for result in [journal.settle(), journal.sync(), journal.checkpoint_of_one_more()] {
            let error = result.unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
        journal.settle_read().unwrap();
        assert_eq!(journal.sync_step(), TaskStep::Done);
        assert_eq!(journal.checkpoint_step(), TaskStep::Done);
    }
    assert_eq!((journal.tail_at(), journal.durable()), (tail, durable), "nothing goes on");
}

impl Journal {
    /// What needs room, and so a checkpoint.
    fn checkpoint_of_one_more(&self) -> io::Result<()> {
        self.make_room(self.header.capacity)
    }
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged() {
    for policy in [SyncPolicy::Immediate, GROUP] {
        let stage = Stage::new(policy);
        let syncs = Arc::new(AtomicUsize::new(0));
        let count = syncs.clone();
        stage.file.hook(move |asked| match asked {
            Asked::Sync if count.fetch_add(1, Ordering::Relaxed) == 1 => {
                Err(io::Error::other("the device is gone"))
            }
            _ => Ok(()),
        });
        stage.put(1);
        stage.journal.sync().unwrap();
        let durable = stage.journal.durable();
        stage.put(2);
        assert!(stage.journal.sync().unwrap_err().to_string().contains("the device is gone"));
        assert_eq!(stage.journal.durable(), durable, "it did not succeed");
        assert_eq!(stage.journal.figures().syncs, 1);
        stage.put(3);
        assert_failed(&stage.journal, "cannot sync: the device is gone");
        assert_eq!(syncs.load(Ordering::Relaxed), 2, "no sync after the failure");
    }
}

#[test]
fn after_an_entry_that_was_not_written_nothing_is_acknowledged() {
    for policy in [SyncPolicy::Immediate, GROUP] {
        let stage = Stage::new(policy);
        stage.put(1);
        stage.journal.sync().unwrap();
        stage.file.hook(|asked| match asked {
            Asked::Write(_) => Err(io::Error::other("no write")),
            _ => Ok(()),
        });
        stage.put(2);
        assert_failed(&stage.journal, "no write");
    }
}

#[test]
fn after_a_failed_checkpoint_nothing_is_acknowledged() {
    for policy in [SyncPolicy::Immediate, GROUP] {
        let stage = Stage::new(policy);
        let data = stage.add_data(0, 0, DATA_BYTES);
        data.hook(|asked| match asked {
            Asked::Sync => Err(io::Error::other("no data")),
            _ => Ok(()),
        });
        stage.put(1);
        assert!(stage.journal.checkpoint().unwrap_err().to_string().contains("no data"));
        assert_eq!(stage.journal.durable(), stage.journal.tail_at());
        assert_failed(&stage.journal, "no data");
    }
}

#[test]
fn the_task_that_syncs_ends_with_the_failure_also_when_operations_wait_for_it() {
    let stage = Stage::new(GROUP);
    stage.put(1);
    stage.journal.settle().unwrap();
    stage.environment.advance(60_000_000);
    stage.journal.fail(&io::Error::other("broken"));
    assert_eq!(stage.journal.sync_step(), TaskStep::Done);
}

#[test]
fn who_waits_for_a_sync_that_fails_is_told() {
    let stage = Stage::new(SyncPolicy::Immediate);
    let journal = &stage.journal;
    let weak = journal.me.clone();
    stage.file.hook(move |asked| match asked {
        Asked::Sync => {
            Stage::await_waiting(&weak.upgrade().unwrap(), 3);
            Err(io::Error::other("the device is gone"))
        }
        _ => Ok(()),
    });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let stage = &stage;
            scope.spawn(move || {
                stage.put(thread);
                assert!(stage.journal.settle().is_err());
            });
        }
    });
    assert_eq!(lock(&journal.syncing).waiting, 0);
    assert_eq!(stage.file.asked().iter().filter(|asked| **asked == Asked::Sync).count(), 1);
}

#[test]
fn a_failure_ends_the_wait_for_a_sync_that_still_runs() {
    let stage = Stage::new(SyncPolicy::Immediate);
    let weak = stage.journal.me.clone();
    stage.file.hook(move |asked| {
        if asked == Asked::Sync {
            let journal = weak.upgrade().unwrap();
            Stage::await_waiting(&journal, 1);
            journal.fail(&io::Error::other("broken"));
            Stage::await_waiting(&journal, 0);
        }
        Ok(())
    });
    stage.put(1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(stage.journal.sync().is_err()));
        }
    });
}
