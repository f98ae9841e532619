//! Full pools: whatever is going on, every key can be removed, and the room that this makes can be used.

use super::*;
use crate::types::error::Error;

const SHARDS: u32 = 32;

fn small(change: impl FnOnce(ChameleonOptions) -> ChameleonOptions) -> Options {
    options(|chameleon| change(chameleon.shards(SHARDS))).segment_bytes(64 << 10)
}

fn bounded(bytes_max: u64) -> Options {
    small(|chameleon| chameleon.replay_log_bytes_max(bytes_max))
}

/// Puts values of so many bytes, from this key on, until the pool is full. How many fit.
fn fill(store: &mut Store, first: u64, value_bytes: usize) -> u64 {
    let mut keys = 0;
    loop {
        let key = (first + keys).to_le_bytes();
        match store.engine.put(&mut store.client, &key, &vec![7; value_bytes]) {
            Ok(_) => keys += 1,
            Err(Error::PoolFull { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(keys * (value_bytes as u64 + 32) > 250_000, "{keys} fit");
    keys
}

/// Removes all keys, and stores half of them again.
fn empty(store: &mut Store, first: u64, keys: u64) {
    for key in 0..keys {
        let removed = store.delete(first + key);
        assert!(matches!(removed, Ok(true)), "{key} of {keys}: {removed:?}");
    }
    assert_eq!(store.engine.index().count_records(), 0);
    for key in first..first + keys / 2 {
        let put = store.put(key, 1);
        assert!(matches!(put, Ok(true)), "{put:?}");
    }
    store.complete();
    store.check_told();
}

#[test]
fn every_key_of_a_full_store_can_be_removed() {
    let bounds = [2 << 10, 8 << 10, 1 << 40].map(bounded);
    let write_intensive = small(|chameleon| chameleon.write_intensive(true));
    for options in bounds.iter().chain([&write_intensive]) {
        // Of the longest values a few fill the pool, and no MemTable.
        for value_bytes in [8, 100, 700] {
            let mut store = Store::new(options);
            let keys = fill(&mut store, 0, value_bytes);
            empty(&mut store, 0, keys);
        }
    }
}

#[test]
fn every_key_of_a_full_store_can_be_removed_after_power_losses() {
    let bounds = [8 << 10, 1 << 40, 2 << 10];
    for (first, bytes_max) in (0..9).map(|life| life << 32).zip(bounds.into_iter().cycle()) {
        let options = bounded(bytes_max);
        let mut store = Store::new(&options);
        let keys = fill(&mut store, first, 8);
        // From this seed the first delete needs fresh blocks behind those that the reserve needs.
        let mut chance = Chance(first + 1);
        for _ in 0..3 {
            store = store.reopen(&options);
            // Some are written to, as far as that goes.
            for _ in 0..chance.below(400) {
                match store.put(first + chance.below(keys), 7) {
                    Ok(is_new) => assert!(!is_new),
                    Err(Error::PoolFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        store = store.reopen(&options);
        empty(&mut store, first, keys);
    }
}
