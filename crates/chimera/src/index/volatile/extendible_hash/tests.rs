//! Tests of the table by one thread; by many threads in `concurrent`, of its size in `space`.

mod concurrent;
mod model;
mod space;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use chimera_pmem::RealEnvironment;

use super::*;
use crate::index::{Probe, Resolve, TooManyCollisions};
use crate::pool::Location;

/// A well-mixed, reversible hash.
pub(super) fn mix(key: u64) -> u64 {
    let mut x = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

pub(super) fn at(raw: u64) -> Location {
    Location::from_raw(raw).expect("not zero")
}

/// Where the record of a key lies in tests that do not move it.
pub(super) fn place_of(key: u64) -> Location {
    at(key + 1)
}

pub(super) fn table(slots_per_segment: u32) -> ExtendibleHash {
    let geometry = HashGeometry::new(slots_per_segment).unwrap();
    ExtendibleHash::new(geometry, false, Arc::new(RealEnvironment::new())).unwrap()
}

/// Looks for an entry at exactly `location`.
pub(super) fn finds(table: &ExtendibleHash, hash: u64, location: Location) -> bool {
    let is = |found: Found<'_>| {
        if found.location == location { Probe::Found(()) } else { Probe::NotThis }
    };
    table.find(hash, is).is_some()
}

pub(super) fn insert_keys(table: &ExtendibleHash, keys: impl IntoIterator<Item = u64>) {
    for key in keys {
        table.prepare_insert().unwrap();
        table.insert(mix(key), place_of(key));
    }
}

#[test]
fn geometry_is_validated() {
    for slots in [0, 1, 4, 12, 1000, 8192, u32::MAX] {
        assert_eq!(HashGeometry::new(slots), None, "{slots}");
    }
    for slots in [8, 16, 1024, 4096] {
        let geometry = HashGeometry::new(slots).unwrap();
        assert_eq!(geometry.slots_per_segment(), slots);
    }
    assert_eq!(HashGeometry::default().slots_per_segment(), 1024);
}

#[test]
fn the_two_buckets_of_a_hash_differ_and_lead_to_each_other() {
    for slots in [8, 16, 256, 1024, 4096] {
        let geometry = HashGeometry::new(slots).unwrap();
        for hash in (0..10_000).map(mix).chain([0, u64::MAX]) {
            let [home, second] = geometry.candidates(hash);
            assert_ne!(home, second);
            assert!(home < geometry.buckets() && second < geometry.buckets());
            assert_eq!(geometry.other(hash, second), home);
        }
    }
}

#[test]
fn an_empty_table_finds_nothing() {
    let table = table(1024);
    assert!(!finds(&table, 0, at(1)));
    assert_eq!(table.peek(0), None);
    assert!(!table.contains_exact(0, at(1)));
    assert!(!table.remove_if(0, at(1)));
    assert!(!table.swap_if(0, at(1), at(2)));
    assert_eq!(table.len(), 0);
    table.prefetch(7);
    table.for_each(|hash, _| panic!("{hash}"));
}

#[test]
fn entries_are_found_swapped_and_removed() {
    let table = table(1024);
    // A hash of zero is a hash like any other.
    for hash in [0, 1, u64::MAX, 1 << 63] {
        table.insert(hash, at(10));
        assert!(finds(&table, hash, at(10)));
        assert_eq!(table.peek(hash), Some(at(10)));
        assert!(table.contains_exact(hash, at(10)));
        assert!(!table.contains_exact(hash, at(11)));
        assert!(!table.swap_if(hash, at(11), at(12)));
        assert!(table.swap_if(hash, at(10), at(11)));
        assert!(!finds(&table, hash, at(10)));
        assert!(finds(&table, hash, at(11)));
        assert!(!table.remove_if(hash, at(10)));
        assert_eq!(table.len(), 1);
        assert!(table.remove_if(hash, at(11)));
        assert!(!table.remove_if(hash, at(11)));
        assert!(!finds(&table, hash, at(11)));
        assert_eq!(table.len(), 0);
    }
}

