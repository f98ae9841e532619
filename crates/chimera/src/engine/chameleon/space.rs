//! [`Space`]: runs of blocks for tables, and room in a full pool: what is reserved, so that deletes, and compactions that make
//! room, can go on.
//!
//! # What is reserved, once the pool has few fresh blocks left
//! - A *reserved run* that no manifest names, as long as the longest last table. A compaction that finds no room for its last
//!   table borrows it, frees the table before, and moves the new one to that place: it is packed more densely, if it must be.
//!   Then the reserved run is free for the next one.
//! - Two runs of the log: one for tombstones, one for records that are [collected](super::collector).
//!
//! Nothing of this is written down. A crash leaves a run that no manifest names, and runs of the log without records:
//! opening frees them.
//!
//! And each shard has *growth room*: the place of its last table holds what its next two MemTables add.
//! Where a flush would change that, the whole shard is merged instead, to a longer table. If there is no room for one, the
//! shard *refuses puts*: it takes tombstones and copies. Room is reserved while there is enough of it to merge each shard once, and
//! those without growth room by then are merged at once, before anybody takes another run.
//!
//! # Limits
//! While a part of it is spent, sessions take no run of the pool: what is freed is reserved first. A delete fails with `PoolFull`
//! only where the pool is too small to reserve anything from the start, where a tombstone takes more than a fourth of a run of
//! the log, or where a last table has reached the length of a segment of the pool. Nothing is lost then, and reads go on. A
//! larger capacity helps, or more shards. A file system that is full before the capacity is reached gives no warning, so
//! nothing may be reserved by then.

mod reserved;
mod table_runs;

use std::sync::Arc;

use chimera_pmem::Pmem;

use super::shape::{LAST_LOAD_PERCENT, SLOT_BYTES, Shape};
use super::shards::Shards;
use super::{LEVEL, TABLE, blocks_for};
use crate::index::persistent::shard_manifest::{ShardTables, TableAt};
use crate::index::probing_table::{PersistentTable, SLOTS_UNIT, TABLE_ALIGN, slots_for};
use crate::pool::Pool;
use crate::pool::runs::Run;
use crate::sync::Mutex;
use crate::types::error::{Error, Result};
use reserved::Reserved;
use table_runs::TableRuns;

/// Where there is little room, so many slots of a last table out of 100 may be in use.
const DENSE_LOAD_PERCENT: u32 = 95;

/// What room is needed for, which says what may become of the reserved run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// More keys: it is left alone.
    Growth,
    /// Work that makes room: it is borrowed.
    Upkeep,
    /// A delete, or a write that was acknowledged before: it may be kept.
    Delete,
}

/// Room for a last table.
#[derive(Debug)]
pub(super) struct LastRoom {
    pub(super) run: Run,
    pub(super) at: u64,
    pub(super) slots: u32,
    /// It is the reserved run, which is to be [given back](Space::give_back).
    pub(super) is_borrowed: bool,
}

/// Runs of blocks for tables.
pub(super) struct Space<P: Pmem> {
    pool: Arc<Pool<P>>,
    shape: Shape,
    log_run_blocks: u32,
    runs: TableRuns,
    reserved: Mutex<Reserved>,
}

impl<P: Pmem> Space<P> {
    pub(super) fn new(pool: Arc<Pool<P>>, shape: Shape, log_run_blocks: u32) -> Self {
        let (runs, reserved) = <(TableRuns, Mutex<Reserved>)>::default();
        Self { pool, shape, log_run_blocks, runs, reserved }
    }

    // ---- runs ----------------------------------------------------------------------------------

    /// A run has a table that begins at `at`, or a level.
    pub(super) fn put(&self, at: u64, run: Run) {
        self.runs.put(at, run);
    }

    /// Takes a run for the tables of a level. Where they begin.
    pub(super) fn take_level(&self, level: usize) -> Result<u64> {
        let blocks = blocks_for(&self.pool, self.shape.level_bytes(level));
        Ok(self.put_run(self.pool.take_bare_run(LEVEL, blocks)?))
    }

    /// Takes a run for a dump of so many bytes. Where that begins.
    pub(super) fn take_dump(&self, bytes: u64) -> Result<u64> {
        let blocks = blocks_for(&self.pool, bytes + TABLE_ALIGN);
        Ok(self.put_run(self.pool.take_bare_run(TABLE, blocks)?))
    }

    fn put_run(&self, run: Run) -> u64 {
        let at = self.start_of(&run);
        self.runs.put(at, run);
        at
    }

    /// Where a table in a run begins.
    fn start_of(&self, run: &Run) -> u64 {
        self.pool.run_bytes(run).offset().next_multiple_of(TABLE_ALIGN)
    }

    /// Frees the last table and the dumps of a shard, which are not in force any more.
    pub(super) fn free_lower(&self, before: &ShardTables) -> Result<()> {
        for table in before.dumps.into_iter().flatten().chain(before.last) {
            if let Some(run) = self.runs.take(table.at) {
                self.pool.free_run(run)?;
            }
        }
        Ok(())
    }

    // ---- last tables ---------------------------------------------------------------------------

