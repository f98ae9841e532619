//! Threads beside one another, while segments are split and the directory doubles.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;

/// The position of a key whose hash no other has.
fn position_of(index: &ExtendibleHash<Hardware>, number: u64) -> Option<u64> {
    let found = positions(index, hash_of(number)).unwrap();
    assert!(found.len() <= 1);
    found.first().copied()
}

#[test]
fn readers_find_what_is_there_while_segments_are_split() {
    let pool = new_pool(4 << 20);
    let index = new_index(&pool);
    let (stay, is_over) = (200, AtomicBool::new(false));
    (0..stay).for_each(|number| insert(&index, hash_of(number), number).unwrap());
    thread::scope(|scope| {
        for reader in 0..2 {
            let (index, is_over) = (&index, &is_over);
            scope.spawn(move || {
                let mut number = reader;
                while !is_over.load(Ordering::Relaxed) {
                    number = (number + 1) % stay;
                    assert_eq!(position_of(index, number), Some(record(number).offset()));
                    assert_eq!(position_of(index, 1_000_000 + number), None);
                }
            });
        }
        for number in 1000..6000 {
            insert(&index, hash_of(number), number).unwrap();
            if number % 4 > 0 {
                assert!(index.remove(hash_of(number), record(number).offset()).unwrap());
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(index.segments() > 50);
}

#[test]
fn writers_of_several_threads_lose_nothing() {
    let pool = new_pool(4 << 20);
    let index = new_index(&pool);
    let (writers, each) = (3_u64, 1500);
    thread::scope(|scope| {
        for writer in 0..writers {
            let index = &index;
            scope.spawn(move || {
                for number in (0..each).map(|number| writers * number + writer) {
                    insert(index, hash_of(number), number).unwrap();
                    if number % 5 == 0 {
                        let old = record(number).offset();
                        assert!(index.swap(hash_of(number), old, record(number + 1)).unwrap());
                    }
                    if number % 7 == 0 {
                        let at = position_of(index, number).unwrap();
                        assert!(index.remove(hash_of(number), at).unwrap());
                    }
                }
            });
        }
    });
    let model: BTreeMap<_, _> = (0..writers * each)
        .filter(|number| number % 7 != 0)
        .map(|number| (hash_of(number), record(number + u64::from(number % 5 == 0)).offset()))
        .collect();
    assert_holds(&index, &model);
    let (again, orphans, _) = recovered(&pool, false).unwrap();
    assert_eq!(orphans, 0);
    assert_holds(&again, &model);
}
