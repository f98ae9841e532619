//! Tables in DRAM.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::index::probing_table::slot::decode;
use crate::index::probing_table::volatile::Refused;
use crate::index::{Resolve, TooManyCollisions};

const NO_LIMIT: u32 = u32::MAX;

/// Ends the readers, also when the writer panics.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The newer version stays.
fn resolve(new: Slot, found: Found) -> Resolve {
    let entered = new.found().unwrap();
    if key_of(found) != key_of(entered) {
        Resolve::OtherKey
    } else if found.offset > entered.offset {
        Resolve::KeepOld
    } else {
        Resolve::KeepNew
    }
}

#[test]
fn a_full_table_refuses_and_still_answers() {
    let tables = Tables::new(16, false);
    let table = tables.table(tables.take().unwrap());
    // From the middle on: the chain goes around.
    for key in 0..16 {
        assert_eq!((table.len(), table.is_full(16)), (key as u32, false));
        table.insert(slot_of(hash_at(9, key), key, 0, false), NO_LIMIT).unwrap();
    }
    assert!(table.is_full(16) && table.is_full(7));
    for key in 0..16 {
        let hash = hash_at(9, key);
        let pair = [key & !1, key | 1].map(|key| slot_of(hash, key, 0, false).location);
        assert_eq!(in_volatile(table, hash), pair);
    }
    let other = hash_at(9, 100);
    assert_eq!(in_volatile(table, other), [0; 0]);
    let new = slot_of(other, 100, 0, false);
    assert_eq!(table.insert(new, NO_LIMIT), Err(Refused::Full));
    // An entry that is there can still be replaced.
    let newer = slot_of(hash_at(9, 15), 15, 1, true);
    let old = slot_of(newer.hash, 15, 0, false).location;
    let replaced = table.upsert(newer, NO_LIMIT, |found| resolve(newer, found));
    assert_eq!((replaced, table.len()), (Ok(Upserted::Replaced(old)), 16));
    assert!(!table.replace(newer.hash, old, 1), "not any more");
}

#[test]
fn keys_of_one_hash_are_refused_when_they_are_too_many() {
    let tables = Tables::new(32, false);
    let table = tables.table(tables.take().unwrap());
    let slot = |key| slot_of(7, key, 0, false);
    (0..4).for_each(|key| table.insert(slot(key), 3).unwrap());
    assert_eq!(table.insert(slot(4), 3), Err(Refused::TooManyCollisions(TooManyCollisions)));
    assert_eq!(table.len(), 4);
    table.insert(slot(4), NO_LIMIT).unwrap();
    // Beyond the limit as well a key that is there can be replaced while it comes before.
    let newer = slot_of(7, 2, 1, false);
    let replaced = table.upsert(newer, 3, |found| resolve(newer, found));
    assert_eq!(replaced, Ok(Upserted::Replaced(slot(2).location)));
    let mut asked = 0;
    let answer = table.probe(7, |found| {
        asked += 1;
        if key_of(found) == 2 { Probe::Found(found.location) } else { Probe::NotThis }
    });
    assert_eq!((answer, asked), (Probe::Found(newer.location), 3));
    assert_eq!(table.probe(7, |_| Probe::<()>::Retry), Probe::Retry);
}

#[test]
fn tables_are_handed_out_once_and_come_back_cleared() {
    let tables = Tables::new(16, false);
    let numbers: Vec<_> = (0..100).map(|_| tables.take().unwrap()).collect();
    for number in &numbers {
        let slot = slot_of(mixed((*number).into()), (*number).into(), 0, false);
        tables.table(*number).insert(slot, NO_LIMIT).unwrap();
    }
    for number in &numbers {
        let slot = slot_of(mixed((*number).into()), (*number).into(), 0, false);
        assert_eq!(tables.table(*number).iter().collect::<Vec<_>>(), [slot], "its own alone");
    }
    tables.give_back(numbers[17]);
    tables.give_back(numbers[3]);
    let again = [tables.take().unwrap(), tables.take().unwrap()];
    assert_eq!(again, [numbers[3], numbers[17]]);
    for number in again {
        assert!(tables.table(number).is_empty());
        assert_eq!(tables.table(number).iter().count(), 0);
    }
    assert_eq!(tables.bytes(), 100 * (256 + 4));
    assert!(std::panic::catch_unwind(|| Tables::new(18, false)).is_err());
    assert!(std::panic::catch_unwind(|| Tables::new(0, false)).is_err());
}

#[test]
fn what_a_later_user_of_a_table_left_is_never_taken_for_an_entry() {
    let tables = Tables::new(16, false);
    let table = tables.table(tables.take().unwrap());
    let (one, other) = (slot_of(5, 1, 0, false), slot_of(6, 2, 0, false));
    // The hash of one user, the location of another one.
    table.insert(Slot { hash: one.hash, location: other.location }, NO_LIMIT).unwrap();
    assert_eq!(table.probe(one.hash, |_| Probe::Found(())), Probe::Retry);
    assert_eq!(table.probe(other.hash, |_| Probe::Found(())), Probe::NotThis);
}

