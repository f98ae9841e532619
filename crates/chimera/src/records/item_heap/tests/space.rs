//! Space that is used again, and space that is not.

use super::*;
use crate::pool::small::journaled_pool;
use crate::records::item_heap::units::Units;
use crate::sync::lock;

/// An item of one unit, and one of a whole run of four blocks, which has 30.
const SMALL: usize = 0;
const WHOLE: usize = 960 - 32;

fn take(heap: &ItemHeap<Hardware>, value_bytes: usize) -> Extent {
    let grow = || heap.grow(3, value_bytes, false).unwrap();
    heap.allocate(3, value_bytes).unwrap_or_else(grow)
}

#[test]
fn nothing_in_the_run_of_a_damaged_item_is_used_again() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> = (0..60).map(|_| take(&heap, SMALL)).collect();
    assert_eq!(rooms[29].offset() - rooms[0].offset(), 29 * 32);
    assert_eq!((heap.free(rooms[5]), heap.counts().2), (None, 1888));
    heap.condemn(rooms[3].offset());
    assert_eq!(heap.counts(), (2, 1920, 1920));
    heap.condemn(rooms[4].offset());
    // Outside of every run.
    heap.condemn(8);
    assert_eq!(heap.counts(), (2, 1920, 1920));
    for room in &rooms[..30] {
        assert_eq!(heap.free(*room), None);
    }
    assert_eq!(heap.counts().2, 1920, "all of it counts as taken");
    // What lies in it can be an item, as recovery finds out, and what reaches beyond it cannot.
    heap.mark(rooms[29]).unwrap();
    let beyond = Extent::new_checked(rooms[29].offset(), 64);
    assert!(heap.mark(beyond).is_err());
    assert_eq!(heap.free(rooms[40]), None);
    let again: Vec<_> = (0..40).map(|_| take(&heap, SMALL)).collect();
    let condemned = rooms[0].offset()..rooms[0].offset() + 960;
    assert!(again.iter().all(|room| !condemned.contains(&room.offset())));
    assert!(again.contains(&rooms[40]), "the other run is used");
}

#[test]
fn room_in_runs_that_are_nearly_full_is_found_by_who_looks_everywhere() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> = (0..60).map(|_| take(&heap, SMALL)).collect();
    assert_eq!(heap.free(rooms[7]), None);
    assert_eq!(heap.allocate(3, SMALL), None, "one unit of 30 is not looked for");
    assert_eq!(heap.allocate_anywhere(3, 60), None);
    assert_eq!(heap.allocate_anywhere(3, SMALL), Some(rooms[7]));
    assert_eq!(heap.allocate_anywhere(3, SMALL), None);
}

/// Only so many runs are looked at, and those that were given back are not among them.
#[test]
fn runs_that_were_given_back_are_in_nobodys_way() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let halves: Vec<_> = (0..30).map(|_| take(&heap, SMALL)).collect();
    let wholes: Vec<_> = (0..8).map(|_| take(&heap, WHOLE)).collect();
    for room in wholes {
        if let Some(run) = heap.free(room) {
            heap.give_back(run);
        }
    }
    let last = take(&heap, WHOLE);
    halves[..15].iter().for_each(|room| assert_eq!(heap.free(*room), None));
    let half = heap.allocate(3, 14 * 32).expect("the first run has 15 units in a row");
    assert_eq!(half.offset(), halves[0].offset());
    assert_eq!(heap.counts(), (2, 1920, 1920));
    assert!(heap.free(last).is_some());
}

