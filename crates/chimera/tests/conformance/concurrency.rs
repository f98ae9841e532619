//! Several sessions at once. Everything is bounded by counts; nothing is timed.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chimera::{Db, Options, Swap};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, at_once, word};
use crate::tools::{Chance, assert_sound, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    sessions_in_ranges_of_their_own_do_not_disturb_each_other,
    hot_keys_are_read_whole,
    readers_never_go_back_in_time,
    parts_of_an_update_are_seen_together,
    additions_to_aligned_fields_add_up,
    additions_to_unaligned_fields_add_up,
    of_swaps_of_a_word_one_wins,
    of_swaps_of_a_value_one_wins,
    inserts_and_deletes_of_one_key_pair_up,
    the_store_itself_is_shared_without_sessions,
];

/// Reclaims in the background, too.
fn options(configuration: &Configuration) -> Options {
    configuration.options().reclaim_percent(20)
}

const RANGE: u64 = 300;

/// Inserts, overwrites, updates and deletes in a range, verified against a map of versions.
fn work_in_range(configuration: &Configuration, db: &Db, range: u64, steps: u64) -> Records {
    let mut session = db.session();
    let mut chance = Chance::new(range);
    let mut model = BTreeMap::new();
    for version in 1..=steps {
        let number = range * RANGE + chance.below(RANGE);
        let key = configuration.key(number);
        match chance.below(8) {
            0..4 => {
                let is_new = session.put(&key, configuration.value(number, version));
                assert_eq!(is_new.expect("put"), model.insert(number, version).is_none());
            }
            4 | 5 => {
                let was_there = session.delete(&key).expect("delete");
                assert_eq!(was_there, model.remove(&number).is_some());
            }
            6 => {
                let new = configuration.value(number, version);
                let updated = session.update(&key, |value| value.clone_from(&new));
                assert_eq!(updated.expect("update"), model.contains_key(&number));
                model.entry(number).and_modify(|old| *old = version);
            }
            _ => {
                let found = session.get(&key).expect("get");
                let expected = model.get(&number).map(|it| configuration.value(number, *it));
                assert_eq!(found, expected, "key {number}");
            }
        }
        if version % 500 == 0 {
            // Sessions come and go.
            session = db.session();
        }
    }
    let record = |(number, version): (&u64, &u64)| {
        (configuration.key(*number), configuration.value(*number, *version))
    };
    model.iter().map(record).collect()
}

fn sessions_in_ranges_of_their_own_do_not_disturb_each_other(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &options(configuration));
    let records = Mutex::new(Records::new());
    at_once(4, |range| {
        let own = work_in_range(configuration, &db, range, 10_000);
        records.lock().expect("nobody panics").extend(own);
    });
    let records = records.into_inner().expect("nobody panics");
    assert_holds(&db, &records);
    db.close().expect("nobody else has it");
    assert_holds(&configuration.open(directory.path()), &records);
}

fn hot_keys_are_read_whole(configuration: &Configuration) {
    const KEYS: u64 = 4;
    const THREADS: u64 = 4;
    let directory = scratch();
    let db = open(directory.path(), &options(configuration));
    let keys: Vec<_> = (0..KEYS).map(|number| configuration.key(number)).collect();
    let check = |number, found: &[u8]| {
        assert!(configuration.version(number, found) >> 32 < THREADS, "nobody wrote this");
    };
    at_once(THREADS, |thread| {
        let (mut session, mut chance) = (db.session(), Chance::new(thread));
        for step in 0..10_000 {
            let number = chance.below(KEYS);
            let key = &keys[number as usize];
            let new = configuration.value(number, thread << 32 | step);
            match chance.below(10) {
                0..5 => drop(session.put(key, &new).expect("put")),
                5 => drop(session.delete(key).expect("delete")),
                6 => {
                    let change = |old: &mut Vec<u8>| {
                        check(number, old);
                        old.clone_from(&new);
                    };
                    session.update(key, change).expect("update");
                }
                7 => {
                    let found = session.multi_get(&keys).expect("multi_get");
                    let found = (0..).zip(found).filter_map(|(number, it)| Some((number, it?)));
                    found.for_each(|(number, found)| check(number, &found));
                }
                _ => {
                    let found = session.get(key).expect("get");
                    found.inspect(|found| check(number, found));
                }
            }
        }
    });
    assert!(db.len() <= KEYS);
    assert_sound(&db);
}

