//! The table against a plain map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{HashGeometry, Location, Probe, Resolve, at, mix, table};

/// Keys of which many share a hash, but fewer than the table takes, many agree in the bits that choose a bucket or a segment, and
/// most are well mixed.
fn hash_of(key: u16) -> u64 {
    match key % 8 {
        0 if key < 400 => 0,
        1 => 1 + u64::from(key % 3),
        2 => u64::from(key) << 48,
        3 => mix(u64::from(key)) & !0xffff,
        _ => mix(u64::from(key)),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u16),
    Upsert(u16, bool),
    Remove(u16),
    Get(u16),
    Reserve(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..600u16;
    prop_oneof![
        8 => key.clone().prop_map(Step::Put),
        2 => (key.clone(), any::<bool>()).prop_map(|(key, newer)| Step::Upsert(key, newer)),
        3 => key.clone().prop_map(Step::Remove),
        3 => key.prop_map(Step::Get),
        1 => (0..500u16).prop_map(Step::Reserve),
    ]
}

/// A location is a serial number and the key of the record that lies there.
fn record(serial: usize, key: u16) -> Location {
    at((serial as u64 + 1) << 16 | u64::from(key))
}

fn key_at(location: Location) -> u16 {
    location.raw() as u16
}

fn check(slots: u32, steps: &[Step]) {
    let table = table(slots);
    let mut model: BTreeMap<u16, Location> = BTreeMap::new();
    let get = |key: u16| {
        table.find(hash_of(key), |found| {
            let location = found.location;
            if key_at(location) == key { Probe::Found(location) } else { Probe::NotThis }
        })
    };
    for (serial, step) in steps.iter().enumerate() {
        match *step {
            Step::Put(key) => {
                let new = record(serial, key);
                match get(key) {
                    Some(old) => assert!(table.swap_if(hash_of(key), old, new)),
                    None => table.insert(hash_of(key), new),
                }
                model.insert(key, new);
            }
            Step::Upsert(key, newer) => {
                let new = record(serial, key);
                let loser = table.upsert_with(hash_of(key), new, |old| match key_at(old) == key {
                    false => Resolve::OtherKey,
                    true if newer => Resolve::KeepNew,
                    true => Resolve::KeepOld,
                });
                let old = model.get(&key).copied();
                assert_eq!(loser, Ok(old.map(|old| if newer { old } else { new })));
                if newer || old.is_none() {
                    model.insert(key, new);
                }
            }
            Step::Remove(key) => {
                let old = model.remove(&key);
                assert_eq!(get(key), old);
                let removed = old.is_some_and(|old| table.remove_if(hash_of(key), old));
                assert_eq!(removed, old.is_some());
            }
            Step::Get(key) => assert_eq!(get(key), model.get(&key).copied()),
            Step::Reserve(count) => table.reserve(u64::from(count)).unwrap(),
        }
    }
    let mut entries = Vec::new();
    table.for_each(|hash, location| entries.push((location, hash)));
    entries.sort_unstable();
    let mut expected: Vec<_> = model.iter().map(|(&key, &at)| (at, hash_of(key))).collect();
    expected.sort_unstable();
    assert_eq!(entries, expected);
    assert_eq!(table.len(), model.len() as u64);
    for key in 0..600 {
        assert_eq!(get(key), model.get(&key).copied(), "key {key}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_a_map(
        slots in prop_oneof![Just(HashGeometry::SLOTS_MIN), Just(16), Just(64), Just(1024)],
        steps in prop::collection::vec(step(), 1..1500),
    ) {
        check(slots, &steps);
    }
}
