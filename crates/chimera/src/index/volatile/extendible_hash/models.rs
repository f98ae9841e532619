//! Models of the table: lookups beside changes of a bucket, and beside the split of a segment.

use std::collections::BTreeMap;
use std::sync::Arc;

use loom::thread;

use super::single::by_location;
use super::{ExtendibleHash, Glance, HashGeometry};
use crate::index::Probe;
use crate::pool::Location;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::under_loom::model;

/// A table and the records that it leads to.
struct Store {
    table: ExtendibleHash,
    /// At each location the hash of the key whose record is there, or 0.
    records: [AtomicU64; 32],
}

impl Store {
    /// With segments of `slots` slots, and each of `hashes` entered with the location of its position.
    fn new(slots: u32, hashes: &[u64]) -> Arc<Self> {
        let geometry = HashGeometry::new(slots).expect("a size there can be");
        let table = ExtendibleHash::new(geometry, false, model::environment()).expect("room");
        let store = Self { table, records: Default::default() };
        for (number, hash) in (1..).zip(hashes) {
            store.insert(*hash, number);
        }
        Arc::new(store)
    }

    fn write(&self, hash: u64, number: u64) -> Location {
        self.records[number as usize].store(hash, Ordering::Relaxed);
        location(number)
    }

    fn insert(&self, hash: u64, number: u64) {
        self.table.insert(hash, self.write(hash, number));
    }

    /// Moves a key's record, as an overwrite does.
    fn swap(&self, hash: u64, old: u64, new: u64) {
        assert!(self.table.swap_if(hash, location(old), self.write(hash, new)));
        self.retire(old);
    }

    /// Removes a key: its record first, as a delete does.
    fn remove(&self, hash: u64, number: u64) {
        let retire = || {
            self.retire(number);
            Ok::<_, ()>(())
        };
        let found = match self.table.glance(hash) {
            Glance::Entry(found) if found.location == location(number) => found,
            _ => by_location(location(number)),
        };
        assert_eq!(self.table.remove_after(hash, &found, retire), Ok(true));
    }

    fn retire(&self, number: u64) {
        self.records[number as usize].store(0, Ordering::Release);
    }

    /// The location of the key's record.
    fn find(&self, hash: u64) -> Option<u64> {
        self.table.find(hash, |found| {
            let location = found.location;
            let found = self.records[location.raw() as usize].load(Ordering::Relaxed);
            if found == hash { Probe::Found(location.raw()) } else { Probe::NotThis }
        })
    }

    /// As [`find`](Self::find), the way a writer looks.
    fn find_to_change(&self, hash: u64) -> Option<u64> {
        match self.table.glance(hash) {
            Glance::Entry(found) => {
                let number = found.location.raw();
                let is_right = self.records[number as usize].load(Ordering::Relaxed) == hash;
                if is_right { Some(number) } else { self.find(hash) }
            }
            Glance::Nothing => None,
            Glance::Unclear => self.find(hash),
        }
    }

    /// All entries, which each come once.
    fn entries(&self) -> BTreeMap<u64, u64> {
        let mut entries = BTreeMap::new();
        self.table.for_each(|hash, location| {
            assert_eq!(entries.insert(hash, location.raw()), None, "an entry is there twice");
        });
        assert_eq!(self.table.len(), entries.len() as u64);
        entries
    }
}

fn location(number: u64) -> Location {
    Location::from_raw(number).expect("not 0")
}

/// A hash with this home bucket and the other one at this distance, that its lowest bits tell from
/// others.
fn hash(low: u64, home: u64, distance: u64) -> u64 {
    home << 54 | distance << 44 | low
}

/// Nine hashes after which segment 1 of two is full, with those of odd numbers, and will be split into
/// 1 and 2, for which the directory has to double. Every second one moves then: 2, 4, 6 and 8.
fn full() -> Vec<u64> {
    (0..8).map(|number| hash(2 * number + 1, number / 2 % 2, 1)).chain([hash(0, 0, 1)]).collect()
}

/// Splits segment 1.
const SPLITTING: u64 = 17;

fn split(store: &Store) {
    store.insert(hash(SPLITTING, 0, 1), 10);
    assert_eq!(store.table.growth.segments(), 3);
}

/// Runs `writer` on a thread beside `reader`.
fn beside(
    store: &Arc<Store>,
    writer: impl FnOnce(&Store) + Send + 'static,
    reader: impl FnOnce(&Store),
) {
    let thread = thread::spawn({
        let store = store.clone();
        move || writer(&store)
    });
    reader(store);
    thread.join().expect("no panic");
}

#[test]
fn loom_a_key_whose_record_moves_is_found() {
    model::check(2, || {
        let store = Store::new(8, &[7]);
        let found = |store: &Store| assert!(matches!(store.find(7), Some(1 | 2)));
        beside(&store, |store| store.swap(7, 1, 2), found);
        assert_eq!(store.find(7), Some(2));
    });
}

#[test]
fn loom_a_key_that_comes_does_so_once() {
    model::check(2, || {
        let store = Store::new(8, &[3]);
        beside(
            &store,
            |store| store.insert(7, 2),
            |store| {
                let found = [(); 2].map(|()| store.find(7).is_some());
                assert!(found != [true, false], "there, and then not");
                assert_eq!(store.find(3), Some(1), "a neighbour is missing");
            },
        );
        assert_eq!(store.find(7), Some(2));
    });
}