/// Each key has one writer: no reader sees an older value after a newer one, nor none at all.
fn readers_never_go_back_in_time(configuration: &Configuration) {
    const WRITERS: u64 = 2;
    const VERSIONS: u64 = 10_000;
    let directory = scratch();
    let db = open(directory.path(), &options(configuration));
    configuration.fill(&mut db.session(), 0..WRITERS, 0);
    let done = AtomicU64::new(0);
    at_once(WRITERS + 2, |thread| {
        let mut session = db.session();
        if thread < WRITERS {
            (1..=VERSIONS).for_each(|version| configuration.fill(&mut session, [thread], version));
            done.fetch_add(1, Ordering::Release);
            return;
        }
        let mut seen = [0; WRITERS as usize];
        while done.load(Ordering::Acquire) < WRITERS {
            for number in 0..WRITERS {
                let found = session.get(configuration.key(number)).expect("get");
                let version = configuration.version(number, &found.expect("it is always there"));
                let before = std::mem::replace(&mut seen[number as usize], version);
                assert!(before <= version, "key {number} went from {before} back to {version}");
            }
        }
    });
    assert_holds(&db, &configuration.records(0..WRITERS, VERSIONS));
}

/// Two fields change together, and a third one by itself: no reader sees one of the two without the other.
fn parts_of_an_update_are_seen_together(configuration: &Configuration) {
    const ROUNDS: u64 = 4000;
    let directory = scratch();
    let db = open(directory.path(), &options(configuration));
    let key = configuration.key(1);
    db.put(&key, [0; 24]).expect("put");
    let done = AtomicBool::new(false);
    at_once(4, |thread| {
        let mut session = db.session();
        match thread {
            0 => {
                for _ in 0..ROUNDS {
                    let both = |value: &mut Vec<u8>| {
                        for at in [0, 8] {
                            let new = word(value, at) + 1;
                            value[at..at + 8].copy_from_slice(&new.to_le_bytes());
                        }
                    };
                    assert!(session.update(&key, both).expect("update"));
                }
                done.store(true, Ordering::Release);
            }
            1 => {
                for before in 0..ROUNDS {
                    let found = session.fetch_add_u64(&key, 16, 1).expect("fetch_add_u64");
                    assert_eq!(found, Some(before), "an update was lost");
                }
            }
            _ => {
                while !done.load(Ordering::Acquire) {
                    let found = session.get(&key).expect("get").expect("it is there");
                    assert_eq!(word(&found, 0), word(&found, 8), "half of an update");
                }
            }
        }
    });
    let found = db.get(&key).expect("get").expect("it is there");
    assert_eq!([0, 8, 16].map(|at| word(&found, at)), [ROUNDS; 3]);
    assert_sound(&db);
}

/// Additions at `at`, while another session changes other bytes of the same values.
fn additions(configuration: &Configuration, at: usize) {
    const KEYS: u64 = 3;
    const THREADS: u64 = 4;
    const EACH: u64 = 3000;
    let directory = scratch();
    let db = open(directory.path(), &options(configuration));
    let keys: Vec<_> = (0..KEYS).map(|number| configuration.key(number)).collect();
    for key in &keys {
        db.put(key, [0; 24]).expect("put");
    }
    at_once(THREADS + 1, |thread| {
        let (mut session, mut chance) = (db.session(), Chance::new(thread));
        for step in 0..EACH {
            if thread == THREADS {
                // In two words, and in none of the field's bytes.
                let change = |value: &mut Vec<u8>| [0, 23].iter().for_each(|at| value[*at] ^= 1);
                let key = &keys[chance.below(KEYS) as usize];
                assert!(session.update(key, change).expect("update"));
            } else {
                let added = session.fetch_add_u64(&keys[(step % KEYS) as usize], at, 1 + thread);
                assert!(added.expect("fetch_add_u64").is_some());
            }
        }
    });
    let value = |key| db.get(key).expect("get").expect("it is there");
    let sum: u64 = keys.iter().map(|key| word(&value(key), at)).sum();
    assert_eq!(sum, (1..=THREADS).map(|delta| delta * EACH).sum::<u64>());
    assert_sound(&db);
}

fn additions_to_aligned_fields_add_up(configuration: &Configuration) {
    additions(configuration, 8);
}

