//! What a store says of itself, in several ways, is the same each time, and true.

use chimera::{Db, Options};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::tools::{assert_sound, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    all_reports_agree,
    operations_are_counted_under_what_they_did,
    a_session_that_has_ended_stays_in_the_sums,
    progress_is_told_and_ends_at_the_whole,
];

/// The value of a metric without labels.
fn metric(text: &str, name: &str) -> f64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name}")).parse().expect("a number")
}

fn assert_agree(configuration: &Configuration, db: &Db, records: u64) {
    let (stats, inspect, check) = (db.stats(), db.inspect(None), db.check(None));
    let text = db.metrics_text();
    assert!(check.is_sound(), "{check:?}");
    assert_eq!(stats.engine, configuration.engine);
    assert_eq!(db.len(), records);
    assert_eq!(db.is_empty(), records == 0);
    assert_eq!([stats.records, inspect.records, check.records, check.index_entries], [records; 4]);
    assert!((metric(&text, "chimera_records") - records as f64).abs() < 0.5);
    assert_eq!(stats.block_bytes, inspect.block_bytes);
    assert_eq!(stats.blocks_used, inspect.blocks_used);
    assert_eq!(stats.pmem_bytes, stats.blocks_used * stats.block_bytes);
    assert!((metric(&text, "chimera_pmem_bytes") - stats.pmem_bytes as f64).abs() < 0.5);
    assert!(stats.reclaim.debt_bytes <= stats.pmem_bytes);
    assert!(stats.dram_index_bytes > 0);
    let (key, value) = configuration.sizes().unwrap_or((0, 0));
    assert_eq!((stats.key_bytes as usize, stats.value_bytes as usize), (key, value));
    let user_bytes = (key > 0).then_some(records * (key + value) as u64);
    assert_eq!(stats.user_bytes, user_bytes);
    assert!(stats.pmem_bytes >= user_bytes.unwrap_or(records * 32));
    assert!(text.contains(&format!("engine=\"{}\"", configuration.engine)));
    assert!(text.contains(&format!("durability=\"{}\"", db.effective_durability())));
    assert!(text.ends_with("# EOF\n"));
    assert_eq!(stats.durability, db.effective_durability());
}

fn all_reports_agree(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    assert_agree(configuration, &db, 0);
    configuration.fill(&mut db.session(), 0..500, 1);
    assert_agree(configuration, &db, 500);
    configuration.fill(&mut db.session(), 100..300, 2);
    (0..200).for_each(|number| assert!(db.delete(configuration.key(number)).expect("delete")));
    assert_agree(configuration, &db, 300);
    // A session that owns something.
    let mut session = db.session();
    configuration.fill(&mut session, [0], 1);
    assert_agree(configuration, &db, 301);
    drop(session);
    db.close().expect("nobody else has it");
    // Records that are moved beside a check are counted once or not at all.
    let db = open(directory.path(), &Options::new().reclaim_percent(0));
    assert_agree(configuration, &db, 301);
    assert_eq!(db.stats().recovery.records, 301);
    drop(db);
    assert_agree(configuration, &open(directory.path(), &Options::new().read_only(true)), 301);
}

fn operations_are_counted_under_what_they_did(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let mut session = db.session();
    let (key, absent) = (configuration.key(1), configuration.key(2));
    let (old, new) = (configuration.value(1, 1), configuration.value(1, 2));
    session.put(&key, &old).expect("put");
    session.put(&key, &old).expect("put");
    session.get(&key).expect("get");
    session.get(&absent).expect("get");
    session.multi_get(&[&key, &absent, &absent]).expect("multi_get");
    session.compare_and_swap(&key, &new, &new).expect("swap");
    session.compare_and_swap(&key, &old, &new).expect("swap");
    session.update(&absent, |_| ()).expect("update");
    session.put([], &old).expect_err("no key");
    session.delete(&absent).expect("delete");
    session.delete(&key).expect("delete");
    let stats = session.stats();
    assert_eq!((stats.inserts, stats.overwrites), (1, 1));
    assert_eq!((stats.get_hits, stats.get_misses), (1, 1));
    assert_eq!((stats.multi_gets, stats.multi_get_hits, stats.multi_get_misses), (1, 1, 2));
    assert_eq!((stats.swaps_refused, stats.update_misses), (1, 1));
    assert_eq!(stats.updates + stats.updates_in_place, 1);
    assert_eq!((stats.deletes, stats.delete_misses), (1, 1));
    assert_eq!((stats.errors_argument, stats.errors()), (1, 1));
    assert_eq!(stats.value_bytes_read, 2 * old.len() as u64);
    assert_eq!(db.stats().operations, stats);
    let one = db.session_stats();
    assert_eq!(one.len(), 1);
}

fn a_session_that_has_ended_stays_in_the_sums(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    for round in 1..=5 {
        let mut session = db.session();
        configuration.fill(&mut session, round * 10..round * 10 + 10, 1);
        assert_eq!(session.stats().inserts, 10);
        assert_eq!(db.session_stats().len(), 1);
        drop(session);
        assert_eq!(db.session_stats().len(), 0);
        assert_eq!(db.stats().operations.inserts, 10 * round);
    }
    assert_sound(&db);
}

fn progress_is_told_and_ends_at_the_whole(configuration: &Configuration) {
    use std::sync::{Arc, Mutex};
    let directory = scratch();
    let db = configuration.open(directory.path());
    configuration.fill(&mut db.session(), 0..2000, 1);
    let told = Arc::new(Mutex::new(Vec::new()));
    let progress: chimera::Progress = {
        let told = told.clone();
        Arc::new(move |done, whole| told.lock().expect("nobody panics").push((done, whole)))
    };
    let check = |about: &str| {
        let told = std::mem::take(&mut *told.lock().expect("nobody panics"));
        let (done, whole) = *told.last().unwrap_or_else(|| panic!("{about} tells nothing"));
        assert_eq!(done, whole, "{about} ends before the whole");
        assert!(told.iter().all(|(done, whole)| done <= whole), "{about}: {told:?}");
        assert!(told.is_sorted_by_key(|(done, _)| *done), "{about}: {told:?}");
    };
    db.check(Some(&progress));
    check("check");
    db.inspect(Some(&progress));
    check("inspect");
    drop(db);
    drop(open(directory.path(), &configuration.options().progress(progress).recovery_threads(1)));
    check("recovery");
}
