//! Batches that cannot be made, and batches that were cut off, each staged.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use chimera_pmem::{Environment, Hardware, RealEnvironment};

use crate::records::batch_record::push;
use crate::types::batch::{Batch, Write};
use crate::types::durability::Durability;
use crate::{Db, EngineKind, Error, ErrorKind, Options};

/// A store in anonymous memory, nearly full.
fn store(options: &Options) -> Db<Hardware> {
    let options = options.clone().anonymous(256 << 10).segment_bytes(64 << 10).reclaim_percent(0);
    let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::new());
    let hardware = Hardware::new(options.hardware_options()).unwrap();
    Db::open_on(hardware, &environment, "", &options).unwrap()
}

#[test]
fn a_batch_that_is_too_large_is_refused_before_anything_is_written() {
    let db = store(&Options::new());
    let mut batch = Batch::new();
    for number in 0..80_u8 {
        batch.put([number], vec![number; 1 << 20]);
    }
    let error = db.write(&batch).unwrap_err();
    assert!(matches!(error, Error::BatchSize { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(db.is_empty());
}

/// Each of many batches in a store without room changes all of its keys, or none; and nothing is in doubt.
#[test]
fn batches_without_room_are_taken_back() {
    let mut refused = 0;
    for round in 0..6_u64 {
        let db = store(&Options::new());
        let key = |number: u64| number.to_le_bytes();
        let value =
            |number: u64, version: u64| vec![version as u8; 40 + (number % 7 * 50) as usize];
        let mut version = 1;
        while db.put(key(1000 + version), value(version, 1)).is_ok() {
            version += 1;
        }
        let mut held = [0_u64; 40];
        for version in 1..60 {
            let mut batch = Batch::new();
            let numbers: Vec<u64> =
                (0..40).filter(|number| (number + version) % 3 != round % 3).collect();
            for number in &numbers {
                batch.put(key(*number), value(*number, version));
            }
            match db.write(&batch) {
                Ok(()) => numbers.iter().for_each(|number| held[*number as usize] = version),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    refused += 1;
                }
            }
            for (number, version) in (0..).zip(held) {
                let expected = (version > 0).then(|| value(number, version));
                assert_eq!(db.get(key(number)).unwrap(), expected);
            }
            // Room for a part of one.
            db.delete(key(1000 + version)).unwrap();
        }
        assert!(db.check(None).is_sound());
    }
    assert!(refused > 50, "{refused}");
}

/// Options for small stores of each engine, whose files have everything that was stored.
fn all_engines() -> impl Iterator<Item = Options> {
    let options = |kind: &EngineKind| {
        let options = Options::new().engine(*kind).segment_bytes(64 << 10);
        options
            .hikv(|hikv| hikv.partitions(2).index_segment_bytes(1024).heap_run_bytes(4096))
            .chameleon(|chameleon| {
                chameleon.shards(2).memtable_bytes(256).levels(3).ratio(2).log_run_bytes(4096)
            })
            .log_hash(|options| options.index_segment_bytes(1024).log_run_bytes(4096))
    };
    EngineKind::ALL.iter().map(options).map(|options| {
        options.durability(Durability::Process).reclaim_percent(0).populate_ahead_bytes(0)
    })
}

/// Keys that stores have before a batch.
const BEFORE: [&str; 3] = ["a", "b", "c"];

fn bytes_of(changes: &[(&str, Option<&[u8]>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in changes {
        push(&mut bytes, key.as_bytes(), *value, !BEFORE.contains(key));
    }
    bytes
}

/// What a process leaves that was killed behind the record of a batch with these changes.
fn cut_off(options: &Options, changes: &[u8]) -> tempfile::TempDir {
    cut_off_after(options, |_| {}, &[changes])
}

/// What a process leaves that was killed behind the records of several batches, and had done `first` before.
fn cut_off_after(options: &Options, first: impl Fn(&Db), records: &[&[u8]]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (open, left) = (directory.path().join("open"), directory.path().join("left"));
    let db = Db::open(&open, options).unwrap();
    for key in BEFORE {
        db.put(key, "before").unwrap();
    }
    // The first of its changes is made.
    db.put("a", "after").unwrap();
    first(&db);
    for changes in records {
        db.engine().leave_record(changes);
    }
    db.sync().unwrap();
    copy_files(&open, &left);
    directory
}

fn values(db: &Db) -> [Option<Vec<u8>>; 4] {
    ["a", "b", "c", "d"].map(|key| db.get(key).unwrap())
}

fn texts(values: [Option<&str>; 4]) -> [Option<Vec<u8>>; 4] {
    values.map(|value| value.map(Vec::from))
}

const CHANGES: [(&str, Option<&[u8]>); 4] =
    [("d", Some(b"after")), ("a", Some(b"after")), ("b", Some(b"after")), ("c", None)];

#[test]
fn a_batch_that_was_cut_off_is_made_by_whoever_may_write() {
    for options in all_engines() {
        let directory = cut_off(&options, &bytes_of(&CHANGES));
        let left = directory.path().join("left");
        let error = Db::open(&left, &options.clone().read_only(true)).unwrap_err();
        assert!(matches!(error, Error::BatchUnfinished), "{error}");
        let half = Db::open(&left, &options.clone().read_only(true).salvage(true)).unwrap();
        assert_eq!(values(&half), texts([Some("after"), Some("before"), Some("before"), None]));
        assert!(!half.losses().is_empty(), "it says that a part may be missing");
        drop(half);
        let whole = texts([Some("after"), Some("after"), None, Some("after")]);
        for batches in [1, 0] {
            let db = Db::open(&left, &options).unwrap();
            assert_eq!(values(&db), whole);
            assert_eq!(db.stats().recovery.batches_made, batches);
            assert!(db.losses().is_empty() && db.check(None).is_sound());
            // What is written now is not undone by the next opening.
            db.put("a", "later").unwrap();
            db.put("a", "after").unwrap();
            db.close().unwrap();
        }
        let db = Db::open(&left, &options.clone().read_only(true)).unwrap();
        assert_eq!(values(&db), whole);
    }
}

/// What was acknowledged long before must not look cut off because recovery wrote it last.
#[test]
fn damage_of_a_batch_that_was_made_again_is_noticed() {
    for options in all_engines() {
        let directory = cut_off(&options, &bytes_of(&CHANGES));
        let [left, again, damaged] =
            ["left", "again", "damaged"].map(|name| directory.path().join(name));
        let db = Db::open(&left, &options).unwrap();
        copy_files(&left, &again);
        drop(db);
        let mut tried = 0;
        for file in std::fs::read_dir(&again).unwrap().map(|file| file.unwrap().file_name()) {
            let bytes = std::fs::read(again.join(&file)).unwrap();
            let values = bytes.windows(5).enumerate().filter(|(_, bytes)| bytes == b"after");
            // In its value, and in its words before that.
            for at in values.flat_map(|(at, _)| [at, at.saturating_sub(16), at.saturating_sub(32)])
            {
                tried += 1;
                copy_files(&again, &damaged);
                std::fs::File::options()
                    .write(true)
                    .open(damaged.join(&file))
                    .unwrap()
                    .write_all_at(&[!bytes[at]], at as u64)
                    .unwrap();
                let found = Db::open(&damaged, &options).and_then(|db| {
                    let read = |key| db.get(key);
                    Ok([read("a")?, read("b")?, read("c")?, read("d")?])
                });
                let expected = texts([Some("after"), Some("after"), None, Some("after")]);
                assert!(found.is_err() || found.unwrap() == expected, "{options:?}: byte {at}");
            }
        }
        // The values of three keys at least.
        assert!(tried >= 9, "{options:?}: {tried}");
    }
}

fn copy_files(from: &Path, to: &Path) {
    // What is not there need not be removed.
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(from).unwrap().map(|file| file.unwrap().path()) {
        std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

#[test]
fn a_record_that_no_batch_writes_is_damage_before_anything_is_changed() {
    let long = "k".repeat(10_000);
    let impossible = [
        bytes_of(&[("b", Some(b"after")), (&long, None)]),
        [bytes_of(&CHANGES), vec![7; 20]].concat(),
        bytes_of(&[("b", Some(b"after")), ("", None)]),
    ];
    for options in all_engines() {
        for changes in &impossible {
            let directory = cut_off(&options, changes);
            let left = directory.path().join("left");
            let error = Db::open(&left, &options).unwrap_err();
            assert!(matches!(error, Error::Corrupted { .. }), "{error}");
            let before = texts([Some("after"), Some("before"), Some("before"), None]);
            let db = Db::open(&left, &options.clone().salvage(true)).unwrap();
            assert_eq!(values(&db), before);
            assert!(!db.losses().is_empty());
            db.put("c", "more").unwrap();
            db.close().unwrap();
            let db = Db::open(&left, &options).unwrap();
            assert_eq!(db.get("c").unwrap(), Some("more".into()), "it was given up");
        }
    }
}

/// Also where another record is one: none of its changes is made.
#[test]
fn records_are_looked_at_before_any_is_made() {
    let (right, wrong) = (bytes_of(&CHANGES), bytes_of(&[("c", Some(b"after")), ("", None)]));
    for options in all_engines() {
        let directory = cut_off_after(&options, |_| {}, &[&right, &wrong, &wrong]);
        let left = directory.path().join("left");
        let error = Db::open(&left, &options).unwrap_err();
        assert!(matches!(error, Error::Corrupted { .. }), "{error}");
        let db = Db::open(&left, &options.clone().read_only(true).salvage(true)).unwrap();
        assert_eq!(values(&db), texts([Some("after"), Some("before"), Some("before"), None]));
    }
}

/// A store with a batch that was cut off, which may take no more than it has now.
struct Small {
    directory: tempfile::TempDir,
    keys: Vec<String>,
    used_bytes: u64,
    options: Options,
}

impl Small {
    const LONG: [u8; 1500] = [7; 1500];

    /// The batch has `first`, and many new keys.
    fn new(options: &Options, first: (&str, Option<&[u8]>)) -> Self {
        let keys: Vec<String> = (0..300).map(|number| format!("long {number}")).collect();
        let long = keys.iter().map(|key| (&**key, Some(&Self::LONG[..])));
        let changes: Vec<_> = long.chain([first]).collect();
        Self::with(options, keys.clone(), cut_off(options, &bytes_of(&changes)))
    }

    /// The batch has a new key, and longer values of many that are there.
    fn of_old_keys(options: &Options) -> Self {
        let keys: Vec<String> = (0..40).map(|number| format!("long {number}")).collect();
        let fill = |db: &Db| {
            for key in &keys {
                db.put(key, "short").unwrap();
            }
        };
        let mut bytes = bytes_of(&[("d", Some(b"after"))]);
        for key in &keys {
            push(&mut bytes, key.as_bytes(), Some(&Self::LONG), false);
        }
        Self::with(options, keys.clone(), cut_off_after(options, fill, &[&bytes]))
    }

    fn with(options: &Options, keys: Vec<String>, directory: tempfile::TempDir) -> Self {
        let left = directory.path().join("left");
        let used = Db::open(&left, &options.clone().read_only(true).salvage(true)).unwrap();
        let used_bytes = used.pool().used_blocks() * used.pool().map.block_bytes;
        let options = options.clone().capacity_bytes(used_bytes);
        Self { directory, keys, used_bytes, options }
    }

    fn open(&self, options: &Options) -> crate::Result<Db> {
        Db::open(self.directory.path().join("left"), options)
    }

    fn count(&self, db: &Db) -> usize {
        let value = |key: &String| db.get(key).unwrap();
        self.keys.iter().filter_map(value).filter(|value| *value == Self::LONG).count()
    }
}

/// A part of the batch is there already that nobody can take back: `a` has its new value.
#[test]
fn a_batch_that_was_cut_off_and_finds_no_room_is_kept() {
    for options in all_engines() {
        let small = Small::new(&options, ("a", Some(b"after")));
        let error = small.open(&small.options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        assert!(error.to_string().contains("a batch that a crash has cut off"), "{error}");
        let db = small.open(&small.options.clone().salvage(true)).unwrap();
        assert!(!db.losses().is_empty());
        let refused = db.put("b", "never").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WritesRefused, "{refused}");
        drop(db);
        let db = small.open(&options).unwrap();
        assert_eq!(db.stats().recovery.batches_made, 1);
        assert_eq!(small.count(&db), small.keys.len());
        assert!(db.check(None).is_sound());
    }
}

/// Of other keys all have changed at the end, or none.
#[test]
fn a_batch_that_was_cut_off_and_finds_room_for_a_part_is_whole_in_the_end() {
    let mut kept = 0;
    for options in all_engines() {
        // Room for none of them, for some, for all.
        for more in 0..12 {
            let mut small = Small::of_old_keys(&options);
            small.options = options.clone().capacity_bytes(small.used_bytes + (more << 13));
            let opened = small.open(&small.options);
            kept += u64::from(opened.is_err());
            let db = opened.or_else(|error| {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                small.open(&options)
            });
            let db = db.unwrap();
            let recovery = db.stats().recovery;
            let is_made = recovery.batches_made == 1;
            assert_eq!(recovery.batches_made + recovery.batches_taken_back, 1);
            assert_eq!(small.count(&db), if is_made { small.keys.len() } else { 0 });
            assert_eq!(db.get("d").unwrap().is_some(), is_made);
            assert!(db.check(None).is_sound());
        }
    }
    assert!(kept > 0, "there was room for a part");
}

#[test]
fn new_keys_of_a_batch_that_was_cut_off_and_finds_no_room_are_taken_back() {
    for options in all_engines() {
        let small = Small::new(&options, ("b", Some(b"after")));
        for taken_back in [1, 0] {
            let db = small.open(&small.options).unwrap();
            let recovery = db.stats().recovery;
            assert_eq!((recovery.batches_made, recovery.batches_taken_back), (0, taken_back));
            assert_eq!(small.count(&db), 0);
            assert_eq!(values(&db), texts([Some("after"), Some("before"), Some("before"), None]));
            assert!(db.losses().is_empty() && db.check(None).is_sound());
        }
        let db = small.open(&options).unwrap();
        assert_eq!((db.stats().recovery.batches_made, small.count(&db)), (0, 0));
        db.put("b", "later").unwrap();
    }
}

/// What a batch that was cut off needs may be had by reclaiming. Where keys lie follows from a seed that each store has: one in
/// ten has no engine in which that is enough.
#[test]
fn room_for_a_batch_that_was_cut_off_is_reclaimed() {
    let made = (0..10).any(|_| all_engines().map(|options| reclaimed(&options)).sum::<u64>() > 0);
    assert!(made, "some engine has garbage, and moves records without more room");
}

/// How many batches are made whose room has to be reclaimed: one, or none and nothing of it is there.
fn reclaimed(options: &Options) -> u64 {
    let garbage = |db: &Db| {
        for number in 0..400_u32 {
            db.put(number.to_le_bytes(), [3; 300]).unwrap();
        }
        for number in (0..400_u32).filter(|number| number % 4 != 0) {
            db.delete(number.to_le_bytes()).unwrap();
        }
    };
    let keys: Vec<String> = (0..20).map(|number| format!("long {number}")).collect();
    let long = keys.iter().map(|key| (&**key, Some(&Small::LONG[..])));
    let changes: Vec<_> = long.collect();
    let directory = cut_off_after(options, garbage, &[&bytes_of(&changes)]);
    let small = Small::with(options, keys.clone(), directory);
    let db = small.open(&small.options).unwrap();
    let recovery = db.stats().recovery;
    assert_eq!(recovery.batches_made + recovery.batches_taken_back, 1);
    assert_eq!(small.count(&db) as u64, 20 * recovery.batches_made);
    assert!(db.check(None).is_sound());
    recovery.batches_made
}

/// Batches that have set nothing aside, in a store that is full.
struct WithoutRoom {
    _directory: tempfile::TempDir,
    path: std::path::PathBuf,
    options: Options,
    db: Db,
    held: BTreeMap<u64, Vec<u8>>,
}

impl WithoutRoom {
    const KEYS: u64 = 40;

    fn new(options: &Options, round: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("full");
        let options = options.clone().capacity_bytes(2 << 20);
        let db = Db::open(&path, &options).unwrap();
        let mut store = Self { _directory: directory, path, options, db, held: BTreeMap::new() };
        // It keeps room for its record.
        let batch = WithoutRoom::batch(round, 300);
        store.db.write(&batch).unwrap();
        store.has_changed(&batch);
        // Some keys are new to the next batches, and some room comes back.
        let mut number = 1000;
        while store.db.put(key_of(number), vec![1; 90 + number as usize % 400]).is_ok() {
            number += 1;
        }
        for other in (0..Self::KEYS).filter(|other| (other + round).is_multiple_of(3)) {
            // In some engines a delete needs room.
            if store.db.delete(key_of(other)).is_ok() {
                store.held.remove(&other);
            }
        }
        for other in (1000..number).rev().take(8 * round as usize) {
            let _ = store.db.delete(key_of(other));
        }
        store
    }

    fn batch(round: u64, longest: u64) -> Batch {
        let mut batch = Batch::new();
        for number in 0..Self::KEYS {
            if (number + round).is_multiple_of(7) {
                batch.delete(key_of(number));
            } else {
                batch.put(key_of(number), vec![round as u8; (number * 37 % longest) as usize]);
            }
        }
        batch
    }

    /// The batch is made.
    fn has_changed(&mut self, batch: &Batch) {
        for (key, write) in &batch.writes {
            let number = u64::from_le_bytes(key[..].try_into().unwrap());
            match write {
                Write::Put(value) => drop(self.held.insert(number, value.clone())),
                Write::Delete => drop(self.held.remove(&number)),
                Write::Add { .. } => unreachable!("none of these"),
            }
        }
    }

    fn check(&self) {
        for number in 0..Self::KEYS {
            let found = self.db.get(key_of(number)).unwrap();
            assert_eq!(found.as_ref(), self.held.get(&number), "{number}");
        }
        let report = self.db.check(None);
        assert!(report.is_sound(), "{report:?}");
    }

    /// Closes the store, and opens it with more room. How many batches it makes.
    fn reopen(mut self) -> (Self, u64) {
        drop(self.db);
        let options = self.options.clone().capacity_bytes(16 << 20);
        self.db = Db::open(&self.path, &options).unwrap();
        let made = self.db.stats().recovery.batches_made;
        (self, made)
    }
}

fn key_of(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// What was made is taken back; where that finds no room either, the next opening makes the batch.
#[test]
fn a_batch_that_fails_half_way_is_taken_back_or_made_at_the_next_opening() {
    let mut in_doubt = 0;
    for options in all_engines() {
        let mut taken_back = 0;
        for round in 0..12 {
            let mut store = WithoutRoom::new(&options, round);
            let batch = WithoutRoom::batch(round + 1, 900);
            let made = store.db.engine().write_without_room(&batch);
            let expected = match made {
                Ok(()) => {
                    store.has_changed(&batch);
                    0
                }
                Err(Error::PoolFull { .. }) => {
                    taken_back += 1;
                    0
                }
                Err(Error::Poisoned { .. }) => {
                    in_doubt += 1;
                    let refused = store.db.delete(key_of(3)).unwrap_err();
                    assert_eq!(refused.kind(), ErrorKind::WritesRefused, "{refused}");
                    store.has_changed(&batch);
                    1
                }
                Err(error) => panic!("{error}"),
            };
            if expected == 0 {
                store.check();
            }
            let (store, batches_made) = store.reopen();
            assert_eq!(batches_made, expected);
            store.check();
        }
        assert!(taken_back > 2, "{taken_back}");
    }
    assert!(in_doubt > 0, "some engine finds no room for deletes either");
}

/// While the store is open, of the first word of any block: a batch that is refused has changed nothing that can be read.
#[test]
fn a_batch_that_meets_damage_is_made_or_not() {
    let mut refused = 0;
    for (options, kind) in all_engines().zip(EngineKind::ALL) {
        // The teaching engine alone frees blocks within a write.
        let step = if *kind == EngineKind::Teaching { 256 } else { 4096 };
        for at in (0..64 << 10).step_by(step) {
            let (_directory, db, file) = with_long_dead_records(&options);
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, at).unwrap();
            if bytes == [0; 8] {
                continue;
            }
            file.write_all_at(&bytes.map(|byte| byte ^ 0x55), at).unwrap();
            let mut batch = Batch::new();
            for key in BEFORE {
                batch.put(key, "after");
            }
            let outcome = db.write(&batch);
            let found = BEFORE.map(|key| db.get(key).ok().flatten());
            let made = found.iter().flatten().filter(|value| **value == b"after").count();
            match outcome {
                Ok(()) => assert_eq!(made, BEFORE.len(), "{options:?}, {at}"),
                Err(Error::Poisoned { .. }) => {}
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
                    assert_eq!(made, 0, "{options:?}, {at}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 0);
}

/// A store whose first records are dead but for those of three keys, and the file that has them.
fn with_long_dead_records(options: &Options) -> (tempfile::TempDir, Db, std::fs::File) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let db = Db::open(&path, options).unwrap();
    for key in BEFORE {
        db.put(key, "before").unwrap();
    }
    for number in 0..250_u8 {
        db.put([number, 0], [7; 100]).unwrap();
    }
    for number in 0..250_u8 {
        db.delete([number, 0]).unwrap();
    }
    let file = std::fs::File::options().read(true).write(true).open(path.join("segment-000000"));
    (directory, db, file.unwrap())
}
