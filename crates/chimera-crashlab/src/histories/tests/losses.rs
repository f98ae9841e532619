//! Crashes that may take what had returned.

use crate::durability::Loss;
use crate::histories::{History, Operation, Outcome};

const LAST_OF_EACH: Loss = Loss::SuffixOfEachSession { operations_max: 1 };

/// A history in which threads put numbers one after the other, by (thread, key, number), and crash; then
/// keys 0 and up hold what was found.
fn puts_and_crash(loss: Loss, puts: &[(u32, u64, u64)], found: &[Option<u64>]) -> History {
    let mut history = History::with_loss(loss);
    let mut keys = std::collections::BTreeSet::new();
    for (thread, key, number) in puts {
        history.invoke(*thread, *key, Operation::Put(*number));
        history.returns(*thread, Outcome::WasNew(keys.insert(*key)));
    }
    history.crash();
    for (key, found) in (0..).zip(found) {
        history.read(0, key, *found);
    }
    history
}

/// What key 0 may hold after such puts to it, of the numbers up to 9.
fn may_hold(loss: Loss, puts: &[(u32, u64, u64)]) -> Vec<Option<u64>> {
    let all = [None].into_iter().chain((1..10).map(Some));
    all.filter(|found| puts_and_crash(loss, puts, &[*found]).check().is_ok()).collect()
}

#[test]
fn the_last_write_of_each_session_may_be_missing() {
    let one = [(0, 0, 1), (0, 0, 2), (0, 0, 3)];
    assert_eq!(may_hold(Loss::Nothing, &one), [Some(3)]);
    assert_eq!(may_hold(LAST_OF_EACH, &one), [Some(2), Some(3)]);
    let two = Loss::SuffixOfEachSession { operations_max: 2 };
    assert_eq!(may_hold(two, &one), [Some(1), Some(2), Some(3)]);
    let several = [(0, 0, 1), (1, 0, 2), (0, 0, 3), (1, 0, 4)];
    // Of both, of one, of none: with 3 lost and 4 lost, 2 is the last.
    assert_eq!(may_hold(LAST_OF_EACH, &several), [Some(2), Some(3), Some(4)]);
}

#[test]
fn writes_to_other_keys_count() {
    let puts = [(0, 0, 1), (0, 0, 2), (0, 1, 3)];
    assert_eq!(may_hold(LAST_OF_EACH, &puts), [Some(2)]);
    assert!(puts_and_crash(LAST_OF_EACH, &puts, &[Some(2), None]).check().is_ok());
}

#[test]
fn of_a_window_every_write_may_be_missing_with_all_later_ones() {
    let puts = [(0, 0, 1), (1, 0, 2), (2, 0, 3)];
    assert_eq!(may_hold(Loss::Suffix, &puts), [None, Some(1), Some(2), Some(3)]);
}

/// What is lost was there: others have seen it, and built on it.
#[test]
fn what_was_read_before_it_was_lost_is_no_violation() {
    let history = |loss| {
        let mut history = History::with_loss(loss);
        history.invoke(0, 0, Operation::Put(5));
        history.returns(0, Outcome::WasNew(true));
        history.read(1, 0, Some(5));
        history.crash();
        history.read(0, 0, None);
        history
    };
    assert!(history(LAST_OF_EACH).check().is_ok());
    assert!(history(Loss::Nothing).check().is_err());
}

/// After recovery what was found is there to stay.
#[test]
fn a_crash_takes_nothing_of_what_an_earlier_one_left() {
    let mut history = puts_and_crash(LAST_OF_EACH, &[(0, 0, 1), (0, 0, 2)], &[Some(1)]);
    history.crash();
    history.read(0, 0, Some(1));
    assert!(history.check().is_ok());
    history.crash();
    history.read(0, 0, None);
    assert!(history.check().is_err());
}
