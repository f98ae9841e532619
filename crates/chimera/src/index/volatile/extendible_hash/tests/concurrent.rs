//! The table under several threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::{ExtendibleHash, Probe, Resolve, at, finds, mix, place_of, table};

/// Numbers a reader may look for, not the same for any two readers.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    (seed << 32..).map(mix)
}

/// Sets a flag when dropped, also by a failed assertion, so that other threads stop.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `read(seed, number)` on two threads again and again while `write` runs.
fn read_while(read: impl Fn(u64) + Sync, write: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 1..=2 {
            let (read, stop) = (&read, &stop);
            scope.spawn(move || {
                for number in numbers(seed) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    read(number);
                }
            });
        }
        let _stop = StopOnDrop(&stop);
        write();
    });
}

/// Writer `w` of `writers` inserts the keys of its own residue; readers find all that are in.
fn grow(slots: u32, writers: u64, keys_per_writer: u64) {
    let table = table(slots);
    let progress: Vec<_> = (0..writers).map(|_| AtomicU64::new(0)).collect();
    let read = |number: u64| {
        let writer = number % writers;
        let inserted = progress[writer as usize].load(Ordering::Acquire);
        let key = (number >> 16) % keys_per_writer * writers + writer;
        let found = finds(&table, mix(key), place_of(key));
        let must_be_there = key / writers < inserted;
        assert!(found || !must_be_there, "key {key} of {inserted} inserted is not found");
    };
    read_while(read, || {
        thread::scope(|scope| {
            for (writer, progress) in progress.iter().enumerate() {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..keys_per_writer {
                        let key = number * writers + writer as u64;
                        table.prepare_insert().unwrap();
                        table.insert(mix(key), place_of(key));
                        progress.store(number + 1, Ordering::Release);
                    }
                });
            }
        });
    });
    assert_eq!(table.len(), writers * keys_per_writer);
    let keys = 0..writers * keys_per_writer;
    assert!(keys.clone().all(|key| finds(&table, mix(key), place_of(key))));
    let mut seen = 0;
    table.for_each(|_, _| seen += 1);
    assert_eq!(seen, keys.end, "no entry is doubled");
}

#[test]
fn keys_are_found_while_two_threads_grow_the_table() {
    grow(1024, 2, 200_000);
}

#[test]
fn keys_are_found_while_four_threads_grow_small_segments() {
    grow(64, 4, 50_000);
}

#[test]
fn keys_are_found_while_eight_threads_grow_tiny_segments() {
    grow(16, 8, 20_000);
}

/// Keys that stay are found, and keys that never were are not, while other keys come and go in
/// segments so full that entries are moved all the time.
#[test]
fn lookups_are_right_while_other_keys_come_and_go() {
    for slots in [16, 256] {
        let table = table(slots);
        let staying = u64::from(slots) * 8;
        let passing = staying;
        super::insert_keys(&table, 0..staying);
        let read = |number: u64| {
            let key = number % staying;
            assert!(finds(&table, mix(key), place_of(key)), "key {key} is not found");
            assert!(table.contains_exact(mix(key), place_of(key)), "key {key} is not there");
            let never = key + (1 << 40);
            assert_eq!(table.find(mix(never), |_| Probe::Found(())), None);
        };
        let churn = |writer: u64| {
            let first = (writer + 1) << 20;
            for round in 0..30 {
                for key in first..first + passing {
                    table.insert(mix(key), place_of(key));
                }
                for key in first..first + passing {
                    assert!(table.remove_if(mix(key), place_of(key)), "round {round}");
                }
            }
        };
        read_while(read, || {
            thread::scope(|scope| {
                for writer in 0..3 {
                    scope.spawn(move || churn(writer));
                }
            });
        });
        assert_eq!(table.len(), staying);
    }
}

