//! What may be missing, by hand.

use super::*;
use crate::explore::case::value;

const KEYS: u64 = 3;

/// What a store holds: the numbers of its values.
fn holds(numbers: [u64; KEYS as usize]) -> Vec<Option<Value>> {
    numbers.into_iter().map(|number| (number > 0).then(|| value(number))).collect()
}

/// An expectation after writes of (session, key, number of the value).
fn after(loss: Loss, writes: &[(usize, u64, u64)]) -> Expectation {
    let mut expectation = Expectation::certain(Model::new(KEYS), loss);
    for (session, key, number) in writes {
        begin(&mut expectation, *session, *key, *number);
        expectation.acknowledge();
    }
    expectation
}

fn begin(expectation: &mut Expectation, session: usize, key: u64, number: u64) {
    let value = (number > 0).then(|| value(number));
    expectation.begin(Effect::Write(Write { session, key, value, word: None }.into()));
}

/// Asserts that exactly these states are explained, of all with values up to `last`.
#[track_caller]
fn assert_explained(expectation: &Expectation, last: u64, states: &[[u64; 3]]) {
    let mut found = Vec::new();
    for number in 0..(last + 1).pow(3) {
        let state =
            [number % (last + 1), number / (last + 1) % (last + 1), number / (last + 1).pow(2)];
        if expectation.judge(&holds(state)).is_ok() {
            found.push(state);
        }
    }
    let mut states = states.to_vec();
    states.sort_unstable_by_key(|[a, b, c]| (*c, *b, *a));
    assert_eq!(found, states);
}

const WRITES: [(usize, u64, u64); 4] = [(0, 0, 1), (1, 1, 2), (0, 2, 3), (1, 0, 4)];

#[test]
fn what_was_acknowledged_is_there_where_nothing_may_be_missing() {
    let mut expectation = after(Loss::Nothing, &WRITES);
    assert!(expectation.is_certain());
    assert_explained(&expectation, 5, &[[4, 2, 3]]);
    begin(&mut expectation, 0, 1, 5);
    assert_explained(&expectation, 5, &[[4, 2, 3], [4, 5, 3]]);
}

#[test]
fn of_each_session_a_prefix_is_there() {
    let loss = Loss::SuffixOfEachSession { operations_max: 2 };
    let expectation = after(loss, &WRITES);
    // Of session 0: nothing, 1, 1 and 3; of session 1: nothing, 2, 2 and 4.
    let states =
        [[0, 0, 0], [1, 0, 0], [1, 0, 3], [0, 2, 0], [1, 2, 0], [1, 2, 3], [4, 2, 0], [4, 2, 3]];
    assert_explained(&expectation, 4, &states);
}

#[test]
fn only_the_last_batch_of_a_session_may_be_missing() {
    let loss = Loss::SuffixOfEachSession { operations_max: 1 };
    assert_explained(&after(loss, &WRITES), 4, &[[1, 2, 0], [1, 2, 3], [4, 2, 0], [4, 2, 3]]);
}

#[test]
fn what_is_in_flight_comes_after_what_its_session_wrote() {
    let loss = Loss::SuffixOfEachSession { operations_max: 1 };
    let mut expectation = after(loss, &[(0, 0, 1)]);
    begin(&mut expectation, 0, 1, 2);
    assert_explained(&expectation, 2, &[[0, 0, 0], [1, 0, 0], [1, 2, 0]]);
    begin(&mut expectation, 1, 1, 2);
    assert_explained(&expectation, 2, &[[0, 0, 0], [1, 0, 0], [0, 2, 0], [1, 2, 0]]);
}

#[test]
fn of_the_whole_store_a_prefix_is_there() {
    let states = [[0, 0, 0], [1, 0, 0], [1, 2, 0], [1, 2, 3], [4, 2, 3]];
    assert_explained(&after(Loss::Suffix, &WRITES), 4, &states);
}

#[test]
fn a_sync_and_the_end_of_a_session_settle_what_they_cover() {
    let loss = Loss::SuffixOfEachSession { operations_max: 2 };
    let mut expectation = after(loss, &WRITES);
    expectation.begin(Effect::EndSession(1));
    // Until it has returned it may have done nothing.
    assert!(expectation.judge(&holds([0, 0, 0])).is_ok());
    expectation.acknowledge();
    assert_explained(&expectation, 4, &[[4, 2, 0], [4, 2, 3]]);
    expectation.begin(Effect::Settle);
    expectation.acknowledge();
    assert!(expectation.is_certain());
    assert_explained(&expectation, 4, &[[4, 2, 3]]);
    let mut window = after(Loss::Suffix, &WRITES);
    window.begin(Effect::EndSession(1));
    window.acknowledge();
    assert!(window.judge(&holds([0, 0, 0])).is_ok());
}

#[test]
fn a_refused_write_may_have_happened_only_until_it_is_refused() {
    let mut expectation = after(Loss::Nothing, &WRITES[..1]);
    let write = Write { session: 0, key: 1, value: Some(value(2)), word: None };
    expectation.begin(Effect::Refused(write.into()));
    assert_explained(&expectation, 2, &[[1, 0, 0], [1, 2, 0]]);
    expectation.acknowledge();
    assert!(expectation.is_certain());
    assert_explained(&expectation, 2, &[[1, 0, 0]]);
}

#[test]
fn damage_may_take_the_last_writes_of_a_session_where_nothing_else_says_that_they_are_there() {
    let is_unnoticed = |length: usize, key: u64, number: u64| {
        let start = Expectation::certain(Model::new(KEYS), Loss::Nothing).with_tails_of(length);
        let mut expectation = start;
        for (session, key, number) in [(0, 0, 1), (0, 0, 2), (1, 1, 3), (0, 2, 4)] {
            begin(&mut expectation, session, key, number);
            expectation.acknowledge();
        }
        let found = (number > 0).then(|| value(number));
        let settled = expectation.settled_as(expectation.model().clone());
        assert_eq!(
            settled.is_unnoticed(key, found.as_ref()),
            expectation.model().get(key) == found
        );
        expectation.is_unnoticed(key, found.as_ref())
    };
    assert!(is_unnoticed(0, 2, 4) && !is_unnoticed(0, 2, 0), "as it is");
    assert!(is_unnoticed(1, 2, 0) && is_unnoticed(1, 1, 0) && !is_unnoticed(1, 0, 1));
    // What came before the last one of key 0 may be gone too.
    assert!(is_unnoticed(2, 0, 1) && is_unnoticed(2, 0, 0));
    assert!(!is_unnoticed(2, 2, 3), "the value of another key");
}
