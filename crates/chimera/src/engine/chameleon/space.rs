//! [`Space`]: runs of blocks for tables, and what becomes of them in a full pool.
//!
//! # The reserve
//! [`reserve`] states what the pool has in [reserve](crate::pool::Reserve): a run of the log for tombstones, one for records
//! that are [collected](super::collector), and a run for a last table, as long as the longest one. A compaction that finds no
//! other room for its last table writes it to a run of the reserve, frees the table before, and moves the new one to that
//! place: it is packed more densely, if it must be. So the run is free again for the next one. A crash in between leaves a
//! run that no manifest names, which opening frees.
//!
//! # Growth room
//! A last table that does not fit into the place of the one before stays in the reserve. So each shard has *growth room* once
//! the pool is nearly full: the place of its last table holds what its next two MemTables add. Where a flush would change that,
//! the whole shard is merged instead, to a longer table. If there is no room for one, the shard *refuses puts*: it takes
//! tombstones and copies. The pool is nearly full while there are still enough fresh blocks to merge each shard once, and
//! shards without growth room by then are merged at once.
//!
//! # Limits
//! A delete fails with `PoolFull` only where the pool has never had room for its reserve and growth room, where the capacity was
//! lowered below what is used and the reserve, where a tombstone takes more than a fourth of a run of the log, or where a last
//! table has reached the length of a segment of the pool. Nothing is lost then, and reads go on. A larger capacity helps, or
//! more shards.

mod table_runs;

use std::sync::Arc;

use chimera_pmem::Pmem;

use super::runs::{LEVEL, TABLE, blocks_for};
use super::shape::{LAST_LOAD_PERCENT, SLOT_BYTES, Shape};
use super::shards::Shards;
use crate::index::persistent::shard_manifest::{ShardTables, TableAt};
use crate::index::probing_table::{PersistentTable, SLOTS_UNIT, TABLE_ALIGN, slots_for};
use crate::pool::runs::Run;
use crate::pool::{Pool, Purpose, Reserve};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::types::error::{Error, Result};
use table_runs::TableRuns;

/// Where there is little room, so many slots of a last table out of 100 may be in use.
const DENSE_LOAD_PERCENT: u32 = 95;

/// The pool is nearly full when its fresh blocks are fewer than so many times its reserve, and what merging each shard takes.
const RESERVE_TIMES: u64 = 4;

/// The reserve of a pool with runs of the log and a longest last table of so many blocks.
fn reserve(log_run_blocks: u32, table_blocks: u32) -> Reserve {
    Reserve { delete: log_run_blocks, reclaim: log_run_blocks, merge: table_blocks }
}

/// What room is needed for, which says whether a last table may lie in the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// More keys: it may not.
    Growth,
    /// Work that makes room: until it is moved.
    Upkeep,
    /// A delete, or a write that was acknowledged before: it may stay there.
    Delete,
}

/// Room for a last table.
#[derive(Debug)]
pub(super) struct LastRoom {
    pub(super) run: Run,
    pub(super) at: u64,
    pub(super) slots: u32,
    /// It is of the reserve: the table is to be moved to the place of the one before.
    pub(super) is_borrowed: bool,
}

/// Runs of blocks for tables.
pub(super) struct Space<P: Pmem> {
    pool: Arc<Pool<P>>,
    shape: Shape,
    log_run_blocks: u32,
    runs: TableRuns,
    is_nearly_full: AtomicBool,
}

impl<P: Pmem> Space<P> {
    pub(super) fn new(pool: Arc<Pool<P>>, shape: Shape, log_run_blocks: u32) -> Self {
        let (runs, is_nearly_full) = <(TableRuns, AtomicBool)>::default();
        Self { pool, shape, log_run_blocks, runs, is_nearly_full }
    }

    // ---- a full pool ---------------------------------------------------------------------------

    /// Sets the reserve, in a store whose longest last table has so many bytes: once all of them are known.
    pub(super) fn set_reserve(&self, longest_bytes: u64) {
        let longest = blocks_for(&self.pool, longest_bytes + TABLE_ALIGN);
        self.pool.set_reserve(reserve(self.log_run_blocks, longest.max(self.first_blocks())));
    }

