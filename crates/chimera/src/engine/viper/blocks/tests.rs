//! Which queued blocks are handed out, and which of them stay for the reserve.

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
