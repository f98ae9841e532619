//! Exports and backups while others write.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use chimera::{BackupOptions, Db, ExportOptions, StreamReader};

use crate::tools::media::{crafted, hash_seed};
use crate::tools::{assert_sound, contents, fill, key, open, scratch, small, value, version_of};
use crate::{Model, exported, import};

/// Keys that nobody changes; that are overwritten and updated in place; that come and go; that are new.
const STILL: u64 = 2000;
const HOT: std::ops::Range<u64> = STILL..STILL + 50;
const COMING: std::ops::Range<u64> = STILL + 50..STILL + 100;
const NEW: u64 = STILL + 1000;

/// Runs writers beside `copy`, and checks what it copied again and again.
fn beside_writers(db: &Db, mut copy: impl FnMut(u64) -> Model) {
    fill(&mut db.session(), 0..HOT.end, 1);
    let stop = AtomicBool::new(false);
    let version = AtomicU64::new(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = db.session();
            while !stop.load(Ordering::Acquire) {
                let next = version.load(Ordering::Relaxed) + 1;
                fill(&mut session, HOT, next);
                version.store(next, Ordering::Release);
            }
        });
        scope.spawn(|| {
            let mut session = db.session();
            let mut next = NEW;
            while !stop.load(Ordering::Acquire) {
                fill(&mut session, COMING, 1);
                // The index grows while it is listed.
                fill(&mut session, next..(next + 200).min(NEW + 50_000), 1);
                next = (next + 200).min(NEW + 50_000);
                for number in COMING {
                    assert!(session.delete(key(number)).expect("a delete"));
                }
            }
        });
        for round in 0..8 {
            let first = version.load(Ordering::Acquire);
            let copied = copy(round);
            let last = version.load(Ordering::Acquire) + 1;
            check(copied, first, last);
        }
        stop.store(true, Ordering::Release);
    });
}

fn check(mut copied: Model, first: u64, last: u64) {
    for number in 0..STILL {
        assert_eq!(copied.remove(&key(number)), Some(value(number, 1)), "key {number}");
    }
    for number in HOT {
        let found = copied.remove(&key(number)).expect("it is there all the time");
        let version = version_of(number, &found);
        assert!((first..=last).contains(&version), "{version} is not from {first} to {last}");
    }
    for (key, found) in &copied {
        let number = u64::from_le_bytes(key[..].try_into().expect("8 bytes"));
        assert_eq!(version_of(number, found), 1);
        assert!(COMING.contains(&number) || number >= NEW, "nobody wrote key {number}");
    }
}

fn imported(path: &Path, stream: &[u8]) -> Model {
    let copy = open(path, &small());
    let report = import(&copy, stream).expect("a whole stream");
    assert_eq!(report.replaced, 0, "a key comes twice");
    assert_sound(&copy);
    contents(&copy)
}

#[test]
fn an_export_beside_writers_has_every_key_that_stays_exactly_once() {
    let directory = scratch();
    let db = open(&directory.path().join("one"), &small());
    beside_writers(&db, |round| {
        let stream = exported(&db, 1000);
        imported(&directory.path().join(format!("copy-{round}")), &stream)
    });
}

#[test]
fn a_backup_beside_writers_has_every_key_that_stays() {
    let directory = scratch();
    let db = open(&directory.path().join("one"), &small());
    beside_writers(&db, |round| {
        let path = directory.path().join(format!("copy-{round}"));
        let report = db.backup(&path, &BackupOptions::new()).expect("a backup");
        let copy = open(&path, &small());
        assert_sound(&copy);
        let copied = contents(&copy);
        assert_eq!(report.records, copied.len() as u64, "a key comes twice");
        copied
    });
    // The store may grow on a machine that is slow: what it holds in the end is still right.
    assert_sound(&db);
}

/// Where one has moved since it was listed, another one is found under its hash.
#[test]
fn keys_of_one_hash_that_are_overwritten_meanwhile_are_all_contained() {
    const ALIKE: u64 = 40;
    let directory = scratch();
    let path = directory.path().join("one");
    let options = small().fixed_size(32, 24);
    let db = open(&path, &options);
    let seed = hash_seed(&path);
    let key = |number| crafted(seed, number);
    let put = |session: &mut chimera::Session, version| {
        for number in 0..ALIKE {
            session.put(key(number), value(number, version)).expect("room");
        }
    };
    put(&mut db.session(), 1);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = db.session();
            let mut version = 1;
            while !stop.load(Ordering::Acquire) {
                version += 1;
                put(&mut session, version);
            }
        });
        for round in 0..300 {
            let mut copied = Model::new();
            let listed = db.for_each(|key, value| {
                assert!(copied.insert(key.to_vec(), value.to_vec()).is_none(), "it comes twice");
                true
            });
            listed.expect("no damage");
            assert_eq!(copied.len() as u64, ALIKE, "round {round}");
            for number in 0..ALIKE {
                version_of(number, &copied[&key(number)]);
            }
        }
        stop.store(true, Ordering::Release);
    });
    // An export that is cut among them loses none.
    let whole = exported(&db, 1);
    for length in (64..whole.len()).step_by(7) {
        let verified = StreamReader::new(&whole[..length]).expect("a stream").verify();
        let verified = verified.expect("readable");
        let mut stream = whole[..verified.bytes() as usize].to_vec();
        db.export(&mut stream, &ExportOptions::new().frame_bytes(1).resume(verified))
            .expect("a rest");
        let copy = open(&directory.path().join("copy"), &options);
        import(&copy, &stream).expect("a whole stream");
        assert!(contents(&copy) == contents(&db), "{length} bytes");
        drop(copy);
        std::fs::remove_dir_all(directory.path().join("copy")).expect("it is there");
    }
}
