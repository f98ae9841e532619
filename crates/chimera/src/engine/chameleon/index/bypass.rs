//! The bypass index of a shard, made anew after a restart (ChameleonDB, sections 2.2 and 3.3): beside sessions, a shard at a time.
//! Until then readers look at every table of the shard. Where there is no bypass index, helpers of tables are made anew in the
//! same way.

use chimera_pmem::Pmem;

use super::Index;
use crate::engine::chameleon::shard::{Locked, Work};
use crate::index::Resolve;
use crate::index::persistent::shard_manifest::LevelAt;
use crate::index::probing_table::Slot;
use crate::types::error::{Error, Result};

impl<P: Pmem> Index<P> {
    /// Fills the bypass index of a shard, unless it is complete; without one, the helpers of its tables. The caller that
    /// needs it first makes it; others wait.
    ///
    /// # Errors
    /// When a table is damaged. What is in the bypass index by then is right, and not all.
    ///
    /// # Cost
    /// All tables of the shard above the last one.
    pub(crate) fn complete_bypass(&self, shard: u32, work: &Locked<'_, Work>) -> Result<()> {
        if self.shards.shard(shard).is_bypassed() {
            return Ok(());
        }
        #[cfg(feature = "baselines")]
        if !self.shards.has_bypass() {
            self.make_helpers(shard, work)?;
            self.shards.set_bypassed(shard);
            return Ok(());
        }
        // Where a header is damaged, it is found below.
        let uppers = self.shards.upper_tables(shard);
        let entries = uppers.filter_map(|(_, table)| self.shards.entries_of(table)).sum();
        self.shards.enlarge_bypass(shard, entries, work, &self.lock_to_look(shard))?;
        for level in 0..self.shards.shape().upper_levels() {
            let LevelAt { at, tables } = work.current.tables.levels[level];
            for table in (0..tables).rev() {
                let place = self.shards.table_at(level, at, table);
                let table = self.open_table(place, shard, level)?;
                table.for_each(&self.core().pool.pmem, |slot| self.bypass_older(shard, slot))?;
            }
        }
        self.count_references(shard, work)?;
        if self.shards.set_bypassed(shard) {
            self.log().end_counting();
        }
        Ok(())
    }

    /// Completes the bypass index of one shard: which one. None where all are complete, or a table is damaged.
    pub(crate) fn complete_one(&self) -> Option<u32> {
        let shard = self.shards.first_unbypassed()?;
        let completed = self.complete_bypass(shard, &self.lock_work(shard));
        match completed {
            Ok(()) => Some(shard),
            Err(error) => {
                log::error!("the index of shard {shard} is incomplete: {error}");
                None
            }
        }
    }

    /// Tells the log which records the tables of a shard refer to.
    fn count_references(&self, shard: u32, work: &Locked<'_, Work>) -> Result<()> {
        let count = |slot: Slot| {
            if let Some(found) = slot.found() {
                self.log().count_reference(found.offset, found.bytes);
            }
        };
        let (tables, upper) = (work.current.tables, self.shards.shape().upper_levels());
        let dumps = tables.dumps.into_iter().flatten().map(|dump| (dump, upper + 1));
        for (place, level) in dumps.chain(tables.last.map(|last| (last, upper))) {
            let pmem = &self.core().pool.pmem;
            let table = self.open_table(place, shard, level)?;
            table.verify(pmem)?;
            table.for_each(pmem, |slot| {
                count(slot);
                Ok(())
            })?;
        }
        self.shards.bypass(shard).iter().for_each(count);
        Ok(())
    }

    /// Enters a slot that is older than all that the bypass index has, unless it has one of the same key.
    fn bypass_older(&self, shard: u32, older: Slot) -> Result<()> {
        let upserted = self.shards.bypass(shard).upsert(older, u32::MAX, |newer| {
            let newer = Slot { hash: older.hash, location: newer.location };
            if newer == older || self.records.is_superseded(newer, older) {
                Resolve::KeepOld
            } else {
                Resolve::OtherKey
            }
        });
        let reason = "a bypass index is full: the tables of a shard have too many entries";
        upserted.map(|_| ()).map_err(|_| Error::PoolFull { reason: reason.to_owned() })
    }
}
