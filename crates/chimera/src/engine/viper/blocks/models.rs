//! Models of [`Blocks`]: a block has one owner at a time, and no slot that was freed is forgotten.

use std::sync::Arc;

use loom::thread;

use super::Blocks;
use crate::records::vpage::Room;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::under_loom::model;

/// One block beside its bitset, which in truth is in persistent memory.
struct Block {
    blocks: Blocks,
    bits: AtomicU64,
    is_filled: AtomicBool,
}

impl Block {
    /// Block 0, in which all slots are in use.
    fn new(slots: u32) -> Self {
        let blocks = Blocks::of_units(slots, 1);
        Self { blocks, bits: AtomicU64::new((1 << slots) - 1), is_filled: AtomicBool::new(false) }
    }

    /// What retiring a record does.
    fn free(&self, slot: u32) {
        let clear = |bits| Some(bits & !(1 << slot));
        self.bits.fetch_update(Ordering::AcqRel, Ordering::Acquire, clear).expect("always");
        self.blocks.note_freed(0, 1);
    }

    /// What a session does that has taken the block out of the queue: fills a slot, if there is one
    /// free, and leaves.
    fn own(&self) {
        self.blocks.own(0);
        assert!(!self.is_filled.swap(true, Ordering::Relaxed), "two owners");
        let free = self.free_slots();
        if free > 0 {
            let set = |bits: u64| Some(bits | 1 << (!bits).trailing_zeros());
            self.bits.fetch_update(Ordering::AcqRel, Ordering::Acquire, set).expect("always");
        }
        self.is_filled.store(false, Ordering::Relaxed);
        self.leave();
    }

    fn leave(&self) {
        let room = || {
            let free = self.free_slots();
            Room { free, fillable: free, fillable_if_starved: free }
        };
        self.blocks.leave(0, None, room);
    }

    fn free_slots(&self) -> u32 {
        self.blocks.units_per_block - self.bits.load(Ordering::Acquire).count_ones()
    }

    /// How often the block is in the queue.
    fn queued(&self) -> u64 {
        self.blocks.queued()
    }
}

/// Runs both and gives back the block.
fn beside(
    block: Block,
    first: impl FnOnce(&Block) + Send + 'static,
    second: impl FnOnce(&Block),
) -> Arc<Block> {
    let block = Arc::new(block);
    let thread = thread::spawn({
        let block = block.clone();
        move || first(&block)
    });
    second(&block);
    thread.join().expect("no panic");
    block
}

#[test]
fn loom_a_slot_freed_while_its_block_is_left_is_not_forgotten() {
    model::check(3, || {
        let block = Block::new(4);
        block.blocks.own(0);
        let block = beside(block, |block| block.free(1), Block::leave);
        assert_eq!(block.queued(), 1);
    });
}

#[test]
fn loom_slots_freed_at_once_queue_their_block_once() {
    model::check(3, || {
        let block = Block::new(8);
        let block = beside(block, |block| block.free(1), |block| block.free(2));
        assert_eq!(block.queued(), 1);
    });
}

/// Takes the block out of the queue, if it is there, and fills a slot.
fn take(block: &Block) {
    if block.blocks.take_queued(0, 0).is_some() {
        block.own();
    }
}

/// Runs all side by side on a block that a session owns and that has a free slot.
fn all_beside(threads: Vec<fn(&Block)>) {
    let block = Arc::new(Block::new(4));
    block.free(0);
    assert_eq!(block.blocks.take_queued(0, 0), Some(0));
    block.blocks.own(0);
    let run = |work: fn(&Block)| {
        let block = block.clone();
        thread::spawn(move || work(&block))
    };
    let threads: Vec<_> = threads.into_iter().map(run).collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    // It may also be there without a free slot: the number is a hint.
    assert!(block.queued() <= 1 && (block.queued() == 1 || block.free_slots() == 0));
}

#[test]
fn loom_a_block_is_handed_to_one_session_at_a_time() {
    let free_and_take = |block: &Block| {
        block.free(1);
        take(block);
    };
    model::check(3, move || all_beside(vec![Block::leave, free_and_take]));
    model::check(2, move || all_beside(vec![Block::leave, take, free_and_take]));
}

#[test]
fn loom_once_the_pool_is_full_every_free_slot_counts() {
    // Otherwise one free slot, of eight or of 32, does not put a block into the queue.
    let starve = |block: &Block| {
        block.blocks.starve(1);
    };
    model::check(3, move || {
        let block = beside(Block::new(8), |block| block.free(1), starve);
        assert_eq!(block.queued(), 1);
    });
    model::check(3, move || {
        let block = Block::new(32);
        block.free(0);
        block.blocks.own(0);
        let block = beside(block, Block::leave, starve);
        assert_eq!(block.queued(), 1);
    });
}
