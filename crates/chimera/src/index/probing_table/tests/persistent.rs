//! Tables in persistent memory: what is found, and what is noticed.

use std::collections::BTreeMap;

use chimera_pmem::Site;
use proptest::prelude::*;

use super::*;
use crate::index::probing_table::header::{Checksum, HEADER_BYTES, Header};
use crate::types::error::{Error, Result};

const SITE: Site = Site::new("test");
/// Slots of a small table, and its entries: half of them have a hash that another one has as well.
const SLOTS: u32 = 48;
const ENTRIES: u64 = 36;

fn hash_of(key: u64) -> u64 {
    if key % 4 < 2 { mixed(key & !1) } else { mixed(key) }
}

fn entries() -> Vec<Slot> {
    (0..ENTRIES).map(|key| slot_of(hash_of(key), key, 0, key.is_multiple_of(5))).collect()
}

/// What a get answers that verifies the key where the record lies.
fn get(pool: &Pool<Hardware>, table: PersistentTable, key: u64) -> Result<Option<u64>> {
    let right = slot_of(hash_of(key), key, 0, key.is_multiple_of(5)).location;
    let answer = table.probe(&pool.pmem, hash_of(key), |found| {
        if found.location == right { Probe::Found(found.location) } else { Probe::NotThis }
    })?;
    Ok(match answer {
        Probe::Found(found) => Some(found),
        Probe::NotThis => None,
        Probe::Retry => panic!("nobody said so"),
    })
}

#[expect(clippy::needless_pass_by_value, reason = "outcomes are asked about where they come to be")]
fn is_corrupted<T: std::fmt::Debug>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::Corrupted { .. }))
}

/// Gets of all keys, and of some that are not there, answer rightly or with an error. Returns the errors.
fn assert_never_wrong(pool: &Pool<Hardware>, table: PersistentTable, what: &str) -> u32 {
    let mut errors = 0;
    for key in 0..2 * ENTRIES {
        let right = slot_of(hash_of(key), key, 0, key.is_multiple_of(5)).location;
        match get(pool, table, key) {
            Ok(found) => assert_eq!(found, (key < ENTRIES).then_some(right), "{what}: key {key}"),
            Err(error) => {
                assert!(is_corrupted::<()>(Err(error)));
                errors += 1;
            }
        }
    }
    errors
}

#[test]
fn whatever_byte_is_overwritten_is_noticed_or_does_not_matter() {
    let pool = pool();
    let table = written(&pool, SLOTS, &entries());
    table.verify(&pool.pmem).unwrap();
    assert_eq!(assert_never_wrong(&pool, table, "whole"), 0);
    let to = place(&pool, SLOTS);
    for byte in 0..PersistentTable::bytes_of(SLOTS) {
        let at = AT + byte / 8 * 8;
        let word = pool.pmem.load_u64(at);
        for turn in 0..3 {
            let bits = (mixed(byte * 3 + turn) >> 40 & 0xff).max(1) << (8 * (byte % 8));
            pool.pmem.store_u64(at, word ^ bits, SITE);
            let opened = PersistentTable::open(&pool.pmem, to, OWNER);
            let what = format!("byte {byte}");
            if byte < 40 {
                assert!(is_corrupted(opened) && is_corrupted(table.verify(&pool.pmem)), "{what}");
                assert!(is_corrupted(table.entries(&pool.pmem)), "{what}");
            } else if byte < HEADER_BYTES {
                assert_eq!(opened.unwrap(), table);
                table.verify(&pool.pmem).unwrap();
            } else {
                assert!(is_corrupted(table.verify(&pool.pmem)), "{what}");
                assert!(is_corrupted(table.for_each(&pool.pmem, |_| Ok(()))), "{what}");
                assert_never_wrong(&pool, opened.unwrap(), &what);
                // A key that is not there, whose home is the very slot.
                let slot = (byte - HEADER_BYTES) / 16;
                let hash = (slot << 32) / u64::from(SLOTS) + 1;
                assert_eq!(u64::from(home(hash, SLOTS)), slot);
                assert!(is_corrupted(in_persistent(&pool, table, hash)), "{what}");
            }
        }
        pool.pmem.store_u64(at, word, SITE);
    }
}

