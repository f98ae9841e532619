//! The memory budget of a store whose index grows.

use chimera_pmem::environment::MemoryFiles;

use super::*;
use crate::tools::{assert_fails, contents, fill};

/// Records to put at a time, and most times.
const STEP: u64 = 2000;
const STEPS_MAX: u64 = 100;

#[test]
fn an_index_that_outgrows_the_budget_fails_no_write_and_says_so() {
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
        environment.advance(6_000_000_000);
        while environment.step_tasks() {}
    }
    assert_eq!(pages(&db).budget_bytes, budget);
    fill(&mut session, records..records + STEP, 1);
    records += STEP;
    drop(session);
    assert_eq!(db.len(), records);
    db.close().expect("nobody else has it");

    assert_fails(open(budget).map(|_| ()), &["the memory budget is", "and the store needs"]);
    let (db, _) = open(1 << 30).expect("opens with a larger budget");
    assert_eq!(contents(&db).len() as u64, records);
}
