//! RocksDB's results are the same in every placement.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chimera_placement::database::{CacheKind, Database, DatabaseOptions, Direction, has_memkind};
use chimera_placement::heap::{Heap, Share};
use proptest::prelude::*;
use tools::{Setup, WAYS, Way, assert_has, got, key, listed, load, value};

#[test]
fn records_are_written_read_and_there_again() {
    const RECORDS: u64 = 6000;
    for way in WAYS {
        let scratch = tempfile::tempdir().unwrap();
        let setup = Setup::new(scratch.path(), way);
        let database = setup.open();
        let model = load(&database, RECORDS);
        assert_has(&database, &model, RECORDS);
        // Again, now from the cache.
        assert_has(&database, &model, RECORDS);
        drop(database);
        let database = setup.open();
        assert_has(&database, &model, RECORDS);
        database.compact().unwrap();
        assert_has(&database, &model, RECORDS);
        let counts = database.counts().unwrap();
        assert!(
            counts.block_cache_hits > 0 && counts.block_cache_misses > 0,
            "{way:?}: {counts:?}"
        );
        drop(database);
        assert_used(&setup);
    }
}

/// Whether the components were where they belong, and gave everything back.
fn assert_used(setup: &Setup) {
    let way = setup.way;
    for (heap, share) in [
        (
            &setup.cache_heap,
            if let Way::Cache(share) | Way::Both(share) = way { share } else { 100 },
        ),
        (&setup.memtable_heap, if let Way::Both(share) = way { share } else { 100 }),
    ] {
        let Some(heap) = heap else { continue };
        let report = heap.report();
        assert_eq!(
            (report.pmem_bytes, report.dram_bytes, report.overflow_bytes),
            (0, 0, 0),
            "{way:?}"
        );
        assert!(report.pmem_peak_bytes > 200 << 10, "{way:?}: {report:?}");
        assert_eq!(report.dram_peak_bytes == 0, share == 100, "{way:?}: {report:?}");
        assert_eq!(report.overflows, 0, "{way:?}");
    }
    if let Some(tier) = &setup.tier {
        let report = tier.report();
        assert!(report.hits > 100 && report.inserts > 100, "{way:?}: {report:?}");
    }
}

#[test]
fn seeks_find_their_place_in_memtables() {
    let scratch = tempfile::tempdir().unwrap();
    let setup = Setup::new(scratch.path(), Way::Both(60));
    let database = setup.open();
    for number in (0..500).map(|number| number * 10) {
        database.put(&key(number), &value(number, 0)).unwrap();
    }
    let mut iter = database.cursor().unwrap();
    for number in 0..4990 {
        iter.seek(&key(number), Direction::Forward).unwrap();
        let (found, _) = iter.step(Direction::Forward).unwrap().unwrap();
        assert_eq!(found, key(number.next_multiple_of(10)));
        iter.seek(&key(number), Direction::Backward).unwrap();
        let (found, _) = iter.step(Direction::Backward).unwrap().unwrap();
        assert_eq!(found, key(number / 10 * 10));
    }
    iter.seek(&key(4991), Direction::Forward).unwrap();
    assert_eq!(iter.step(Direction::Forward).unwrap(), None);
    // Half of the keys, give or take what a skip list is off.
    let (half, all) = (
        database.approximate_bytes(&key(0), &key(2500)).unwrap(),
        database.approximate_bytes(&key(0), &key(5000)).unwrap(),
    );
    assert!(half * 4 > all && half * 4 < all * 3, "{half} of {all}");
}

/// Files of records in a database.
fn files(setup: &Setup) -> usize {
    let entries = std::fs::read_dir(&setup.directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "sst")).count()
}

/// The smallest memtable that RocksDB makes is as large as one block of a memtable's memory.
#[test]
fn a_small_memtable_is_flushed_when_it_is_full_and_not_before() {
    for share in [60, 100] {
        let scratch = tempfile::tempdir().unwrap();
        let mut setup = Setup::new(scratch.path(), Way::Both(share));
        setup.options.write_buffer_bytes = 64 << 10;
        let database = setup.open();
        let empty = database.counts().unwrap().memtable_bytes;
        assert!(empty < 8 << 10, "{share}: {empty} bytes of nothing");
        for number in 0..200 {
            database.put(&key(number), &[7; 100]).unwrap();
        }
        // 100 bytes of value, 16 of key, and less than 100 around them.
        let full = database.counts().unwrap().memtable_bytes;
        assert!((200 * 116..48 << 10).contains(&full), "{share}: {full}");
        assert_eq!(files(&setup), 0, "{share}");
        assert!((0..200).all(|number| got(&database, &key(number)).is_some()));
        assert_eq!(database.counts().unwrap().memtable_hits, 200, "{share}");
        for number in 200..2000 {
            database.put(&key(number), &[7; 100]).unwrap();
        }
        database.flush().unwrap();
        let made = files(&setup);
        assert!((1..=10).contains(&made), "{share}: {made} files");
    }
}