#[test]
fn lines_that_were_zeroed_are_damage_and_not_empty_slots() {
    let pool = pool();
    let table = written(&pool, SLOTS, &entries());
    for line in 0..PersistentTable::bytes_of(SLOTS) / 64 - 4 {
        let extent = pool.pmem.check(AT + HEADER_BYTES + 64 * line, 64).unwrap();
        let mut before = [0; 64];
        pool.pmem.read(extent, &mut before);
        pool.pmem.zero(extent, SITE);
        assert!(assert_never_wrong(&pool, table, "zeros") > 0, "line {line}");
        assert!(is_corrupted(table.verify(&pool.pmem)));
        pool.pmem.copy(extent, &before, SITE);
    }
    table.verify(&pool.pmem).unwrap();
    // Fresh memory is no table, and no other bytes are.
    for byte in [0, 0x5a, 0xff] {
        pool.pmem.copy(place(&pool, SLOTS), &vec![byte; 1024], SITE);
        assert!(is_corrupted(PersistentTable::open(&pool.pmem, place(&pool, SLOTS), OWNER)));
        assert!(is_corrupted(get(&pool, table, 1)), "{byte:#x}");
    }
}

/// Stores a header with a check that is right.
fn forge(pool: &Pool<Hardware>, header: Header) {
    for (word, value) in header.encode(AT).into_iter().enumerate() {
        pool.pmem.store_u64(AT + 8 * word as u64, value, SITE);
    }
}

#[test]
fn a_header_that_cannot_be_is_refused_whatever_its_check() {
    let pool = pool();
    let table = written(&pool, SLOTS, &entries());
    let (to, right) = (place(&pool, SLOTS), Header::load(&pool.pmem, AT).unwrap());
    let sizes = [(0, 0), (47, 36), (64, 36), (1 << 20, 36), (!15, 36), (48, 49)];
    for (slots, entries) in sizes {
        forge(&pool, Header { slots, entries, ..right });
        assert!(is_corrupted(PersistentTable::open(&pool.pmem, to, OWNER)), "{slots}, {entries}");
    }
    for entries in [0, 35, 37, 48] {
        forge(&pool, Header { entries, ..right });
        let opened = PersistentTable::open(&pool.pmem, to, OWNER).unwrap();
        let mut seen = 0;
        let visited = opened.for_each(&pool.pmem, |_| {
            seen += 1;
            Ok(())
        });
        assert!(is_corrupted(visited) && seen <= entries);
    }
    forge(&pool, Header { checksum: Checksum::default(), ..right });
    assert!(is_corrupted(table.verify(&pool.pmem)));
    forge(&pool, Header { slots: 32, ..right });
    assert!(is_corrupted(table.verify(&pool.pmem)), "it has changed its size");
    forge(&pool, right);
    table.verify(&pool.pmem).unwrap();
    assert!(is_corrupted(PersistentTable::open(&pool.pmem, to, OWNER + 1)), "another's");
    for (skip, bytes) in [(8, 512), (64, 512), (0, 128), (0, 256), (0, 1023)] {
        let other = pool.pmem.check(AT + skip, bytes).unwrap();
        assert!(is_corrupted(PersistentTable::open(&pool.pmem, other, OWNER)), "{skip}, {bytes}");
    }
    // One that is not aligned.
    let unaligned = pool.pmem.check(2 * AT + 64, to.length()).unwrap();
    for (word, value) in right.encode(2 * AT + 64).into_iter().enumerate() {
        pool.pmem.store_u64(2 * AT + 64 + 8 * word as u64, value, SITE);
    }
    assert!(is_corrupted(PersistentTable::open(&pool.pmem, unaligned, OWNER)));
    // A copy at another place.
    let mut bytes = vec![0; to.length() as usize];
    pool.pmem.read(to, &mut bytes);
    let elsewhere = pool.pmem.check(2 * AT, to.length()).unwrap();
    pool.pmem.copy(elsewhere, &bytes, SITE);
    assert!(is_corrupted(PersistentTable::open(&pool.pmem, elsewhere, OWNER)));
}

/// Stores slots where they are said to be, with a header that is right.
fn lay_out(pool: &Pool<Hardware>, slots: &[Slot]) -> PersistentTable {
    let to = place(pool, slots.len() as u32);
    let first = to.offset() + HEADER_BYTES;
    let bytes: Vec<u8> = (first..)
        .step_by(16)
        .zip(slots)
        .flat_map(|(at, slot)| [slot.hash ^ at, !slot.location])
        .flat_map(u64::to_le_bytes)
        .collect();
    let entries = slots.iter().filter(|slot| !slot.is_empty()).count() as u32;
    pool.pmem.copy(to.part(HEADER_BYTES, bytes.len() as u64).unwrap(), &bytes, SITE);
    let checksum = Checksum::of(&bytes);
    forge(pool, Header { slots: slots.len() as u32, entries, owner: OWNER, checksum });
    PersistentTable::open(&pool.pmem, to, OWNER).unwrap()
}

