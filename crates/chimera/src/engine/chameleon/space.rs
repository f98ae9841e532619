//! Room in a full pool: what is held back, so that deletes, and compactions that make room, can go on.
//!
//! # What is held, once the pool has few fresh blocks left
//! - *Ballast*: a run that nothing leads to, as long as the longest last table. A compaction that finds no room for its last
//!   table writes it there, frees the table before, and moves the new one to that place: it is packed more densely, if it
//!   must be. Then the ballast is free for the next one.
//! - Two runs of the log: one for tombstones, one for records that are [collected](super::collect).
//!
//! Nothing of this is written down. A crash leaves a run that no manifest names, and runs of the log without records:
//! opening frees them.
//!
//! And each shard is *backed*: whatever goes to its last table by the next two MemTables fits in the place of that. Where a
//! flush would change that, the shard is folded instead, to a longer table. If there is no room for one, the shard is
//! *closed*: it takes tombstones and copies, and no puts. Room is held while there is enough of it to fold each shard once, and
//! those that are not backed by then are folded at once, before anybody takes another run.
//!
//! # Limits
//! While a part of it is spent, sessions take no run of the pool: what is freed is held first. A delete fails with `PoolFull`
//! only where the pool is too small to hold anything from the start, where a tombstone takes more than a fourth of a run of
//! the log, or where a last table has reached the length of a segment of the pool. Nothing is lost then, and reads go on. A
//! larger capacity helps, or more shards. A file system that is full before the capacity is reached gives no warning, so
//! nothing may be held by then.

use chimera_pmem::Pmem;

use super::shape::{LAST_LOAD_PERCENT, SLOT_BYTES, Shape};
use super::shard::{Locked, Work, Writing};
use super::{Chameleon, TABLE, blocks_for};
use crate::index::persistent::shard_manifest::{ShardTables, TableAt};
use crate::index::probing_table::{Image, PersistentTable, SLOTS_UNIT, TABLE_ALIGN, slots_for};
use crate::pool::runs::Run;
use crate::records::storage_log::{Appended, Appender, NewRecord};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::error::{Error, Result};

/// Where there is little room, so many slots of a last table out of 100 may be in use.
const DENSE_LOAD_PERCENT: u32 = 95;
/// Room is held when fewer fresh blocks are left than so many times what is held.
const HOLD_TIMES: u64 = 4;

/// What a compaction may do with the ballast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spend {
    /// Leave it alone: room for more keys is looked for.
    Growth,
    /// Use it for a moment.
    Nothing,
    /// Keep it.
    Ballast,
}

/// Room for a last table.
#[derive(Debug)]
pub(super) struct LastRoom {
    run: Run,
    pub(super) at: u64,
    pub(super) slots: u32,
    /// It is the ballast.
    is_lent: bool,
}

/// What is held back.
pub(super) struct Space {
    held: Mutex<Held>,
    tombstones: Mutex<Appender>,
    copies: Mutex<Appender>,
    /// Shards were closed that nobody has tried to fold. Whoever backs them holds the lock, so others who take runs wait.
    is_unbacked: Mutex<bool>,
}

#[derive(Debug, Default)]
struct Held {
    ballast: Option<Run>,
    /// The length of the longest last table.
    table_blocks: u32,
    /// The pool has little room, and all was held since.
    is_tight: bool,
}

impl Space {
    pub(super) fn new(tombstones: Appender, copies: Appender) -> Self {
        let [tombstones, copies] = [tombstones, copies].map(Mutex::new);
        Self { held: Mutex::default(), tombstones, copies, is_unbacked: Mutex::default() }
    }
}