    /// Blocks of the first last table of a shard.
    fn first_blocks(&self) -> u32 {
        let entries = self.shape.bypass_slots() + self.shape.memtable_slots;
        let slots = slots_for(entries.into(), LAST_LOAD_PERCENT).unwrap_or(SLOTS_UNIT);
        self.blocks_for_last(slots)
    }

    /// Whether the pool is nearly full.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.is_nearly_full.load(Ordering::Relaxed)
    }

    /// Looks whether the pool is nearly full by now. Whether it has become so.
    pub(crate) fn becomes_nearly_full(&self) -> bool {
        // Each shard may have to be merged, to a table that has no room in the place of its last one, and is longer by all that
        // may lie above it.
        let little = RESERVE_TIMES * self.pool.reserve_blocks()
            + u64::from(self.shape.shards()) * u64::from(self.first_blocks())
            + self.runs.last_blocks();
        let fresh = self.pool.fresh_blocks();
        if fresh < little {
            return !self.is_nearly_full.swap(true, Ordering::Relaxed);
        }
        if fresh >= 2 * little {
            self.is_nearly_full.store(false, Ordering::Relaxed);
        }
        false
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

    /// Frees the room of levels of a shard, which no manifest names any more.
    pub(super) fn free_levels(&self, before: &ShardTables) -> Result<()> {
        for run in before.levels.iter().filter_map(|level| self.runs.take(level.at)) {
            self.pool.free_run(run)?;
        }
        Ok(())
    }

    // ---- last tables ---------------------------------------------------------------------------

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
        let full = match self.take_last(wanted, need) {
            Err(Error::PoolFull { .. }) if need == Need::Growth && enough < wanted => {
                return self.take_last(enough, need).map(Some);
            }
            Err(error @ Error::PoolFull { .. }) if need != Need::Growth => error,
            taken => return taken.map(Some),
        };
        let old = old.and_then(|old| self.runs.blocks(old.at));
        let fitting = old.map_or(0, |blocks| wanted.min(self.slots_in(blocks)));
        if fitting >= least
            && let Some(run) = self.take_of_reserve(fitting)
        {
            return Ok(Some(self.last_room(run, fitting, true)));
        }
        // It does not fit there, so it would stay in the reserve.
        let mut staying = [wanted, least].into_iter().filter(|_| need == Need::Delete);
        let stays = staying.find_map(|slots| Some((self.take_of_reserve(slots)?, slots)));
        stays.map(|(run, slots)| Some(self.last_room(run, slots, false))).ok_or(full)
    }

    fn last_room(&self, run: Run, slots: u32, is_borrowed: bool) -> LastRoom {
        LastRoom { at: self.start_of(&run), run, slots, is_borrowed }
    }

    /// Blocks of a run for a last table of so many slots.
    fn blocks_for_last(&self, slots: u32) -> u32 {
        blocks_for(&self.pool, Shape::table_bytes(slots) + TABLE_ALIGN)
    }

    /// Takes a run for a last table of so many slots, and leaves the run for the next one.
    fn take_last(&self, slots: u32, need: Need) -> Result<LastRoom> {
        let purpose = if need == Need::Growth { Purpose::Put } else { Purpose::Delete };
        let run = self.pool.take_replaced_run(purpose, TABLE, self.blocks_for_last(slots))?;
        Ok(self.last_room(run, slots, false))
    }

    /// Takes a run for a last table of so many slots, also of the reserve.
    fn take_of_reserve(&self, slots: u32) -> Option<Run> {
        self.pool.take_bare_run_for(Purpose::Merge, TABLE, self.blocks_for_last(slots)).ok()
    }

    /// Takes the place of the table before, which was just freed, for a last table of so many slots that was written to the
    /// reserve. None where another session was faster.
    pub(super) fn take_place(&self, slots: u32) -> Option<LastRoom> {
        self.take_of_reserve(slots).map(|run| self.last_room(run, slots, false))
    }
}