#[test]
fn a_slot_at_another_place_is_noticed_by_whoever_passes_it() {
    let pool = pool();
    let slots: Vec<_> = (0..12).map(|key| slot_of(hash_at(key, key), key, 0, false)).collect();
    let table = written(&pool, 16, &slots);
    let words = |slot: u64| [0, 8].map(|word| AT + HEADER_BYTES + 16 * slot + word);
    let load = |slot| words(slot).map(|at| pool.pmem.load_u64(at));
    for slot in 0..12 {
        let before = load(slot);
        // Empty ones, too.
        for other in (0..16).filter(|other| *other != slot) {
            for (at, word) in words(slot).into_iter().zip(load(other)) {
                pool.pmem.store_u64(at, word, SITE);
            }
            let found = in_persistent(&pool, table, hash_at(slot, slot));
            assert!(is_corrupted(found), "slot {other} in the place of {slot}");
            for (at, word) in words(slot).into_iter().zip(before) {
                pool.pmem.store_u64(at, word, SITE);
            }
        }
        assert_eq!(in_persistent(&pool, table, hash_at(slot, slot)).unwrap().len(), 1);
    }
}

#[test]
fn an_entry_that_no_probe_comes_to_is_noticed() {
    let pool = pool();
    // Every pair of a home and a place, with each slot empty in turn, or none, in a table whose other entries are at home.
    for home in 0..16_usize {
        for at in 0..16_usize {
            for empty in 0..=16_usize {
                if empty == at {
                    continue;
                }
                let mut slots: Vec<_> =
                    (0..16).map(|slot| slot_of(hash_at(slot, 2 * slot), slot, 0, false)).collect();
                if empty < 16 {
                    slots[empty] = Slot::EMPTY;
                }
                slots[at] = slot_of(hash_at(home as u64, 100), 100, 0, false);
                let table = lay_out(&pool, &slots);
                let distance = |slot: usize| (slot + 16 - home) % 16;
                // All others are at home, so nothing passes two of them.
                let is_reached = distance(at) == 0 || distance(at) == 1 && empty != home;
                assert_eq!(table.verify(&pool.pmem).is_ok(), is_reached, "{home}, {at}, {empty}");
                let found = in_persistent(&pool, table, hash_at(home as u64, 100)).unwrap();
                assert_eq!(found.len(), usize::from(is_reached));
            }
        }
    }
}

