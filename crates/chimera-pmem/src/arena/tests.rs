use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use zerocopy::FromZeros;

use super::*;

#[derive(FromZeros)]
#[repr(C, align(64))]
struct Bucket {
    slots: [AtomicU64; 8],
}

impl AtomicWords for Bucket {
    fn words(&self) -> &[AtomicU64] {
        &self.slots
    }
}

#[test]
fn elements_that_are_given_back_are_zeros_and_others_stay() {
    const ELEMENTS: u64 = 1000;
    for (start, count) in [(4, 996), (100, 200), (63, 65), (70, 3), (500, 0)] {
        let arena = Arena::<Bucket>::new(4, false);
        arena.ensure(ELEMENTS).unwrap();
        let store = |number| {
            for word in &arena.get(number).unwrap().slots {
                word.store(number + 1, Relaxed);
            }
        };
        (0..ELEMENTS).for_each(store);
        assert!(arena.give_back(start, count));
        for number in 0..ELEMENTS {
            let is_zero = (start..start + count).contains(&number);
            let expected = if is_zero { 0 } else { number + 1 };
            let words = &arena.get(number).unwrap().slots;
            assert!(words.iter().all(|word| word.load(Relaxed) == expected), "{number}");
        }
        store(start);
        assert_eq!(arena.get(start).unwrap().slots[7].load(Relaxed), start + 1, "used again");
    }
    let arena = Arena::<Bucket>::new(4, false);
    arena.ensure(8).unwrap();
    arena.get(1).unwrap().slots[0].store(1, Relaxed);
    assert!(!arena.give_back(0, 4) && !arena.give_back(2, 4), "on the heap");
    assert!(!arena.give_back(4, 1 << 40), "not there");
    assert_eq!(arena.get(1).unwrap().slots[0].load(Relaxed), 1);
}

#[derive(FromZeros)]
#[repr(C)]
struct Mixed(AtomicU64, u64);

impl AtomicWords for Mixed {
    fn words(&self) -> &[AtomicU64] {
        std::slice::from_ref(&self.0)
    }
}

#[test]
#[should_panic(expected = "an element is its words")]
fn nothing_is_given_back_that_is_more_than_atomic_words() {
    let arena = Arena::<Mixed>::new(1, false);
    arena.ensure(600).unwrap();
    arena.give_back(1, 500);
}

#[test]
fn a_new_arena_owns_no_elements() {
    let arena = Arena::<AtomicU64>::new(8, false);
    assert_eq!(arena.count(), 0);
    assert_eq!(arena.bytes_reserved(), 0);
    assert_eq!(arena.bytes_resident_estimate(), 0);
    for index in [0, 1, 7, 8, 1 << 40, u64::MAX] {
        assert!(arena.get(index).is_none());
    }
}

#[test]
fn every_index_is_a_place_of_its_own() {
    for first in [1, 2, 16] {
        let arena = Arena::<AtomicU64>::new(first, false);
        arena.ensure(1_000).unwrap();
        assert_eq!(arena.count(), 1_000);
        for index in 0..1_000 {
            let element = arena.get(index).unwrap();
            assert_eq!(element.load(Relaxed), 0, "zeroed at first");
            element.store(index + 1, Relaxed);
        }
        for index in 0..1_000 {
            assert_eq!(arena.get(index).unwrap().load(Relaxed), index + 1);
        }
        assert!((8_000..32_000).contains(&arena.bytes_reserved()));
    }
}

#[test]
fn the_first_elements_take_nothing_else() {
    let arena = Arena::<u64>::new(4, false);
    arena.ensure(1).unwrap();
    assert!(arena.get(3).is_some());
    assert!(arena.get(4).is_none());
    assert_eq!(arena.bytes_reserved(), 32);
    arena.ensure(5).unwrap();
    assert!(arena.get(4).is_some());
    assert_eq!(arena.count(), 5);
    arena.ensure(3).unwrap();
    assert_eq!(arena.count(), 5, "never shrinks");
    let present = arena.bytes_reserved() / 8;
    assert!(arena.get(present - 1).is_some());
    assert!(arena.get(present).is_none());
}

