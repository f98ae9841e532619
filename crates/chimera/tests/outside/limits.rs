//! Limits of the process, each in a process of its own.

use std::path::Path;

use chimera::{Db, Durability, EngineKind, Error, ErrorKind, Geometry, Options};

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
    // It begins with 256 KiB.
    let options = small().durability(Durability::Immediate).journal_bytes(64 << 20);
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
        let found = db.get(tools::key(number)).expect("get").expect("it is there");
        assert_eq!(tools::version_of(number, &found), if number < 10 { 2 } else { 1 });
    }
}

/// Puts large records until one is refused, which must be for want of addresses; how many there are.
fn fill_the_addresses(store: &Path, options: &Options) -> u64 {
    let db = tools::open(store, options);
    let (mut session, value) = (db.session(), vec![7; 20_000]);
    let refused = (0..1_000_000_u64).find_map(|number| {
        session.put(tools::key(number), &value).err().map(|error| (number, error))
    });
    let (count, error) = refused.expect("the limit is in the way");
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(!error.to_string().contains("pool is full"), "{error}");
    let words = ["the store cannot grow", "address space", "RLIMIT_AS", "ulimit -v"];
    assert_fails(Err::<(), _>(error), &words);
    drop(session);
    db.close().expect("nobody else has it");
    count
}

/// A limit that a store fits below, but not what is put into it.
#[test]
fn addresses_that_run_out_are_named_and_nothing_is_lost() {
    for engine in [EngineKind::Viper, EngineKind::Chameleon] {
        let options = Options::new().engine(engine).segment_bytes(16 << 20);
        if let Some(store) = store_of_child() {
            let store = store.join(engine.name());
            let count = fill_the_addresses(&store, &options);
            std::fs::write(store.with_extension("count"), count.to_string()).expect("room");
            continue;
        }
        let directory = scratch();
        under(
            "-v 600000",
            "addresses_that_run_out_are_named_and_nothing_is_lost",
            directory.path(),
        );
        let store = directory.path().join(engine.name());
        let count = std::fs::read_to_string(store.with_extension("count")).expect("the child's");
        let db = tools::open(&store, &options);
        assert_eq!(contents(&db).len().to_string(), count);
        assert!(count.parse::<u64>().is_ok_and(|count| count > 100), "{count}");
        tools::assert_sound(&db);
        db.put(tools::key(1 << 40), b"more").expect("room");
    }
}
