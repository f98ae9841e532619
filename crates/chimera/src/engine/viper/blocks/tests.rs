//! Which queued blocks are handed out, and which of them stay for the reserve.

use chimera_pmem::Fenced;

use super::*;

const UNITS: u32 = 8;

/// Blocks of which so many units are free, left by their sessions.
fn left(free: &[u32]) -> Blocks {
    let blocks = Blocks::of_units(UNITS, free.len() as u64);
    for (block, free) in (0..).zip(free) {
        blocks.own(block);
        let room = Room { free: *free, fillable: *free, fillable_if_starved: *free };
        blocks.leave(block, Some(room), || unreachable!("its session knows"));
    }
    blocks
}

#[test]
fn so_many_empty_blocks_stay_and_no_more() {
    let blocks = left(&[UNITS, 3, UNITS, UNITS]);
    assert_eq!(blocks.queued(), 4);
    assert_eq!(blocks.take_queued(0, 3), Some(1), "it is not empty");
    assert_eq!((blocks.take_queued(0, 3), blocks.take_empty(3)), (None, None));
    assert_eq!(blocks.take_queued(0, 2), Some(0));
    assert_eq!((blocks.take_queued(0, 2), blocks.take_empty(2)), (None, None));
    assert_eq!(blocks.take_empty(1), Some(2));
    assert_eq!((blocks.take_queued(0, 1), blocks.take_empty(1)), (None, None));
    assert_eq!(blocks.take_queued(3, 0), Some(3));
    assert_eq!((blocks.take_queued(0, 0), blocks.take_empty(0)), (None, None));
}

#[test]
fn a_block_that_becomes_empty_in_the_queue_is_an_empty_one() {
    let blocks = left(&[5, 0]);
    assert_eq!(blocks.take_empty(0), None);
    blocks.note_freed(0, 2);
    assert_eq!(blocks.take_empty(0), None, "a unit is in use");
    blocks.note_freed(0, 1);
    assert_eq!(blocks.take_queued(0, 1), None, "it stays for the reserve");
    assert_eq!(blocks.take_empty(0), Some(0));
    // A block that was not queued is, and is empty at once.
    blocks.note_freed(1, UNITS);
    assert_eq!((blocks.take_queued(0, 1), blocks.take_empty(0)), (None, Some(1)));
}

#[test]
fn a_block_that_was_emptied_is_an_empty_one_and_told_apart() {
    let blocks = left(&[UNITS, UNITS, 3]);
    assert_eq!(blocks.take_to_empty(), Some(0));
    blocks.own(0);
    assert_eq!(blocks.queue_emptied(0, Fenced::default()), 1);
    assert_eq!((blocks.whose(0), blocks.queued(), blocks.emptied()), (Whose::Queue, 3, 1));
    assert_eq!(blocks.free_units(0), Some(UNITS));
    // Both stay for the reserve.
    assert_eq!((blocks.take_queued(0, 2), blocks.take_empty(2)), (Some(2), None));
    assert_eq!(blocks.take_emptied(2, |_| true), None);
    assert_eq!(blocks.take_emptied(1, |_| false), None, "it is not written back");
    assert_eq!(blocks.take_emptied(1, |_| true), Some((0, Fenced::default())));
    blocks.own(0);
    assert_eq!((blocks.emptied(), blocks.take_emptied(0, |_| true)), (0, None));
    assert_eq!((blocks.take_empty(0), blocks.take_to_empty()), (Some(1), None));
}

#[test]
fn a_block_that_was_emptied_is_so_no_longer_once_it_is_taken() {
    let blocks = left(&[UNITS, UNITS]);
    for block in 0..2 {
        assert_eq!(blocks.take_to_empty(), Some(block));
        blocks.own(block);
        blocks.queue_emptied(block, Fenced::default());
    }
    // A record that was retired before is counted late.
    blocks.note_freed(0, 1);
    assert_eq!((blocks.take_to_empty(), blocks.queued()), (None, 2));
    assert_eq!(blocks.take_queued(0, 0), Some(0));
    blocks.own(0);
    let room = Room { free: UNITS, fillable: UNITS, fillable_if_starved: UNITS };
    blocks.leave(0, Some(room), || unreachable!("its session knows"));
    assert_eq!(blocks.emptied(), 1, "it may have held something since");
    assert!(blocks.claim(1));
    assert_eq!((blocks.emptied(), blocks.take_emptied(0, |_| true)), (0, None));
    assert_eq!(blocks.take_to_empty(), Some(0));
}
