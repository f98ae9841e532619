//! Writes with a condition: each is one step, and says whether the condition held.

use std::sync::atomic::{AtomicU64, Ordering};

use chimera::{Absent, Db, Error, ErrorKind, Options, Session, Swap};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, at_once, word};
use crate::tools::{Chance, assert_sound, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    a_key_is_stored_only_where_there_is_none,
    a_swap_from_and_to_nothing,
    a_key_is_deleted_if_its_value_is_so,
    an_update_stores_what_is_missing,
    an_addition_stores_what_is_missing,
    an_update_that_gives_up_changes_nothing,
    a_counter_is_put_and_updated,
    conditions_agree_with_a_model,
    lengths_are_checked_before_anything_is_written,
    the_store_has_the_calls_of_a_session,
    of_sessions_that_store_a_missing_key_one_wins,
    additions_to_missing_keys_add_up,
    updates_of_keys_that_come_and_go_are_not_lost,
    a_lock_of_a_key_has_one_owner,
    what_conditions_wrote_is_there_after_reopening,
];

fn db(configuration: &Configuration) -> (tempfile::TempDir, Db) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    (directory, db)
}

fn has(session: &mut Session, key: &[u8]) -> Option<Vec<u8>> {
    session.get(key).expect("a get")
}

fn a_key_is_stored_only_where_there_is_none(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let mut session = db.session();
    let [first, second] = [1, 2].map(|version| configuration.value(7, version));
    let key = configuration.key(7);
    assert!(session.put_if_absent(&key, &first).expect("room"));
    assert!(!session.put_if_absent(&key, &second).expect("nothing to do"));
    assert_eq!(has(&mut session, &key), Some(first));
    assert!(session.delete(&key).expect("a delete"));
    assert!(session.put_if_absent(&key, &second).expect("room"));
    assert_eq!(has(&mut session, &key), Some(second));
    assert_eq!(db.len(), 1);
    let stats = session.stats();
    assert_eq!((stats.inserts, stats.swaps_refused), (2, 1));
    assert_sound(&db);
}

fn a_swap_from_and_to_nothing(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let mut session = db.session();
    let [first, second] = [1, 2].map(|version| configuration.value(3, version));
    let key = configuration.key(3);
    let mut swap = |outcome, expected: Option<&[u8]>, new: Option<&[u8]>| {
        let swapped = match (expected, new) {
            (Some(expected), Some(new)) => session.compare_and_swap(&key, expected, new),
            (Some(expected), None) => session.compare_and_swap(&key, expected, Absent),
            (None, Some(new)) => session.compare_and_swap(&key, Absent, new),
            (None, None) => session.compare_and_swap(&key, Absent, Absent),
        };
        assert_eq!(swapped.expect("a swap"), outcome, "{expected:?} {new:?}");
        session.get(&key).expect("a get")
    };
    assert_eq!(swap(Swap::Swapped, None, None), None);
    assert_eq!(swap(Swap::Missing, Some(&first), None), None);
    assert_eq!(swap(Swap::Missing, Some(&first), Some(&second)), None);
    assert_eq!(swap(Swap::Swapped, None, Some(&first)), Some(first.clone()));
    assert_eq!(swap(Swap::Different, None, Some(&second)), Some(first.clone()));
    assert_eq!(swap(Swap::Different, None, None), Some(first.clone()));
    assert_eq!(swap(Swap::Different, Some(&second), None), Some(first.clone()));
    assert_eq!(swap(Swap::Swapped, Some(&first), Some(&second)), Some(second.clone()));
    assert_eq!(swap(Swap::Swapped, Some(&second), None), None);
    let stats = session.stats();
    assert_eq!((stats.inserts, stats.deletes, stats.swaps_refused), (1, 1, 3));
    assert_eq!(db.len(), 0);
    assert_sound(&db);
}

fn a_key_is_deleted_if_its_value_is_so(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let mut session = db.session();
    configuration.fill(&mut session, 0..40, 1);
    for number in 0..50 {
        let mut asked = 0;
        let is_even = |value: &[u8]| {
            asked += 1;
            assert_eq!(configuration.version(number, value), 1);
            number % 2 == 0
        };
        let deleted = session.delete_if(configuration.key(number), is_even).expect("a delete");
        assert_eq!((deleted, asked), (number < 40 && number % 2 == 0, u32::from(number < 40)));
    }
    let left = configuration.records((0..40).filter(|number| number % 2 == 1), 1);
    assert_holds(&db, &left);
    let stats = session.stats();
    assert_eq!((stats.deletes, stats.swaps_refused, stats.delete_misses), (20, 20, 10));
}

