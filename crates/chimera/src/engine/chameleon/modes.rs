//! Modes: where full MemTables go (ChameleonDB, sections 2.3 and 2.4).
//!
//! In the normal mode a full MemTable becomes a table. Otherwise it goes to the bypass index alone, which is then *ahead* of the
//! tables: it has entries that no table has, and a restart replays them. Nothing of a shard that is ahead goes to its upper
//! levels. It goes on to be ahead, whatever the mode is by then, until its bypass index is full and becomes a last table or a
//! [dump](super::dump).
//!
//! - *Write-Intensive Mode* is an option. A full bypass index becomes a last table.
//! - *Get-Protect Mode* comes and goes with the [latency of gets](super::latency). A full bypass index becomes a dump, if the
//!   shard has fewer of them than it may.
//!
//! In the normal mode a full MemTable goes to the bypass index alone, too, where as many compactions are at work as may be.
//!
//! # While a shard is ahead
//! - No MemTable of the shard becomes a table of an upper level: its flushed version would cover what is in the bypass index
//!   alone.
//! - Upper levels are not compacted: what they have may be superseded by records that only the log has.
//! - A record that a table leads to stays referred to, also where the bypass index has a newer one of its key. After a crash
//!   the table's slot is found first, and its record is read.
//!
//! So a crash leaves the manifest of before the shard was ahead, whose tables are whole, and every later record in the log.
//! Modes may change at any time and at every open. Replay empties full MemTables as the new mode says.
//!
//! # What the log is told
//! - That a record is in a table: when a table that has it, or the MemTable, is in force. Records that were superseded
//!   before are told of then and there.
//! - That nothing refers to a record any more: if a table had it, when a table is in force that has what superseded it.
//!   Until then a restart finds the slot in that table and looks at the record.

use chimera_pmem::{Environment, Pmem};

use super::Chameleon;
use super::latency::GetProtect;
use super::options::{ChameleonOptions, Mode};
use super::shard::{Ahead, Locked, Work};
use super::space::Spend;
use crate::index::persistent::shard_manifest::{DUMPS_MAX, ShardTables};
use crate::index::probing_table::Slot;
use crate::types::error::{Error, Result};

/// What decides where full MemTables go.
#[derive(Debug)]
pub(super) struct Modes {
    write_intensive: bool,
    pub(super) protect: GetProtect,
    dumps_max: usize,
}

impl Modes {
    pub(super) fn of(options: &ChameleonOptions, now_ns: u64) -> Self {
        let threshold = options.get_protect.map(|threshold| threshold.as_nanos() as u64);
        Self {
            write_intensive: options.write_intensive,
            protect: GetProtect::new(threshold, now_ns),
            dumps_max: options.dumps_max.map_or(1, |dumps| dumps as usize).min(DUMPS_MAX),
        }
    }

    /// Whether MemTables go to bypass indexes alone.
    pub(super) fn absorbs(&self, environment: &dyn Environment) -> bool {
        self.write_intensive || self.protects_gets(environment)
    }

    pub(super) fn protects_gets(&self, environment: &dyn Environment) -> bool {
        self.protect.protects(environment)
    }

    /// Dumps that a shard has, at most.
    pub(super) fn dumps_max(&self) -> usize {
        self.dumps_max
    }

    pub(super) fn mode(&self) -> Mode {
        match () {
            () if self.protect.is_on() => Mode::GetProtect,
            () if self.write_intensive => Mode::WriteIntensive,
            () => Mode::Normal,
        }
    }
}

impl<P: Pmem> Chameleon<P> {
    /// Empties the MemTable of a shard, as the mode says.
    ///
    /// # Errors
    /// When there is no space for tables, or a table or a record is damaged. The MemTable stays as it is.
    pub(super) fn empty_memtable(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let environment = &**self.core.environment();
        if self.modes.absorbs(environment) {
            return self.absorb_memtable(shard, work);
        }
        let rather_absorbs =
            work.ahead.is_some() || self.needs_compaction(work) && self.budget.is_spent();
        if rather_absorbs
            && self.index.has_bypass()
            && self.bypass_has_room(shard, self.entries_until_full(shard))
        {
            return self.absorb_memtable(shard, work);
        }
        if work.ahead.is_some() {
            let _permit = self.budget.wait(environment);
            self.compact_last(shard, work, None, Spend::Nothing)?;
        }
        self.flush(shard, work)
    }

