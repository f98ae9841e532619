//! What is acknowledged is there again: after a close, a drop, and the end of the process at any time.

use std::time::Duration;

use chimera::{Db, Durability, Options, Session};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds};
use crate::tools::{Chance, copy_store, open, scratch, scratch_on_disk};

pub(crate) const TESTS: &[Test] = tests![
    an_empty_store_is_empty_again,
    everything_is_there_after_a_close_and_after_a_drop,
    everything_is_there_after_the_process_was_killed,
    a_killed_store_is_killed_again_and_again,
    everything_is_there_on_plain_files_of_every_durability,
    recovery_with_several_threads_finds_the_same,
];

const KEYS: u64 = 150;

/// Does something to one key, and to what must be there.
fn step(
    configuration: &Configuration,
    session: &mut Session,
    records: &mut Records,
    chance: &mut Chance,
) {
    let number = chance.below(KEYS);
    let key = configuration.key(number);
    match chance.below(6) {
        0 => {
            let was_there = session.delete(&key).expect("delete");
            assert_eq!(was_there, records.remove(&key).is_some());
        }
        1 => {
            let added = session.fetch_add_u64(&key, 16, 3).expect("fetch_add_u64");
            let value = records.get_mut(&key);
            assert_eq!(added.is_some(), value.is_some());
            if let Some((value, was)) = value.zip(added) {
                value[16..24].copy_from_slice(&(was.wrapping_add(3)).to_le_bytes());
            }
        }
        _ => {
            let value = configuration.value(number, chance.word());
            let is_new = session.put(&key, &value).expect("put");
            assert_eq!(is_new, records.insert(key, value).is_none());
        }
    }
}

/// Works with a store for a while.
fn work(configuration: &Configuration, db: &Db, records: &mut Records, seed: u64, steps: u64) {
    let (mut session, mut chance) = (db.session(), Chance::new(seed));
    for number in 1..=steps {
        step(configuration, &mut session, records, &mut chance);
        if number.is_multiple_of(100) {
            session = db.session();
        }
    }
}

fn an_empty_store_is_empty_again(configuration: &Configuration) {
    let directory = scratch();
    for _ in 0..3 {
        let db = configuration.open(directory.path());
        assert!(db.is_empty());
        assert_holds(&db, &Records::new());
    }
}

fn everything_is_there_after_a_close_and_after_a_drop(configuration: &Configuration) {
    let directory = scratch();
    let mut records = Records::new();
    for round in 0..12 {
        let db = configuration.open(directory.path());
        assert!(round == 0 || db.stats().recovery.clean);
        assert_eq!(db.stats().recovery.records, records.len() as u64);
        assert_holds(&db, &records);
        work(configuration, &db, &mut records, round, 200);
        let session = db.session();
        match round % 3 {
            0 => {
                drop(session);
                db.close().expect("nobody else has it");
            }
            1 => drop((session, db)),
            _ => drop((db, session)),
        }
    }
    assert_holds(&configuration.open(directory.path()), &records);
}

fn everything_is_there_after_the_process_was_killed(configuration: &Configuration) {
    let directory = scratch();
    let db = open(&directory.path().join("store"), &configuration.still());
    let mut records = Records::new();
    let (mut session, mut chance) = (db.session(), Chance::new(7));
    let left = directory.path().join("left");
    for number in 0..600 {
        step(configuration, &mut session, &mut records, &mut chance);
        if number % 13 == 0 {
            copy_store(&directory.path().join("store"), &left);
            let copy = configuration.open(&left);
            assert!(!copy.stats().recovery.clean);
            assert_holds(&copy, &records);
            drop(copy);
            std::fs::remove_dir_all(&left).expect("it is there");
        }
    }
}

/// Each life of the store begins with what was left by the one before.
fn a_killed_store_is_killed_again_and_again(configuration: &Configuration) {
    let directory = scratch();
    let mut records = Records::new();
    for round in 0..15 {
        let db = open(&directory.path().join(round.to_string()), &configuration.still());
        assert_holds(&db, &records);
        work(configuration, &db, &mut records, round, 150);
        // A session that owns something has it no more in the next life.
        let _owner = db.session().put(configuration.key(0), configuration.value(0, round));
        records.insert(configuration.key(0), configuration.value(0, round));
        let next = directory.path().join((round + 1).to_string());
        copy_store(&directory.path().join(round.to_string()), &next);
    }
    assert_holds(&configuration.open(&directory.path().join("15")), &records);
}

fn everything_is_there_on_plain_files_of_every_durability(configuration: &Configuration) {
    let group = Durability::Group { max_delay: Duration::from_millis(5) };
    for durability in [Durability::Auto, Durability::Immediate, group, Durability::Process] {
        let directory = scratch_on_disk();
        let options = configuration.options().durability(durability).journal_bytes(64 << 10);
        let mut records = Records::new();
        for round in 0..2 {
            let db = open(directory.path(), &options);
            assert_holds(&db, &records);
            work(configuration, &db, &mut records, round, 80);
            db.close().expect("nobody else has it");
        }
        assert_holds(&open(directory.path(), &Options::new()), &records);
    }
}

fn recovery_with_several_threads_finds_the_same(configuration: &Configuration) {
    let directory = scratch();
    let db = open(&directory.path().join("store"), &configuration.still());
    let mut records = Records::new();
    work(configuration, &db, &mut records, 3, 3000);
    for threads in [1, 2, 5] {
        let left = directory.path().join(format!("left-{threads}"));
        copy_store(&directory.path().join("store"), &left);
        let copy = open(&left, &configuration.options().recovery_threads(threads));
        assert_holds(&copy, &records);
    }
}
