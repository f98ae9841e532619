//! Space reclamation: what is moved is never lost, and the space comes back.

#[path = "../tools/mod.rs"]
mod tools;

mod full;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chimera::{Db, Error, Geometry, Options, Progress};
use chimera_pmem::{Environment, Hardware, SteppedEnvironment};

use tools::{Chance, assert_sound, scratch, scratch_on_disk};

const GEOMETRY: Geometry =
    Geometry { page_bytes: 512, pages_per_block: 4, block_shift_bytes: 0, segment_bytes: 64 << 10 };

/// Nothing happens in the background.
fn options() -> Options {
    Options::new()
        .viper(|viper| viper.geometry(GEOMETRY))
        .populate_ahead_bytes(0)
        .huge_pages(false)
        .reclaim_percent(0)
}

fn both() -> [(&'static str, Options); 2] {
    [("fixed", options().fixed_size(16, 64)), ("variable", options())]
}

fn key(number: u64) -> [u8; 16] {
    u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()
}

fn value(number: u64, version: u64) -> Vec<u8> {
    let mut value = vec![version as u8; 64];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value[8..16].copy_from_slice(&version.to_le_bytes());
    value
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    db.for_each(|key, value| all.insert(key.to_vec(), value.to_vec()).is_none())
        .expect("a listing");
    all
}

/// Bytes of the pages that records need: five fit a page in slots, four in a log.
fn least_bytes(name: &str, records: u64) -> u64 {
    records.div_ceil(if name == "fixed" { 5 } else { 4 }) * 512
}

#[test]
fn a_third_deleted_is_given_back() {
    for (name, options) in both() {
        let directory = scratch();
        let db = Db::open(directory.path(), &options).expect("a store");
        let mut session = db.session();
        for number in 0..9000 {
            session.put(key(number), value(number, 1)).expect("room");
        }
        for number in (0..9000).step_by(3) {
            assert!(session.delete(key(number)).expect("a delete"));
        }
        drop(session);
        let (before, model) = (db.stats(), contents(&db));
        assert_eq!(model.len(), 6000);
        let reclaimed = db.compact(10, None).expect("compaction");
        let after = db.stats();
        assert!(reclaimed.moved_records > 0 && reclaimed.blocks_given_back > 0, "{name}");
        assert!(after.pmem_bytes < before.pmem_bytes * 3 / 4, "{name}: {after:?}");
        assert!(after.pmem_bytes < least_bytes(name, 6000) * 11 / 10, "{name}: {after:?}");
        assert!(after.reclaim.debt_bytes < before.reclaim.debt_bytes / 3, "{name}: {after:?}");
        assert_eq!(contents(&db), model, "{name}");
        assert_sound(&db);
        db.close().expect("nobody else has it");
        let segments = std::fs::read_dir(directory.path()).expect("a directory");
        let segments = segments.filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            name.to_string_lossy().starts_with("segment-")
        });
        assert_eq!(segments.count() as u64, after.pmem_bytes.div_ceil(60 << 10), "{name}");
        let db = Db::open(directory.path(), &options).expect("a store");
        assert_eq!(contents(&db), model, "{name}");
        for number in 0..9000 {
            db.put(key(number), value(number, 2)).expect("what was given back is there again");
        }
        assert_eq!(contents(&db).len(), 9000);
        assert_sound(&db);
    }
}