/// A hash index that stops at the first hole of a probe window still finds removed keys.
#[test]
fn after_removing_two_million_keys_none_is_found() {
    const KEYS: u64 = 2_000_000;
    let table = table(1024);
    insert_keys(&table, 0..KEYS);
    assert_eq!(table.len(), KEYS);
    for key in 0..KEYS {
        assert!(table.remove_if(mix(key), place_of(key)), "{key}");
    }
    let found = (0..KEYS).filter(|&key| table.find(mix(key), |_| Probe::Found(())).is_some());
    assert_eq!(found.count(), 0);
    assert_eq!(table.len(), 0);
    table.for_each(|hash, _| panic!("{hash}"));
}

#[test]
fn every_key_is_found_while_the_table_grows() {
    for slots in [8, 16, 64, 1024] {
        let table = table(slots);
        let keys = u64::from(slots) * 40;
        for key in 0..keys {
            table.insert(mix(key), place_of(key));
            if key.is_power_of_two() || key % 97 == 0 {
                assert!((0..=key).all(|key| finds(&table, mix(key), place_of(key))), "{key}");
            }
        }
        assert!((keys..2 * keys).all(|key| !finds(&table, mix(key), place_of(key))));
    }
}

#[test]
fn for_each_and_len_agree_with_what_was_entered() {
    let table = table(64);
    insert_keys(&table, 0..10_000);
    for key in (0..10_000).step_by(3) {
        assert!(table.remove_if(mix(key), place_of(key)));
    }
    let expected: HashSet<_> =
        (0..10_000).filter(|key| key % 3 != 0).map(|key| (mix(key), place_of(key))).collect();
    let mut seen = HashSet::new();
    table.for_each(|hash, location| assert!(seen.insert((hash, location)), "{hash} twice"));
    assert_eq!(seen, expected);
    assert_eq!(table.len(), expected.len() as u64);
}

/// Two tables that have grown differently are listed in the same order, from any position on; entries in
/// the overflow have their place in it.
#[test]
fn listings_follow_the_hashes_alone() {
    let alike = |table: &ExtendibleHash| {
        for number in 0..20 {
            let location = place_of(1_000_000 + number);
            assert_eq!(table.upsert_with(mix(5), location, |_| Resolve::OtherKey), Ok(None));
        }
        assert!(!table.overflow.is_empty());
    };
    let all = |table: &ExtendibleHash, from: u64| {
        let mut listed = Vec::new();
        let mut next = Some(from);
        while let Some(from) = next {
            let mut batch = Vec::new();
            next = table.list(from, &mut batch);
            batch.sort_unstable_by_key(|&(hash, location)| (position_of(hash), location.raw()));
            let bound = next.map_or(u64::MAX, |next| next - 1);
            let inside = from..=bound;
            assert!(batch.iter().all(|(hash, _)| inside.contains(&position_of(*hash))));
            listed.extend(batch);
        }
        listed
    };
    let (small, large) = (table(16), table(1024));
    insert_keys(&small, 0..5000);
    alike(&small);
    alike(&large);
    insert_keys(&large, 0..5000);
    let expected = all(&small, 0);
    assert_eq!(expected.len(), 5020);
    assert!(expected.is_sorted_by_key(|(hash, _)| position_of(*hash)));
    assert!(all(&large, 0) == expected);
    for from in [1, expected.len() / 2, expected.len() - 1] {
        let position = position_of(expected[from].0);
        let first = expected.partition_point(|(hash, _)| position_of(*hash) < position);
        assert!(all(&small, position) == expected[first..]);
        assert!(all(&large, position) == expected[first..]);
    }
    assert_eq!(all(&small, u64::MAX), []);
}

