//! Every record, one after the other: at rest and beside writers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chimera::{Db, Result};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, at_once, number_of};
use crate::tools::{assert_sound, contents, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    every_way_of_listing_gives_every_record_once,
    a_listing_stops_when_it_is_told_to,
    what_is_listed_may_be_deleted_meanwhile,
    beside_writers_a_key_that_stays_comes_exactly_once,
    beside_reclamation_a_key_that_stays_comes_exactly_once: needs reclaim,
];

type Record = (Vec<u8>, Vec<u8>);

fn every_way_of_listing_gives_every_record_once(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    for count in [0, 1, 2, 127, 128, 129, 1000] {
        configuration.fill(&mut db.session(), 0..count, count);
        let records = configuration.records(0..count, count);
        assert!(contents(&db) == records);
        let listed: Vec<Record> = db.iter().collect::<Result<_>>().expect("no damage");
        assert_eq!(listed.len() as u64, count, "a key comes twice");
        assert!(listed.iter().cloned().collect::<Records>() == records);
        let again: Vec<Record> = (&db).into_iter().collect::<Result<_>>().expect("no damage");
        assert!(listed == again, "at rest the order stays");
        let keys: Vec<Vec<u8>> = db.keys().collect::<Result<_>>().expect("no damage");
        assert!(keys.iter().eq(listed.iter().map(|(key, _)| key)));
    }
    drop(db);
    let db = configuration.open(directory.path());
    assert_eq!(db.iter().count(), 1000);
}

fn a_listing_stops_when_it_is_told_to(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    configuration.fill(&mut db.session(), 0..500, 1);
    for most in [1, 2, 200] {
        let mut seen = BTreeSet::new();
        let take = |key: &[u8], _: &[u8]| {
            assert!(seen.insert(key.to_vec()));
            seen.len() < most
        };
        db.for_each(take).expect("no damage");
        assert_eq!(seen.len(), most);
        assert_eq!(db.iter().take(most).filter_map(Result::ok).count(), most);
        assert_eq!(db.keys().take(most).filter_map(Result::ok).count(), most);
    }
}

fn what_is_listed_may_be_deleted_meanwhile(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    configuration.fill(&mut db.session(), 0..700, 1);
    let mut deleted = 0;
    for key in db.keys() {
        assert!(db.delete(key.expect("no damage")).expect("delete"), "a key comes twice");
        deleted += 1;
    }
    assert_eq!((deleted, db.len()), (700, 0));
    assert_sound(&db);
}

/// Keys that nobody changes; that are overwritten; that come and go; that are new.
const STILL: u64 = 400;
const HOT: std::ops::Range<u64> = STILL..STILL + 50;
const COMING: std::ops::Range<u64> = STILL + 50..STILL + 100;
const NEW: std::ops::Range<u64> = STILL + 1000..STILL + 4000;

/// Checks one listing, which began when `first` was the version of the hot keys, and ended before `last + 1` was
/// whole.
fn check(configuration: &Configuration, listed: Vec<Record>, first: u64, last: u64) {
    let count = listed.len();
    let mut listed: Records = listed.into_iter().collect();
    assert_eq!(listed.len(), count, "a key comes twice");
    for number in 0..STILL {
        let found = listed.remove(&configuration.key(number));
        let found = found.unwrap_or_else(|| panic!("key {number} was there all the time"));
        assert_eq!(configuration.version(number, &found), 1);
    }
    for number in HOT {
        let found = listed.remove(&configuration.key(number)).expect("it is there all the time");
        let version = configuration.version(number, &found);
        assert!((first..=last).contains(&version), "{version} is not from {first} to {last}");
    }
    for (key, found) in &listed {
        let number = number_of(key);
        assert_eq!(configuration.version(number, found), 1);
        assert!(COMING.contains(&number) || NEW.contains(&number), "nobody wrote key {number}");
    }
}

fn beside(configuration: &Configuration, db: &Db, other: impl Fn() + Sync) {
    configuration.fill(&mut db.session(), 0..STILL, 1);
    configuration.fill(&mut db.session(), HOT, 1);
    let (is_over, version) = (AtomicBool::new(false), AtomicU64::new(1));
    let goes_on = || !is_over.load(Ordering::Acquire);
    at_once(4, |thread| match thread {
        0 => {
            let mut session = db.session();
            while goes_on() {
                let next = version.load(Ordering::Relaxed) + 1;
                configuration.fill(&mut session, HOT, next);
                version.store(next, Ordering::Release);
            }
        }
        1 => {
            let (mut session, mut new) = (db.session(), NEW);
            while goes_on() {
                configuration.fill(&mut session, COMING, 1);
                // The index grows while it is listed.
                configuration.fill(&mut session, new.by_ref().take(100), 1);
                for number in COMING {
                    assert!(session.delete(configuration.key(number)).expect("delete"));
                }
            }
        }
        2 => {
            while goes_on() {
                other();
            }
        }
        _ => {
            let ends = End(&is_over);
            for round in 0..20 {
                let first = version.load(Ordering::Acquire);
                let mut listed = Vec::new();
                if round % 2 == 0 {
                    let take = |key: &[u8], value: &[u8]| {
                        listed.push((key.to_vec(), value.to_vec()));
                        true
                    };
                    db.for_each(take).expect("no damage");
                } else {
                    listed.extend(db.iter().map(|record| record.expect("no damage")));
                }
                check(configuration, listed, first, version.load(Ordering::Acquire) + 1);
            }
            drop(ends);
        }
    });
    assert_sound(db);
}

/// Ends the others also when a check fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn beside_writers_a_key_that_stays_comes_exactly_once(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    // Also beside a verification.
    beside(configuration, &db, || assert_sound(&db));
}

fn beside_reclamation_a_key_that_stays_comes_exactly_once(configuration: &Configuration) {
    let directory = scratch();
    let options = configuration.options().reclaim_percent(20);
    let db = open(directory.path(), &options.reclaim_bytes_per_second(u64::MAX));
    beside(configuration, &db, || {
        db.compact(5, None).expect("compaction");
    });
}