/// Compaction is no reason to write a record anew at its next update.
#[test]
fn a_moved_record_keeps_the_word_that_is_updated_in_place() {
    for (name, options) in both() {
        let directory = scratch();
        let db = Db::open(directory.path(), &options).expect("a store");
        let mut session = db.session();
        for number in 0..900 {
            session.put(key(number), value(number, 1)).expect("room");
        }
        for number in (0..900).step_by(2) {
            session.fetch_add_u64(key(number), 8, 1).expect("room");
        }
        for number in (0..900).filter(|number| number % 3 > 0) {
            session.delete(key(number)).expect("a delete");
        }
        let words = db.check(None).words_unchecked;
        assert_eq!(words, 150, "{name}");
        assert!(db.compact(1, None).expect("compaction").moved_records > 100, "{name}");
        let report = db.check(None);
        assert_eq!((report.damages, report.words_unchecked), (0, words), "{name}");
        let before = session.stats();
        for number in (0..900).step_by(6) {
            let found = session.fetch_add_u64(key(number), 8, 1).expect("in place");
            assert_eq!(found, Some(2), "{name}");
        }
        let after = session.stats();
        assert_eq!(after.updates, before.updates, "{name}");
        assert_eq!(after.updates_in_place, before.updates_in_place + words, "{name}");
    }
}

/// On a plain file system: what the journal still holds for segments that go must not be in the way.
#[test]
fn a_journaled_store_gives_segments_back() {
    for (name, options) in both() {
        let directory = scratch_on_disk();
        let db = Db::open(directory.path(), &options).expect("a store");
        let mut session = db.session();
        for number in 0..4000 {
            session.put(key(number), value(number, 1)).expect("room");
        }
        for number in (0..4000).filter(|number| number % 10 > 0) {
            session.delete(key(number)).expect("a delete");
        }
        drop(session);
        let before = db.stats();
        let model = contents(&db);
        db.compact(10, None).expect("compaction");
        let after = db.stats();
        assert!(after.pmem_bytes < before.pmem_bytes / 3, "{name}: {after:?}");
        db.close().expect("nobody else has it");
        let db = Db::open(directory.path(), &options).expect("a store");
        assert!(db.stats().segments + 3 < before.segments, "{name}: {:?}", db.stats());
        assert_eq!(contents(&db), model, "{name}");
        assert_sound(&db);
    }
}

#[test]
fn a_store_without_records_becomes_empty() {
    for (name, options) in both() {
        let directory = scratch();
        let db = Db::open(directory.path(), &options).expect("a store");
        for number in 0..2000 {
            db.put(key(number), value(number, 1)).expect("room");
        }
        for number in 0..2000 {
            db.delete(key(number)).expect("a delete");
        }
        db.compact(1, None).expect("compaction");
        assert_eq!(db.stats().blocks_used, 0, "{name}");
        assert_sound(&db);
        drop(db);
        let db = Db::open(directory.path(), &options).expect("a store");
        assert_eq!((db.stats().blocks_used, db.stats().records), (0, 0), "{name}");
        db.put(key(1), value(1, 1)).expect("a put");
        assert_sound(&db);
    }
}

#[test]
fn large_values_are_moved_with_all_their_chunks() {
    let directory = scratch();
    let db = Db::open(directory.path(), &options()).expect("a store");
    let large = |number: u64| value(number, 7).repeat(1 + number as usize % 300);
    for number in 0..300 {
        db.put(key(number), large(number)).expect("room");
    }
    for number in (0..300).filter(|number| number % 3 > 0) {
        db.delete(key(number)).expect("a delete");
    }
    let before = db.stats();
    let model = contents(&db);
    db.compact(10, None).expect("compaction");
    let after = db.stats();
    assert!(after.pmem_bytes < before.pmem_bytes / 2, "{before:?} {after:?}");
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    drop(db);
    let db = Db::open(directory.path(), &options()).expect("a store");
    assert_eq!(contents(&db), model);
    assert_sound(&db);
}

/// A full pool is no reason to fail, and compaction makes room in it.
#[test]
fn a_full_pool_can_be_compacted() {
    for (name, options) in both() {
        let directory = scratch();
        let options = options.capacity_bytes(400 << 10);
        let db = Db::open(directory.path(), &options).expect("a store");
        let mut count = 0;
        while !matches!(db.put(key(count), value(count, 1)), Err(Error::PoolFull { .. })) {
            count += 1;
        }
        for number in (0..count).filter(|number| number % 2 == 0) {
            db.delete(key(number)).expect("a delete");
        }
        let model = contents(&db);
        db.compact(10, None).expect("compaction");
        assert_eq!(contents(&db), model, "{name}");
        for number in count..count + count / 4 {
            db.put(key(number), value(number, 1)).expect("there is room again");
        }
        assert_sound(&db);
    }
}

