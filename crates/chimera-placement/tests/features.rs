//! What else RocksDB can do, with placed components: the answers are those without them.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;

use chimera_placement::database::{Counts, Database, DatabaseOptions};
use chimera_placement::heap::{Heap, Share};
use chimera_placement::tier::Tier;
use tools::{Setup, Way, assert_has, got, key, load};

/// DRAM, which shows that the test is right, and the placements.
const PLACED: [Way; 5] = [
    Way::Dram,
    Way::Both(100),
    Way::Both(60),
    Way::Tier { compressed: false, exclusive: false },
    Way::Tier { compressed: true, exclusive: true },
];
const RECORDS: u64 = 3000;

/// Records are there before and after a flush, a compaction, and when the database is opened again.
fn assert_keeps(setup: &Setup, database: Database, model: &BTreeMap<Vec<u8>, Vec<u8>>) -> Database {
    assert_has(&database, model, RECORDS);
    database.flush().unwrap();
    assert_has(&database, model, RECORDS);
    database.compact().unwrap();
    // Twice: from files, and from the caches.
    assert_has(&database, model, RECORDS);
    assert_has(&database, model, RECORDS);
    drop(database);
    let database = setup.open();
    assert_has(&database, model, RECORDS);
    database
}

/// For each placement, a database that has a feature and was loaded, flushed, compacted and opened again.
fn with_feature(feature: impl Fn(&mut DatabaseOptions), check: impl Fn(&Setup, &Database)) {
    for way in PLACED {
        let scratch = tempfile::tempdir().unwrap();
        let mut setup = Setup::new(scratch.path(), way);
        feature(&mut setup.options);
        let database = setup.open();
        let model = load(&database, RECORDS);
        let database = assert_keeps(&setup, database, &model);
        check(&setup, &database);
        drop(database);
        assert_gave_back(&setup);
    }
}

/// Nothing is left of the components, and nothing had no room.
fn assert_gave_back(setup: &Setup) {
    for heap in [&setup.cache_heap, &setup.memtable_heap].into_iter().flatten() {
        let report = heap.report();
        let live = (report.pmem_bytes, report.dram_bytes, report.overflow_bytes);
        assert_eq!((live, report.overflows), ((0, 0, 0), 0), "{:?}", setup.way);
        assert!(report.pmem_peak_bytes > 100 << 10, "{:?}: {report:?}", setup.way);
    }
    if let Some(tier) = &setup.tier {
        assert!(tier.report().hits > 0, "{:?}: {:?}", setup.way, tier.report());
    }
}

/// Lookups in the block cache that some work leads to.
fn lookups(database: &Database, work: impl FnOnce()) -> u64 {
    let of = |counts: Counts| counts.block_cache_hits + counts.block_cache_misses;
    let before = of(database.counts().unwrap());
    work();
    of(database.counts().unwrap()) - before
}

/// Gets keys between those that are there.
fn get_missing(database: &Database) {
    for number in 0..RECORDS {
        let between = [&key(number)[..], b"x"].concat();
        assert_eq!(got(database, &between), None);
    }
}

#[test]
fn bloom_filters_answer_for_what_is_missing() {
    with_feature(
        |options| options.bloom_bits_per_key = 10,
        |setup, database| {
            let looked = lookups(database, || get_missing(database));
            assert!(looked < RECORDS / 10, "{:?}: {looked}", setup.way);
        },
    );
}

#[test]
fn index_and_filters_are_in_the_block_cache() {
    with_feature(
        |options| {
            options.bloom_bits_per_key = 10;
            options.caches_index = true;
        },
        |setup, database| {
            // The filter is looked up each time, and answers.
            let looked = lookups(database, || get_missing(database));
            assert!((RECORDS - RECORDS / 10..RECORDS * 3 / 2).contains(&looked), "{looked}");
            let counts = database.counts().unwrap();
            assert!(counts.block_cache_misses > 0, "{:?}", setup.way);
        },
    );
}

#[test]
fn a_limit_of_all_memtables_is_charged_to_the_block_cache() {
    with_feature(
        |options| {
            options.write_buffers_bytes = 512 << 10;
            // With less, the charge has the cache to itself.
            options.cache_bytes = 1 << 20;
        },
        |setup, database| {
            // RocksDB charges in steps of this size.
            let counts = database.counts().unwrap();
            assert!(counts.cache_usage_bytes >= 256 << 10, "{:?}: {counts:?}", setup.way);
        },
    );
}

#[test]
fn a_row_cache_answers_before_the_block_cache() {
    with_feature(
        |options| options.row_cache_bytes = 16 << 20,
        |setup, database| {
            // Those that are there: what is missing is looked for in files.
            let there: Vec<_> =
                (0..RECORDS).map(key).filter(|key| got(database, key).is_some()).collect();
            let read = || there.iter().for_each(|key| assert!(got(database, key).is_some()));
            read();
            let looked = lookups(database, read);
            assert_eq!(looked, 0, "{:?}", setup.way);
        },
    );
}

#[test]
fn values_are_merged() {
    for way in PLACED {
        let scratch = tempfile::tempdir().unwrap();
        let mut setup = Setup::new(scratch.path(), way);
        let database = setup.open();
        assert!(database.merge(b"one", b"two").is_err(), "nothing says how");
        drop(database);
        setup.options.appends = true;
        let database = setup.open();
        let mut model = load(&database, RECORDS);
        for round in 0..3 {
            for number in (0..RECORDS).filter(|number| number % 7 == round || number % 11 == 0) {
                let more = [round as u8 + 1; 100];
                database.merge(&key(number), &more).unwrap();
                model.entry(key(number)).or_default().extend_from_slice(&more);
            }
            // Operands lie in memtables and files.
            if round == 1 {
                database.flush().unwrap();
            }
            assert_has(&database, &model, RECORDS);
        }
        drop(assert_keeps(&setup, database, &model));
        assert_gave_back(&setup);
    }
}

/// Bytes that do not shrink, so that blocks are as large as their values.
fn noise(number: u64, length: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Values that are larger than a block of a memtable, than what objects share a chunk, and than a chunk.
#[test]
fn large_values_are_kept() {
    const LENGTHS: [usize; 6] =
        [(16 << 10) + 1, 65_537, 100_000, (128 << 10) + 1, 300 << 10, (512 << 10) + 7];
    for way in PLACED {
        let scratch = tempfile::tempdir().unwrap();
        let mut setup = Setup::with_pmem(scratch.path(), way, 64 << 20);
        setup.options.cache_bytes = 4 << 20;
        setup.options.write_buffer_bytes = 2 << 20;
        if let Way::Tier { compressed, .. } = way {
            let heap = Arc::new(Heap::new(Arc::clone(&setup.arena), Share::ALL, None));
            let tier = Arc::new(Tier::new(heap, 32 << 20, compressed));
            (setup.tier, setup.options.tier) = (Some(Arc::clone(&tier)), Some(tier));
        }
        let database = setup.open();
        let mut model = BTreeMap::new();
        for version in 0..2 {
            for number in (0..40).filter(|number| version == 0 || number % 3 == 0) {
                let value = noise(number + version * 100, LENGTHS[number as usize % 6]);
                database.put(&key(number), &value).unwrap();
                model.insert(key(number), value);
            }
        }
        drop(assert_keeps(&setup, database, &model));
        assert_gave_back(&setup);
        assert_eq!(setup.arena.report().refused, 0, "{way:?}");
    }
}