    /// A last table has so many bytes: it was found, or made.
    pub(super) fn note_last(&self, bytes: u64) {
        let blocks = blocks_for(&self.pool, bytes + TABLE_ALIGN);
        let mut reserved = self.lock_reserved();
        reserved.table_blocks = reserved.table_blocks.max(blocks);
    }

    /// Whether the place of the last table of a shard holds what its next two MemTables add.
    pub(super) fn has_growth_room(&self, shards: &Shards<P>, shard: u32) -> bool {
        if !self.is_nearly_full() {
            return true;
        }
        let place = shards.shard(shard);
        let entries_of = |table: TableAt| shards.entries_of(table);
        let Some(above) = shards.upper_entries(shard) else { return false };
        let more = above + 2 * self.shape.memtable_slots;
        let Some(last) = place.last() else { return false };
        let Some(blocks) = self.runs.blocks(last.at) else { return false };
        let entries = place.dumps().chain([last]).map(entries_of).sum::<Option<u32>>();
        let (Some(entries), slots) = (entries, self.slots_in(blocks)) else { return false };
        let all = u64::from(entries) + u64::from(more);
        slots_for(all, DENSE_LOAD_PERCENT).is_some_and(|least| least <= slots)
    }

    /// Slots of a last table that fits in a run of so many blocks.
    fn slots_in(&self, blocks: u32) -> u32 {
        let bytes = u64::from(blocks) * self.pool.map.block_bytes;
        let around = PersistentTable::bytes_of(0) + 2 * TABLE_ALIGN;
        let slots = bytes.saturating_sub(around) / u64::from(SLOT_BYTES);
        slots.min(u32::MAX.into()) as u32 / SLOTS_UNIT * SLOTS_UNIT
    }

    /// Room for a last table with so many entries, in the place of `old`. None for one without any, unless it is to
    /// give its shard growth room.
    ///
    /// # Errors
    /// `PoolFull`, with nothing changed.
    pub(super) fn room_for_last(
        &self,
        entries: u32,
        old: Option<TableAt>,
        need: Need,
    ) -> Result<Option<LastRoom>> {
        let is_nearly_full = self.is_nearly_full();
        // Where there is little room, a table without entries is growth room.
        if entries == 0 && !(is_nearly_full && need == Need::Growth) {
            return Ok(None);
        }
        // Growth room for some time, if there is space for that, or just enough.
        let memtables = if is_nearly_full { [0, 2, 4] } else { [0; 3] };
        let [least, enough, long] = memtables.map(|count| {
            let entries = entries.saturating_add(count * self.shape.memtable_slots);
            slots_for(entries.into(), DENSE_LOAD_PERCENT)
        });
        let usual = slots_for(entries.into(), LAST_LOAD_PERCENT).max(long);
        let (Some(wanted), Some(least), Some(enough)) = (usual, least, enough) else {
            let reason = "a shard has more keys than a table can have: use more shards".to_owned();
            return Err(Error::PoolFull { reason });
        };
        let full = match self.take_last(wanted) {
            Err(Error::PoolFull { .. }) if need == Need::Growth && enough < wanted => {
                return self.take_last(enough).map(Some);
            }
            Err(error @ Error::PoolFull { .. }) if need != Need::Growth => error,
            taken => return taken.map(Some),
        };
        let old = old.and_then(|old| self.runs.blocks(old.at));
        let fitting = old.map_or(0, |blocks| wanted.min(self.slots_in(blocks)));
        if fitting >= least
            && let Some(run) = self.borrow(fitting)
        {
            return Ok(Some(self.last_room(run, fitting, true)));
        }
        match (need, self.borrow(least)) {
            (Need::Delete, Some(run)) => {
                let slots = wanted.min(self.slots_in(run.blocks()));
                Ok(Some(self.last_room(run, slots, false)))
            }
            (_, Some(run)) => self.give_back(run).and(Err(full)),
            (_, None) => Err(full),
        }
    }

    fn last_room(&self, run: Run, slots: u32, is_borrowed: bool) -> LastRoom {
        LastRoom { at: self.start_of(&run), run, slots, is_borrowed }
    }

    /// Takes a run for a last table of so many slots. The reserved run is as long, if there is one.
    fn take_last(&self, slots: u32) -> Result<LastRoom> {
        let blocks = self.blocks_for_last(slots);
        let run = self.pool.take_bare_run(TABLE, blocks)?;
        let mut reserved = self.lock_reserved();
        reserved.table_blocks = reserved.table_blocks.max(blocks);
        if reserved.run.is_some()
            && let Err(error) = self.reserve_run(&mut reserved, blocks)
        {
            self.pool.free_run(run)?;
            return Err(error);
        }
        Ok(self.last_room(run, slots, false))
    }

    /// Takes the place of the table before, which was just freed, for a last table of so many slots that was written to the
    /// reserved run. None where another session was faster.
    pub(super) fn take_place(&self, slots: u32) -> Option<LastRoom> {
        let run = self.pool.take_bare_run(TABLE, self.blocks_for_last(slots)).ok()?;
        Some(self.last_room(run, slots, false))
    }
}
