//! Sums that are right only if no update is lost and none is done twice.

use std::sync::atomic::{AtomicU64, Ordering};

use chimera::{Options, RecordLayout, Swap};

use crate::tools::{Chance, assert_sound, key, open, scratch};
use crate::{at_once, options};

const KEYS: u64 = 3;

fn word(value: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(value[at..at + 8].try_into().expect("8 bytes"))
}

/// Additions at `at`, in place or not, while another session moves the records about.
fn additions(options: &Options, at: usize) {
    let directory = scratch();
    let db = open(directory.path(), options);
    for number in 0..KEYS {
        db.put(&key(number), &[0; 24]).expect("put");
    }
    let (threads, each) = (4, 15_000);
    at_once(threads + 1, |thread| {
        let mut session = db.session();
        let mut chance = Chance::new(thread);
        for step in 0..each {
            let number = chance.below(KEYS);
            if thread == threads {
                // Moves the record: two words change, both outside of the counter.
                let touched: [usize; 2] = if at == 8 { [0, 23] } else { [0, 22] };
                let change = |value: &mut Vec<u8>| touched.iter().for_each(|at| value[*at] ^= 1);
                assert!(session.update(&key(number), change).expect("update"));
                continue;
            }
            let added = session.fetch_add_u64(&key(step % KEYS), at, 1 + thread);
            assert!(added.expect("fetch_add_u64").is_some());
        }
    });
    let sum: u64 = (0..KEYS)
        .map(|number| word(&db.get(&key(number)).expect("get").expect("it is there"), at))
        .sum();
    assert_eq!(sum, (1..=threads).map(|delta| delta * each).sum::<u64>());
    assert_sound(&db);
}

#[test]
fn additions_in_place_are_exact() {
    additions(&options(), 8);
    additions(&options().viper(|viper| viper.layout(RecordLayout::Published)), 8);
}

#[test]
fn additions_across_words_are_exact() {
    additions(&options(), 9);
}

/// Every successful swap counts one up; every number is handed out once.
#[test]
fn swaps_of_words_are_exact() {
    let directory = scratch();
    let db = open(directory.path(), &options());
    db.put(&key(0), &[0; 24]).expect("put");
    let swapped = AtomicU64::new(0);
    at_once(4, |_| {
        let mut session = db.session();
        let mut seen = 0;
        for _ in 0..20_000 {
            let found = session.compare_and_swap_u64(&key(0), 16, seen, seen + 1);
            let found = found.expect("swap").expect("it is there");
            if found == seen {
                swapped.fetch_add(1, Ordering::Relaxed);
                seen += 1;
            } else {
                assert!(found > seen, "the counter went back");
                seen = found;
            }
        }
    });
    let found = db.get(&key(0)).expect("get").expect("it is there");
    assert_eq!(word(&found, 16), swapped.into_inner());
    assert!(word(&found, 16) > 0);
}

#[test]
fn swaps_of_values_are_exact() {
    let directory = scratch();
    let db = open(directory.path(), &options());
    db.put(&key(0), &[0; 24]).expect("put");
    let swapped = AtomicU64::new(0);
    at_once(4, |thread| {
        let mut session = db.session();
        for step in 0..10_000 {
            let old = session.get(&key(0)).expect("get").expect("it is there");
            let mut new = old.clone();
            new[..8].copy_from_slice(&(word(&old, 0) + 1).to_le_bytes());
            new[8..16].copy_from_slice(&(thread << 32 | step).to_le_bytes());
            match session.compare_and_swap(&key(0), &old, &new).expect("swap") {
                Swap::Swapped => drop(swapped.fetch_add(1, Ordering::Relaxed)),
                Swap::Different => {}
                Swap::Missing => panic!("nobody deletes it"),
            }
        }
    });
    let found = db.get(&key(0)).expect("get").expect("it is there");
    assert_eq!(word(&found, 0), swapped.into_inner());
    assert_sound(&db);
}

/// Of sessions that delete the same key, one is told that it did; of those that insert it, too.
#[test]
fn inserts_and_deletes_of_one_key_pair_up() {
    let directory = scratch();
    let db = open(directory.path(), &options());
    let (inserted, deleted) = (AtomicU64::new(0), AtomicU64::new(0));
    at_once(6, |thread| {
        let mut session = db.session();
        for step in 0..20_000 {
            let number = step % 2;
            if (thread + step / 3) % 2 == 0 {
                let is_new = session.put(&key(number), &[thread as u8; 24]).expect("put");
                inserted.fetch_add(u64::from(is_new), Ordering::Relaxed);
            } else {
                let was_there = session.delete(&key(number)).expect("delete");
                deleted.fetch_add(u64::from(was_there), Ordering::Relaxed);
            }
            let _ = session.fetch_add_u64(&key(number), 8, 1).expect("in place");
        }
    });
    let left = db.stats().records;
    assert_eq!(inserted.into_inner(), deleted.into_inner() + left);
    assert_sound(&db);
}
