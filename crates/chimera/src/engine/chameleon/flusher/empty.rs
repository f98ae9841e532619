//! Where a full MemTable goes (ChameleonDB, sections 2.3 and 2.4).
//!
//! In the normal mode it becomes a table. Otherwise it goes to the bypass index alone, which is then *ahead* of the tables: it
//! has entries that no table has, and a restart replays them. Nothing of a shard that is ahead goes to its upper levels. It goes
//! on to be ahead, whatever the mode is by then, until its bypass index is full and becomes a last table or a dump.
//!
//! In the normal mode a full MemTable goes to the bypass index alone, too, where as many compactions are at work as may be.
//!
//! # While a shard is ahead
//! - No MemTable of the shard becomes a table of an upper level: its flushed version would cover what is in the bypass index
//!   alone.
//! - Upper levels are not compacted: what they have may be superseded by records that only the log has.
//! - A record that a table refers to stays referred to, also where the bypass index has a newer one of its key. After a crash
//!   the table's slot is found first, and its record is read.
//!
//! So a crash leaves the manifest of before the shard was ahead, whose tables are whole, and every later record in the log.
//! Modes may change at any time and at every open. Replay empties full MemTables as the new mode says.

use chimera_pmem::Pmem;

use super::Flusher;
use crate::engine::chameleon::shard::{Ahead, Locked, Work};
use crate::engine::chameleon::space::Need;
use crate::types::error::{Error, Result};

impl<P: Pmem> Flusher<P> {
    /// Empties the MemTable of a shard, as the mode says.
    ///
    /// # Errors
    /// When there is no space for tables, or a table or a record is damaged. The MemTable stays as it is.
    pub(super) fn empty_memtable(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        if self.modes.absorbs(&**self.index().core().environment()) {
            return self.absorb_memtable(shard, work);
        }
        let rather_absorbs = work.ahead.is_some()
            || self.compactor.needs_compaction(work) && self.compactor.is_spent();
        if rather_absorbs
            && self.index().shards().has_bypass()
            && self.bypass_has_room(shard, self.entries_until_full(shard))
        {
            return self.absorb_memtable(shard, work);
        }
        if work.ahead.is_some() {
            let _permit = self.compactor.wait();
            self.compactor.compact_last(shard, work, None, Need::Upkeep)?;
        }
        self.compactor.flush(shard, work)
    }

    /// Puts all that a shard has into tables: into the last one where a flush would take its
    /// [growth room](super::super::space).
    pub(super) fn empty_shard(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        if !self.tables().has_growth_room(shard) {
            return self.compactor.merge_locked(shard, work, Need::Upkeep);
        }
        if work.ahead.is_none() {
            return self.compactor.flush(shard, work);
        }
        self.absorb_memtable(shard, work)?;
        let _permit = self.compactor.wait();
        self.compactor.compact_last(shard, work, None, Need::Upkeep)
    }

    /// Empties the MemTable of a shard into its bypass index alone.
    fn absorb_memtable(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        self.index().complete_bypass(shard, work)?;
        if !self.bypass_has_room(shard, self.entries_until_full(shard)) {
            let _permit = self.compactor.wait();
            self.empty_bypass(shard, work)?;
        }
        self.enter_bypass(shard, work)
    }

    /// As [`absorb_memtable`](Self::absorb_memtable), while the store is opened and there is no space for tables: the bypass
    /// index gets fuller than it would.
    ///
    /// # Errors
    /// When the bypass index has no room either, or a table is damaged.
    pub(crate) fn absorb_in_need(&self, shard: u32) -> Result<()> {
        let (index, shards) = (self.index(), self.index().shards());
        let mut work = index.lock_work(shard);
        index.complete_bypass(shard, &work)?;
        let entries = shards.bypass(shard).len() + shards.memtable(shard).len();
        if !shards.has_bypass() || entries > shards.shape().bypass_slots() {
            let reason = "there is no space for what the log has that is in no table".to_owned();
            return Err(Error::PoolFull { reason });
        }
        self.enter_bypass(shard, &mut work)
    }

    fn enter_bypass(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let (index, shards) = (self.index(), self.index().shards());
        let writing = index.lock_to_look(shard);
        shards.enlarge_bypass(shard, shards.memtable(shard).len(), work, &writing)?;
        work.ahead = Some(Ahead { version: writing.version, records: writing.records });
        // Readers find each entry all the time: in the MemTable, until it is in the bypass index.
        index.absorb(shard, work);
        shards.shard(shard).change(work, &writing, |_| shards.memtable(shard).clear());
        self.tables().note_absorbed();
        Ok(())
    }

    /// Empties the bypass index of a shard, and the levels above the last one.
    ///
    /// # Errors
    /// When there is no space for a table, or one is damaged. Nothing has changed.
    fn empty_bypass(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let dumps = work.current.tables.dumps.iter().flatten().count();
        if self.modes.dumps(dumps, &**self.index().core().environment()) {
            self.compactor.dump(shard, work)
        } else {
            self.compactor.compact_last(shard, work, None, Need::Upkeep)
        }
    }

    /// Entries of a bypass index that is full: of each shard by chance, as those of its MemTable; fewer where there is no memory
    /// for more.
    fn entries_until_full(&self, shard: u32) -> u32 {
        let (shape, shards) = (self.index().shards().shape(), self.index().shards());
        let memtable = self.index().lock_to_look(shard).entries_max;
        let entries = memtable * (shape.bypass_slots() / shape.memtable_slots);
        entries.min(shards.bypass_entries_in_budget(shard).unwrap_or(entries))
    }

    /// Whether the bypass index of a shard has so many entries at most, with those of a full MemTable.
    fn bypass_has_room(&self, shard: u32, entries_max: u32) -> bool {
        let memtable = self.index().lock_to_look(shard).entries_max;
        self.index().shards().bypass(shard).len() + memtable <= entries_max
    }
}
