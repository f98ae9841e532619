//! A store on a plain file that is larger than the memory that it may take.

use std::path::Path;

use chimera::{ChameleonOptions, Db, EngineKind, Error, Options};
use chimera_pmem::Medium;

use super::{alone, assert_passed, run_child, store_of_child};

/// A directory on a file system with files that take no memory, where the machine has one for its tests.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// What a store may take.
const BUDGET: u64 = 48 << 20;
/// What the process may take beyond that: its stack, its code, buffers of the test.
const BESIDE: u64 = 32 << 20;
/// Bytes of a value.
const VALUE_BYTES: usize = 1000;
/// Records: three times the budget.
const RECORDS: u64 = 3 * BUDGET / VALUE_BYTES as u64;
/// How often the memory of the process is looked at.
const LOOK_EVERY: u64 = 500;

fn options(engine: EngineKind) -> Options {
    // By default it takes memory for many more keys.
    let smaller =
        |chameleon: ChameleonOptions| chameleon.expected_keys(RECORDS).dram_bytes(BUDGET / 4);
    let options = Options::new().engine(engine).memory_budget(BUDGET);
    if engine == EngineKind::Chameleon { options.chameleon(smaller) } else { options }
}

/// Bytes of anonymous memory of this process: all that the kernel cannot write to a file.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

fn record(number: u64, round: u64) -> ([u8; 8], Vec<u8>) {
    let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round;
    (number.to_be_bytes(), word.to_le_bytes().repeat(VALUE_BYTES / 8))
}

/// Loads, overwrites, reads and deletes; the highest memory of the process meanwhile.
fn use_store(db: &Db) -> u64 {
    let mut most = 0;
    let mut look = |number: u64| {
        if number.is_multiple_of(LOOK_EVERY) {
            most = most.max(anonymous_bytes());
        }
    };
    let mut session = db.session();
    for round in 0..2 {
        for number in 0..RECORDS {
            // Not in their order.
            let (key, value) = record(number * 7919 % RECORDS, round);
            session.put(key, &value).expect("a put");
            look(number);
        }
    }
    for number in 0..RECORDS {
        let (key, value) = record(number, 1);
        assert_eq!(session.get(key).expect("a get"), Some(value), "record {number}");
        look(number);
    }
    for number in (0..RECORDS).filter(|number| number % 4 != 0) {
        assert!(session.delete(record(number, 0).0).expect("a delete"), "record {number}");
        look(number);
    }
    most
}

fn in_limited_memory(engine: EngineKind, store: &Path) {
    let before = anonymous_bytes();
    let db = Db::open(store, &options(engine)).expect("a store");
    if db.stats().medium != Medium::File {
        return;
    }
    let most = use_store(&db);
    let stats = db.stats();
    let (pages, journal) = (stats.pages.expect("a journal"), stats.journal.expect("a journal"));
    let mib = |bytes: u64| bytes >> 20;
    println!(
        "{engine}: at most {} MiB of {} MiB, index {} MiB, tables {} MiB; {pages:?}",
        mib(most - before),
        mib(BUDGET),
        mib(stats.dram_index_bytes),
        mib(stats.dram_table_bytes)
    );
    assert!(most - before <= BUDGET + BESIDE, "{} MiB", mib(most - before));
    // What went to its place alone was never in memory that could be given back: how much depends on when syncs come.
    let in_files = pages.given_back_bytes + journal.direct_bytes;
    assert!(in_files > 2 * BUDGET && pages.budget_bytes == BUDGET, "{pages:?}, {journal:?}");
    db.close().expect("closed");
    let db = Db::open(store, &options(engine)).expect("a store");
    assert_eq!(db.len(), RECORDS.div_ceil(4));
    let (key, value) = record(RECORDS / 4 * 4 - 4, 1);
    assert_eq!(db.get(key).expect("a get"), Some(value));
}

/// Runs a test in a process of its own: memory is counted by process.
fn in_child(test: &str, engine: EngineKind) {
    if let Some(store) = store_of_child() {
        return in_limited_memory(engine, &store);
    }
    let _alone = alone();
    let directory = scratch();
    let output = run_child("true", &format!("memory::{test}"), &directory.path().join("store"));
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert_passed(&output);
}

#[test]
fn viper_is_used_in_less_memory_than_its_records_take() {
    in_child("viper_is_used_in_less_memory_than_its_records_take", EngineKind::Viper);
}

#[test]
fn hikv_is_used_in_less_memory_than_its_records_take() {
    in_child("hikv_is_used_in_less_memory_than_its_records_take", EngineKind::Hikv);
}

#[test]
fn chameleon_is_used_in_less_memory_than_its_records_take() {
    in_child("chameleon_is_used_in_less_memory_than_its_records_take", EngineKind::Chameleon);
}

/// The bypass indexes of `chameleon` are as large as the budget of the process allowed that wrote what they have.
#[test]
fn bypass_indexes_are_made_smaller_where_the_budget_is_smaller_than_it_was() {
    /// Records: more than small bypass indexes take.
    const RECORDS: u64 = 120_000;
    let directory = scratch();
    let options = |budget| {
        let options = Options::new().engine(EngineKind::Chameleon).memory_budget(budget);
        options.chameleon(|chameleon| chameleon.shards(16))
    };
    let report = |db: &Db| db.stats().chameleon().expect("its own statistics").clone();
    let db = Db::open(directory.path(), &options(256 << 20)).expect("a store");
    if db.stats().medium != Medium::File {
        return;
    }
    let mut session = db.session();
    for number in 0..RECORDS {
        session.put(number.to_le_bytes(), number.to_le_bytes()).expect("a put");
    }
    drop(session);
    // Half of what the budget leaves beside the least of pages.
    let (budget, tables) = (12 << 20, 2 << 20);
    assert!(report(&db).upper_index_bytes > 3 * tables);
    db.close().expect("closed");
    let db = Db::open(directory.path(), &options(budget)).expect("a smaller budget");
    // Some shards are completed by this session, the others in the background.
    let mut session = db.session();
    for number in 0..RECORDS / 10 {
        session.put(number.to_le_bytes(), number.to_le_bytes()).expect("a put");
    }
    // Small ones take a half of this, and one that is large a quarter.
    let is_small = || report(&db).upper_index_bytes <= tables + (1 << 20);
    for _ in 0..600 {
        if report(&db).shards_bypassed == 16 && is_small() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    for number in 0..RECORDS {
        let value = session.get(number.to_le_bytes()).expect("a get");
        assert_eq!(value, Some(number.to_le_bytes().to_vec()), "record {number}");
    }
    assert!(is_small(), "{} bytes of bypass indexes", report(&db).upper_index_bytes);
    drop(session);
    assert!(db.check(None).is_sound());
}

#[test]
fn a_budget_below_what_the_index_needs_is_refused_and_says_what_is_needed() {
    let directory = scratch();
    let budget = 1 << 20;
    let opened = Db::open(directory.path(), &options(EngineKind::Viper).memory_budget(budget));
    match opened {
        Err(Error::MemoryBudget { needed, budget: found }) => {
            assert!(found == budget && needed > budget, "{needed} of {found}");
        }
        Err(error) => panic!("{error}"),
        // Where there is no plain file there is no journal, and no budget.
        Ok(db) => assert_ne!(db.stats().medium, Medium::File),
    }
    drop(Db::open(directory.path(), &options(EngineKind::Viper)).expect("a larger budget"));
}