/// Updates, deletes, reads and listings beside passes that move everything: no update is lost, nothing
/// deleted comes back, a key that is there all the time is always found.
#[test]
fn nothing_is_lost_beside_writers_readers_and_listings() {
    const THREADS: u64 = 3;
    const KEYS: u64 = 300;
    for (name, options) in both() {
        let directory = scratch();
        let db = Db::open(directory.path(), &options).expect("a store");
        for number in 0..KEYS {
            // These are read and counted up, and never deleted.
            db.put(key(number), value(number, 0)).expect("room");
        }
        let (is_over, added) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (db, added) = (&db, &added);
                    scope.spawn(move || write(db, thread, KEYS, added))
                })
                .collect();
            let reclaimer = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    db.compact(5, None).expect("compaction");
                }
            });
            let reader = scope.spawn(|| {
                let mut session = db.session();
                while !is_over.load(Ordering::Relaxed) {
                    for number in 0..KEYS {
                        let found = session.get(key(number)).expect("a read");
                        let found = found.unwrap_or_else(|| panic!("{name}: {number} is gone"));
                        assert_eq!(found[..8], number.to_le_bytes());
                    }
                    let all = contents_of_shared(&db, KEYS);
                    assert_eq!(all, KEYS, "{name}: a listing misses keys");
                }
            });
            let models: Vec<_> =
                writers.into_iter().map(|it| it.join().expect("a writer")).collect();
            is_over.store(true, Ordering::Relaxed);
            reclaimer.join().expect("compaction");
            reader.join().expect("a reader");
            let all = contents(&db);
            for (number, version) in models.into_iter().flatten() {
                let found = all.get(&key(number)[..]);
                let expected = version.map(|version| value(number, version));
                assert_eq!(found, expected.as_ref(), "{name}: key {number}");
            }
        });
        let sum = |db: &Db| -> u64 {
            let all = contents(db);
            let counter = |number: u64| {
                let value = &all[&key(number)[..]];
                u64::from_le_bytes(value[16..24].try_into().expect("8 bytes"))
            };
            (0..KEYS).map(counter).sum()
        };
        assert_eq!(sum(&db), added.load(Ordering::Relaxed), "{name}: an update was lost");
        assert!(db.stats().reclaim.moved_records > 1000, "{name}: {:?}", db.stats().reclaim);
        assert_sound(&db);
        let model = contents(&db);
        db.close().expect("nobody else has it");
        let db = Db::open(directory.path(), &options).expect("a store");
        assert_eq!(contents(&db), model, "{name}");
        assert_sound(&db);
    }
}

/// How many of the first keys a listing has.
fn contents_of_shared(db: &Db, keys: u64) -> u64 {
    let mut found = std::collections::BTreeSet::new();
    db.for_each(|_, value| {
        let number = u64::from_le_bytes(value[..8].try_into().expect("8 bytes"));
        found.insert(number);
        true
    })
    .expect("a listing");
    found.range(..keys).count() as u64
}

/// Counts shared keys up, and puts and deletes keys of its own. Returns what these have in the end.
fn write(db: &Db, thread: u64, keys: u64, added: &AtomicU64) -> BTreeMap<u64, Option<u64>> {
    let mut chance = Chance::new(thread);
    let mut session = db.session();
    let mut model = BTreeMap::new();
    for version in 1..20_000 {
        let number = 1000 * (thread + 1) + chance.below(400);
        match chance.below(4) {
            0 => {
                let number = chance.below(keys);
                let was = session.fetch_add_u64(key(number), 16, 3).expect("an update");
                assert!(was.is_some(), "key {number} is gone");
                added.fetch_add(3, Ordering::Relaxed);
            }
            1 => {
                let was = session.delete(key(number)).expect("a delete");
                assert_eq!(was, model.insert(number, None).flatten().is_some(), "key {number}");
            }
            _ => {
                let is_new = session.put(key(number), value(number, version)).expect("room");
                assert_eq!(is_new, model.insert(number, Some(version)).flatten().is_none());
            }
        }
    }
    model
}