#[test]
fn a_snapshot_outlives_its_memtable() {
    let scratch = tempfile::tempdir().unwrap();
    let setup = Setup::new(scratch.path(), Way::Both(100));
    let database = setup.open();
    (0..100).for_each(|number| database.put(&key(number), &value(number, 0)).unwrap());
    let mut iter = database.cursor().unwrap();
    iter.seek_to_end(Direction::Forward).unwrap();
    (0..100).for_each(|number| database.put(&key(number), &value(number, 1)).unwrap());
    database.flush().unwrap();
    database.compact().unwrap();
    for number in 0..100 {
        let found = iter.step(Direction::Forward).unwrap();
        assert_eq!(found, Some((key(number), value(number, 0))));
    }
}

#[test]
fn readers_go_on_while_a_writer_fills_memtables_and_compacts() {
    const RECORDS: u64 = 2000;
    for way in WAYS {
        let scratch = tempfile::tempdir().unwrap();
        let setup = Setup::new(scratch.path(), way);
        let database = setup.open();
        (0..RECORDS).for_each(|number| database.put(&key(number), &value(number, 0)).unwrap());
        // Versions of all keys that were acknowledged.
        let versions: Vec<AtomicU64> = (0..RECORDS).map(|_| AtomicU64::new(0)).collect();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for reader in 0..3 {
                let (database, versions, done) = (&database, &versions, &done);
                scope.spawn(move || {
                    let mut number = reader;
                    while !done.load(Ordering::Acquire) {
                        number = (number * 31 + 7) % RECORDS;
                        let least = versions[number as usize].load(Ordering::Acquire);
                        let found = got(database, &key(number)).expect("it was never deleted");
                        let most = versions[number as usize].load(Ordering::Acquire) + 1;
                        let is_one = (least..=most).any(|version| found == value(number, version));
                        assert!(is_one, "{number}: versions {least} to {most}");
                    }
                });
            }
            for version in 1..6 {
                for number in 0..RECORDS {
                    database.put(&key(number), &value(number, version)).unwrap();
                    versions[number as usize].store(version, Ordering::Release);
                }
                database.compact().unwrap();
            }
            done.store(true, Ordering::Release);
        });
    }
}

#[test]
fn writers_and_iterators_run_side_by_side() {
    let scratch = tempfile::tempdir().unwrap();
    let setup = Setup::new(scratch.path(), Way::Both(100));
    let database = setup.open();
    std::thread::scope(|scope| {
        for writer in 0..3_u64 {
            let database = &database;
            scope.spawn(move || {
                for number in (0..6000).filter(|number| number % 3 == writer) {
                    database.put(&key(number), &value(number, 0)).unwrap();
                }
            });
        }
        let database = &database;
        scope.spawn(move || {
            for _ in 0..20 {
                let keys: Vec<_> = listed(database).into_iter().map(|(key, _)| key).collect();
                assert!(keys.is_sorted_by(|a, b| a < b));
            }
        });
    });
    assert_eq!(listed(&database).len(), 6000);
}

#[test]
fn a_full_arena_makes_the_cache_refuse_blocks() {
    // Memtables and a cache that together want more than there is.
    let scratch = tempfile::tempdir().unwrap();
    let mut setup = Setup::with_pmem(scratch.path(), Way::Both(100), 4 << 20);
    setup.options.cache_bytes = 16 << 20;
    setup.options.write_buffer_bytes = 3 << 20;
    let database = setup.open();
    let model = load(&database, 8000);
    assert_has(&database, &model, 8000);
    let counts = database.counts().unwrap();
    let heap = setup.cache_heap.as_ref().unwrap();
    assert!(counts.cache_refused > 0 && heap.report().overflows > 0, "{counts:?}");
    drop(database);
    assert_eq!(heap.report().overflow_bytes, 0);
    assert_eq!(setup.arena.report().live_bytes, 0);
}

