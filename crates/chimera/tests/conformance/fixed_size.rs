//! Stores whose keys have one size and whose values have one size.

use chimera::{
    Batch, Db, Error, ErrorKind, ExportOptions, ImportOptions, Session, StreamReader, Swap, TypedDb,
};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::assert_holds;
use crate::tools::{contents, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    other_lengths_are_refused_by_every_call: needs fixed_size,
    another_size_is_a_mismatch_that_says_both: needs fixed_size,
    streams_of_other_sizes_are_refused: needs fixed_size,
    records_of_a_type_come_back: needs fixed_size,
    typed_records_have_the_calls_of_bytes: needs fixed_size,
    every_write_of_a_value_has_the_counter_ready: needs fixed_size in_place,
    a_counter_that_values_do_not_have_is_refused,
];

const RECORDS: u64 = 20;

fn other_lengths_are_refused_by_every_call(configuration: &Configuration) {
    let directory = scratch();
    let records = configuration.filled_store(directory.path(), RECORDS);
    let db = configuration.open(directory.path());
    let mut session = db.session();
    let (key, value) = (configuration.key(1), configuration.value(1, 1));
    let (key_bytes, value_bytes) = (key.len(), value.len());
    for bytes in [1, key_bytes - 1, key_bytes + 1, 4 * key_bytes] {
        let wrong = vec![7; bytes];
        for outcome in [
            session.put(&wrong, &value).map(drop),
            session.get(&wrong).map(drop),
            session.multi_get(&[&key, &wrong]).map(drop),
            session.update(&wrong, |_| unreachable!("there is no such key")).map(drop),
            session.fetch_add_u64(&wrong, 0, 1).map(drop),
            session.compare_and_swap(&wrong, &value, &value).map(drop),
            session.delete(&wrong).map(drop),
            db.contains_key(&wrong).map(drop),
        ] {
            let Err(Error::KeySize { found, expected }) = outcome else { panic!("{outcome:?}") };
            assert_eq!((found, expected), (bytes, key_bytes));
        }
    }
    for bytes in [0, 1, value_bytes - 1, value_bytes + 1, 4 * value_bytes] {
        let wrong = vec![7; bytes];
        for outcome in [
            session.put(&key, &wrong).map(drop),
            session.update(&key, |value| value.resize(bytes, 7)).map(drop),
            session.compare_and_swap(&key, &wrong, &value).map(drop),
            session.compare_and_swap(&key, &value, &wrong).map(drop),
            db.put(&key, &wrong).map(drop),
        ] {
            let Err(Error::ValueSize { found, expected }) = outcome else { panic!("{outcome:?}") };
            assert_eq!((found, expected), (bytes, value_bytes));
        }
    }
    assert_holds(&db, &records);
}

fn another_size_is_a_mismatch_that_says_both(configuration: &Configuration) {
    let directory = scratch();
    let records = configuration.filled_store(directory.path(), RECORDS);
    let (key, value) = configuration.sizes().expect("a fixed size");
    for (other_key, other_value) in [(key + 1, value), (key, value + 8)] {
        let options = configuration.options().fixed_size(other_key as u32, other_value as u32);
        let error = Db::open(directory.path(), &options).expect_err("another size");
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
        let (found, wanted) =
            if other_key == key { (value, other_value) } else { (key, other_key) };
        let text = error.to_string();
        assert!(text.contains(&found.to_string()) && text.contains(&wanted.to_string()), "{text}");
    }
    assert_holds(&configuration.open(directory.path()), &records);
}

fn streams_of_other_sizes_are_refused(configuration: &Configuration) {
    let directory = scratch();
    let (key, value) = configuration.sizes().expect("a fixed size");
    let options = configuration.options().fixed_size(key as u32, value as u32 + 8);
    let other = Db::open(directory.path().join("other"), &options).expect("a store");
    other.put(configuration.key(1), vec![7; value + 8]).expect("put");
    let mut stream = Vec::new();
    other.export(&mut stream, &ExportOptions::new()).expect("an export");
    let db = configuration.open(&directory.path().join("one"));
    let mut reader = StreamReader::new(&stream[..]).expect("a stream");
    let error = db.import(&mut reader, &ImportOptions::new()).expect_err("other sizes");
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    assert!(contents(&db).is_empty());
}