fn an_update_stores_what_is_missing(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let mut session = db.session();
    let key = configuration.key(5);
    let values = [1, 2, 3].map(|version| configuration.value(5, version));
    let mut update = |to: usize| {
        let change = |value: &mut Vec<u8>| value.clone_from(&values[to]);
        session.update_or_insert(&key, &values[0], change).expect("room")
    };
    assert!(update(1), "it is new");
    assert!(!update(2));
    assert_eq!(has(&mut session, &key), Some(values[2].clone()));
    session.delete(&key).expect("a delete");
    let never = |_: &mut Vec<u8>| panic!("there is nothing to change");
    assert!(session.update_or_insert(&key, &values[0], never).expect("room"));
    assert_eq!(has(&mut session, &key), Some(values[0].clone()));
}

fn an_addition_stores_what_is_missing(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let mut session = db.session();
    for (number, at) in [(1, 8), (2, 3)] {
        let (key, absent) = (configuration.key(number), configuration.value(number, 1));
        let before = u64::from_le_bytes(absent[at..at + 8].try_into().expect("8 bytes"));
        for added in 0..4_u64 {
            let found = session.fetch_add_u64_or_insert(&key, at, 5, &absent).expect("room");
            assert_eq!(found, before.wrapping_add(5 * added));
        }
        let value = has(&mut session, &key).expect("it is there");
        let mut expected = absent.clone();
        expected[at..at + 8].copy_from_slice(&before.wrapping_add(20).to_le_bytes());
        assert_eq!(value, expected, "nothing else has changed");
        let outside =
            session.fetch_add_u64_or_insert(configuration.key(9), absent.len(), 1, &absent);
        assert_eq!(outside.expect_err("no room for a number").kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(db.len(), 2);
}

#[derive(Debug)]
enum Stopped {
    Own(u32),
    Store(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

fn an_update_that_gives_up_changes_nothing(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let mut session = db.session();
    configuration.fill(&mut session, [1], 1);
    let key = configuration.key(1);
    let stopped = session.try_update(&key, |value| {
        value.fill(9);
        Err(Stopped::Own(4))
    });
    assert!(matches!(stopped, Err(Stopped::Own(4))), "{stopped:?}");
    assert_holds(&db, &configuration.records([1], 1));
    let new = configuration.value(1, 2);
    let change = |value: &mut Vec<u8>| {
        value.clone_from(&new);
        Ok::<_, Stopped>(())
    };
    assert!(session.try_update(&key, change).expect("room"));
    assert_holds(&db, &configuration.records([1], 2));
    let missing = session.try_update(configuration.key(2), |_| Err(Stopped::Own(1)));
    assert!(!missing.expect("it is not asked"));
    let refused = session.try_update(vec![0; 70_000], |_| Ok::<_, Stopped>(()));
    assert!(
        matches!(&refused, Err(Stopped::Store(error)) if error.kind() == ErrorKind::InvalidArgument)
    );
}

fn a_counter_is_put_and_updated(configuration: &Configuration) {
    let (directory, db) = db(configuration);
    let mut session = db.session();
    for (number, at) in [(1, 8), (2, 16), (3, 5)] {
        let (key, mut value) = (configuration.key(number), configuration.value(number, 1));
        assert!(session.put_counter(&key, &value, at).expect("room"));
        assert!(!session.put_counter(&key, &value, at).expect("room"));
        let before = word(&value, at);
        for added in 0..3_u64 {
            let found = session.fetch_add_u64(&key, at, 1).expect("room");
            assert_eq!(found, Some(before.wrapping_add(added)));
        }
        value[at..at + 8].copy_from_slice(&before.wrapping_add(3).to_le_bytes());
        assert_eq!(has(&mut session, &key), Some(value.clone()));
        for at in [value.len() - 7, value.len(), usize::MAX] {
            let outside = session.put_counter(&key, &value, at).expect_err("no room for a number");
            assert_eq!(outside.kind(), ErrorKind::InvalidArgument);
        }
    }
    let before = db.get(configuration.key(1)).expect("a get");
    drop(session);
    db.close().expect("nobody else has it");
    let db = configuration.open(directory.path());
    assert_eq!(db.get(configuration.key(1)).expect("a get"), before);
    assert_sound(&db);
}

fn conditions_agree_with_a_model(configuration: &Configuration) {
    let (directory, mut db) = db(configuration);
    let mut chance = Chance::new(11);
    let mut model = Records::new();
    for round in 0..4 {
        let mut session = db.session();
        for version in round * 500 + 1..(round + 1) * 500 {
            one_step(configuration, &mut session, &mut model, &mut chance, version);
        }
        drop(session);
        assert_holds(&db, &model);
        db.close().expect("nobody else has it");
        db = configuration.open(directory.path());
        assert_holds(&db, &model);
    }
}

/// One write with a condition, of one of forty keys.
fn one_step(
    configuration: &Configuration,
    session: &mut Session,
    model: &mut Records,
    chance: &mut Chance,
    version: u64,
) {
    let number = chance.below(40);
    let (key, new) = (configuration.key(number), configuration.value(number, version));
    let old = model.get(&key).cloned();
    match chance.below(5) {
        0 => {
            let stored = session.put_if_absent(&key, &new).expect("room");
            assert_eq!(stored, old.is_none());
            model.entry(key).or_insert(new);
        }
        1 => {
            let is_right = chance.below(2) == 0;
            let deleted = session.delete_if(&key, |_| is_right).expect("a delete");
            assert_eq!(deleted, is_right && old.is_some());
            if deleted {
                model.remove(&key);
            }
        }
        2 => {
            let change = |value: &mut Vec<u8>| value.clone_from(&new);
            let is_new = session.update_or_insert(&key, &new, change).expect("room");
            assert_eq!(is_new, old.is_none());
            model.insert(key, new);
        }
        3 => {
            let swapped = match &old {
                Some(old) => session.compare_and_swap(&key, old, Absent),
                None => session.compare_and_swap(&key, Absent, &new),
            };
            assert_eq!(swapped.expect("room"), Swap::Swapped);
            if old.is_some() {
                model.remove(&key)
            } else {
                model.insert(key, new)
            };
        }
        _ => {
            let found = session.fetch_add_u64_or_insert(&key, 8, 1, &new).expect("room");
            let value = model.entry(key).or_insert(new);
            assert_eq!(found, word(value, 8));
            value[8..16].copy_from_slice(&found.wrapping_add(1).to_le_bytes());
        }
    }
}

fn lengths_are_checked_before_anything_is_written(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let mut session = db.session();
    let (key, value) = (configuration.key(1), configuration.value(1, 1));
    let long = vec![1; 70_000];
    let refused = [
        session.put_if_absent(&long, &value).map(drop),
        session.update_or_insert(&long, &value, |_| ()).map(drop),
        session.fetch_add_u64_or_insert(&long, 0, 1, &value).map(drop),
        session.compare_and_swap(&long, Absent, &value).map(drop),
        session.compare_and_swap(&long, &value, Absent).map(drop),
        session.compare_and_swap(&long, Absent, Absent).map(drop),
        session.delete_if(&long, |_| true).map(drop),
    ];
    for (number, refused) in refused.into_iter().enumerate() {
        let error = refused.expect_err("such keys there are none");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{number}: {error}");
    }
    if let Some((_, bytes)) = configuration.sizes() {
        let error = session.put_if_absent(&key, vec![1; bytes + 1]).expect_err("another size");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(db.len(), 0);
}

fn the_store_has_the_calls_of_a_session(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let [first, second] = [1, 2].map(|version| configuration.value(7, version));
    let key = configuration.key(7);
    assert!(db.put_if_absent(&key, &first).expect("room"));
    assert!(!db.put_if_absent(&key, &first).expect("it is there"));
    assert!(!db.update_or_insert(&key, &first, |value| value.clone_from(&second)).expect("room"));
    assert_eq!(db.multi_get(&[&key]).expect("gets"), [Some(second.clone())]);
    assert_eq!(db.compare_and_swap(&key, &second, &first).expect("room"), Swap::Swapped);
    let found = db.get_with(&key, <[u8]>::len).expect("a get");
    assert_eq!(found, Some(first.len()));
    let before = word(&first, 8);
    assert_eq!(db.fetch_add_u64_or_insert(&key, 8, 3, &first).expect("room"), before);
    assert_eq!(
        db.compare_and_swap_u64(&key, 8, before + 3, before).expect("room"),
        Some(before + 3)
    );
    let stopped = db.try_update(&key, |_| Err(Stopped::Own(1)));
    assert!(matches!(stopped, Err(Stopped::Own(1))));
    assert!(!db.delete_if(&key, |value| value != first).expect("a delete"));
    assert!(db.delete_if(&key, |value| value == first).expect("a delete"));
    assert!(db.is_empty());
}

const KEYS: u64 = 300;

fn of_sessions_that_store_a_missing_key_one_wins(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &Options::reclaim_percent(configuration.options(), 20));
    let wins: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    at_once(4, |thread| {
        let mut session = db.session();
        for number in 0..KEYS {
            let (key, value) = (configuration.key(number), configuration.value(number, thread + 1));
            let stored = match thread % 2 {
                0 => session.put_if_absent(&key, &value).expect("room"),
                _ => session.compare_and_swap(&key, Absent, &value).expect("room") == Swap::Swapped,
            };
            if stored {
                let before = wins[number as usize].swap(thread + 1, Ordering::SeqCst);
                assert_eq!(before, 0, "key {number} was stored by two");
            }
            let found = session.get(&key).expect("a get").expect("it is there");
            configuration.version(number, &found);
        }
    });
    for (number, winner) in (0..).zip(&wins) {
        let found = db.get(configuration.key(number)).expect("a get").expect("it is there");
        assert_eq!(configuration.version(number, &found), winner.load(Ordering::SeqCst));
    }
    assert_eq!(db.len(), KEYS);
    assert_sound(&db);
}

fn additions_to_missing_keys_add_up(configuration: &Configuration) {
    const ROUNDS: u64 = 20;
    const THREADS: u64 = 4;
    let (_directory, db) = db(configuration);
    at_once(THREADS, |thread| {
        let mut session = db.session();
        for round in 0..ROUNDS {
            for number in 0..40 {
                let absent = vec![0; configuration.value(number, 0).len()];
                let at = if (number + round + thread) % 4 == 0 { 8 } else { 16 };
                let added =
                    session.fetch_add_u64_or_insert(configuration.key(number), at, 1, absent);
                added.expect("room");
            }
        }
    });
    for number in 0..40 {
        let value = db.get(configuration.key(number)).expect("a get").expect("it is there");
        assert_eq!(word(&value, 8) + word(&value, 16), ROUNDS * THREADS, "key {number}");
    }
    assert_sound(&db);
}

/// Each thread adds to a number, or takes the record away with what it has: in the end nothing is lost.
fn updates_of_keys_that_come_and_go_are_not_lost(configuration: &Configuration) {
    const ADDITIONS: u64 = 2000;
    const ADDING: u64 = 3;
    let (_directory, db) = db(configuration);
    let taken = AtomicU64::new(0);
    let add = |value: &mut Vec<u8>| {
        let sum = word(value, 8) + 1;
        value[8..16].copy_from_slice(&sum.to_le_bytes());
    };
    at_once(ADDING + 1, |thread| {
        let mut session = db.session();
        let mut chance = Chance::new(thread);
        for _ in 0..ADDITIONS {
            let key = configuration.key(chance.below(4));
            if thread < ADDING {
                let mut one = vec![0; configuration.sizes().map_or(32, |sizes| sizes.1)];
                one[8] = 1;
                session.update_or_insert(&key, one, add).expect("room");
            } else {
                let mut has = 0;
                let take = |value: &[u8]| {
                    has = word(value, 8);
                    true
                };
                if session.delete_if(&key, take).expect("a delete") {
                    taken.fetch_add(has, Ordering::SeqCst);
                }
            }
        }
    });
    let mut left = 0;
    db.for_each(|_, value| {
        left += word(value, 8);
        true
    })
    .expect("a listing");
    assert_eq!(left + taken.load(Ordering::SeqCst), ADDITIONS * ADDING);
    assert_sound(&db);
}

/// A record is a lock: who stored it has it, until it is removed by its owner.
fn a_lock_of_a_key_has_one_owner(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    let (inside, key) = (AtomicU64::new(0), configuration.key(1));
    at_once(3, |thread| {
        let mut session = db.session();
        let mine = configuration.value(1, thread + 1);
        let mut owned = 0;
        while owned < 100 {
            if !session.put_if_absent(&key, &mine).expect("room") {
                std::thread::yield_now();
                continue;
            }
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two have it");
            owned += 1;
            inside.fetch_sub(1, Ordering::SeqCst);
            let freed = match owned % 2 {
                0 => session.delete_if(&key, |value| value == mine).expect("a delete"),
                _ => session.compare_and_swap(&key, &mine, Absent).expect("room") == Swap::Swapped,
            };
            assert!(freed, "nobody else removes it");
        }
    });
    assert!(db.is_empty());
}

fn what_conditions_wrote_is_there_after_reopening(configuration: &Configuration) {
    let (directory, db) = db(configuration);
    let mut session = db.session();
    for number in 0..60 {
        let value = configuration.value(number, 1);
        assert!(session.put_if_absent(configuration.key(number), value).expect("room"));
    }
    for number in (0..60).step_by(3) {
        assert!(session.delete_if(configuration.key(number), |_| true).expect("a delete"));
    }
    drop(session);
    db.close().expect("nobody else has it");
    let db = configuration.open(directory.path());
    assert_holds(&db, &configuration.records((0..60).filter(|number| number % 3 > 0), 1));
    assert_sound(&db);
}