/// A location is a key and a version. Records are alive only at the newest version, which a writer
/// makes known after the swap, as an engine retires the old record after it.
#[test]
fn a_key_is_found_whenever_its_record_moves() {
    const KEYS: u64 = 64;
    let table = table(16);
    let record = |key: u64, version: u64| at((key + 1) << 40 | version);
    let versions: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    for key in 0..KEYS {
        table.insert(mix(key), record(key, 0));
    }
    let read = |number: u64| {
        let key = number % KEYS;
        let oldest = versions[key as usize].load(Ordering::Acquire);
        let found = table.find(mix(key), |found| {
            let location = found.location;
            let (owner, version) = (location.raw() >> 40, location.raw() & 0xff_ffff_ffff);
            if owner != key + 1 {
                Probe::NotThis
            } else if version < oldest {
                // Dead, and retired after the swap, so that either answer must do.
                if key.is_multiple_of(2) { Probe::Retry } else { Probe::NotThis }
            } else {
                Probe::Found(version)
            }
        });
        assert!(found.is_some_and(|version| version >= oldest), "{found:?} {oldest}");
    };
    read_while(read, || {
        thread::scope(|scope| {
            for writer in 0..2 {
                let (table, versions) = (&table, &versions);
                scope.spawn(move || {
                    for version in 1..20_000 {
                        for key in (writer..KEYS).step_by(2) {
                            let (old, new) = (record(key, version - 1), record(key, version));
                            assert!(table.swap_if(mix(key), old, new));
                            versions[key as usize].store(version, Ordering::Release);
                        }
                    }
                    // Splits, with the entries that are being read.
                    for key in writer * 1000 + KEYS..writer * 1000 + 1000 {
                        table.insert(mix(key), place_of(key));
                    }
                });
            }
        });
    });
}

/// Threads that enter several versions of each key agree on the newest, whatever the order, and
/// every other version is reported as a loser exactly once.
#[test]
fn parallel_upserts_keep_the_newest_of_each_key() {
    const KEYS: u64 = 20_000;
    const VERSIONS: u64 = 4;
    let table = table(64);
    let record = |key: u64, version: u64| at((key + 1) << 8 | version);
    let losers = AtomicU64::new(0);
    table.reserve(KEYS / 4).unwrap();
    thread::scope(|scope| {
        for version in 0..VERSIONS {
            let (table, losers) = (&table, &losers);
            scope.spawn(move || {
                // Pairs of keys share a hash; each thread begins elsewhere.
                for key in (0..KEYS).map(|key| (key + version * KEYS / VERSIONS) % KEYS) {
                    let new = record(key, version);
                    let loser = table.upsert_with(mix(key / 2), new, |old| {
                        if old.raw() >> 8 != new.raw() >> 8 {
                            Resolve::OtherKey
                        } else if old < new {
                            Resolve::KeepNew
                        } else {
                            Resolve::KeepOld
                        }
                    });
                    losers.fetch_add(u64::from(loser.unwrap().is_some()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(table.len(), KEYS);
    assert_eq!(losers.into_inner(), KEYS * (VERSIONS - 1));
    for key in 0..KEYS {
        assert!(table.contains_exact(mix(key / 2), record(key, VERSIONS - 1)), "{key}");
    }
}

/// Entries that are there all the time are handed out once even when splits move them meanwhile.
#[test]
fn for_each_has_everything_once_while_the_table_grows() {
    const STAYING: u64 = 2000;
    let table: ExtendibleHash = table(16);
    super::insert_keys(&table, 0..STAYING);
    thread::scope(|scope| {
        let table = &table;
        let writer = scope.spawn(move || super::insert_keys(table, STAYING..60_000));
        loop {
            let finished = writer.is_finished();
            let mut seen = vec![false; STAYING as usize];
            table.for_each(|_, location| {
                if let Some(seen) = seen.get_mut((location.raw() - 1) as usize) {
                    assert!(!*seen, "{location:?} comes twice");
                    *seen = true;
                }
            });
            assert!(seen.into_iter().all(|seen| seen));
            if finished {
                break;
            }
        }
    });
}