/// One change: of a key, by a kind.
#[derive(Clone, Copy, Debug)]
enum Change {
    Upsert(u64),
    /// With a version that is older than all.
    Late(u64),
    Replace(u64),
    Clear,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let key = 0..60_u64;
    let change = prop_oneof![
        20 => key.clone().prop_map(Change::Upsert),
        5 => key.clone().prop_map(Change::Late),
        5 => key.prop_map(Change::Replace),
        1 => Just(Change::Clear),
    ];
    proptest::collection::vec(change, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_table_agrees_with_a_model(changes in changes(), slots in 1..6_u32, homes in 1..16_u64) {
        let tables = Tables::new(16 * slots, false);
        let table = tables.table(tables.take().unwrap());
        let hash_of = |key: u64| hash_at(15 - key % homes, key / 4 * 4);
        let mut model = BTreeMap::<u64, u64>::new();
        for (version, change) in (1..).zip(changes) {
            match change {
                Change::Upsert(key) | Change::Late(key) => {
                    let is_late = matches!(change, Change::Late(_));
                    let new = slot_of(hash_of(key), key, if is_late { 0 } else { version }, false);
                    let expected = match model.get(&key) {
                        None if model.len() == 16 * slots as usize => Err(Refused::Full),
                        None => Ok(Upserted::Inserted),
                        Some(old) if is_late && *old != new.location => Ok(Upserted::Kept),
                        Some(old) => Ok(Upserted::Replaced(*old)),
                    };
                    let done = table.upsert(new, NO_LIMIT, |found| resolve(new, found));
                    prop_assert_eq!(done, expected);
                    if !matches!(done, Err(_) | Ok(Upserted::Kept)) {
                        model.insert(key, new.location);
                    }
                }
                Change::Replace(key) => {
                    let new = slot_of(hash_of(key), key, version, true).location;
                    let old = model.get(&key).copied();
                    prop_assert_eq!(table.replace(hash_of(key), old.unwrap_or(8), new), old.is_some());
                    old.and_then(|_| model.insert(key, new));
                }
                Change::Clear => {
                    table.clear();
                    model.clear();
                }
            }
            prop_assert_eq!(table.len() as usize, model.len());
        }
        for key in 0..60 {
            let found = table.probe(hash_of(key), |found| {
                if key_of(found) == key { Probe::Found(found.location) } else { Probe::NotThis }
            });
            let expected = model.get(&key).copied();
            prop_assert_eq!(found, expected.map_or(Probe::NotThis, Probe::Found));
        }
        let mut listed: Vec<_> = table.iter().map(|slot| slot.location).collect();
        let mut expected: Vec<_> = model.into_values().collect();
        listed.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(listed, expected);
    }
}

#[test]
fn readers_find_what_was_entered_beside_a_writer() {
    const KEYS: u64 = 700;
    let tables = Tables::new(1024, false);
    let table = tables.table(tables.take().unwrap());
    let (entered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for reader in 0..2_u64 {
            let (entered, is_over) = (&entered, &is_over);
            scope.spawn(move || {
                let mut turn = reader;
                while !is_over.load(Ordering::Relaxed) {
                    turn += 7;
                    let (key, below) = (turn % KEYS, entered.load(Ordering::Acquire));
                    let found = table.probe(mixed(key), |found| {
                        assert_eq!(key_of(found), key, "no other has the hash");
                        Probe::Found(found.location)
                    });
                    assert_ne!(found, Probe::Retry);
                    assert!(key >= below || found != Probe::NotThis, "{key} of {below} is gone");
                }
            });
        }
        let _ending = Ending(&is_over);
        for version in 0..20 {
            for key in 0..KEYS {
                let new = slot_of(mixed(key), key, version, false);
                table.upsert(new, NO_LIMIT, |found| resolve(new, found)).unwrap();
                entered.fetch_max(key + 1, Ordering::Release);
            }
        }
    });
    assert_eq!(u64::from(table.len()), KEYS);
}

#[test]
fn readers_of_a_table_that_is_used_again_come_to_an_end_and_see_sound_entries() {
    const KEYS: u64 = 40;
    let slot = |key| slot_of(mixed(key % KEYS), key % KEYS, 0, false);
    for (one, other) in (0..KEYS).flat_map(|one| (0..one).map(move |other| (one, other))) {
        let (one, other) = (slot(one), slot(other));
        let is_taken = |hash, location| decode(hash, location).is_some();
        let is_missed = is_taken(one.hash, other.location) || is_taken(other.hash, one.location);
        assert!(!is_missed, "the check tells any two of these from each other");
    }
    let tables = Tables::new(16, false);
    let is_over = AtomicBool::new(false);
    let number = tables.take().unwrap();
    thread::scope(|scope| {
        let reader = || {
            let mut key = 0;
            while !is_over.load(Ordering::Relaxed) {
                key = (key + 1) % KEYS;
                let _: Probe<()> = tables.table(number).probe(mixed(key), |found| {
                    assert_eq!(key_of(found), key, "an entry of another hash");
                    Probe::NotThis
                });
            }
        };
        scope.spawn(reader);
        scope.spawn(reader);
        let _ending = Ending(&is_over);
        for round in 0..2000 {
            for key in 0..15 {
                tables.table(number).insert(slot(round + key), NO_LIMIT).unwrap();
            }
            tables.give_back(number);
            assert_eq!(tables.take(), Ok(number));
        }
    });
}
