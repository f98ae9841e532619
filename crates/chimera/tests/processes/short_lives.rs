//! Very many sessions and processes that write a single record.

use chimera::Options;

use crate::tools::{assert_sound, contents, key, open, scratch, value};

fn options() -> Options {
    Options::new()
        .fixed_size(8, 24)
        .segment_bytes(1 << 20)
        .populate_ahead_bytes(0)
        .reclaim_percent(0)
}

const STORE: &str = "CHIMERA_TEST_ONE_RECORD_STORE";
const NUMBER: &str = "CHIMERA_TEST_ONE_RECORD_NUMBER";

/// Writes one record. Does nothing when run as a test.
#[test]
fn one_record() {
    let Ok(store) = std::env::var(STORE) else { return };
    let number = std::env::var(NUMBER).expect("the parent says").parse().expect("a number");
    let db = open(std::path::Path::new(&store), &options());
    db.put(key(number), value(number, 1)).expect("put");
    if number % 2 == 0 {
        db.close().expect("nobody else has it");
    } else {
        std::process::exit(0);
    }
}

#[test]
fn a_thousand_lives_of_one_record_use_at_most_twelve_blocks() {
    let _alone = crate::alone();
    let directory = scratch();
    for number in 0..1000 {
        let db = open(directory.path(), &options());
        db.session().put(key(number), value(number, 1)).expect("put");
        db.close().expect("nobody else has it");
    }
    // Some that are processes indeed, half of which end without closing.
    for number in 1000..1030 {
        let variables =
            [(STORE, directory.path().display().to_string()), (NUMBER, number.to_string())];
        let status = crate::child("short_lives::one_record", &variables).wait();
        assert!(status.expect("the child is ours").success());
    }
    let db = open(directory.path(), &options());
    let blocks = db.stats().blocks_used;
    assert!(blocks <= 12, "{blocks} blocks for 1,030 records");
    assert_eq!(contents(&db).len(), 1030);
    assert_sound(&db);
}

#[test]
fn a_thousand_sessions_use_few_blocks() {
    let _alone = crate::alone();
    let directory = scratch();
    let db = open(directory.path(), &options());
    for number in 0..1000 {
        let mut session = db.session();
        session.put(key(number), value(number, 1)).expect("put");
    }
    let blocks = db.stats().blocks_used;
    assert!(blocks <= 12, "{blocks} blocks for 1,000 records");
    // All at once: each has a block of its own, and gives it back.
    let mut sessions: Vec<_> = (0..200).map(|_| db.session()).collect();
    for (number, session) in (1000..).zip(&mut sessions) {
        session.put(key(number), value(number, 1)).expect("put");
    }
    drop(sessions);
    let blocks = db.stats().blocks_used;
    assert!(blocks <= 12 + 200, "{blocks} blocks for 200 sessions");
    for number in 2000..6000 {
        let mut session = db.session();
        session.put(key(number), value(number, 1)).expect("put");
    }
    assert_eq!(db.stats().blocks_used, blocks, "blocks given back are not used again");
    assert_eq!(contents(&db).len(), 5200);
    assert_sound(&db);
}