#[test]
fn loom_a_key_that_goes_does_so_once() {
    model::check(2, || {
        let store = Store::new(8, &[3, 7]);
        beside(
            &store,
            |store| store.remove(7, 2),
            |store| {
                let found = [(); 2].map(|()| store.find(7).is_some());
                assert!(found != [false, true], "gone, and then not");
            },
        );
        assert_eq!(store.find(7), None);
    });
}

#[test]
fn loom_a_key_that_is_displaced_is_found() {
    // Buckets 0 and 1 are full; what is in them may go to bucket 2 or 3 as well.
    let mut hashes: Vec<_> = (1..=4).map(|low| hash(low, 0, 3)).collect();
    hashes.extend((5..=8).map(|low| hash(low, 1, 3)));
    let new = hash(9, 0, 1);
    model::check(2, move || {
        let store = Store::new(16, &hashes);
        let before: Vec<_> = hashes.iter().map(|hash| store.table.peek(*hash)).collect();
        assert!(before.iter().all(Option::is_some));
        let wanted = hashes[0];
        beside(
            &store,
            move |store| store.insert(new, 9),
            move |store| {
                assert_eq!(store.find(wanted), Some(1));
            },
        );
        assert_eq!(store.find(new), Some(9));
        assert_eq!(store.entries().len(), 9);
        assert_eq!(store.table.bytes() / 256, 1, "displaced, not split");
    });
}

#[test]
fn loom_keys_are_found_while_their_segment_is_split() {
    // One that moves and one that stays.
    for (number, preemptions) in [(2, 2), (1, 1)] {
        model::check(preemptions, move || {
            let store = Store::new(8, &full());
            let wanted = full()[number as usize - 1];
            beside(&store, split, move |store| assert_eq!(store.find(wanted), Some(number)));
            assert_eq!(store.find(hash(SPLITTING, 0, 1)), Some(10));
            assert_eq!(store.entries().len(), 10);
        });
    }
}

#[test]
fn loom_writers_find_keys_while_their_segment_is_split() {
    model::check(1, || {
        let store = Store::new(8, &full());
        let wanted = full()[1];
        beside(&store, split, move |store| assert_eq!(store.find_to_change(wanted), Some(2)));
    });
}

#[test]
fn loom_keys_are_found_while_a_segment_is_split_under_a_directory_that_is_deep_enough() {
    model::check(1, || {
        let store = Store::new(8, &full());
        split(&store);
        let even = |number: u64| hash(2 * (number - 10), number / 2 % 2, 1);
        (11..18).for_each(|number| store.insert(even(number), number));
        let split = move |store: &Store| {
            store.insert(even(18), 18);
            assert_eq!((store.table.growth.segments(), store.table.directory.depth()), (4, 2));
        };
        beside(&store, split, move |store| {
            assert_eq!(store.find_to_change(even(11)), Some(11));
        });
    });
}

#[test]
fn loom_a_key_that_is_not_there_is_not_found_while_its_segment_is_split() {
    model::check(1, || {
        let store = Store::new(8, &full());
        beside(&store, split, |store| assert_eq!(store.find(hash(19, 0, 1)), None));
    });
}

#[test]
fn loom_changes_during_a_split_are_not_lost() {
    model::check(1, || {
        let store = Store::new(8, &full());
        let [stays, moves] = [full()[0], full()[1]];
        let new = hash(19, 1, 1);
        beside(
            &store,
            |store| store.insert(hash(SPLITTING, 0, 1), 10),
            move |store| {
                store.remove(moves, 2);
                store.insert(new, 11);
                store.swap(stays, 1, 12);
            },
        );
        let mut expected: BTreeMap<_, _> = full().into_iter().zip(1..).skip(2).collect();
        expected.extend([(stays, 12), (hash(SPLITTING, 0, 1), 10), (new, 11)]);
        assert_eq!(store.entries(), expected);
        for (hash, number) in expected {
            assert_eq!(store.find(hash), Some(number));
        }
    });
}

#[test]
fn loom_a_listing_beside_a_split_has_every_key_once() {
    model::check(1, || {
        let store = Store::new(8, &full());
        beside(&store, split, |store| {
            let mut listed = Vec::new();
            store.table.for_each(|hash, _| listed.push(hash));
            let times = |hash| listed.iter().filter(|listed| *listed == hash).count();
            assert!(full().iter().all(|hash| times(hash) == 1), "{listed:?}");
        });
    });
}

#[test]
fn loom_keys_of_one_hash_are_found_in_the_overflow() {
    model::check(2, || {
        let store = Store::new(8, &[7; 8]);
        // None of the first eight is the right one.
        (1..=8).for_each(|number| store.retire(number));
        store.insert(7, 9);
        beside(
            &store,
            |store| store.swap(7, 9, 10),
            |store| {
                assert!(matches!(store.find(7), Some(9 | 10)));
            },
        );
        assert_eq!(store.find(7), Some(10));
    });
}
