//! Keys, values and positions that cannot be, and keys that are not there, for every call.

use std::fmt::Debug;

use chimera::{Db, Error, ErrorKind, Result, Session, Swap};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::assert_holds;
use crate::tools::{open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    keys_that_cannot_be_are_refused_by_every_call,
    values_that_cannot_be_are_refused_by_every_call,
    positions_outside_of_a_value_are_refused,
    absent_keys_are_absent_for_every_call,
    records_of_every_length_come_back: needs any_size,
];

const RECORDS: u64 = 10;
/// Larger than any store takes.
const KEY_BYTES: usize = 1 << 20;
const VALUE_BYTES: usize = (1 << 30) + 1;

/// Asserts that a call was refused for its arguments.
fn refused<T: Debug>(outcome: Result<T>) {
    match outcome {
        Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}"),
        Ok(done) => panic!("what cannot be was done: {done:?}"),
    }
}

fn wrong_key(db: &Db, session: &mut Session, key: &[u8], value: &[u8]) {
    refused(session.put(key, value));
    refused(session.get(key));
    refused(session.contains_key(key));
    refused(session.get_with(key, <[u8]>::len));
    refused(session.multi_get(&[key]));
    refused(session.multi_put(&[(key, value)]));
    refused(session.update(key, |_| unreachable!("there is no such key")));
    refused(session.fetch_add_u64(key, 0, 1));
    refused(session.fetch_add_u64(key, 3, 1));
    refused(session.compare_and_swap_u64(key, 0, 1, 2));
    refused(session.compare_and_swap(key, value, value));
    refused(session.delete(key));
    refused(db.put(key, value));
    refused(db.multi_put(&[(key, value)]));
    refused(db.get(key));
    refused(db.contains_key(key));
    refused(db.update(key, |_| unreachable!("there is no such key")));
    refused(db.fetch_add_u64(key, 0, 1));
    refused(db.compare_and_swap(key, value, value));
    refused(db.delete(key));
}

fn keys_that_cannot_be_are_refused_by_every_call(configuration: &Configuration) {
    let directory = scratch();
    let records = configuration.filled_store(directory.path(), RECORDS);
    let db = configuration.open(directory.path());
    let mut session = db.session();
    for key in [&[][..], &vec![7; KEY_BYTES]] {
        wrong_key(&db, &mut session, key, &configuration.value(1, 1));
    }
    let (good, empty) = (configuration.key(1), Vec::new());
    refused(session.multi_get(&[&good, &empty]));
    let changed = configuration.value(1, 2);
    refused(session.multi_put(&[(&good, &changed), (&empty, &changed)]));
    assert_holds(&db, &records);
    assert_eq!(session.stats().errors_argument, 2 + 2 * 12);
}

fn values_that_cannot_be_are_refused_by_every_call(configuration: &Configuration) {
    let directory = scratch();
    let records = configuration.filled_store(directory.path(), RECORDS);
    let options = configuration.options().capacity_bytes(configuration.full_bytes);
    let db = open(directory.path(), &options);
    let mut session = db.session();
    // Never touched: a store that looks at its bytes before their number takes a gigabyte.
    let (wrong, good) = (vec![0; VALUE_BYTES], configuration.value(1, 1));
    for number in [1, RECORDS] {
        let key = configuration.key(number);
        refused(session.put(&key, &wrong));
        refused(session.multi_put(&[(&key, &configuration.value(number, 2)), (&key, &wrong)]));
        refused(session.compare_and_swap(&key, &wrong, &good));
        refused(session.compare_and_swap(&key, &good, &wrong));
        refused(db.put(&key, &wrong));
        refused(db.compare_and_swap(&key, &good, &wrong));
    }
    assert_holds(&db, &records);
}

fn positions_outside_of_a_value_are_refused(configuration: &Configuration) {
    let directory = scratch();
    let records = configuration.filled_store(directory.path(), RECORDS);
    let db = configuration.open(directory.path());
    let mut session = db.session();
    for number in 0..RECORDS {
        let key = configuration.key(number);
        let length = records[&key].len();
        for at in [length - 7, length - 1, length, length + 1, usize::MAX - 7, usize::MAX] {
            for outcome in [
                session.fetch_add_u64(&key, at, 1),
                session.compare_and_swap_u64(&key, at, 0, 1),
                db.fetch_add_u64(&key, at, 1),
            ] {
                let Err(Error::FieldOutOfRange { at: found, value_bytes }) = outcome else {
                    panic!("8 bytes at {at} of {length}: {outcome:?}")
                };
                assert_eq!((found, value_bytes), (at, length));
            }
        }
        // The last field that there is.
        assert!(session.fetch_add_u64(&key, length - 8, 0).expect("inside").is_some());
    }
    assert_holds(&db, &records);
}

fn absent_keys_are_absent_for_every_call(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let mut session = db.session();
    let (absent, value) = (configuration.key(7), configuration.value(7, 1));
    for deleted in [false, true] {
        if deleted {
            configuration.fill(&mut session, 0..RECORDS, 1);
            (0..RECORDS).for_each(|number| {
                assert!(session.delete(configuration.key(number)).expect("it is there"));
            });
        }
        assert_eq!(session.get(&absent).expect("no error"), None);
        assert!(!session.contains_key(&absent).expect("no error"));
        assert!(!db.contains_key(&absent).expect("no error"));
        assert!(!session.delete(&absent).expect("no error"));
        assert!(!session.update(&absent, |_| unreachable!("no value")).expect("no error"));
        assert_eq!(session.fetch_add_u64(&absent, 8, 1).expect("no error"), None);
        assert_eq!(session.fetch_add_u64(&absent, 9, 1).expect("no error"), None);
        assert_eq!(session.compare_and_swap_u64(&absent, 0, 0, 1).expect("no error"), None);
        let swap = session.compare_and_swap(&absent, &value, &value).expect("no error");
        assert_eq!(swap, Swap::Missing);
        assert_eq!(session.multi_get(&[&absent; 40]).expect("no error"), vec![None; 40]);
        assert!(db.is_empty());
        assert_holds(&db, &crate::records::Records::new());
    }
}

/// Around everything that could be a border: words, lines, pages, blocks.
fn records_of_every_length_come_back(configuration: &Configuration) {
    use crate::tools::{key_of, value_of};
    let directory = scratch();
    let db = configuration.open(directory.path());
    let mut session = db.session();
    let mut records = crate::records::Records::new();
    let lengths = (0..700).chain([1023, 1024, 4095, 4096, 10_000, 65_535, 65_536, 200_000]);
    for length in lengths {
        let key = key_of(length, 3 + length as usize % 150);
        let value = value_of(length, 1, length as usize);
        match session.put(&key, &value) {
            // An engine may take shorter values only, but some thousand bytes.
            Err(Error::ValueLength { found, most }) if found > most && most >= 4096 => continue,
            outcome => assert!(outcome.expect("there is room")),
        }
        assert_eq!(session.get(&key).expect("get").as_ref(), Some(&value), "{length} bytes");
        records.insert(key, value);
    }
    assert_holds(&db, &records);
    drop(session);
    db.close().expect("nobody else has it");
    assert_holds(&configuration.open(directory.path()), &records);
}