/// Records that leave a third of their pages unused, whatever is done: moving them gains nothing, and what is
/// moved must not be moved again in the same pass.
#[test]
fn what_no_record_fits_is_not_reclaimed_again_and_again() {
    const KEYS: u64 = 400;
    let directory = scratch();
    let db = Db::open(directory.path(), &options()).expect("a store");
    let mut session = db.session();
    for number in 0..KEYS {
        session.put(key(number), [1; 300]).expect("room");
    }
    drop(session);
    assert_eq!(db.compact(10, None).expect("compaction").moved_records, 0);
    for number in (0..KEYS).filter(|number| number % 4 == 0) {
        assert!(db.delete(key(number)).expect("a delete"));
    }
    let (before, model) = (db.stats(), contents(&db));
    let moved = db.compact(10, None).expect("compaction").moved_records;
    assert!((1..KEYS).contains(&moved), "{moved} of {KEYS}");
    assert!(db.stats().blocks_used < before.blocks_used * 4 / 5, "{:?}", db.stats());
    assert_eq!(db.compact(10, None).expect("compaction").moved_records, moved);
    assert_eq!(contents(&db), model);
    assert_sound(&db);
}

/// The background task does the same by itself.
#[test]
fn the_background_task_frees_what_is_mostly_free() {
    for (name, options) in both() {
        let directory = scratch();
        let db = Db::open(directory.path(), &options).expect("a store");
        for number in 0..3000 {
            db.put(key(number), value(number, 1)).expect("room");
        }
        for number in (0..3000).filter(|number| number % 4 > 0) {
            db.delete(key(number)).expect("a delete");
        }
        let before = db.stats().pmem_bytes;
        drop(db);
        let options = options.reclaim_percent(50).reclaim_bytes_per_second(u64::MAX);
        let db = Db::open(directory.path(), &options).expect("a store");
        // As long as it takes: a store that does not get there hangs the test.
        while db.stats().pmem_bytes > before / 2 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(db.stats().reclaim.moved_records > 0, "{name}");
        assert_eq!(contents(&db).len(), 750);
        assert_sound(&db);
    }
}

/// The background task, for which a third is too little, must not end a pass of compaction early.
#[test]
fn compaction_is_not_cut_short_by_the_background_task() {
    for (name, options) in both() {
        let environment = Arc::new(SteppedEnvironment::in_memory(1));
        let shared: Arc<dyn Environment> = environment.clone();
        let options = options.reclaim_percent(60).anonymous(8 << 20);
        let pmem = Hardware::new(options.hardware_options()).expect("anonymous memory");
        let db = Db::open_on(pmem, &shared, Path::new(""), &options).expect("a store");
        for number in 0..27_000 {
            db.put(key(number), value(number, 1)).expect("room");
        }
        for number in (0..27_000).step_by(3) {
            db.delete(key(number)).expect("a delete");
        }
        environment.step_tasks();
        let reports = Arc::new(AtomicU64::new(0));
        let (counted, stepped) = (reports.clone(), environment.clone());
        let in_between: Progress = Arc::new(move |_, _| {
            assert!(counted.fetch_add(1, Ordering::Relaxed) < 1000, "compaction does not end");
            stepped.advance(2_000_000_000);
            stepped.step_tasks();
        });
        db.compact(1, Some(&in_between)).expect("compaction");
        assert!(reports.load(Ordering::Relaxed) > 3, "{name}: the task had no turn in between");
        let used = db.stats().pmem_bytes;
        assert!(used < least_bytes(name, 18_000) * 11 / 10, "{name}: {used}");
        assert_sound(&db);
    }
}
