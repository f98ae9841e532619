//! Threads beside one another, while segments are split and the directory doubles.

use std::sync::atomic::AtomicBool;
use std::thread;

use chimera_pmem::SteppedEnvironment;

use super::*;
use crate::sync::lock;

/// The position of a key whose hash no other has.
fn position_of(index: &ExtendibleHash<Hardware>, number: u64) -> Option<u64> {
    let found = positions(index, hash_of(number)).unwrap();
    assert!(found.len() <= 1);
    found.first().copied()
}

#[test]
fn an_answer_counts_only_if_nobody_has_changed_the_segment_meanwhile() {
    let pool = new_pool(1 << 20);
    let index = new_index(&pool);
    insert(&index, 5, 1).unwrap();
    let find = |change: &dyn Fn()| {
        let outcome = index.find_once(5, &mut |at| {
            change();
            Probe::Found(at)
        });
        outcome.map(|outcome| outcome.unwrap())
    };
    let (old, new) = (record(2).offset(), record(3).offset());
    let found = Some(Some(record(1).offset()));
    assert_eq!(find(&|| ()), found);
    assert_eq!(find(&|| insert(&index, 6, 2).unwrap()), None);
    assert_eq!(find(&|| assert!(index.swap(6, old, record(3)).unwrap())), None);
    assert_eq!(find(&|| assert!(index.remove(6, new).unwrap())), None);
    assert_eq!(find(&|| index.split(&index.lock(6).unwrap().unwrap()).unwrap()), None);
    let guard = index.lock(5).unwrap();
    assert_eq!(find(&|| ()), None);
    drop(guard);
    assert_eq!(find(&|| ()), found);
}

/// A reader has read the directory when a segment is split, or the directory doubles.
#[test]
fn a_reader_that_comes_late_asks_the_directory_again() {
    let pool = new_pool(1 << 20);
    let index = new_index(&pool);
    let (hash, other) = (u64::MAX - 3, 3);
    insert(&index, hash, 1).unwrap();
    let split = |hash| index.split(&index.lock(hash).unwrap().unwrap()).unwrap();
    let find = |change: &dyn Fn()| {
        let place = index.place_of(hash).unwrap();
        change();
        let outcome = index.find_in(&place, hash, &mut Probe::Found);
        outcome.map(|outcome| outcome.unwrap())
    };
    let found = Some(Some(record(1).offset()));
    assert_eq!(find(&|| ()), found);
    // The directory doubles with the first split, not with the second one.
    assert_eq!(find(&|| split(hash)), None);
    split(hash);
    assert_eq!(find(&|| split(other)), found, "a split elsewhere");
    assert_eq!((index.directory_depth(), index.segments()), (2, 4));
    split(other);
    assert_eq!((index.directory_depth(), index.segments()), (3, 5));
    assert_eq!(find(&|| split(hash)), None, "a split alone");
    assert_eq!(find(&|| split(other)), None, "the directory doubles");
    assert_eq!((index.directory_depth(), index.segments()), (4, 7));
    assert_eq!(find(&|| ()), found);
}

/// A writer waits for a segment, which is split meanwhile.
#[test]
fn a_writer_that_has_waited_goes_to_the_segment_that_has_its_hash_now() {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let pool = small_pool(environment.clone(), POOL_SEGMENT_BYTES, 1 << 20);
    // For ever, so that the hook can have them.
    let index: &'static _ = Box::leak(Box::new(new_index(&pool)));
    let hash = u64::MAX - 3;
    insert(index, hash, 1).unwrap();
    let held = Mutex::new(index.lock(hash).unwrap());
    environment.set_relax_hook(move |attempt| {
        if attempt == 3 {
            let locked = lock(&held).take().expect("once");
            index.split(&locked).unwrap();
        }
    });
    assert!(index.swap(hash, record(1).offset(), record(2)).unwrap());
    assert_eq!(positions(index, hash).unwrap(), [record(2).offset()]);
    assert_eq!((index.segments(), index.directory_depth()), (2, 1));
    assert_eq!(recovered(&pool, false).unwrap().0.len(), 1);
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