#[test]
fn elements_never_move_and_are_aligned() {
    // 64 B x 2^17 is 8 MiB.
    for huge_pages in [false, true] {
        let arena = Arena::<Bucket>::new(4, huge_pages);
        let mut addresses = Vec::new();
        for shift in 0..18 {
            let count = 1 << shift;
            arena.ensure(count).unwrap();
            let element = arena.get(count - 1).unwrap();
            element.slots[7].store(count, Relaxed);
            addresses.push((count - 1, ptr::from_ref(element)));
        }
        for (index, address) in addresses {
            let element = arena.get(index).unwrap();
            assert_eq!(ptr::from_ref(element), address);
            assert!(address.addr().is_multiple_of(64));
            assert_eq!(element.slots[7].load(Relaxed), index + 1);
        }
    }
}

#[test]
fn what_is_not_touched_takes_no_memory() {
    // 1 GiB: touching it in bulk would take far longer than this test.
    let arena = Arena::<AtomicU64>::new(8, false);
    arena.ensure(1 << 27).unwrap();
    let first = arena.get(8).unwrap();
    assert!(ptr::from_ref(first).addr().is_multiple_of(HUGE_PAGE));
    arena.get((1 << 27) - 1).unwrap().store(1, Relaxed);
    assert_eq!(arena.bytes_reserved(), (1 << 30) + 64);
    assert_eq!(arena.bytes_resident_estimate(), (1 << 30) + 64);
    let arena = Arena::<AtomicU64>::new(8, false);
    arena.ensure(10).unwrap();
    assert_eq!(arena.bytes_resident_estimate(), 4096 + 64);
}

#[test]
fn too_many_elements_are_refused() {
    let arena = Arena::<Bucket>::new(1, false);
    for count in [1 << 58, 1 << 60, u64::MAX] {
        assert_eq!(arena.ensure(count).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }
    assert_eq!(arena.count(), 0);
    assert_eq!(arena.bytes_reserved(), 64, "one element on the heap");
}

#[test]
fn readers_and_growers_agree() {
    const THREADS: u64 = 4;
    const ELEMENTS: u64 = 1 << 10;
    for _ in 0..200 {
        let arena = Arena::<AtomicU64>::new(1, false);
        let start = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for count in 1..=ELEMENTS {
                        arena.ensure(count).unwrap();
                        assert!(arena.count() >= count);
                        // Everyone adds to the same element: had two growers made two chunks, what
                        // was added to one of them would be lost.
                        arena.get(count - 1).unwrap().fetch_add(1, Relaxed);
                    }
                });
            }
        });
        for index in 0..ELEMENTS {
            let sum = arena.get(index).unwrap().load(Relaxed);
            assert_eq!(sum, THREADS, "element {index}");
        }
    }
}

#[test]
fn a_range_is_what_its_elements_are_and_lies_on_one_side() {
    let arena = Arena::<AtomicU64>::new(8, false);
    assert!(arena.range(0, 1).is_none(), "nothing is present");
    arena.ensure(100).unwrap();
    for (start, count) in [(0, 8), (3, 2), (8, 92), (50, 10), (7, 1), (8, 0)] {
        let range = arena.range(start, count).unwrap();
        assert_eq!(range.len() as u64, count);
        for (index, element) in (start..).zip(range) {
            assert!(ptr::eq(element, arena.get(index).unwrap()), "element {index}");
        }
    }
    assert!(arena.range(7, 2).is_none(), "one on the heap, one not");
    assert!(arena.range(0, 9).is_none(), "all on the heap but one");
    let present = arena.bytes_reserved() / 8;
    assert!(arena.range(present - 1, 1).is_some());
    for (start, count) in [(present, 1), (present - 1, 2), (u64::MAX, 1), (1, u64::MAX)] {
        assert!(arena.range(start, count).is_none(), "{count} from {start}");
    }
}