fn typed_records_have_the_calls_of_bytes(configuration: &Configuration) {
    type Typed = TypedDb<u64, [u32; 6]>;
    let directory = scratch();
    let db = Typed::open(directory.path(), &configuration.options()).expect("of these sizes");
    let mut session = db.session();
    assert!(session.put_if_absent(&1, &[1; 6]).expect("room"));
    assert!(!session.put_if_absent(&1, &[2; 6]).expect("it is there"));
    assert!(session.update_or_insert(&2, &[5; 6], |value| value[0] = 9).expect("room"));
    assert!(!session.update_or_insert(&2, &[6; 6], |value| value[0] = 9).expect("room"));
    let found = session.multi_get(&[2, 3, 1]).expect("gets");
    assert_eq!(found, [Some([9, 5, 5, 5, 5, 5]), None, Some([1; 6])]);
    assert_eq!(session.multi_put(&[(3, [7; 6]), (1, [8; 6])]).expect("room"), 1);
    assert_eq!(session.multi_get(&[3, 1]).expect("gets"), [Some([7; 6]), Some([8; 6])]);
    let stopped = session.try_update(&1, |value| {
        value[0] = 1;
        Err(Error::NotOrdered)
    });
    assert!(matches!(stopped, Err(Error::NotOrdered)));
    let change = |value: &mut [u32; 6]| {
        *value = [1; 6];
        Ok::<_, Error>(())
    };
    assert!(session.try_update(&1, change).expect("room"));
    assert!(session.delete(&3).expect("a delete"));
    assert_eq!(session.compare_and_swap(&1, &[2; 6], &[3; 6]).expect("room"), Swap::Different);
    assert_eq!(session.compare_and_swap(&1, &[1; 6], &[3; 6]).expect("room"), Swap::Swapped);
    let mut all: Vec<_> = db.iter().map(|record| record.expect("no damage")).collect();
    all.sort_unstable();
    assert_eq!(all, [(1, [3; 6]), (2, [9, 5, 5, 5, 5, 5])]);
    assert!(!session.delete_if(&1, |value| value[5] == 1).expect("a delete"));
    assert!(session.delete_if(&1, |value| value[5] == 3).expect("a delete"));
    assert!(!session.contains_key(&1).expect("a get") && session.contains_key(&2).expect("a get"));
}

fn records_of_a_type_come_back(configuration: &Configuration) {
    type Typed = TypedDb<u64, [u32; 6]>;
    let directory = scratch();
    let value = |number: u64| [0, 1, 2, 3, 4, 5].map(|at| (number as u32) << 4 | at);
    // Of the sizes of the configuration, which the types must have.
    assert_eq!(configuration.sizes(), Some((size_of::<u64>(), size_of::<[u32; 6]>())));
    let db = Typed::open(directory.path(), &configuration.options()).expect("a store");
    let mut session = db.session();
    for number in 0..RECORDS {
        assert!(session.put(&number, &value(number)).expect("put"));
    }
    assert!(session.update(&3, |it| it[5] = 77).expect("update"));
    assert!(session.delete(&4).expect("delete"));
    assert!(!session.update(&4, |_| ()).expect("update"));
    drop(session);
    db.close().expect("nobody else has it");
    let db = Typed::open(directory.path(), &configuration.options()).expect("a store");
    let mut session = db.session();
    let mut changed = value(3);
    changed[5] = 77;
    assert_eq!(session.get(&3).expect("get"), Some(changed));
    assert_eq!(session.get(&4).expect("get"), None);
    assert_eq!(session.get(&5).expect("get"), Some(value(5)));
    assert_eq!(db.db().len(), RECORDS - 1);
    drop(session);
    drop(db);
    let error = TypedDb::<u64, u64>::open(directory.path(), &configuration.options());
    assert_eq!(error.expect_err("another type").kind(), ErrorKind::Mismatch);
}

/// Where the counter is in these tests.
const COUNTER_AT: u32 = 8;

fn every_write_of_a_value_has_the_counter_ready(configuration: &Configuration) {
    type Write = fn(&mut Session, &[u8], &[u8]) -> chimera::Result<()>;
    let writes: [Write; 8] = [
        |session, key, value| session.put_if_absent(key, value).map(drop),
        |session, key, value| session.put(key, value).map(drop),
        |session, key, value| session.delete(key).and_then(|_| session.put(key, value)).map(drop),
        |session, key, value| session.multi_put(&[(key, value)]).map(drop),
        |session, key, value| session.update(key, |it| it.copy_from_slice(value)).map(drop),
        // One word, and not the counter.
        |session, key, _| session.update(key, |it| it[0] ^= 1).map(drop),
        |session, key, _| session.fetch_add_u64(key, 16, 1).map(drop),
        |session, key, value| session.write(Batch::new().put(key, value)),
    ];
    let directory = scratch();
    let options = configuration.options().counter_at(COUNTER_AT);
    let at = COUNTER_AT as usize;
    let db = open(directory.path(), &options);
    let mut session = db.session();
    let key = configuration.key(1);
    for (number, write) in (1..).zip(writes) {
        write(&mut session, &key, &configuration.value(1, number)).expect("room");
        let value = session.get(&key).expect("a get").expect("it is there");
        let in_place = session.stats().updates_in_place;
        let before = session.fetch_add_u64(&key, at, 1).expect("room").expect("it is there");
        assert_eq!(before.to_le_bytes(), value[at..at + 8], "write {number}");
        assert_eq!(session.stats().updates_in_place, in_place + 1, "write {number}");
    }
    let records = contents(&db);
    drop(session);
    drop(db);
    // It is an option of each opening.
    assert_eq!(contents(&configuration.open(directory.path())), records);
}

fn a_counter_that_values_do_not_have_is_refused(configuration: &Configuration) {
    let directory = scratch();
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    let records = configuration.filled_store(&old, RECORDS);
    let sizes = configuration.sizes();
    let wrong = sizes.map_or(vec![0, 8], |(_, value)| vec![4, value as u32, 65_528, u32::MAX]);
    for at in wrong {
        for path in [&old, &new] {
            let error = Db::open(path, &configuration.options().counter_at(at));
            let error = error.expect_err("there is no such word");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert_eq!(sizes.is_none(), error.to_string().contains("put_counter"), "{error}");
        }
    }
    assert!(contents(&configuration.open(&new)).is_empty(), "nothing was made");
    assert_holds(&configuration.open(&old), &records);
}