#[test]
fn a_probe_ends_where_entries_have_later_homes() {
    let pool = pool();
    // Three of home 3, and one of each other home but 4 and 5: no slot is empty.
    let homes = [0, 1, 2, 3, 3, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    let slots: Vec<_> = (0..)
        .zip(homes)
        .map(|(key, home)| slot_of(hash_at(home, 2 * key), key, 0, false))
        .collect();
    // Whatever the order in which they come.
    for turn in 0..16 {
        let mut entered = slots.clone();
        entered.rotate_left(turn);
        entered.swap(3, 9);
        let table = written(&pool, 16, &entered);
        table.verify(&pool.pmem).unwrap();
        for (home, last) in [(2, 3), (3, 6), (4, 6), (5, 6), (6, 7), (15, 0)] {
            for damaged in 0..16 {
                let at = AT + HEADER_BYTES + 16 * damaged;
                let word = pool.pmem.load_u64(at);
                pool.pmem.store_u64(at, word ^ 1 << 40, SITE);
                let passed =
                    (0..=(last + 16 - home) % 16).any(|step| (home + step) % 16 == damaged);
                let missing = in_persistent(&pool, table, hash_at(home, 100));
                assert_eq!(is_corrupted(missing), passed, "home {home}, slot {damaged}");
                pool.pmem.store_u64(at, word, SITE);
            }
        }
    }
}

#[test]
fn a_probe_of_a_full_table_comes_to_an_end() {
    let pool = pool();
    let slots: Vec<_> = (0..16).map(|key| slot_of(hash_at(9, key), key, 0, false)).collect();
    let table = written(&pool, 16, &slots);
    table.verify(&pool.pmem).unwrap();
    assert_eq!(in_persistent(&pool, table, hash_at(9, 100)).unwrap(), [0; 0]);
    for key in 0..16 {
        assert_eq!(in_persistent(&pool, table, hash_at(9, key)).unwrap().len(), 2);
    }
    let mut image = Image::default();
    assert!(!image.fill(16, slots.iter().copied().chain([slot_of(1, 50, 0, false)])), "no room");
    // All of one hash.
    let alike: Vec<_> = (0..16).map(|key| slot_of(5, key, 0, false)).collect();
    let table = written(&pool, 16, &alike);
    assert_eq!(in_persistent(&pool, table, 5).unwrap().len(), 16);
}

#[test]
fn entries_of_one_hash_at_the_end_of_a_full_table_are_listed_in_the_order_of_the_probe() {
    let pool = pool();
    let alike = 3 << 50 | 14 << 28;
    // Four of home 14, two of which lie at the beginning, and no slot is empty.
    let slots: Vec<_> = (0..16)
        .map(|key| slot_of(if key < 4 { alike } else { hash_at(key - 2, 2 * key) }, key, 0, false))
        .collect();
    let table = written(&pool, 16, &slots);
    let probed = in_persistent(&pool, table, alike).unwrap();
    assert_eq!(probed.len(), 4);
    let mut listed = Vec::new();
    table
        .for_each(&pool.pmem, |slot| {
            listed.push(slot);
            Ok(())
        })
        .unwrap();
    let mut image = Image::default();
    assert!(image.fill(16, slots.iter().copied()));
    for slots in [listed, image.iter().collect()] {
        assert_eq!(slots.len(), 16);
        let of_hash = slots.iter().filter(|slot| slot.hash == alike);
        assert_eq!(of_hash.map(|slot| slot.location).collect::<Vec<_>>(), probed);
    }
}

#[test]
fn a_table_is_found_again_from_its_parts() {
    let pool = pool();
    let table = written(&pool, SLOTS, &entries());
    let again = PersistentTable::from_parts(&pool.pmem, table.at(), table.slots());
    assert_eq!((again, table.at(), table.slots()), (Some(table), AT, SLOTS));
    assert_eq!(u64::from(table.entries(&pool.pmem).unwrap()), ENTRIES);
    table.prefetch(&pool.pmem, u64::MAX);
    for (at, slots) in [(AT, 0), (AT, 8), (AT, u32::MAX), (AT + 1, 16), (pool.pmem.mapped(), 16)] {
        assert_eq!(PersistentTable::from_parts(&pool.pmem, at, slots), None, "{at}, {slots}");
    }
    assert!(PersistentTable::from_parts(&pool.pmem, u64::MAX - 7, 16).is_none());
}

#[test]
fn an_error_of_the_visitor_ends_the_visit() {
    let pool = pool();
    let table = written(&pool, SLOTS, &entries());
    let mut seen = 0;
    let outcome = table.for_each(&pool.pmem, |_| {
        seen += 1;
        if seen == 5 { Err(Error::ReadOnly) } else { Ok(()) }
    });
    assert!(matches!(outcome, Err(Error::ReadOnly)) && seen == 5);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_table_agrees_with_a_model(
        units in 1..70_u32,
        homes in prop_oneof![Just(1_u64), Just(3), Just(1 << 20)],
        fill in 0..=100_u64,
        seed in any::<u32>(),
    ) {
        let (pool, slots) = (pool(), 16 * units);
        let count = u64::from(slots) * fill / 100;
        let hash_of = |key: u64| mixed(u64::from(seed) + key / 2 % homes) ^ (key / 8) << 40;
        let all: Vec<_> = (0..count).map(|key| slot_of(hash_of(key), key, 0, key.is_multiple_of(3))).collect();
        let table = written(&pool, slots, &all);
        table.verify(&pool.pmem).unwrap();
        prop_assert_eq!(u64::from(table.entries(&pool.pmem).unwrap()), count);
        let mut model = BTreeMap::<u64, Vec<u64>>::new();
        for slot in &all {
            model.entry(slot.hash).or_default().push(slot.location);
        }
        for (hash, locations) in &model {
            // In the order in which they were entered.
            prop_assert_eq!(&in_persistent(&pool, table, *hash).unwrap(), locations);
        }
        prop_assert!(in_persistent(&pool, table, !hash_of(0)).unwrap().is_empty());
        let mut listed = Vec::new();
        table.for_each(&pool.pmem, |slot| {
            listed.push((slot.hash, slot.location));
            Ok(())
        }).unwrap();
        listed.sort_unstable();
        let mut expected: Vec<_> = all.iter().map(|slot| (slot.hash, slot.location)).collect();
        expected.sort_unstable();
        prop_assert_eq!(listed, expected);
    }
}
