//! [`Reclaim`]: space reclamation: records are moved out of blocks that are mostly free, so that the blocks become
//! free, and the last blocks are given back (section 4.6).
//!
//! # Rules
//! 1. A pass has two parts. First each block with enough free space is emptied, from the lowest on; its records
//!    go where sessions put new ones, to the lowest block with room. Then the last block of the pool is emptied
//!    and given back, again and again, as long as there is room for its records below.
//! 2. Sessions come first: a pass ends where there is no room for what it moves.
//! 3. Reclamation decides which blocks are emptied, and when; [`Mover`] how.

use std::ops::Range;

use chimera_pmem::{Operation, Pmem};

use super::mover::{Buffers, Moved, Mover};
use super::records::Records;
use super::write::Writer;
use crate::engine::contract::upkeep::Step;
use crate::records::vpage::Pages;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::error::{Error, Result};
use crate::types::stats::ReclaimStats;

/// When there are no fresh blocks, a block is emptied when so much of it is free, in percent, at least.
const STARVED_PERCENT: u32 = 10;

/// What a pass is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// Between two passes.
    #[default]
    Idle,
    /// Blocks from `next` to `end` are looked at: their records may move behind them.
    Sweep { next: u64, end: u64 },
    /// The last blocks; so many units are free below.
    Tail { room: u64 },
}

/// A pass, as far as it has come. Whoever goes on with it is the mover.
#[derive(Default)]
struct Pass {
    part: Part,
    buffers: Buffers,
}

/// Space reclamation of a store.
#[derive(Default)]
pub(super) struct Reclaim {
    pass: Mutex<Pass>,
    passes: AtomicU64,
    moved: Moved,
    blocks_given_back: AtomicU64,
}

impl Reclaim {
    /// One step of a pass over blocks of which at least so much is free: empties one block at most.
    ///
    /// # Errors
    /// Those of a write. The pass is over then, and no record is lost.
    pub(super) fn step<P: Pmem, V: Pages>(
        &self,
        writer: &Writer<P, V>,
        free_percent: u32,
    ) -> Result<Step> {
        let mut mover = Mover::new(writer, &self.moved);
        let (records, mut pass) = (mover.records(), self.pass(mover.records()));
        let is_starved = records.space().blocks().is_starved();
        let free_percent =
            if is_starved { free_percent.min(STARVED_PERCENT) } else { free_percent };
        let _booked = records.core().book(Operation::Reclaim, mover.number());
        let before = self.moved.bytes.load(Ordering::Relaxed);
        let outcome = match pass.part {
            Part::Idle => {
                let used = records.pool().used_blocks();
                let end = if can_free_a_block(records, free_percent) { used } else { 0 };
                pass.part = Part::Sweep { next: 0, end };
                Ok(true)
            }
            Part::Sweep { next, end } => pass.sweep(&mut mover, next..end, u64::from(free_percent)),
            Part::Tail { room } => self.shrink(&mut pass, &mut mover, room),
        };
        let goes_on = match outcome {
            Ok(goes_on) => goes_on,
            // Sessions come first.
            Err(Error::PoolFull { .. }) => false,
            Err(error) => {
                self.end_pass(&mut pass, &mut mover);
                return Err(error);
            }
        };
        if !goes_on {
            self.end_pass(&mut pass, &mut mover);
            records.pool().release_storage();
            return Ok(Step::Done);
        }
        let moved_bytes = self.moved.bytes.load(Ordering::Relaxed) - before;
        Ok(Step::More { moved_bytes })
    }

    fn end_pass<P: Pmem, V: Pages>(&self, pass: &mut Pass, mover: &mut Mover<'_, P, V>) {
        mover.leave();
        pass.part = Part::Idle;
        self.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives back the blocks that reclamation holds.
    pub(super) fn end<P: Pmem, V: Pages>(&self, writer: &Writer<P, V>) {
        let mut mover = Mover::new(writer, &self.moved);
        mover.leave();
        self.pass(writer.records()).part = Part::Idle;
    }

    /// The pass, for the mover: nobody else takes this lock.
    fn pass<P: Pmem, V: Pages>(&self, records: &Records<P, V>) -> MutexGuard<'_, Pass> {
        lock_relaxing(&self.pass, &*records.pool().environment)
    }

