use std::collections::BTreeMap;
use std::sync::Barrier;

use proptest::prelude::*;

use super::*;

fn arena(directory: &std::path::Path, bytes: u64) -> Arena {
    let options = RegionOptions { directory: directory.to_owned(), bytes, require_dax: false };
    Arena::open(&options).unwrap()
}

/// Writes a byte everywhere in an object.
fn fill(object: NonNull<u8>, length: usize, byte: u8) {
    // SAFETY: the object was allocated with at least `length` bytes and is live.
    unsafe { object.write_bytes(byte, length) };
}

fn is_filled(object: NonNull<u8>, length: usize, byte: u8) -> bool {
    // SAFETY: the object was allocated with at least `length` bytes, is live, and was filled.
    let bytes = unsafe { std::slice::from_raw_parts(object.as_ptr(), length) };
    bytes.iter().all(|found| *found == byte)
}

#[derive(Clone, Debug)]
enum Step {
    Allocate(usize),
    Free(usize),
    FreeWrong(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![
        6 => 0..6000_usize,
        2 => 6000..SMALL_MAX + 2000,
        1 => SMALL_MAX..3 * CHUNK
    ];
    prop_oneof![
        5 => size.prop_map(Step::Allocate),
        4 => any::<usize>().prop_map(Step::Free),
        1 => any::<usize>().prop_map(Step::FreeWrong),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Against a map of what is live: objects never overlap, keep their bytes, and all bytes come back.
    #[test]
    fn objects_are_as_in_a_model(steps in prop::collection::vec(step(), 1..400)) {
        let scratch = tempfile::tempdir().unwrap();
        let arena = arena(scratch.path(), 8 << 20);
        let mut live: BTreeMap<usize, (NonNull<u8>, usize, u8)> = BTreeMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Allocate(size) => {
                    let Some(object) = arena.allocate(size) else { continue };
                    let offset = arena.region().offset_of(object.as_ptr()).unwrap();
                    let usable = arena.usable_bytes(object);
                    prop_assert!(offset.is_multiple_of(64) && usable >= size);
                    prop_assert!(offset + usable <= arena.region().length());
                    let before = live.range(..=offset).next_back();
                    prop_assert!(before.is_none_or(|(at, (_, length, _))| at + length <= offset));
                    let after = live.range(offset..).next();
                    prop_assert!(after.is_none_or(|(at, _)| offset + usable <= *at));
                    let byte = number as u8;
                    fill(object, usable, byte);
                    live.insert(offset, (object, usable, byte));
                }
                Step::Free(which) if !live.is_empty() => {
                    let offset = *live.keys().nth(which % live.len()).unwrap();
                    let (object, length, byte) = live.remove(&offset).unwrap();
                    prop_assert!(is_filled(object, length, byte), "another object wrote here");
                    prop_assert!(arena.free(object));
                    prop_assert!(!arena.free(object), "freed twice");
                }
                Step::FreeWrong(at) => {
                    let offset = at % arena.region().length();
                    // SAFETY: the offset is inside of the region.
                    let object = unsafe { arena.region().base().add(offset) };
                    prop_assert!(live.contains_key(&offset) || !arena.free(object));
                }
                Step::Free(_) => {}
            }
            let expected: usize = live.values().map(|(_, length, _)| length).sum();
            prop_assert_eq!(arena.report().live_bytes, expected as u64);
        }
        for (object, length, byte) in live.values() {
            prop_assert!(is_filled(*object, *length, *byte) && arena.free(*object));
        }
        prop_assert_eq!(arena.report().live_bytes, 0);
    }
}

