//! Opening, closing, and who may have a store open.

use chimera::{Db, Error, ErrorKind, Options};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::assert_holds;
use crate::tools::{assert_fails, bytes_of, contents, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    options_that_name_nothing_open_any_store,
    the_engine_that_a_store_has_may_be_named,
    another_engine_is_a_mismatch_that_says_both: needs another_engine,
    a_missing_store_is_not_created_against_the_will,
    a_file_is_no_store_and_stays_as_it_is,
    a_second_opener_is_refused,
    readers_share_a_store_and_keep_writers_away,
    a_store_in_use_is_not_closed_and_the_handle_comes_back,
];

const RECORDS: u64 = 40;

fn options_that_name_nothing_open_any_store(configuration: &Configuration) {
    let directory = scratch();
    let mut records = configuration.filled_store(directory.path(), RECORDS);
    for options in [Options::new().create(false), Options::new().read_only(true)] {
        let db = open(directory.path(), &options);
        assert_eq!(db.stats().engine, configuration.engine);
        assert_holds(&db, &records);
    }
    let db = open(directory.path(), &Options::new());
    configuration.fill(&mut db.session(), RECORDS..2 * RECORDS, 2);
    records.extend(configuration.records(RECORDS..2 * RECORDS, 2));
    db.close().expect("nobody else has it");
    assert_holds(&configuration.open(directory.path()), &records);
}

fn the_engine_that_a_store_has_may_be_named(configuration: &Configuration) {
    let directory = scratch();
    let records = configuration.filled_store(directory.path(), RECORDS);
    let db = open(directory.path(), &Options::new().engine(configuration.engine));
    assert_eq!(db.stats().engine, configuration.engine);
    assert_holds(&db, &records);
}

fn another_engine_is_a_mismatch_that_says_both(configuration: &Configuration) {
    let directory = scratch();
    let records = configuration.filled_store(directory.path(), RECORDS);
    let before = bytes_of(directory.path());
    let other = configuration.another_engine().expect("the harness looks for one");
    for options in [Options::new(), Options::new().read_only(true), Options::new().salvage(true)] {
        let outcome = Db::open(directory.path(), &options.engine(other));
        assert!(matches!(outcome, Err(Error::Mismatch { .. })), "{outcome:?}");
        let words = ["engine", configuration.engine.name(), other.name()];
        assert_fails(outcome, &words);
    }
    assert!(bytes_of(directory.path()) == before, "a refused opener changed the store");
    assert_holds(&configuration.open(directory.path()), &records);
}

fn a_missing_store_is_not_created_against_the_will(configuration: &Configuration) {
    let directory = scratch();
    for path in [directory.path().to_owned(), directory.path().join("not/there")] {
        let options = configuration.options();
        for options in [options.clone().create(false), options.read_only(true)] {
            let error = Db::open(&path, &options).expect_err("nothing is there");
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
    }
    assert!(bytes_of(directory.path()).is_empty(), "something was created");
}

fn a_file_is_no_store_and_stays_as_it_is(configuration: &Configuration) {
    let directory = scratch();
    let path = directory.path().join("file");
    std::fs::write(&path, b"something else").expect("written");
    let options = configuration.options();
    for options in [options.clone(), options.read_only(true), Options::new()] {
        let error = Db::open(&path, &options).expect_err("a file");
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    }
    assert_eq!(std::fs::read(&path).expect("still there"), b"something else");
}

fn a_second_opener_is_refused(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let options = configuration.options();
    for options in [options.clone(), options.clone().read_only(true), options.salvage(true)] {
        let outcome = Db::open(directory.path(), &options);
        assert!(matches!(outcome, Err(Error::Locked { .. })), "{outcome:?}");
        let process = format!("process {}", std::process::id());
        assert_fails(outcome, &[&process, "close it there first"]);
    }
    let session = db.session();
    drop(db);
    let error = Db::open(directory.path(), &configuration.options());
    assert_eq!(error.expect_err("a session holds the store").kind(), ErrorKind::InUse);
    drop(session);
    configuration.open(directory.path());
}

fn readers_share_a_store_and_keep_writers_away(configuration: &Configuration) {
    let directory = scratch();
    let records = configuration.filled_store(directory.path(), RECORDS);
    let reading = configuration.options().read_only(true);
    let (first, second) = (open(directory.path(), &reading), open(directory.path(), &reading));
    assert_holds(&first, &records);
    assert_holds(&second, &records);
    let refused = || {
        let outcome = Db::open(directory.path(), &configuration.options());
        assert_eq!(outcome.expect_err("somebody reads").kind(), ErrorKind::InUse);
    };
    refused();
    drop(first);
    refused();
    drop(second);
    configuration.open(directory.path());
}

fn a_store_in_use_is_not_closed_and_the_handle_comes_back(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let (mut session, clone) = (db.session(), db.clone());
    let failed = db.close().expect_err("in use");
    assert!(matches!(failed.error(), Error::StillInUse { others: 2 }), "{failed:?}");
    let db = failed.into_db().expect("the store is open");
    configuration.fill(&mut db.session(), [1], 1);
    drop(clone);
    let failed = db.close().expect_err("in use");
    assert!(matches!(failed.error(), Error::StillInUse { others: 1 }), "{failed:?}");
    drop(failed);
    // The session goes on, and closes the store in order.
    configuration.fill(&mut session, [2], 1);
    drop(session);
    let db = configuration.open(directory.path());
    assert!(db.stats().recovery.clean);
    assert!(contents(&db) == configuration.records(1..=2, 1));
}
