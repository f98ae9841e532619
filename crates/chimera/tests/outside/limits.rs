//! Limits of the process, each in a process of its own.

use std::path::Path;
use std::sync::Arc;

use chimera::{Db, Durability, Error, ErrorKind, Geometry, Options};
use chimera_pmem::{Environment, Hardware, HardwareOptions, RealEnvironment};

use crate::tools::{
    self, SMALL, assert_fails, contents, scratch, scratch_on_disk, small, small_with,
};
use crate::{alone, assert_passed, put_until_refused, run_child, store_of_child};

/// Runs the test `name` again, as a process with this limit.
fn under(limit: &str, name: &str, store: &Path) {
    let _alone = alone();
    assert_passed(&run_child(&format!("ulimit {limit}"), &format!("limits::{name}"), store));
}

fn assert_limited(error: Error, words: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    let words = [words, &["limit", "ulimit -f", "RLIMIT_FSIZE", "raise"]].concat();
    assert!(!error.to_string().contains("delete records"), "{error}");
    assert_fails(Err::<(), _>(error), &words);
}

/// A limit of 32 or 64 KiB, as the shell counts.
#[test]
fn a_segment_beyond_the_limit_of_files_is_an_error() {
    if let Some(store) = store_of_child() {
        // Small segments fit.
        let small_path = store.with_extension("small");
        tools::filled_store(&small_path, &small(), 300);
        let db = tools::open(&store, &Options::new().segment_bytes(1 << 20));
        let (refused, error) = put_until_refused(&db, 0);
        assert_eq!(refused, 0);
        assert_limited(error, &["segment-000000"]);
        assert!(!store.join("segment-000000").exists(), "nothing is left of it");
        db.close().expect("nothing was changed");
        // And the store is as good as ever.
        let db = tools::open(&small_path, &small());
        assert_eq!(contents(&db).len(), 300);
        return;
    }
    let directory = scratch();
    let store = directory.path().join("store");
    under("-f 64", "a_segment_beyond_the_limit_of_files_is_an_error", &store);
    // Without the limit it has room.
    let db = tools::open(&store, &Options::new().segment_bytes(1 << 20));
    db.put(b"key", b"value").expect("room");
}

/// A limit of 512 bytes or 1 KiB, and one of none.
#[test]
fn a_superblock_and_a_lock_beyond_the_limit_of_files_are_errors() {
    if let Some(store) = store_of_child() {
        let error = Db::open(&store, &small()).expect_err("the limit is in the way");
        let is_lock = std::env::var_os("CHIMERA_TEST_OUTSIDE_LOCK").is_some();
        assert_limited(error, &[if is_lock { "lock" } else { "superblock" }]);
        return;
    }
    let directory = scratch();
    let name = "a_superblock_and_a_lock_beyond_the_limit_of_files_are_errors";
    let store = directory.path().join("store");
    under("-f 1", name, &store);
    under("-f 0 && export CHIMERA_TEST_OUTSIDE_LOCK=1", name, &store);
    tools::filled_store(&store, &small(), 10);
}

#[test]
fn a_journal_beyond_the_limit_of_files_is_an_error() {
    let options = small().durability(Durability::Immediate).journal_bytes(1 << 20);
    if let Some(store) = store_of_child() {
        assert_limited(
            Db::open(&store, &options).expect_err("the limit is in the way"),
            &["journal"],
        );
        return;
    }
    let directory = scratch_on_disk();
    let probe = directory.path().join("probe");
    tools::filled_store(&probe, &options, 10);
    if !probe.join("journal").exists() {
        return;
    }
    let store = directory.path().join("store");
    under("-f 64", "a_journal_beyond_the_limit_of_files_is_an_error", &store);
    tools::filled_store(&store, &options, 10);
}

/// A segment that is long enough already. What is written to it by mapping is not limited; what the journal writes back
/// to it is.
#[test]
fn a_write_beyond_the_limit_of_files_is_an_error_also_where_the_file_is_long_enough() {
    let geometry = Geometry { segment_bytes: 1 << 20, ..SMALL };
    let options = small_with(geometry).durability(Durability::Immediate).journal_bytes(16 << 10);
    if let Some(store) = store_of_child() {
        let db = tools::open(&store, &options);
        tools::fill(&mut db.session(), 0..10, 2);
        let error: Error = db.close().expect_err("the limit is in the way").into();
        assert_fails(Err::<(), _>(error), &["RLIMIT_FSIZE", "ulimit -f"]);
        return;
    }
    let directory = scratch_on_disk();
    let store = directory.path().join("store");
    // More than twice what the limit allows.
    tools::filled_store(&store, &options, 3000);
    if !store.join("journal").exists() {
        return;
    }
    let name = "a_write_beyond_the_limit_of_files_is_an_error_also_where_the_file_is_long_enough";
    under("-f 128", name, &store);
    // What was acknowledged is in the journal.
    let db = tools::open(&store, &options);
    for number in 0..3000 {
        let found = db.get(&tools::key(number)).expect("get").expect("it is there");
        assert_eq!(tools::version_of(number, &found), if number < 10 { 2 } else { 1 });
    }
}

#[test]
fn too_little_address_space_is_named() {
    if let Some(store) = store_of_child() {
        let outcome = Db::open(&store, &Options::new()).and_then(|db| db.put(b"key", b"value"));
        assert_fails(outcome, &["address space", "RLIMIT_AS", "ulimit -v"]);
        return;
    }
    let directory = scratch();
    // Less than the least that a pool reserves; enough for that, but not for the index as well.
    for kibibytes in [700_000, 1_300_000] {
        let store = directory.path().join(kibibytes.to_string());
        under(&format!("-v {kibibytes}"), "too_little_address_space_is_named", &store);
    }
}

#[test]
fn a_pool_beyond_its_range_of_addresses_is_an_error_that_says_so() {
    let directory = scratch();
    let reserve_bytes = 2 << 20;
    let pmem = Hardware::new(HardwareOptions { reserve_bytes, ..small().hardware_options() });
    let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::new());
    let db = Db::open_on(pmem.expect("room"), &environment, directory.path(), &small());
    let db = db.expect("it fits");
    let (refused, error) = put_until_refused(&db, 0);
    assert!(refused > 10_000, "{refused}");
    assert_eq!(error.kind(), ErrorKind::Full);
    let words = ["address space", "2097152 bytes", "RLIMIT_AS", "open the store again"];
    assert_fails(Err::<(), _>(error), &words);
    db.close().expect("nobody else has it");
    let db = tools::open(directory.path(), &small());
    assert_eq!(contents(&db).len() as u64, refused);
    tools::assert_sound(&db);
    db.put(&tools::key(refused), &tools::value(refused, 1)).expect("room");
}
