//! The memory budget of a store whose index grows.

use chimera::{EngineKind, Session};
use chimera_pmem::environment::MemoryFiles;

use super::*;
use crate::tools::{assert_fails, contents, fill, key, value};

/// Records to put at a time, and most times.
const STEP: u64 = 2000;
const STEPS_MAX: u64 = 100;

/// The index is looked at every second.
fn look(environment: &SteppedEnvironment) {
    environment.advance(2_000_000_000);
    while environment.step_tasks() {}
}

#[test]
fn new_keys_are_refused_once_the_index_has_outgrown_the_budget() {
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let path = Path::new("store");
    let open = |budget| open_at(1, files.clone(), path, &options(GROUP).memory_budget(budget));
    let pages = |db: &Db| db.stats().pages.expect("a plain file has them");
    let (db, _) = open(1 << 30).expect("opens");
    let budget = pages(&db).needed_bytes;
    db.close().expect("nobody else has it");

    let (db, environment) = open(budget).expect("opens with what it needs");
    let mut session = db.session();
    let mut records = 0;
    while pages(&db).needed_bytes <= budget {
        assert!(records < STEP * STEPS_MAX, "the index does not grow");
        fill(&mut session, records..records + STEP, 1);
        records += STEP;
        look(&environment);
    }
    assert_eq!(pages(&db).budget_bytes, budget);

    let why = format!("and may take {budget}: open it with");
    let put = |session: &mut Session, number| session.put(key(number), value(number, 2));
    assert_fails(put(&mut session, records), &[&why]);
    let both = [(key(0), value(0, 2)), (key(records), value(records, 2))];
    assert_fails(session.multi_put(&both), &[&why]);
    assert_eq!(session.get(key(records)).expect("a get"), None, "nothing was changed");
    // What takes no more memory goes on.
    assert!(!put(&mut session, 1).expect("an overwrite"));
    assert_eq!(session.get(key(0)).expect("a get"), Some(value(0, 2)), "it came first");
    assert!(session.delete(key(2)).expect("a delete"));
    assert!(session.update(key(3), |value| value.reverse()).expect("an update"));
    drop(session);
    assert_eq!(db.len(), records - 1);
    db.close().expect("nobody else has it");

    assert_fails(open(budget).map(|_| ()), &[&why]);
    let (db, _) = open(1 << 30).expect("opens with a larger budget");
    assert_eq!(contents(&db).len() as u64, records - 1);
    assert!(put(&mut db.session(), records).expect("there is memory again"));
}

/// Of eight shards with MemTables of 512 slots: 8 x 4,096 slots of small bypass indexes, 8 x 32,768 of large ones.
fn chameleon(budget: u64) -> Options {
    let options =
        Options::new().engine(EngineKind::Chameleon).durability(GROUP).memory_budget(budget);
    options.chameleon(|chameleon| chameleon.shards(8))
}

/// Bytes of DRAM of a store that was filled, and of what it would take with a larger budget.
fn filled(budget: u64, records: u64) -> u64 {
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let path = Path::new("store");
    let (db, environment) = open_at(1, files.clone(), path, &chameleon(budget)).expect("opens");
    let mut session = db.session();
    for first in (0..records).step_by(STEP as usize) {
        fill(&mut session, first..first + STEP, 1);
        look(&environment);
    }
    for number in (0..records).step_by(97) {
        assert_eq!(session.get(key(number)).expect("a get"), Some(value(number, 1)));
    }
    drop(session);
    assert_eq!(db.len(), records);
    let bytes = db.stats().dram_index_bytes;
    db.close().expect("nobody else has it");
    let (db, _) = open_at(1, files, path, &chameleon(1 << 30)).expect("opens again");
    assert_eq!(contents(&db).len() as u64, records);
    bytes
}

#[test]
fn bypass_indexes_grow_as_far_as_the_budget_goes_and_are_emptied_sooner() {
    const RECORDS: u64 = 60_000;
    let (small, large) = (8 * 4096 * 16, 8 * 32_768 * 16);
    assert!(filled(1 << 30, RECORDS) > large);
    // Half of what 8 MiB of pages leave.
    let bytes = filled(24 << 20, RECORDS);
    assert!((large..=8 << 20).contains(&bytes), "there is room for all of them: {bytes}");
    let bytes = filled(12 << 20, RECORDS);
    assert!(bytes > small && bytes <= 2 << 20, "some are large: {bytes}");
    let bytes = filled(10 << 20, RECORDS);
    assert!((small..=1 << 20).contains(&bytes), "few are: {bytes}");
}

/// Of records that are in no table: a restart has more or fewer of them in its bypass indexes than there were.
#[test]
fn a_killed_store_is_opened_within_the_budget_that_it_had() {
    for records in [26_000, 28_000] {
        killed_store_opens(records);
    }
}

/// All bypass indexes stay small.
fn killed_store_opens(records: u64) {
    let options = chameleon(9 << 20).chameleon(|chameleon| chameleon.write_intensive(true));
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let path = Path::new(damage::STORE);
    let (db, environment) = open_at(1, files.clone(), path, &options).expect("opens");
    let mut session = db.session();
    for first in (0..records).step_by(STEP as usize) {
        fill(&mut session, first..first + STEP, 1);
        look(&environment);
    }
    assert!(db.stats().dram_index_bytes < 1 << 20);
    let left = damage::files_of(&damage::left_of(&files));
    let (again, environment) = open_at(1, left, path, &options).expect("opens again");
    while environment.step_tasks() {}
    assert!(again.stats().dram_index_bytes < 1 << 20);
    assert_eq!(contents(&again).len() as u64, records);
}