#[test]
fn keys_that_share_a_hash_are_told_apart() {
    for slots in [8, 1024] {
        let table = table(slots);
        insert_keys(&table, 0..u64::from(slots));
        for hash in [0, u64::MAX, mix(3)] {
            let ours = 1 << 40;
            // More than both buckets hold.
            for raw in ours..ours + 100 {
                table.insert(hash, at(raw));
            }
            assert!((ours..ours + 100).all(|raw| finds(&table, hash, at(raw))));
            for raw in ours..ours + 100 {
                assert!(table.contains_exact(hash, at(raw)));
                assert!(table.swap_if(hash, at(raw), at(raw + 1000)), "{raw}");
            }
            assert!((ours..ours + 100).all(|raw| !finds(&table, hash, at(raw))));
            for raw in ours + 1000..ours + 1100 {
                assert!(table.remove_if(hash, at(raw)), "{raw}");
                assert!(!table.remove_if(hash, at(raw)), "{raw}");
                assert!(!finds(&table, hash, at(raw)));
            }
        }
        assert_eq!(table.len(), u64::from(slots));
        assert_eq!(table.overflow.len(), 0);
    }
}

#[test]
fn find_looks_again_when_asked_to() {
    let table = table(16);
    table.insert(5, at(1));
    let mut asked = 0;
    let found = table.find(5, |found| {
        let location = found.location;
        asked += 1;
        if asked < 100 { Probe::Retry } else { Probe::Found(location) }
    });
    assert_eq!((found, asked), (Some(at(1)), 100));
}

#[test]
fn a_mismatch_that_is_overtaken_by_a_change_does_not_count() {
    let table = table(16);
    table.insert(5, at(1));
    let mut swaps = 0;
    let found = table.find(5, |found| {
        let location = found.location;
        if swaps == 10 {
            return Probe::Found(location);
        }
        swaps += 1;
        assert!(table.swap_if(5, location, at(location.raw() + 1)));
        Probe::NotThis
    });
    assert_eq!(found, Some(at(11)));
}

#[test]
fn a_reader_sees_that_a_segment_is_locked_or_was_changed() {
    let table = table(16);
    let locked = table.lock(5);
    assert!(table.observe(5).is_none(), "locked");
    drop(locked);
    let change: [fn(&ExtendibleHash); 4] = [
        |table| table.insert(5, at(1)),
        |table| assert!(table.swap_if(5, at(1), at(2))),
        |table| assert!(table.upsert_with(5, at(3), |_| Resolve::KeepNew).unwrap().is_some()),
        |table| assert!(table.remove_if(5, at(3))),
    ];
    for change in change {
        let observed = table.observe(5).unwrap();
        assert!(observed.is_unchanged());
        change(&table);
        assert!(!observed.is_unchanged());
    }
    let observed = table.observe(5).unwrap();
    insert_keys(&table, 0..100);
    assert!(table.growth.segments() > 1);
    assert!(!observed.is_unchanged(), "split");
    let moved = (0..100).map(mix).find(|&hash| table.directory.segment_of(hash) != 0).unwrap();
    assert!(table.observe_in(0, moved).is_none(), "no longer there");
}

#[test]
fn upsert_lets_the_newer_record_win() {
    let table = table(16);
    // Locations carry key and version: the same key is known by its upper half.
    let record = |key: u64, version: u64| at(key << 32 | version);
    let resolve = |new: Location| {
        move |old: Location| {
            if old.raw() >> 32 != new.raw() >> 32 {
                Resolve::OtherKey
            } else if old.raw() < new.raw() {
                Resolve::KeepNew
            } else {
                Resolve::KeepOld
            }
        }
    };
    // Twelve keys of one hash, so that some are outside of the buckets, and some with their own.
    let hash_of = |key| if key < 12 { 77 } else { mix(key) };
    for version in [5, 3, 9] {
        for key in 1..300 {
            let new = record(key, version);
            let loser = table.upsert_with(hash_of(key), new, resolve(new)).unwrap();
            let expected = match version {
                5 => None,
                3 => Some(new),
                _ => Some(record(key, 5)),
            };
            assert_eq!(loser, expected, "key {key} version {version}");
        }
    }
    assert_eq!(table.len(), 299);
    assert!((1..300).all(|key| table.contains_exact(hash_of(key), record(key, 9))));
}

