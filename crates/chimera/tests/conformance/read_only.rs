//! Stores that are open for reading only.

use std::fmt::Debug;

use chimera::{Db, ErrorKind, Result};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::assert_holds;
use crate::tools::{bytes_of, copy_store, open, scratch};

pub(crate) const TESTS: &[Test] = tests![a_reader_refuses_writes_and_changes_nothing];

fn refused<T: Debug>(outcome: Result<T>) {
    let error = outcome.expect_err("the store is open for reading only");
    assert_eq!(error.kind(), ErrorKind::WritesRefused, "{error}");
}

fn assert_refuses_writes(configuration: &Configuration, db: &Db) {
    let mut session = db.session();
    for number in [1, 1000] {
        let (key, old) = (configuration.key(number), configuration.value(number, 1));
        let new = configuration.value(number, 2);
        refused(session.put(&key, &new));
        refused(session.delete(&key));
        refused(session.update(&key, |value| value[0] ^= 1));
        refused(session.fetch_add_u64(&key, 0, 1));
        refused(session.fetch_add_u64(&key, 1, 1));
        refused(session.compare_and_swap_u64(&key, 0, 1, 2));
        refused(session.compare_and_swap(&key, &old, &new));
        refused(db.put(&key, &new));
        refused(db.delete(&key));
        refused(db.update(&key, |value| value[0] ^= 1));
        refused(db.fetch_add_u64(&key, 0, 1));
        refused(db.compare_and_swap(&key, &old, &new));
    }
    refused(db.compact(1, None));
    assert_eq!(session.stats().errors_read_only, 14);
}

fn a_reader_refuses_writes_and_changes_nothing(configuration: &Configuration) {
    for records in [0, 1, 40, 300] {
        let (directory, killed) = (scratch(), scratch());
        let db = open(directory.path(), &configuration.still());
        configuration.fill(&mut db.session(), 0..records, 1);
        // Closed in order, and as a killed process leaves it.
        copy_store(directory.path(), killed.path());
        db.close().expect("nobody else has it");
        let records = configuration.records(0..records, 1);
        for path in [directory.path(), killed.path()] {
            let before = bytes_of(path);
            let db = open(path, &configuration.options().read_only(true));
            assert_holds(&db, &records);
            assert_refuses_writes(configuration, &db);
            db.sync().expect("nothing to do");
            assert_holds(&db, &records);
            db.close().expect("nobody else has it");
            assert!(bytes_of(path) == before, "a reader changed the store");
        }
    }
}