    /// Empties the MemTable of a shard into its bypass index alone.
    pub(super) fn absorb_memtable(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        self.complete_bypass(shard, work)?;
        if !self.bypass_has_room(shard, self.entries_until_full(shard)) {
            let _permit = self.budget.wait(&**self.core.environment());
            self.empty_bypass(shard, work)?;
        }
        self.enter_bypass(shard, work);
        Ok(())
    }

    /// As [`absorb_memtable`](Self::absorb_memtable), while the store is opened and there is no space for tables: the bypass
    /// index gets fuller than it would.
    ///
    /// # Errors
    /// When the bypass index has no room either, or a table is damaged.
    pub(super) fn absorb_in_need(&self, shard: u32) -> Result<()> {
        let mut work = self.lock_work(shard);
        self.complete_bypass(shard, &work)?;
        let entries = self.index.bypass(shard).len() + self.index.memtable(shard).len();
        if !self.index.aids.is_bypass() || entries > self.index.shape.bypass_slots() {
            let reason = "there is no space for what the log has that is in no table".to_owned();
            return Err(Error::PoolFull { reason });
        }
        self.enter_bypass(shard, &mut work);
        Ok(())
    }

    fn enter_bypass(&self, shard: u32, work: &mut Locked<'_, Work>) {
        let writing = self.lock_to_look(shard);
        work.ahead = Some(Ahead { version: writing.version, records: writing.records });
        // Readers find each entry all the time: in the MemTable, until it is in the bypass index.
        self.absorb(shard, work);
        self.index.shard(shard).change(work, &writing, |_| self.index.memtable(shard).clear());
        self.counts.absorbed();
    }

    /// Entries of a bypass index that is full: of each shard by chance, as those of its MemTable.
    fn entries_until_full(&self, shard: u32) -> u32 {
        let shape = &self.index.shape;
        let memtable = self.lock_to_look(shard).entries_max;
        memtable * (shape.bypass_slots() / shape.memtable_slots)
    }

    /// Whether the bypass index of a shard has so many entries at most, with those of a full MemTable.
    pub(super) fn bypass_has_room(&self, shard: u32, entries_max: u32) -> bool {
        let memtable = self.lock_to_look(shard).entries_max;
        self.index.bypass(shard).len() + memtable <= entries_max
    }

    /// The bypass index, whose shard the caller has locked, has a newer entry than this one, which it had.
    pub(super) fn superseded(&self, work: &mut Work, old: Slot) {
        let flushed_version = work.current.tables.flushed_version;
        if work.ahead.is_some() && self.is_unflushed(old, flushed_version) {
            // No table will ever lead to it.
            self.tell_flushed(old);
            self.drop_slot(old);
        } else {
            work.superseded.push(old);
        }
    }

    /// Tells the log that tables are in force which have all that the bypass index has. `before` were in force before.
    pub(super) fn tell_of_bypass(&self, shard: u32, work: &mut Work, before: &ShardTables) {
        if work.ahead.take().is_some() {
            // Where no upper level had a table the bypass index had nothing from there.
            let is_all = before.levels.iter().all(|level| level.tables == 0);
            for slot in self.index.bypass(shard).iter() {
                if is_all || self.is_unflushed(slot, before.flushed_version) {
                    self.tell_flushed(slot);
                }
            }
        }
        work.superseded.drain(..).for_each(|slot| self.drop_slot(slot));
    }

    /// Whether no table had a slot of the bypass index, as its record says.
    fn is_unflushed(&self, slot: Slot, flushed_version: u64) -> bool {
        let record = slot.found().and_then(|found| self.log.decode(found.offset));
        record.is_some_and(|record| record.version() > flushed_version)
    }

    fn tell_flushed(&self, slot: Slot) {
        if let Some(found) = slot.found() {
            self.log.flushed(found.offset);
        }
    }
}