/// Keys can be crafted to have one hash; without a limit n of them would cost n² steps.
#[test]
fn entries_of_one_hash_are_limited() {
    let table = table(64);
    let enter = |hash, raw| table.upsert_with(hash, at(raw), |_| Resolve::OtherKey);
    let taken = (1..10_000).take_while(|&raw| enter(77, raw).is_ok()).count() as u64;
    assert_eq!(taken, overflow::COLLISIONS_REBUILT_MAX as u64 + 8);
    assert!(!table.takes(77));
    assert_eq!(table.len(), taken);
    // What is there can still be replaced, other hashes are welcome, and a removal makes room.
    let replaced = table.upsert_with(77, at(20_000), |old| {
        if old.raw() == taken { Resolve::KeepNew } else { Resolve::OtherKey }
    });
    assert_eq!(replaced, Ok(Some(at(taken))));
    assert!(table.takes(78));
    assert_eq!(enter(78, 30_000), Ok(None));
    assert!(table.remove_if(77, at(20_000)));
    assert_eq!(enter(77, 20_000), Ok(None));
    assert_eq!(enter(77, 20_001), Err(TooManyCollisions));
    // Whoever asks before inserting stays so far below that a table rebuilt from the same entries
    // takes them in any order.
    let table = self::table(64);
    let inserted = (1..10_000).take_while(|_| table.takes(77)).map(|raw| table.insert(77, at(raw)));
    assert_eq!(inserted.count(), overflow::COLLISIONS_REBUILT_MAX);
}

#[test]
fn a_panic_while_resolving_leaves_the_table_usable() {
    let table = table(16);
    table.insert(5, at(1));
    let panics = || table.upsert_with(5, at(2), |_| panic!("as the test wants"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert!(table.remove_if(5, at(1)));
    assert!(!finds(&table, 5, at(1)));
}

/// Lets a table have so many segments and no more.
fn limit(table: &ExtendibleHash, segments: u64) {
    *table.growth.segments_max.lock().unwrap() = Some(segments);
}

#[test]
fn running_out_of_space_is_told_in_time_and_loses_nothing() {
    let table = table(16);
    limit(&table, 8);
    let mut told = None;
    for key in 0..500 {
        if table.prepare_insert().is_err() && told.is_none() {
            told = Some(key);
        }
        table.insert(mix(key), place_of(key));
    }
    assert!(told.is_some_and(|key| key < 8 * 16), "{told:?}");
    assert!(!table.overflow.is_empty());
    assert!((0..500).all(|key| finds(&table, mix(key), place_of(key))));
    assert_eq!(table.reserve(1_000_000), Ok(()), "not empty: nothing to do");

    // With space again the table goes on growing.
    limit(&table, 1 << 20);
    assert_eq!(table.prepare_insert(), Ok(()));
    for key in 500..5000 {
        table.insert(mix(key), place_of(key));
    }
    assert!((0..5000).all(|key| finds(&table, mix(key), place_of(key))));
    assert_eq!(table.len(), 5000);
    assert!(table.overflow.len() < 500);
}

#[test]
fn reserving_more_than_there_is_changes_nothing() {
    let table = table(16);
    limit(&table, 8);
    assert_eq!(table.reserve(1_000_000), Err(OutOfSpace));
    assert_eq!(table.reserve(u64::MAX), Err(OutOfSpace));
    assert_eq!(table.growth.segments(), 1);
    table.insert(1, at(1));
    assert!(finds(&table, 1, at(1)));
}