    /// Gives the last block back, if its records have room in others.
    fn shrink<P: Pmem, V: Pages>(
        &self,
        pass: &mut Pass,
        mover: &mut Mover<'_, P, V>,
        room: u64,
    ) -> Result<bool> {
        let records = mover.records();
        let Some(last) = records.pool().used_blocks().checked_sub(1) else { return Ok(false) };
        let own_room = room_of_block(records, last);
        if !mover.claim(last) {
            return Ok(false);
        }
        let need = mover.units_in_use(last, &mut pass.buffers);
        // Two blocks more, for both kinds of pages.
        let left = room.saturating_sub(own_room);
        if need > 0 && left < need + 2 * units_of_block(records) {
            mover.leave_block(last);
            return Ok(false);
        }
        let moved = mover.empty_block(last, &mut pass.buffers);
        if moved.is_err() || !self.give_back(records, last) {
            mover.leave_block(last);
            return moved.map(|()| false);
        }
        pass.part = Part::Tail { room: left - need };
        Ok(true)
    }

    /// Gives a block back to the pool, if it is durably empty and the last one; `false` when it stays.
    fn give_back<P: Pmem, V: Pages>(&self, records: &Records<P, V>, block: u64) -> bool {
        let is_back = records.space().supply().give_back(block);
        self.blocks_given_back.fetch_add(u64::from(is_back), Ordering::Relaxed);
        is_back
    }

    /// The work that reclamation has done, and the work that is left.
    pub(super) fn stats<P: Pmem, V: Pages>(&self, records: &Records<P, V>) -> ReclaimStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (pool, blocks) = (records.pool(), records.space().blocks());
        let free = (0..pool.used_blocks()).filter_map(|block| blocks.free_units(block));
        let free: u64 = free.map(u64::from).sum();
        ReclaimStats {
            debt_bytes: free * pool.map.block_bytes / units_of_block(records),
            passes: of(&self.passes),
            moved_records: of(&self.moved.records),
            moved_bytes: of(&self.moved.bytes),
            blocks_freed: of(&self.moved.blocks_freed),
            blocks_given_back: of(&self.blocks_given_back),
        }
    }
}

impl Pass {
    /// Empties the next block with enough free units.
    fn sweep<P: Pmem, V: Pages>(
        &mut self,
        mover: &mut Mover<'_, P, V>,
        blocks: Range<u64>,
        free_percent: u64,
    ) -> Result<bool> {
        let records = mover.records();
        let (end, units) = (blocks.end, units_of_block(records));
        let used = records.pool().used_blocks();
        let mut blocks = blocks.start..end.min(used);
        let worth = blocks.find(|block| free_if_worth(records, *block, free_percent) > 0);
        let Some(block) = worth else {
            mover.leave();
            let room = free_room(records);
            self.part = Part::Tail { room };
            return Ok(room * 100 >= used * units * free_percent);
        };
        self.part = Part::Sweep { next: block + 1, end };
        if mover.claim(block) {
            let gain = u64::from(records.pages().gain(records.pool(), block));
            let moved = if gain * 100 >= units * free_percent {
                mover.empty_block(block, &mut self.buffers)
            } else {
                Ok(())
            };
            mover.leave_block(block);
            moved?;
        }
        Ok(true)
    }
}

/// Units that are free in a block, if they are enough for it to be emptied; else 0.
fn free_if_worth<P: Pmem, V: Pages>(records: &Records<P, V>, block: u64, free_percent: u64) -> u64 {
    let units = units_of_block(records);
    let percent = records.pages().reuse().emptied_at_percent(free_percent);
    let free = records.space().blocks().free_units(block).map_or(0, u64::from);
    if free < units && free * 100 >= units * percent { free } else { 0 }
}

/// Whether emptying blocks can leave fewer of them: else the same records would be moved in each pass.
/// When there are no fresh blocks, the space of retired records in logs is needed in any case.
fn can_free_a_block<P: Pmem, V: Pages>(records: &Records<P, V>, free_percent: u32) -> bool {
    let used = 0..records.pool().used_blocks();
    let free = used.map(|block| free_if_worth(records, block, u64::from(free_percent)));
    records.space().blocks().is_starved() || free.sum::<u64>() >= units_of_block(records)
}

/// Units for records of the last blocks: the free ones in the other blocks.
fn free_room<P: Pmem, V: Pages>(records: &Records<P, V>) -> u64 {
    (0..records.pool().used_blocks()).map(|block| room_of_block(records, block)).sum()
}

/// Units for new records in a block that no session fills.
fn room_of_block<P: Pmem, V: Pages>(records: &Records<P, V>, block: u64) -> u64 {
    let free = records.space().blocks().free_units(block).map_or(0, u64::from);
    records.pages().reuse().room(free, units_of_block(records))
}

fn units_of_block<P: Pmem, V: Pages>(records: &Records<P, V>) -> u64 {
    u64::from(records.pages().units_per_block())
}