impl<P: Pmem> Chameleon<P> {
    fn held(&self) -> MutexGuard<'_, Held> {
        lock_relaxing(&self.space.held, &**self.core.environment())
    }

    fn kept<'a>(&self, appender: &'a Mutex<Appender>) -> MutexGuard<'a, Appender> {
        lock_relaxing(appender, &**self.core.environment())
    }

    // ---- holding -------------------------------------------------------------------------------

    /// A last table has so many bytes: it was found, or made.
    pub(super) fn note_last(&self, bytes: u64) {
        let blocks = blocks_for(&self.core.pool, bytes + TABLE_ALIGN);
        let mut held = self.held();
        held.table_blocks = held.table_blocks.max(blocks);
    }

    /// Holds room back if there is little, or gives it back if there is much.
    pub(super) fn hold(&self) {
        if self.core.poison.check().is_err() {
            return;
        }
        let mut is_unbacked = lock_relaxing(&self.space.is_unbacked, &**self.core.environment());
        if self.hold_or_let_go() {
            for number in 0..self.index.shape.shards() {
                let mut writing = self.lock_to_look(number);
                writing.is_closed = !self.is_backed(number);
            }
            *is_unbacked = true;
        }
        if std::mem::take(&mut *is_unbacked) {
            self.back_shards();
        }
    }

    /// Folds shards that are not backed, while there is room for longer tables. What does not work is left to the next put to
    /// the shard, which is refused then.
    fn back_shards(&self) {
        for number in 0..self.index.shape.shards() {
            let is_closed = self.lock_to_look(number).is_closed;
            if is_closed && let Err(error) = self.fold(number, Spend::Growth) {
                log::debug!("shard {number} takes no puts: {error}");
            }
        }
    }

    /// Whether room is held that was not before.
    fn hold_or_let_go(&self) -> bool {
        let mut held = self.held();
        let entries = self.index.shape.bypass_slots() + self.index.shape.memtable_slots;
        let first = slots_for(entries.into(), LAST_LOAD_PERCENT).unwrap_or(SLOTS_UNIT);
        let first_blocks = self.blocks_for_last(first);
        held.table_blocks = held.table_blocks.max(first_blocks);
        let run_blocks = u64::from(self.parameters.log_run_blocks);
        // Each shard may have to be folded, to a table that has no room in the place of its last one, and is longer by all that
        // may lie above it.
        let little = HOLD_TIMES * (u64::from(held.table_blocks) + 2 * run_blocks)
            + u64::from(self.index.shape.shards()) * u64::from(first_blocks)
            + self.table_runs.last_blocks();
        let fresh = self.core.pool.fresh_blocks();
        if fresh >= 2 * little {
            if held.is_tight {
                self.let_go(&mut held);
            }
        } else if fresh < little || held.ballast.is_some() {
            let is_held = self.hold_all(&mut held);
            self.log.keep_runs(held.is_tight && !is_held);
            let is_new = is_held && !held.is_tight;
            held.is_tight |= is_held;
            return is_new;
        }
        false
    }

    /// Whether all that goes to the last table of a shard by the next two MemTables fits in its place.
    pub(super) fn is_backed(&self, shard: u32) -> bool {
        if !self.is_holding() {
            return true;
        }
        let place = self.index.shard(shard);
        let entries_of = |table: TableAt| self.index.entries_of(table);
        let Some(above) = self.index.upper_entries(shard) else { return false };
        let more = above + 2 * self.index.shape.memtable_slots;
        let Some(last) = place.last() else { return false };
        let Some(blocks) = self.table_runs.blocks(last.at) else { return false };
        let entries = place.dumps().chain([last]).map(entries_of).sum::<Option<u32>>();
        let (Some(entries), slots) = (entries, self.slots_in(blocks)) else { return false };
        let all = u64::from(entries) + u64::from(more);
        slots_for(all, DENSE_LOAD_PERCENT).is_some_and(|least| least <= slots)
    }

    fn hold_all(&self, held: &mut Held) -> bool {
        // The longest part first: the others would cut it up.
        let blocks = held.table_blocks;
        let has_ballast = self.hold_ballast(held, blocks).is_ok();
        let appenders = [&self.space.tombstones, &self.space.copies];
        let are_held = appenders.map(|appender| self.log.hold(&mut self.kept(appender)).is_ok());
        has_ballast && are_held == [true, true]
    }

    /// Makes the ballast as long as that.
    fn hold_ballast(&self, held: &mut Held, blocks: u32) -> Result<()> {
        if held.ballast.as_ref().is_some_and(|ballast| ballast.blocks() >= blocks) {
            return Ok(());
        }
        let longer = self.core.pool.take_bare_run(TABLE, blocks)?;
        match held.ballast.replace(longer) {
            Some(shorter) => self.core.pool.free_run(shorter),
            None => Ok(()),
        }
    }

    /// Leaves runs that have hardly any room, so that they can be freed.
    pub(super) fn leave_full(&self) {
        for appender in [&self.space.tombstones, &self.space.copies] {
            if self.kept(appender).room() < self.run_bytes() / 4 {
                self.leave(appender);
            }
        }
    }

    /// Gives back all that is held.
    pub(super) fn release(&self) {
        if self.core.poison.check().is_err() {
            return;
        }
        self.let_go(&mut self.held());
        self.log.seal_left();
        if let Err(error) = self.log.free_ready() {
            log::error!("runs of the log stay in use: {error}");
        }
    }

    fn let_go(&self, held: &mut Held) {
        self.log.keep_runs(false);
        held.is_tight = false;
        if let Some(Err(error)) = held.ballast.take().map(|run| self.core.pool.free_run(run)) {
            log::error!("a run stays in use: {error}");
        }
        self.leave(&self.space.tombstones);
        self.leave(&self.space.copies);
    }

    /// Leaves the run that records were collected to for others, unless it is held.
    pub(super) fn leave_copies(&self) {
        if !self.is_holding() {
            self.leave(&self.space.copies);
        }
    }

    fn leave(&self, appender: &Mutex<Appender>) {
        let mut appender = self.kept(appender);
        self.log.end(&mut appender);
        *appender = self.log.begin_keeper();
    }

    /// Whether the pool has little room, so that a part of it is held, or was.
    pub(super) fn is_holding(&self) -> bool {
        self.held().is_tight
    }

    /// Whether a run is held for a last table.
    pub(super) fn holds_ballast(&self) -> bool {
        self.held().ballast.is_some()
    }

    // ---- the log -------------------------------------------------------------------------------

    /// Appends a tombstone where the session that `appender` is of has no room.
    ///
    /// # Errors
    /// `PoolFull` when what is held is spent.
    #[cold]
    pub(super) fn append_tombstone(
        &self,
        appender: &mut Appender,
        record: &NewRecord<'_>,
    ) -> Result<Appended> {
        // A session's records are durable in their order, and damage that looks like an end takes the last ones alone.
        self.log.certify(appender);
        let mut kept = self.kept(&self.space.tombstones);
        let appended = self.log.append(&mut kept, record)?;
        // What the session appends elsewhere comes after it.
        self.log.certify(&mut kept);
        Ok(appended)
    }

    /// Appends a record that is collected.
    pub(super) fn append_copy(&self, record: &NewRecord<'_>) -> Result<Appended> {
        self.log.append(&mut self.kept(&self.space.copies), record)
    }

    /// Makes what was collected certain, so that the records it came from may go.
    pub(super) fn certify_copies(&self) {
        self.log.certify(&mut self.kept(&self.space.copies));
    }

    /// Bytes of the runs that were taken for records that are collected, since this was asked last.
    pub(super) fn taken_for_copies(&self) -> u64 {
        self.kept(&self.space.copies).take_taken_bytes()
    }

    /// Bytes of records that can be collected for certain.
    pub(super) fn room_for_copies(&self) -> u64 {
        self.kept(&self.space.copies).room()
    }

    // ---- last tables ---------------------------------------------------------------------------

    /// Blocks of a run for a last table of so many slots.
    fn blocks_for_last(&self, slots: u32) -> u32 {
        blocks_for(&self.core.pool, Shape::table_bytes(slots) + TABLE_ALIGN)
    }

    /// Slots of a last table that fits in a run of so many blocks.
    fn slots_in(&self, blocks: u32) -> u32 {
        let bytes = u64::from(blocks) * self.core.pool.map.block_bytes;
        let around = PersistentTable::bytes_of(0) + 2 * TABLE_ALIGN;
        let slots = bytes.saturating_sub(around) / u64::from(SLOT_BYTES);
        slots.min(u32::MAX.into()) as u32 / SLOTS_UNIT * SLOTS_UNIT
    }

    /// Room for a last table with so many entries, in the place of `old`. None for one without any, unless it is to back its
    /// shard.
    ///
    /// # Errors
    /// `PoolFull`, with nothing changed.
    pub(super) fn room_for_last(
        &self,
        entries: u32,
        old: Option<TableAt>,
        spend: Spend,
    ) -> Result<Option<LastRoom>> {
        let is_holding = self.is_holding();
        // Where there is little room, a table without entries backs a shard.
        if entries == 0 && !(is_holding && spend == Spend::Growth) {
            return Ok(None);
        }
        // Backed for some time, if there is room for that, or just so.
        let memtables = if is_holding { [0, 2, 4] } else { [0; 3] };
        let [least, backed, long] = memtables.map(|count| {
            let entries = entries.saturating_add(count * self.index.shape.memtable_slots);
            slots_for(entries.into(), DENSE_LOAD_PERCENT)
        });
        let usual = slots_for(entries.into(), LAST_LOAD_PERCENT).max(long);
        let (Some(wanted), Some(least), Some(backed)) = (usual, least, backed) else {
            let reason = "a shard has more keys than a table can have: use more shards".to_owned();
            return Err(Error::PoolFull { reason });
        };
        let full = match self.take_last(wanted) {
            Err(Error::PoolFull { .. }) if spend == Spend::Growth && backed < wanted => {
                return self.take_last(backed).map(Some);
            }
            Err(error @ Error::PoolFull { .. }) if spend != Spend::Growth => error,
            taken => return taken.map(Some),
        };
        let old = old.and_then(|old| self.table_runs.blocks(old.at));
        let fitting = old.map_or(0, |blocks| wanted.min(self.slots_in(blocks)));
        if fitting >= least
            && let Some(run) = self.lend(fitting)
        {
            return Ok(Some(self.last_room(run, fitting, true)));
        }
        match (spend, self.lend(least)) {
            (Spend::Ballast, Some(run)) => {
                let slots = wanted.min(self.slots_in(run.blocks()));
                Ok(Some(self.last_room(run, slots, false)))
            }
            (_, Some(run)) => self.put_back(run).and(Err(full)),
            (_, None) => Err(full),
        }
    }

    fn last_room(&self, run: Run, slots: u32, is_lent: bool) -> LastRoom {
        let at = self.core.pool.run_bytes(&run).offset().next_multiple_of(TABLE_ALIGN);
        LastRoom { run, at, slots, is_lent }
    }

    /// Takes a run for a last table of so many slots. The ballast is as long, if there is one.
    fn take_last(&self, slots: u32) -> Result<LastRoom> {
        let blocks = self.blocks_for_last(slots);
        let run = self.core.pool.take_bare_run(TABLE, blocks)?;
        let mut held = self.held();
        held.table_blocks = held.table_blocks.max(blocks);
        if held.ballast.is_some()
            && let Err(error) = self.hold_ballast(&mut held, blocks)
        {
            self.core.pool.free_run(run)?;
            return Err(error);
        }
        Ok(self.last_room(run, slots, false))
    }

    /// The ballast, if it has room for so many slots.
    fn lend(&self, slots: u32) -> Option<Run> {
        let blocks = self.blocks_for_last(slots);
        self.held().ballast.take_if(|ballast| ballast.blocks() >= blocks)
    }

    /// Frees the last table that was `before`, now that there is another one; and moves that, if it is in the ballast.
    pub(super) fn settle_last(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        flushed: Option<&Locked<'_, Writing>>,
        (before, room): (ShardTables, Option<LastRoom>),
        image: &mut Image,
    ) -> Result<()> {
        for table in before.dumps.into_iter().flatten().chain(before.last) {
            if let Some(run) = self.table_runs.take(table.at) {
                self.core.pool.free_run(run)?;
            }
        }
        let Some(LastRoom { run, at, slots, is_lent }) = room else { return Ok(()) };
        if !is_lent {
            self.table_runs.put(at, run);
            return Ok(());
        }
        let Ok(place) = self.core.pool.take_bare_run(TABLE, self.blocks_for_last(slots)) else {
            // Somebody was faster: the ballast is spent.
            self.table_runs.put(at, run);
            return Ok(());
        };
        let room = self.last_room(place, slots, false);
        let tables = self.write_last(shard, work, Some(&room), image);
        self.put_in_force(shard, work, tables);
        self.set_tables(shard, work, flushed, &tables);
        self.table_runs.put(room.at, room.run);
        self.core.pool.pmem.withdrawn(self.core.pool.run_bytes(&run));
        self.put_back(run)
    }

    /// Puts the ballast back. There may be another one meanwhile.
    fn put_back(&self, run: Run) -> Result<()> {
        match self.held().ballast.replace(run) {
            Some(other) => self.core.pool.free_run(other),
            None => Ok(()),
        }
    }

    /// Makes readers look at other tables.
    fn set_tables(
        &self,
        shard: u32,
        work: &Locked<'_, Work>,
        flushed: Option<&Locked<'_, Writing>>,
        tables: &ShardTables,
    ) {
        let place = self.index.shard(shard);
        if let Some(writing) = flushed {
            place.change(work, writing, |place| place.set_tables(tables));
        } else {
            let writing = self.lock_to_look(shard);
            place.change(work, &writing, |place| place.set_tables(tables));
        }
    }

    /// Makes a new last table of all that a shard has, the MemTable included. Puts to the shard wait.
    ///
    /// # Errors
    /// When there is no room, or a table or a record is damaged. Nothing has changed.
    ///
    /// # Cost
    /// All tables of the shard.
    pub(super) fn fold(&self, shard: u32, spend: Spend) -> Result<()> {
        self.fold_locked(shard, &mut self.lock_work(shard), spend)
    }

    /// As [`fold`](Self::fold), with the tables of the shard locked.
    pub(super) fn fold_locked(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        spend: Spend,
    ) -> Result<()> {
        self.complete_bypass(shard, work)?;
        let _permit = self.budget.wait(&**self.core.environment());
        let mut writing = self.lock_to_look(shard);
        let is_flat = if self.index.has_bypass() {
            self.index.bypass(shard).is_empty()
        } else {
            work.current.tables.levels.iter().all(|level| level.tables == 0)
        };
        if is_flat && self.index.memtable(shard).is_empty() && spend != Spend::Growth {
            return Ok(());
        }
        // No table refers to what is not durable.
        self.log.sync_all();
        self.compact_last(shard, work, Some(&mut writing), spend)?;
        writing.is_closed = !self.is_backed(shard);
        Ok(())
    }
}
