//! That keys are kept in their order is recorded in the store. First and last keys, and ranges that are deleted.

use chimera::{BackupOptions, Db, Options, Session};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds};
use crate::tools::{assert_fails, assert_sound, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    order_holds_at_every_later_open: needs ordered,
    it_may_be_left_out_once_and_tried_once: needs ordered,
    a_refused_opening_records_nothing: needs ordered,
    a_backup_keeps_the_order: needs ordered,
    a_session_is_used_while_it_is_scanned: needs ordered,
    the_first_and_the_last_key: needs ordered,
    ranges_are_deleted: needs ordered,
];

const KEYS: u64 = 60;

/// Options that say nothing of the order.
fn silent(configuration: &Configuration) -> Options {
    configuration.options().ordered(true).order(|order| order.queues(2))
}

fn is_ordered(db: &Db) -> bool {
    let scanned = db.scan(..).map(Iterator::count);
    scanned.is_ok_and(|count| count as u64 == db.len())
}

/// A store that was made in order, closed; what it holds.
fn made(configuration: &Configuration, path: &std::path::Path) -> Records {
    let db = open(path, &silent(configuration));
    configuration.fill(&mut db.session(), 0..KEYS, 1);
    db.close().expect("nobody else has it");
    configuration.records(0..KEYS, 1)
}

/// A store that was never in order, closed.
fn made_without(configuration: &Configuration, path: &std::path::Path) {
    let db = open(path, &configuration.options().ordered(false));
    configuration.fill(&mut db.session(), 0..KEYS, 1);
}

fn order_holds_at_every_later_open(configuration: &Configuration) {
    let directory = scratch();
    let records = made(configuration, directory.path());
    for options in [Options::new(), Options::new().read_only(true), Options::new()] {
        let db = open(directory.path(), &options);
        assert!(is_ordered(&db), "{options:?}");
        assert_holds(&db, &records);
        db.close().expect("nobody else has it");
    }
}

fn it_may_be_left_out_once_and_tried_once(configuration: &Configuration) {
    let directory = scratch();
    made(configuration, directory.path());
    let is_ordered_with = |options: Options| is_ordered(&open(directory.path(), &options));
    assert!(!is_ordered_with(Options::new().ordered(false)));
    assert!(is_ordered_with(Options::new()), "the record stays");
    let other = scratch();
    made_without(configuration, other.path());
    let is_ordered_with = |options: Options| is_ordered(&open(other.path(), &options));
    assert!(is_ordered_with(Options::new().ordered(true).order(|order| order.this_time(true))));
    assert!(is_ordered_with(Options::new().read_only(true).ordered(true)));
    assert!(!is_ordered_with(Options::new()), "neither is recorded");
    assert!(is_ordered_with(Options::new().ordered(true)));
    assert!(is_ordered_with(Options::new()));
}

fn a_refused_opening_records_nothing(configuration: &Configuration) {
    let directory = scratch();
    made_without(configuration, directory.path());
    let other = Options::new().ordered(true).segment_bytes(3 << 20);
    assert!(Db::open(directory.path(), &other).is_err());
    assert_fails(open(directory.path(), &Options::new()).scan(..), &["not kept in order"]);
}

fn a_backup_keeps_the_order(configuration: &Configuration) {
    let (directory, to) = (scratch(), scratch());
    let records = made(configuration, directory.path());
    let db = open(directory.path(), &Options::new());
    let path = to.path().join("copy");
    db.backup(&path, &BackupOptions::new()).expect("a backup");
    let copy = open(&path, &Options::new());
    assert!(is_ordered(&copy));
    assert_holds(&copy, &records);
}

fn a_session_is_used_while_it_is_scanned(configuration: &Configuration) {
    let directory = scratch();
    let records = made(configuration, directory.path());
    let db = open(directory.path(), &Options::new());
    let mut session = db.session();
    let mut expected = records.iter();
    for record in session.scan(..).expect("in order") {
        let (key, value) = record.expect("no damage");
        assert_eq!(session.get(&key).expect("a get"), Some(value.clone()));
        assert_eq!(expected.next(), Some((&key, &value)));
        assert!(session.delete(&key).expect("a delete"));
    }
    assert_eq!((expected.next(), db.len()), (None, 0));
    let scan = session.scan(..).expect("in order");
    drop(session);
    let db = db.close().expect_err("a scan is a handle").into_db().expect("it is still open");
    drop(scan);
    db.close().expect("nobody else has it");
}

fn the_first_and_the_last_key(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &silent(configuration));
    assert_eq!((db.first().expect("in order"), db.last().expect("in order")), (None, None));
    let mut session: Session = db.session();
    configuration.fill(&mut session, 0..KEYS, 1);
    let records = configuration.records(0..KEYS, 1);
    let ends = [records.iter().next(), records.iter().next_back()];
    let ends = ends.map(|record| record.map(|(key, value)| (key.clone(), value.clone())));
    assert_eq!([db.first(), db.last()].map(|end| end.expect("in order")), ends);
    assert_eq!([session.first(), session.last()].map(|end| end.expect("in order")), ends);
    drop((session, db));
    let db = open(directory.path(), &Options::new().ordered(false));
    assert_fails(db.first(), &["not kept in order"]);
    assert_fails(db.last(), &["not kept in order"]);
}

fn ranges_are_deleted(configuration: &Configuration) {
    const MANY: u64 = 700;
    let directory = scratch();
    let db = open(directory.path(), &silent(configuration));
    let mut session = db.session();
    configuration.fill(&mut session, 0..MANY, 1);
    let mut records = configuration.records(0..MANY, 1);
    let keys: Vec<_> = records.keys().cloned().collect();
    let deleted = session.delete_range(&keys[10]..&keys[20]).expect("in order");
    assert_eq!(deleted, 10);
    keys[10..20].iter().for_each(|key| drop(records.remove(key)));
    assert_holds(&db, &records);
    assert_eq!(db.delete_range(&keys[10]..&keys[20]).expect("in order"), 0);
    assert_eq!(db.delete_range(&keys[21]..=&keys[MANY as usize - 2]).expect("in order"), MANY - 22);
    keys[21..MANY as usize - 1].iter().for_each(|key| drop(records.remove(key)));
    assert_holds(&db, &records);
    assert_eq!(db.delete_range(..).expect("in order"), records.len() as u64);
    assert!(db.is_empty());
    assert_sound(&db);
}
