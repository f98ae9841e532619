//! Space reclamation: records are moved out of blocks that are mostly free, so that the blocks become
//! free, and the last blocks are given back (section 4.6).
//!
//! A pass has two parts. First each block with enough free space is emptied, from the lowest on; its records
//! go where sessions put new ones, to the lowest block with room. Then the last block of the pool is emptied
//! and given back, again and again, as long as there is room for its records below.
//!
//! A record is moved under its key's lock, as an overwrite with the same value, so a crash leaves the same
//! states. It is moved only if the index leads to it, so no update is lost.

use std::ops::Range;

use chimera_pmem::{Operation, Pmem};

use super::write::NewValue;
use super::{Client, Viper, steps};
use crate::engine::shared::maintenance::Step;
use crate::records::block_flags;
use crate::records::lengths::Lengths;
use crate::records::vpage::{Pages, Place, Record};
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

/// The mover of records: one at a time.
#[derive(Default)]
pub(super) struct Mover {
    part: Part,
    client: Client,
    places: Vec<Place>,
    key: Vec<u8>,
}

/// Space reclamation of a store.
#[derive(Default)]
pub(super) struct Reclaim {
    mover: Mutex<Mover>,
    passes: AtomicU64,
    moved_records: AtomicU64,
    moved_bytes: AtomicU64,
    blocks_freed: AtomicU64,
    blocks_given_back: AtomicU64,
}