#[test]
fn no_item_begins_where_a_run_ends() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    // A run of two items, and one of a large item, which small ones fill.
    let halves = [14, 14].map(|units| take(&heap, units * 32));
    let large = take(&heap, 4900);
    while heap.allocate(3, SMALL).is_some() {}
    assert_eq!(heap.counts().0, 2);
    let end = halves[0].offset() + 960;
    // Room is taken in the first run, which becomes empty.
    assert_eq!(heap.free(halves[0]), None);
    let small = take(&heap, SMALL);
    assert_eq!(small.offset(), halves[0].offset());
    assert_eq!((heap.free(small), heap.free(halves[1])), (None, None));
    // Room is taken in the other one.
    assert_eq!(heap.free(large), None);
    assert_eq!(take(&heap, 4900), large);
    let behind = Extent::new_checked(end, 32);
    assert_eq!((heap.free(behind), heap.mark(behind).is_err()), (None, true));
    assert_eq!(heap.counts().0, 2);
    assert!(heap.give_back_empty());
    assert_eq!(heap.counts().0, 1);
}

#[test]
fn bytes_of_dram_are_two_bits_for_each_unit() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    assert_eq!(heap.bytes(), 0);
    let own = size_of::<Units>() as u64;
    take(&heap, SMALL);
    assert_eq!(heap.bytes(), own + 2 * 8, "30 units");
    take(&heap, 5000);
    assert_eq!(heap.bytes(), 2 * own + 2 * 8 + 2 * 3 * 8, "and 164");
}

/// Of two threads that free items of a run, the one that was first may come to the lock last.
#[test]
fn a_run_is_as_empty_as_its_item_that_was_freed_last() {
    let (pool, _environment) = journaled_pool(16 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> = (0..3).map(|number| write(&heap, &[number], &[1; 40]).unwrap()).collect();
    let first = pool.pmem.fenced();
    pool.pmem.flush(rooms[2], SITE);
    pool.pmem.fence(SITE);
    let last = pool.pmem.fenced();
    assert!(first < last);
    let free = |room: Extent, emptied| {
        assert!(lock(&heap.space).free(room.offset(), room.length(), emptied).is_none());
    };
    free(rooms[1], last);
    free(rooms[0], first);
    assert_eq!(lock(&heap.space).emptied(rooms[0].offset()), Some(last));
}

/// Frees all but each `step`th of these rooms.
fn thin(heap: &ItemHeap<Hardware>, rooms: &[Extent], step: usize) {
    for (number, room) in rooms.iter().enumerate() {
        if number % step != 0
            && let Some(run) = heap.free(*room)
        {
            heap.give_back(run);
        }
    }
}

#[test]
fn sparse_runs_are_evacuated_and_no_room_is_taken_there() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    // Eight runs of 30 units: of the first four a third stays, of the next two a half, and the last two stay full.
    let rooms: Vec<_> = (0..240).map(|_| take(&heap, SMALL)).collect();
    assert_eq!(heap.evacuate_sparse(1), [], "nothing is free");
    thin(&heap, &rooms[..120], 3);
    thin(&heap, &rooms[120..180], 2);
    let starts = |left: &[SparseRun]| left.iter().map(|run| run.start).collect::<Vec<_>>();
    let first = |run: usize| rooms[30 * run].offset();
    assert_eq!(heap.evacuate_sparse(70), [], "a third is more than 30 %");
    let sparse = heap.evacuate_sparse(60);
    assert_eq!(starts(&sparse), [first(0), first(1), first(2), first(3)]);
    assert!(sparse.iter().all(|run| run.blocks == 4 && heap.is_evacuating(*run)));
    for run in sparse {
        heap.keep(run);
    }
    let left = heap.evacuate_sparse(50);
    assert_eq!(starts(&left), [4, 5, 0, 1, 2, 3].map(first), "the emptiest one is the last");
    assert_eq!(
        heap.items_in(left[2]),
        [0, 3, 6, 9, 12, 15, 18, 21, 24, 27].map(|room: usize| rooms[room].offset())
    );
    let fresh: Vec<_> = (0..60).map(|_| take(&heap, SMALL)).collect();
    let is_old = |room: &Extent| (first(0)..rooms[180].offset()).contains(&room.offset());
    assert!(!fresh.iter().any(is_old), "room was taken in a run that is evacuated");
    // What stays is used again, and what is empty goes.
    heap.keep(left[2]);
    assert!(!heap.is_evacuating(left[2]));
    assert_eq!(take(&heap, SMALL).offset(), rooms[1].offset());
    let last = left[5];
    let mut freed: Vec<_> =
        heap.items_in(last).into_iter().map(|at| heap.free(pool.extent(at, 32))).collect();
    assert!(freed.pop().flatten().is_some() && freed.iter().all(Option::is_none));
    assert!(!heap.is_evacuating(last) && heap.items_in(last).is_empty());
}

