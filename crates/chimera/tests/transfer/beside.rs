//! Exports and backups while others write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use chimera::{BackupOptions, Db};

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
                    assert!(session.delete(&key(number)).expect("a delete"));
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
    let numbers = copied.iter().map(|(key, found)| {
        let number = u64::from_le_bytes(key[..].try_into().expect("8 bytes"));
        assert_eq!(version_of(number, found), 1);
        number
    });
    let numbers: BTreeMap<u64, ()> = numbers.map(|number| (number, ())).collect();
    let is_known = |number: &u64| COMING.contains(number) || *number >= NEW;
    assert!(numbers.keys().all(is_known), "a key that nobody wrote");
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