impl<P: Pmem, V: Pages> Viper<P, V> {
    fn mover(&self) -> MutexGuard<'_, Mover> {
        lock_relaxing(&self.reclaim.mover, &*self.core.pool.environment)
    }

    /// One step of a pass over blocks of which at least so much is free: empties one block at most.
    ///
    /// # Errors
    /// Those of a write. The pass is over then, and no record is lost.
    pub(crate) fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        let mut mover = self.mover();
        mover.client.spare.get_or_insert_default();
        mover.client.keeps_whole = true;
        let free_percent =
            if self.blocks.is_starved() { free_percent.min(STARVED_PERCENT) } else { free_percent };
        let _booked = self.core.book(Operation::Reclaim, mover.client.shared.number);
        let before = self.reclaim.moved_bytes.load(Ordering::Relaxed);
        let outcome = match mover.part {
            Part::Idle => {
                let used = self.core.pool.used_blocks();
                let end = if self.can_free_a_block(free_percent) { used } else { 0 };
                mover.part = Part::Sweep { next: 0, end };
                Ok(true)
            }
            Part::Sweep { next, end } => self.sweep(&mut mover, next..end, u64::from(free_percent)),
            Part::Tail { room } => self.shrink(&mut mover, room),
        };
        let goes_on = match outcome {
            Ok(goes_on) => goes_on,
            // Sessions come first.
            Err(Error::PoolFull { .. }) => false,
            Err(error) => {
                self.end_pass(&mut mover);
                return Err(error);
            }
        };
        if !goes_on {
            self.end_pass(&mut mover);
            self.core.pool.release_storage();
            return Ok(Step::Done);
        }
        let moved_bytes = self.reclaim.moved_bytes.load(Ordering::Relaxed) - before;
        Ok(Step::More { moved_bytes })
    }

    /// Makes the mover, unless it is at work, give back the block it fills: there is no other.
    /// Whether there is a reason to look again: it did, or is at work.
    pub(super) fn make_mover_leave(&self) -> bool {
        let Ok(mut mover) = self.reclaim.mover.try_lock() else { return true };
        let has_blocks = mover.client.has_blocks();
        mover.client.leave(self);
        has_blocks
    }

    fn end_pass(&self, mover: &mut Mover) {
        mover.client.leave(self);
        mover.part = Part::Idle;
        self.reclaim.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives back the block that the mover holds.
    pub(crate) fn end_reclaim(&self) {
        let mut mover = self.mover();
        mover.client.leave(self);
        self.leave_spare(&mut mover);
        mover.part = Part::Idle;
    }

    /// Units that are free in a block, if they are enough for it to be emptied; else 0.
    fn free_if_worth(&self, block: u64, free_percent: u64) -> u64 {
        let units = self.units_of_block();
        let percent = self.pages.reuse().emptied_at_percent(free_percent);
        let free = self.blocks.free_units(block).map_or(0, u64::from);
        if free < units && free * 100 >= units * percent { free } else { 0 }
    }

    /// Whether emptying blocks can leave fewer of them: else the same records would be moved in each pass.
    /// When there are no fresh blocks, the space of retired records in logs is needed in any case.
    fn can_free_a_block(&self, free_percent: u32) -> bool {
        let used = 0..self.core.pool.used_blocks();
        let free = used.map(|block| self.free_if_worth(block, u64::from(free_percent)));
        self.blocks.is_starved() || free.sum::<u64>() >= self.units_of_block()
    }

    /// Empties the next block with enough free units.
    fn sweep(&self, mover: &mut Mover, blocks: Range<u64>, free_percent: u64) -> Result<bool> {
        let (end, units) = (blocks.end, self.units_of_block());
        let used = self.core.pool.used_blocks();
        let mut blocks = blocks.start..end.min(used);
        let Some(block) = blocks.find(|block| self.free_if_worth(*block, free_percent) > 0) else {
            mover.client.leave(self);
            let room = self.free_room();
            mover.part = Part::Tail { room };
            return Ok(room * 100 >= used * units * free_percent);
        };
        mover.part = Part::Sweep { next: block + 1, end };
        if self.claim(block) {
            let gain = u64::from(self.pages.gain(&self.core.pool, block));
            let moved = if gain * 100 >= units * free_percent {
                self.empty_block(mover, block)
            } else {
                Ok(())
            };
            self.leave_or_keep(mover, block);
            moved?;
        }
        Ok(true)
    }

    /// Makes the mover the owner of a block that no session fills, and starts loading it: its records are met
    /// one after the other.
    fn claim(&self, block: u64) -> bool {
        let is_claimed = self.blocks.claim(block);
        if is_claimed {
            let map = &self.core.pool.map;
            self.core
                .pool
                .pmem
                .prefetch(self.core.pool.extent(map.block_at(block), map.block_bytes));
        }
        is_claimed
    }

    /// Gives a block back for sessions to fill. The mover keeps an empty one where it cannot go on without.
    fn leave_or_keep(&self, mover: &mut Mover, block: u64) {
        let spare = mover.client.spare.get_or_insert_default();
        if self.pages.reuse().needs_empty_block()
            && spare.0.is_none()
            && self.pages.is_empty(&self.core.pool, block)
        {
            spare.0 = Some(block);
        } else {
            self.leave_block(block, None);
        }
    }

    fn leave_spare(&self, mover: &mut Mover) {
        if let Some(block) = mover.client.spare.take().and_then(|spare| spare.0) {
            self.leave_block(block, None);
        }
    }

    /// Units for records of the last blocks: the free ones in the other blocks.
    fn free_room(&self) -> u64 {
        (0..self.core.pool.used_blocks()).map(|block| self.room_of_block(block)).sum()
    }

    /// Units for new records in a block that no session fills.
    fn room_of_block(&self, block: u64) -> u64 {
        let free = self.blocks.free_units(block).map_or(0, u64::from);
        self.pages.reuse().room(free, self.units_of_block())
    }

    /// Gives the last block back, if its records have room in others.
    fn shrink(&self, mover: &mut Mover, room: u64) -> Result<bool> {
        let Some(last) = self.core.pool.used_blocks().checked_sub(1) else { return Ok(false) };
        let own_room = self.room_of_block(last);
        if mover.client.spare.is_some_and(|spare| spare.0 == Some(last)) {
            self.leave_spare(mover);
        }
        if !self.claim(last) {
            return Ok(false);
        }
        mover.places.clear();
        self.pages.places(&self.core.pool, last, &mut mover.places);
        // A record with several chunks here comes once for each.
        mover.places.dedup();
        let records =
            mover.places.iter().filter_map(|place| self.pages.decode(&self.core.pool, place));
        let need: u64 = records.map(|record| self.units_of(&record)).sum();
        // Two blocks more, for both kinds of pages.
        let left = room.saturating_sub(own_room);
        if need > 0 && left < need + 2 * self.units_of_block() {
            self.leave_block(last, None);
            return Ok(false);
        }
        let moved = self.empty_block(mover, last);
        if moved.is_err() || !self.give_back(last) {
            self.leave_block(last, None);
            return moved.map(|()| false);
        }
        mover.part = Part::Tail { room: left - need };
        Ok(true)
    }

    fn units_of_block(&self) -> u64 {
        u64::from(self.pages.units_per_block())
    }

    /// Units of a record, with all its chunks.
    fn units_of(&self, record: &Record) -> u64 {
        let spilling = self.pages.spilling();
        let chunks =
            spilling.map_or_else(Vec::new, |pages| pages.chunks_of(&self.core.pool, record));
        let of_chunks: u64 = chunks.iter().map(|(_, units)| u64::from(*units)).sum();
        let Lengths { key_bytes, beside_bytes, .. } = record.lengths;
        of_chunks + u64::from(self.pages.units_of(key_bytes as usize, beside_bytes as usize))
    }

    /// Moves the records of a block that the mover has claimed, and marks it as free if none is left.
    fn empty_block(&self, mover: &mut Mover, block: u64) -> Result<()> {
        let mut places = std::mem::take(&mut mover.places);
        places.clear();
        self.pages.places(&self.core.pool, block, &mut places);
        for place in &places {
            if self.decode_with_key(place, &mut mover.key).is_some() {
                self.index.prefetch_to_change(self.core.hash.of(&mover.key));
            }
        }
        let moved = places.iter().try_for_each(|place| self.move_record(mover, place));
        mover.places = places;
        moved?;
        let is_empty =
            self.pages.is_empty(&self.core.pool, block) && !self.blocks.is_damaged(block);
        if is_empty && block_flags::read(&self.core.pool, block)? != block_flags::FREE {
            self.empty(block, block_flags::FREE)?;
            self.reclaim.blocks_freed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes the record at a place anew, if the index leads to it.
    fn move_record(&self, mover: &mut Mover, place: &Place) -> Result<()> {
        let Mover { client, key, .. } = mover;
        let Some(before) = self.decode_with_key(place, key) else { return Ok(()) };
        // Whatever was read: only the index says whether it is a key of this place.
        let hash = self.core.hash.of(key);
        let _key = self.keys.lock(hash, &self.core.poison)?;
        let is_any_moved = self.core.pool.pmem.skips(steps::MOVE_CURRENT);
        if !self.index.contains_exact(hash, place.location()) && !is_any_moved {
            return Ok(());
        }
        let Some(existing) = self.find_locked(hash, key, |_| {})? else { return Ok(()) };
        // Under the lock nothing changes any more what was decoded.
        let record = if is_any_moved { &before } else { &existing.record };
        let mut value = std::mem::take(&mut client.shared.value);
        // A damaged value must not get a checksum that is right.
        let is_sound = record.place == *place
            && self.pages.read_value(&self.core.pool, record, &mut value).is_some_and(|value| {
                record.verify(hash, Some(value)).is_ok()
                    || self.core.pool.pmem.skips(steps::MOVE_CHECK)
            });
        let moved = if is_sound {
            let value = NewValue { bytes: &value, unchecked: record.unchecked() };
            self.write(client, hash, key, value, Some(existing)).map(drop)
        } else {
            Ok(())
        };
        let bytes = (key.len() + value.len()) as u64;
        client.shared.value = value;
        moved?;
        if is_sound {
            self.reclaim.moved_records.fetch_add(1, Ordering::Relaxed);
            self.reclaim.moved_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives a block back to the pool, if it is durably empty and the last one; `false` when it stays.
    fn give_back(&self, block: u64) -> bool {
        // Who verifies a block under these locks must not meet one whose storage has gone.
        let _pages = self.lock_pages(block);
        let is_back = block_flags::read(&self.core.pool, block).ok() == Some(block_flags::FREE)
            && self.pages.is_empty(&self.core.pool, block)
            && !self.blocks.is_damaged(block)
            && self.core.pool.give_back(block, || self.reset_flags(block, 0));
        self.reclaim.blocks_given_back.fetch_add(u64::from(is_back), Ordering::Relaxed);
        is_back
    }

    /// The work that reclamation has done, and the work that is left.
    pub(crate) fn reclaim_stats(&self) -> ReclaimStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let blocks = 0..self.core.pool.used_blocks();
        let free: u64 =
            blocks.filter_map(|block| self.blocks.free_units(block)).map(u64::from).sum();
        let debt_bytes = free * self.core.pool.map.block_bytes / self.units_of_block();
        ReclaimStats {
            debt_bytes,
            passes: of(&self.reclaim.passes),
            moved_records: of(&self.reclaim.moved_records),
            moved_bytes: of(&self.reclaim.moved_bytes),
            blocks_freed: of(&self.reclaim.blocks_freed),
            blocks_given_back: of(&self.reclaim.blocks_given_back),
        }
    }
}