#[test]
fn nothing_is_evacuated_where_as_many_runs_would_be_needed() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> = (0..60).map(|_| take(&heap, SMALL)).collect();
    thin(&heap, &rooms, 2);
    assert_eq!(heap.evacuate_sparse(1), [], "two halves are one run, which has room for no more");
    // Each of these has room for one alone.
    let heap = new_heap(&pool, RecordLayout::Checked);
    for _ in 0..5 {
        take(&heap, 600);
    }
    assert_eq!(heap.evacuate_sparse(1), []);
    // In the last run of a large item that is gone one small item is left.
    let heap = new_heap(&pool, RecordLayout::Checked);
    let large = heap.grow(3, 8000, false).unwrap();
    let small = take(&heap, SMALL);
    assert_eq!(small.offset(), large.offset() + large.length().next_multiple_of(32));
    assert_eq!(heap.free(large), None);
    assert_eq!(heap.evacuate_sparse(50).len(), 1);
}

/// Of items that are longer than half of the usual run each gets one for itself. Others move all the same.
#[test]
fn large_items_are_in_nobodys_way() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> = (0..240).map(|_| take(&heap, SMALL)).collect();
    thin(&heap, &rooms, 3);
    let gone = heap.grow(3, 8000, false).unwrap();
    // 8000 bytes are 251 units; each of these takes 20.
    assert_eq!(heap.free(gone), None, "room is taken in its run");
    let large: Vec<_> = (0..7).map(|_| take(&heap, 600)).collect();
    assert!(large.iter().all(|room| room.offset() >= gone.offset() && room.end() <= gone.end()));
    let sparse = heap.evacuate_sparse(40);
    assert_eq!(sparse.len(), 8, "seven may need 280 units");
    for run in sparse {
        heap.keep(run);
    }
    for room in &large[5..] {
        assert_eq!(heap.free(*room), None);
    }
    assert_eq!(heap.evacuate_sparse(40).len(), 9, "five need 200 at most");
}

#[test]
fn damaged_runs_and_runs_that_were_found_are_not_evacuated() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> = (0..240).map(|_| take(&heap, SMALL)).collect();
    thin(&heap, &rooms, 3);
    heap.condemn(rooms[0].offset());
    let left = heap.evacuate_sparse(30);
    assert_eq!(left.len(), 7);
    assert!(left.iter().all(|run| run.start != rooms[0].offset()));
    let again = found(&pool);
    rooms.iter().step_by(3).for_each(|room| again.mark(*room).unwrap());
    assert_eq!(again.evacuate_sparse(30), [], "more may be marked");
    assert_eq!(again.end_recovery(), []);
    assert_eq!(again.evacuate_sparse(30).len(), 8);
}

