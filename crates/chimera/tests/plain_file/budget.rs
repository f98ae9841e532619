//! The memory budget of a store whose index grows.

use chimera::Session;
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
    let put = |session: &mut Session, number| session.put(&key(number), &value(number, 2));
    assert_fails(put(&mut session, records), &[&why]);
    let both = [(key(0), value(0, 2)), (key(records), value(records, 2))];
    assert_fails(session.multi_put(&both), &[&why]);
    assert_eq!(session.get(&key(records)).expect("a get"), None, "nothing was changed");
    // What takes no more memory goes on.
    assert!(!put(&mut session, 1).expect("an overwrite"));
    assert_eq!(session.get(&key(0)).expect("a get"), Some(value(0, 2)), "it came first");
    assert!(session.delete(&key(2)).expect("a delete"));
    assert!(session.update(&key(3), |value| value.reverse()).expect("an update"));
    drop(session);
    assert_eq!(db.len(), records - 1);
    db.close().expect("nobody else has it");

    assert_fails(open(budget).map(|_| ()), &[&why]);
    let (db, _) = open(1 << 30).expect("opens with a larger budget");
    assert_eq!(contents(&db).len() as u64, records - 1);
    assert!(put(&mut db.session(), records).expect("there is memory again"));
}