#[test]
fn a_full_arena_refuses_and_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let arena = arena(scratch.path(), 4 << 20);
    let objects: Vec<_> = std::iter::from_fn(|| arena.allocate(4096)).collect();
    assert_eq!(objects.len(), (4 << 20) / 4096);
    assert_eq!(arena.report().refused, 1);
    assert!(arena.allocate(1).is_none() && arena.allocate(1 << 20).is_none());
    assert!(arena.free(objects[7]));
    assert_eq!(arena.allocate(4000), Some(objects[7]));
    assert!(objects.iter().all(|object| arena.free(*object)));
    // The empty chunk that a bin kept is taken back.
    assert!(arena.allocate(4 << 20).is_some());
    assert!(arena.allocate(1).is_none());
    assert_eq!(arena.report().peak_bytes, 4 << 20);
}

/// All chunks are empty, and each is kept by a bin.
fn keep_all_chunks(arena: &Arena) {
    let objects: Vec<_> =
        (1..=16).map(|class| arena.allocate(size_of(class * 4)).unwrap()).collect();
    assert!(lock(&arena.chunks).take(1).is_none());
    assert!(objects.iter().all(|object| arena.free(*object)));
}

#[test]
fn a_thread_waits_for_another_one_that_gathers() {
    let scratch = tempfile::tempdir().unwrap();
    let arena = arena(scratch.path(), 4 << 20);
    keep_all_chunks(&arena);
    // Nobody gathers while the first bin is locked.
    let bin = lock(&arena.bins[0]);
    let taken: Vec<_> = std::thread::scope(|scope| {
        let take = || arena.allocate(CHUNK).is_some();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(bin);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((taken, arena.report().refused), (vec![true; 4], 0));
}

#[test]
fn threads_that_gather_at_once_are_not_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let arena = arena(scratch.path(), 4 << 20);
    for _ in 0..200 {
        keep_all_chunks(&arena);
        let barrier = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    let objects: Vec<_> = (0..4).map(|_| arena.allocate(CHUNK).unwrap()).collect();
                    barrier.wait();
                    assert!(objects.iter().all(|object| arena.free(*object)));
                });
            }
        });
    }
    assert_eq!(arena.report().refused, 0);
}

#[test]
fn a_thread_takes_what_other_threads_left_over() {
    let scratch = tempfile::tempdir().unwrap();
    let arena = arena(scratch.path(), 4 << 20);
    let most = (4 << 20) / 4096;
    let taken: Vec<usize> = (0..SHARDS)
        .map(|_| {
            let take = || std::iter::from_fn(|| arena.allocate(4096)).take(most / 8).count();
            std::thread::scope(|scope| scope.spawn(take).join().unwrap())
        })
        .collect();
    let rest = std::iter::from_fn(|| arena.allocate(4096)).count();
    assert_eq!(taken.iter().sum::<usize>() + rest, most);
}

#[test]
fn threads_share_an_arena() {
    const THREADS: usize = 8;
    let scratch = tempfile::tempdir().unwrap();
    let arena = arena(scratch.path(), 16 << 20);
    let barrier = Barrier::new(THREADS);
    // Objects go from thread to thread, so most are freed by another one than allocated them.
    let shared: Vec<Mutex<Vec<(usize, usize)>>> = (0..THREADS).map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (arena, barrier, shared) = (&arena, &barrier, &shared);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..3000_usize {
                    let size = (round * 7919 + thread * 104_729) % 9000 + 1;
                    if let Some(object) = arena.allocate(size) {
                        fill(object, size, size as u8);
                        lock(&shared[round % THREADS]).push((object.as_ptr() as usize, size));
                    }
                    let freed = lock(&shared[(round + thread) % THREADS]).pop();
                    let Some((address, size)) = freed else { continue };
                    let object = NonNull::new(address as *mut u8).unwrap();
                    assert!(is_filled(object, size, size as u8));
                    assert!(arena.free(object));
                }
            });
        }
    });
    for (address, _) in shared.iter().flat_map(|list| std::mem::take(&mut *lock(list))) {
        assert!(arena.free(NonNull::new(address as *mut u8).unwrap()));
    }
    assert_eq!(arena.report().live_bytes, 0);
}
