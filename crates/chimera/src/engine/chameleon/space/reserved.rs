//! What is reserved in a pool that is nearly full, and when.

use chimera_pmem::Pmem;

use super::Space;
use crate::engine::chameleon::records::Records;
use crate::engine::chameleon::shape::{LAST_LOAD_PERCENT, Shape};
use crate::engine::chameleon::{TABLE, blocks_for};
use crate::index::probing_table::{SLOTS_UNIT, TABLE_ALIGN, slots_for};
use crate::pool::runs::Run;
use crate::sync::{MutexGuard, lock_relaxing};
use crate::types::error::Result;

/// Room is reserved when fewer fresh blocks are left than so many times what is reserved.
const RESERVE_TIMES: u64 = 4;

/// What is reserved of runs for tables.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    /// The reserved run.
    pub(super) run: Option<Run>,
    /// The length of the longest last table.
    pub(super) table_blocks: u32,
    /// The pool is nearly full, and all was reserved since.
    is_nearly_full: bool,
}

impl<P: Pmem> Space<P> {
    pub(super) fn lock_reserved(&self) -> MutexGuard<'_, Reserved> {
        lock_relaxing(&self.reserved, &*self.pool.environment)
    }

    /// Blocks of a run for a last table of so many slots.
    pub(super) fn blocks_for_last(&self, slots: u32) -> u32 {
        blocks_for(&self.pool, Shape::table_bytes(slots) + TABLE_ALIGN)
    }

    /// Whether the pool is nearly full, so that a part of it is reserved, or was.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.lock_reserved().is_nearly_full
    }

    /// Whether a run is reserved for a last table.
    pub(crate) fn has_reserved(&self) -> bool {
        self.lock_reserved().run.is_some()
    }

    /// Reserves room if there is little, or gives it back if there is much. Whether room is reserved that was not before.
    pub(crate) fn reserve(&self, records: &Records<P>) -> bool {
        let mut reserved = self.lock_reserved();
        let entries = self.shape.bypass_slots() + self.shape.memtable_slots;
        let first = slots_for(entries.into(), LAST_LOAD_PERCENT).unwrap_or(SLOTS_UNIT);
        let first_blocks = self.blocks_for_last(first);
        reserved.table_blocks = reserved.table_blocks.max(first_blocks);
        let run_blocks = u64::from(self.log_run_blocks);
        // Each shard may have to be merged, to a table that has no room in the place of its last one, and is longer by all that
        // may lie above it.
        let little = RESERVE_TIMES * (u64::from(reserved.table_blocks) + 2 * run_blocks)
            + u64::from(self.shape.shards()) * u64::from(first_blocks)
            + self.runs.last_blocks();
        let fresh = self.pool.fresh_blocks();
        if fresh >= 2 * little {
            if reserved.is_nearly_full {
                self.release_all(&mut reserved, records);
            }
        } else if fresh < little || reserved.run.is_some() {
            let is_reserved = self.reserve_all(&mut reserved, records);
            records.log().keep_runs(reserved.is_nearly_full && !is_reserved);
            let is_new = is_reserved && !reserved.is_nearly_full;
            reserved.is_nearly_full |= is_reserved;
            return is_new;
        }
        false
    }

    fn reserve_all(&self, reserved: &mut Reserved, records: &Records<P>) -> bool {
        // The longest part first: the others would cut it up.
        let blocks = reserved.table_blocks;
        let has_run = self.reserve_run(reserved, blocks).is_ok();
        let has_runs = records.reserve_runs();
        has_run && has_runs
    }

    /// Makes the reserved run as long as that.
    pub(super) fn reserve_run(&self, reserved: &mut Reserved, blocks: u32) -> Result<()> {
        if reserved.run.as_ref().is_some_and(|run| run.blocks() >= blocks) {
            return Ok(());
        }
        let longer = self.pool.take_bare_run(TABLE, blocks)?;
        match reserved.run.replace(longer) {
            Some(shorter) => self.pool.free_run(shorter),
            None => Ok(()),
        }
    }

    /// Borrows the reserved run, if it has room for so many slots.
    pub(super) fn borrow(&self, slots: u32) -> Option<Run> {
        let blocks = self.blocks_for_last(slots);
        self.lock_reserved().run.take_if(|run| run.blocks() >= blocks)
    }

    /// Gives back the reserved run. There may be another one meanwhile.
    pub(crate) fn give_back(&self, run: Run) -> Result<()> {
        match self.lock_reserved().run.replace(run) {
            Some(other) => self.pool.free_run(other),
            None => Ok(()),
        }
    }

    /// Gives all that is reserved to others.
    pub(crate) fn release(&self, records: &Records<P>) {
        self.release_all(&mut self.lock_reserved(), records);
    }

    fn release_all(&self, reserved: &mut Reserved, records: &Records<P>) {
        records.log().keep_runs(false);
        reserved.is_nearly_full = false;
        if let Some(Err(error)) = reserved.run.take().map(|run| self.pool.free_run(run)) {
            log::error!("a run stays in use: {error}");
        }
        records.leave_runs();
    }
}