/// A heap under a journal, with items of a whole run each.
fn journaled_wholes(count: usize) -> (ItemHeap<Hardware>, Arc<Pool<Hardware>>, Vec<Extent>) {
    let (pool, _environment) = journaled_pool(16 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms = (0..count).map(|_| take(&heap, WHOLE)).collect();
    (heap, pool, rooms)
}

#[test]
fn room_of_a_large_item_waits_until_it_is_written_back() {
    let (heap, pool, rooms) = journaled_wholes(4);
    assert_eq!(heap.counts(), (4, 3840, 3840));
    assert_eq!(heap.free(rooms[0]), None);
    assert_eq!(heap.counts(), (4, 3840, 2880), "what waits is free");
    assert_eq!(heap.allocate(3, WHOLE), None, "but it is not taken");
    // Not before something that is fenced later is written back.
    pool.pmem.flush(rooms[1], SITE);
    pool.pmem.fence(SITE);
    assert_eq!(heap.free(rooms[2]), None);
    assert_ne!(take(&heap, WHOLE), rooms[0]);
    pool.pmem.journal().unwrap().checkpoint().unwrap();
    // Runs without items stay for those that need room.
    let again = [take(&heap, WHOLE), take(&heap, WHOLE)];
    assert!(again.contains(&rooms[0]) && again.contains(&rooms[2]), "{again:?} of {rooms:?}");
    assert_eq!(heap.counts(), (5, 4800, 4800));
}

#[test]
fn what_waits_is_room_where_there_is_no_other() {
    let (heap, _pool, rooms) = journaled_wholes(3);
    assert_eq!(heap.free(rooms[1]), None);
    assert_eq!(heap.allocate_anywhere(3, WHOLE), None);
    assert!(heap.give_back_empty());
    assert_eq!(heap.counts(), (2, 1920, 1920));
    assert!(!heap.give_back_empty());
}

/// In a run that recovery found it may not be marked yet, and belong to another item when it has waited.
#[test]
fn in_a_run_that_was_found_nothing_waits() {
    let (pool, _environment) = journaled_pool(16 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let run = pool.take_bare_run(HEAP, 4).unwrap();
    let start = pool.run_bytes(&run).offset();
    heap.adopt(run);
    let room = Extent::new_checked(start, 480);
    assert_eq!(heap.free(room), None);
    assert_eq!(lock(&heap.space).waiting_bytes(), 0);
    assert!(heap.end_recovery().into_iter().all(|run| pool.free_run(run).is_ok()));
}

#[test]
fn nothing_waits_while_a_run_is_evacuated() {
    let (pool, _environment) = journaled_pool(64 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> = (0..40).map(|_| take(&heap, 200)).collect();
    for (number, room) in rooms.iter().enumerate() {
        if number % 4 != 0 {
            assert_eq!(heap.free(*room), None);
        }
    }
    assert!(lock(&heap.space).waiting_bytes() > 0);
    let sparse = heap.evacuate_sparse(50);
    assert!(!sparse.is_empty(), "what waited is free");
    assert_eq!(lock(&heap.space).waiting_bytes(), 0);
    let gone = sparse.iter().flat_map(|run| heap.items_in(*run)).collect::<Vec<_>>();
    assert!(gone.iter().all(|at| rooms.iter().step_by(4).any(|room| room.offset() == *at)));
    for room in rooms.iter().step_by(4).filter(|room| gone.contains(&room.offset())) {
        if let Some(run) = heap.free(*room) {
            heap.give_back(run);
        }
    }
    assert_eq!(lock(&heap.space).waiting_bytes(), 0);
    assert!(sparse.iter().all(|run| !heap.is_evacuating(*run)));
}

/// Who deletes much takes no room back: what waits beyond a bound is given back.
#[test]
fn no_more_waits_than_may() {
    let (pool, _environment) = journaled_pool(4 << 20);
    let heap = ItemHeap::new(pool.clone(), HEAP, RecordLayout::Checked, 256);
    let value_bytes = 60 << 10;
    let rooms: Vec<_> = (0..100).map(|_| take(&heap, value_bytes)).collect();
    for room in &rooms {
        if let Some(run) = heap.free(*room) {
            heap.give_back(run);
        }
        let waiting = lock(&heap.space).waiting_bytes();
        assert!(waiting <= pool.waiting_bytes_max(waiting) + (64 << 10) + (64 << 10));
    }
    let waiting = lock(&heap.space).waiting_bytes();
    assert!((900 << 10..1500 << 10).contains(&waiting), "{waiting} bytes");
    assert!(heap.counts().0 < 30, "{} of 100 runs", heap.counts().0);
    assert!(heap.bytes() > 16 * 24, "what waits is counted");
    heap.end_waiting();
    assert_eq!(lock(&heap.space).waiting_bytes(), 0);
}
