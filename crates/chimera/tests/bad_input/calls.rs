//! Keys, values and positions of wrong sizes, for every call.

use chimera::{Db, Error, Result, Session, Swap};

use crate::tools::{
    assert_fails, assert_sound, contents, filled_store, key, open, scratch, small, value,
};

fn assert_key_size<T: std::fmt::Debug>(outcome: Result<T>, found: usize) {
    assert!(matches!(outcome, Err(Error::KeySize { expected: 8, .. })), "{outcome:?}");
    assert_fails(outcome, &[&format!("the key has {found} bytes"), "keys have 8"]);
}

fn assert_value_size<T: std::fmt::Debug>(outcome: Result<T>, found: usize) {
    assert!(matches!(outcome, Err(Error::ValueSize { expected: 24, .. })), "{outcome:?}");
    assert_fails(outcome, &[&format!("the value has {found} bytes"), "values have 24"]);
}

fn wrong_keys(db: &Db, session: &mut Session, size: usize) {
    let wrong = vec![7; size];
    let good = value(1, 1);
    assert_key_size(session.put(&wrong, &good), size);
    assert_key_size(session.get(&wrong), size);
    assert_key_size(session.get_with(&wrong, <[u8]>::len), size);
    assert_key_size(session.multi_get(&[&key(1)[..], &wrong]), size);
    assert_key_size(session.multi_get_with(&[&wrong], |_, _| ()), size);
    assert_key_size(session.update(&wrong, |_| ()), size);
    assert_key_size(session.fetch_add_u64(&wrong, 0, 1), size);
    assert_key_size(session.fetch_add_u64(&wrong, 3, 1), size);
    assert_key_size(session.compare_and_swap_u64(&wrong, 0, 1, 2), size);
    assert_key_size(session.compare_and_swap(&wrong, &good, &good), size);
    assert_key_size(session.delete(&wrong), size);
    assert_key_size(db.put(&wrong, &good), size);
    assert_key_size(db.get(&wrong), size);
    assert_key_size(db.delete(&wrong), size);
    assert_key_size(db.update(&wrong, |_| ()), size);
    assert_key_size(db.fetch_add_u64(&wrong, 0, 1), size);
    assert_key_size(db.compare_and_swap(&wrong, &good, &good), size);
}

fn wrong_values(db: &Db, session: &mut Session, size: usize) {
    let wrong = vec![7; size];
    let good = value(1, 1);
    assert_value_size(session.put(&key(1), &wrong), size);
    assert_value_size(session.put(&key(99), &wrong), size);
    assert_value_size(session.compare_and_swap(&key(1), &wrong, &good), size);
    assert_value_size(session.compare_and_swap(&key(1), &good, &wrong), size);
    assert_value_size(session.update(&key(1), |value| value.resize(size, 7)), size);
    assert_value_size(db.put(&key(1), &wrong), size);
    assert_value_size(db.compare_and_swap(&key(1), &wrong, &good), size);
    assert_value_size(db.compare_and_swap(&key(1), &good, &wrong), size);
    assert_value_size(db.update(&key(1), |value| value.resize(size, 7)), size);
}

#[test]
fn sizes_and_positions_are_checked_by_every_call() {
    let directory = scratch();
    filled_store(directory.path(), &small(), 5);
    let db = open(directory.path(), &small());
    let before = contents(&db);
    let mut session = db.session();
    for size in [0, 1, 7, 9, 16, 4096] {
        wrong_keys(&db, &mut session, size);
    }
    for size in [0, 1, 23, 25, 32, 1 << 20] {
        wrong_values(&db, &mut session, size);
    }
    for at in [17, 18, 24, 25, usize::MAX - 7, usize::MAX] {
        for outcome in [
            session.fetch_add_u64(&key(1), at, 1),
            session.compare_and_swap_u64(&key(1), at, 0, 1),
            db.fetch_add_u64(&key(1), at, 1),
        ] {
            assert!(matches!(outcome, Err(Error::FieldOutOfRange { value_bytes: 24, .. })));
            assert_fails(outcome, &[&format!("8 bytes at {at}"), "a value of 24 bytes"]);
        }
    }
    assert_eq!(contents(&db), before, "a refused call changed something");
    assert_sound(&db);
}

#[test]
fn absent_keys_are_absent_for_every_call() {
    let directory = scratch();
    let db = open(directory.path(), &small());
    let mut session = db.session();
    let absent = key(7);
    assert_eq!(session.get(&absent).expect("no error"), None);
    assert!(!session.delete(&absent).expect("no error"));
    assert!(!session.update(&absent, |_| unreachable!("there is no value")).expect("no error"));
    assert_eq!(session.fetch_add_u64(&absent, 8, 1).expect("no error"), None);
    assert_eq!(session.fetch_add_u64(&absent, 9, 1).expect("no error"), None);
    assert_eq!(session.compare_and_swap_u64(&absent, 0, 0, 1).expect("no error"), None);
    let swap = session.compare_and_swap(&absent, &[0; 24], &[1; 24]).expect("no error");
    assert_eq!(swap, Swap::Missing);
    assert_eq!(session.multi_get(&[&absent; 40]).expect("no error"), vec![None; 40]);
    assert!(contents(&db).is_empty());
    drop(session);
    db.close().expect("nobody else has it");
}