fn additions_to_unaligned_fields_add_up(configuration: &Configuration) {
    additions(configuration, 9);
}

/// Every successful swap counts one up: each number is won once.
fn of_swaps_of_a_word_one_wins(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &options(configuration));
    let key = configuration.key(0);
    for at in [16, 5] {
        db.put(&key, [0; 24]).expect("put");
        let won = AtomicU64::new(0);
        at_once(4, |_| {
            let (mut session, mut seen) = (db.session(), 0);
            for _ in 0..3000 {
                let found = session.compare_and_swap_u64(&key, at, seen, seen + 1);
                let found = found.expect("swap").expect("it is there");
                assert!(found >= seen, "the counter went back");
                won.fetch_add(u64::from(found == seen), Ordering::Relaxed);
                seen = if found == seen { seen + 1 } else { found };
            }
        });
        let found = db.get(&key).expect("get").expect("it is there");
        let won = won.into_inner();
        assert!(word(&found, at) == won && won > 0, "{won} won, {}", word(&found, at));
    }
    assert_sound(&db);
}

fn of_swaps_of_a_value_one_wins(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &options(configuration));
    let key = configuration.key(0);
    db.put(&key, [0; 24]).expect("put");
    let won = AtomicU64::new(0);
    at_once(4, |thread| {
        let mut session = db.session();
        for step in 0..2500 {
            let old = session.get(&key).expect("get").expect("it is there");
            let mut new = old.clone();
            new[..8].copy_from_slice(&(word(&old, 0) + 1).to_le_bytes());
            new[8..16].copy_from_slice(&(thread << 32 | step).to_le_bytes());
            match session.compare_and_swap(&key, &old, &new).expect("swap") {
                Swap::Swapped => drop(won.fetch_add(1, Ordering::Relaxed)),
                Swap::Different => {}
                Swap::Missing => panic!("nobody deletes it"),
            }
        }
    });
    let found = db.get(&key).expect("get").expect("it is there");
    assert_eq!(word(&found, 0), won.into_inner());
    assert_sound(&db);
}

/// Of sessions that delete the same key one is told that it did; of those that insert it, too.
fn inserts_and_deletes_of_one_key_pair_up(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &options(configuration));
    let (inserted, deleted) = (AtomicU64::new(0), AtomicU64::new(0));
    at_once(5, |thread| {
        let mut session = db.session();
        for step in 0..3000 {
            let key = configuration.key(step % 2);
            if (thread + step / 3) % 2 == 0 {
                let is_new = session.put(&key, configuration.value(step % 2, step));
                inserted.fetch_add(u64::from(is_new.expect("put")), Ordering::Relaxed);
            } else {
                let was_there = session.delete(&key).expect("delete");
                deleted.fetch_add(u64::from(was_there), Ordering::Relaxed);
            }
            session.fetch_add_u64(&key, 8, 1).expect("whether it is there or not");
        }
    });
    assert_eq!(inserted.into_inner(), deleted.into_inner() + db.len());
    assert_sound(&db);
}

fn the_store_itself_is_shared_without_sessions(configuration: &Configuration) {
    const THREADS: u64 = 4;
    const EACH: u64 = 500;
    let directory = scratch();
    let db = open(directory.path(), &options(configuration));
    let counter = configuration.key(THREADS * EACH);
    db.put(&counter, [0; 24]).expect("put");
    at_once(THREADS, |thread| {
        let db = db.clone();
        for number in thread * EACH..(thread + 1) * EACH {
            let (key, value) = (configuration.key(number), configuration.value(number, 1));
            assert!(db.put(&key, &value).expect("put"));
            assert_eq!(db.get(&key).expect("get"), Some(value));
            assert!(db.contains_key(&key).expect("contains_key"));
            assert!(db.fetch_add_u64(&counter, 0, 1).expect("fetch_add_u64").is_some());
            if number % 2 == 0 {
                assert!(db.delete(&key).expect("delete"));
            }
        }
    });
    let mut records = configuration.records((0..THREADS * EACH).filter(|it| it % 2 == 1), 1);
    let mut counted = vec![0; 24];
    counted[..8].copy_from_slice(&(THREADS * EACH).to_le_bytes());
    records.insert(counter, counted);
    assert_holds(&db, &records);
    db.close().expect("the clones are gone");
}
