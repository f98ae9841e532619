//! A loss of changes, which a mark keeps until it is accepted.

use super::watched::{Step, WatchedPool};
use super::*;

const MARKS: [u64; 2] = [60_000, 62_000];

fn used(journal_id: u64, position: u64) -> MarkState {
    MarkState::Used { journal_id, position, tail: position }
}

/// Whether the mark in a file says that changes were lost, and what else it says.
fn read(file: &Arc<dyn File>) -> (bool, MarkState) {
    let (mark, kept) = Mark::read(file.clone(), MARKS).unwrap();
    (mark.is_lost(), kept.unwrap().unwrap())
}

fn mark(file: &Arc<dyn File>, is_lost: bool) -> Mark {
    let mut mark = Mark::read(file.clone(), MARKS).unwrap().0;
    mark.set_lost(is_lost);
    mark
}

#[test]
fn a_loss_is_kept_beside_whatever_a_mark_says_until_it_is_taken_back() {
    let pool = Pool::create(GROUP);
    let file = open(&pool.files, "data");
    assert!(!Mark::read(file.clone(), MARKS).unwrap().0.is_lost(), "a mark that was never made");
    for is_lost in [true, false, true, false] {
        let mut set = mark(&file, is_lost);
        assert_eq!(set.is_lost(), is_lost);
        for kept in [used(9, 800), used(9, (1 << 63) - 8), MarkState::Unused, used(3, 0)] {
            set.keep(kept).unwrap();
            assert_eq!(read(&file), (is_lost, kept));
            // As another process does, which says nothing of a loss.
            let mut other = Mark::read(file.clone(), MARKS).unwrap().0;
            other.keep(used(4, 80)).unwrap();
            assert_eq!(read(&file), (is_lost, used(4, 80)));
            set = Mark::read(file.clone(), MARKS).unwrap().0;
        }
    }
}

#[test]
fn a_journal_keeps_a_loss_until_it_is_accepted_and_that_is_durable_on_return() {
    let watched = WatchedPool::create(CAPACITY, DATA_BYTES);
    let (journal, file): (_, Arc<dyn File>) = (watched.pool.journal(), watched.data.clone());
    journal.keep_mark(mark(&file, true)).unwrap();
    assert_eq!(read(&file), (true, used(99, journal.start_at())));
    watched.pool.put(64, 1);
    journal.checkpoint().unwrap();
    assert_eq!(read(&file), (true, used(99, journal.start_at())), "a checkpoint accepts nothing");
    watched.pool.put(128, 2);
    watched.take_log();
    journal.accept_loss().unwrap();
    let mut expected = MARKS.map(|at| Step::Write("data", at..at + 32)).to_vec();
    expected.push(Step::Sync("data"));
    assert_eq!(watched.take_log(), expected);
    let (position, tail) = (journal.start_at(), journal.tail_at());
    assert_ne!(position, tail, "what was not written back is still in the journal");
    assert_eq!(read(&file), (false, MarkState::Used { journal_id: 99, position, tail }));
    journal.checkpoint().unwrap();
    assert_eq!(read(&file), (false, used(99, journal.start_at())));
}

#[test]
fn a_loss_that_cannot_be_accepted_is_an_error() {
    let watched = WatchedPool::create(CAPACITY, DATA_BYTES);
    let (journal, file): (_, Arc<dyn File>) = (watched.pool.journal(), watched.data.clone());
    journal.accept_loss().unwrap();
    assert_eq!(watched.take_log(), [], "without a mark there is nothing to take back");
    journal.keep_mark(mark(&file, true)).unwrap();
    watched.data.fails.store(true, Ordering::Relaxed);
    assert_eq!(journal.accept_loss().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}