#[test]
fn a_cache_without_room_keeps_nothing_in_dram() {
    let scratch = tempfile::tempdir().unwrap();
    let mut setup = Setup::with_pmem(scratch.path(), Way::Cache(100), 8 << 20);
    setup.options.cache_bytes = 64 << 20;
    let database = setup.open();
    let model = load(&database, 12_000);
    database.compact().unwrap();
    assert_has(&database, &model, 12_000);
    let report = setup.cache_heap.as_ref().unwrap().report();
    assert!(database.counts().unwrap().cache_refused > 100, "{report:?}");
    // Index blocks, which RocksDB keeps for as long as it uses a file, and nothing that the cache holds.
    assert!(report.overflow_bytes < 128 << 10, "{report:?}");
    assert!(report.pmem_bytes > 3 << 20, "{report:?}");
}

/// What is read now gets in, though the arena is full of what was read before, and the capacity never is used up.
#[test]
fn a_cache_without_room_follows_what_is_read() {
    let scratch = tempfile::tempdir().unwrap();
    let mut setup = Setup::with_pmem(scratch.path(), Way::Cache(100), 8 << 20);
    setup.options.cache_bytes = 64 << 20;
    let database = setup.open();
    load(&database, 12_000);
    database.compact().unwrap();
    let read = |range: std::ops::Range<u64>| {
        let before = database.counts().unwrap();
        range.for_each(|number| drop(got(&database, &key(number))));
        let after = database.counts().unwrap();
        let misses = after.block_cache_misses - before.block_cache_misses;
        misses as f64 / (misses + after.block_cache_hits - before.block_cache_hits) as f64
    };
    read(0..12_000);
    let all = read(0..12_000);
    let hot = (0..40).fold(1.0, |_, _| read(11_000..11_400));
    assert!(all > 0.1 && hot < 0.02, "{all} of all lookups, {hot} of hot ones");
}

#[test]
fn memory_of_libmemkind_is_a_reference() {
    let scratch = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(scratch.path(), Way::Dram);
    setup.options.memkind = Some((scratch.path().to_owned(), 64 << 20));
    if !has_memkind() {
        let error = Database::open(&setup.directory, &setup.options).unwrap_err().to_string();
        assert!(error.contains("feature `memkind`"), "{error}");
        return;
    }
    let database = setup.open();
    let model = load(&database, 3000);
    assert_has(&database, &model, 3000);
    drop(database);
    setup.options.memkind = Some((scratch.path().join("missing"), 64 << 20));
    let error = Database::open(&setup.directory, &setup.options).unwrap_err().to_string();
    assert!(error.contains("memkind"), "{error}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let tier = Setup::new(scratch.path(), Way::Tier { compressed: false, exclusive: false });
    let refused = |change: &dyn Fn(&mut DatabaseOptions)| {
        let mut options = tier.options.clone();
        change(&mut options);
        Database::open(&tier.directory, &options).unwrap_err().to_string()
    };
    let clock = refused(&|options| options.cache_kind = CacheKind::HyperClock);
    assert!(clock.contains("no tier behind it"), "{clock}");
    let heap = Heap::new(Arc::clone(&tier.arena), Share::ALL, None);
    let heap = Some(Arc::new(heap));
    let both = refused(&|options| options.cache_heap.clone_from(&heap));
    assert!(both.contains("block cache in DRAM"), "{both}");
    let memkind = refused(&|options| {
        options.tier = None;
        options.cache_heap.clone_from(&heap);
        options.memkind = Some((scratch.path().to_owned(), 64 << 20));
    });
    assert!(memkind.contains("not in both"), "{memkind}");
    assert!(!tier.directory.exists(), "nothing was made");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Any order of puts, deletes, flushes and reads is as in a map.
    #[test]
    fn a_database_is_a_map(
        steps in prop::collection::vec((0..8_u8, 0..60_u64), 1..400),
        which in 0..WAYS.len(),
    ) {
        let scratch = tempfile::tempdir().unwrap();
        let setup = Setup::new(scratch.path(), WAYS[which]);
        let mut database = setup.open();
        let mut model = BTreeMap::new();
        for (version, (what, number)) in steps.into_iter().enumerate() {
            match what {
                0..4 => {
                    let value = value(number, version as u64);
                    database.put(&key(number), &value).unwrap();
                    model.insert(key(number), value);
                }
                4 => {
                    database.delete(&key(number)).unwrap();
                    model.remove(&key(number));
                }
                5 if number < 6 => database.flush().unwrap(),
                6 if number < 2 => {
                    drop(database);
                    database = setup.open();
                }
                _ => {
                    let found = got(&database, &key(number));
                    prop_assert_eq!(found.as_ref(), model.get(&key(number)));
                }
            }
        }
        prop_assert!(model.into_iter().eq(listed(&database)));
    }
}
