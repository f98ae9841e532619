//! Tables that were written are installed: the manifest names them, the log learns of it, and readers look at them.

use chimera_pmem::Pmem;

use super::Tables;
use crate::engine::chameleon::edit::Edit;
use crate::engine::chameleon::shard::{Locked, Shard, Work, Writing};
use crate::index::persistent::shard_manifest::ShardTables;
use crate::index::probing_table::Slot;
use crate::types::error::Result;

impl<P: Pmem> Tables<P> {
    /// Installs tables that have what those before had. `locked` where the caller has locked the MemTable.
    pub(crate) fn install(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        tables: ShardTables,
        locked: Option<&Locked<'_, Writing>>,
    ) {
        self.put_in_force(shard, work, tables);
        let place = self.index.shards().shard(shard);
        if let Some(writing) = locked {
            place.change(work, writing, |place| place.set_tables(&tables));
        } else {
            let writing = self.index.lock_to_look(shard);
            place.change(work, &writing, |place| place.set_tables(&tables));
        }
    }

    /// Frees the room of levels, if none of them has a table.
    ///
    /// # Errors
    /// When it cannot be freed: then opening frees it.
    pub(crate) fn give_back_levels(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let before = work.current.tables;
        if before.levels.iter().any(|level| level.tables > 0) {
            return Ok(());
        }
        self.install(shard, work, Edit::NoLevels.apply(&before), None);
        self.space.free_levels(&before)
    }

    /// Installs tables that have what the MemTable had as well, which the caller has locked. It is emptied.
    pub(crate) fn install_flushed(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        tables: ShardTables,
        writing: &Locked<'_, Writing>,
    ) {
        self.put_in_force(shard, work, tables);
        let memtable = self.index.shards().memtable(shard);
        for slot in memtable.iter().filter_map(Slot::found) {
            self.index.log().flushed(slot.offset);
        }
        self.index.shards().shard(shard).change(work, writing, |shard| {
            shard.set_tables(&tables);
            memtable.clear();
        });
        work.superseded.drain(..).for_each(|slot| self.index.records().drop_slot(slot));
    }

    /// Installs tables that have all that the bypass index and the levels above the last one have: `helper` takes the place
    /// of the bypass index, or of the helper of the last table, and the levels are empty. With the MemTable locked it is
    /// emptied, because they have what it had, too. Where it is known how many keys the tables have, records are counted anew,
    /// unless the store is being opened: blind puts have counted some keys more than once.
    pub(crate) fn install_below_bypass(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        mut tables: ShardTables,
        (flushed, keys): (Option<&mut Locked<'_, Writing>>, Option<u64>),
        helper: u32,
    ) {
        let (log, shards) = (self.index.log(), self.index.shards());
        // No table refers to what is not durable, and none is without what that has superseded.
        log.sync_all();
        let ahead = work.ahead.map(|ahead| (ahead.version, ahead.records));
        let now = flushed.as_ref().map(|writing| (writing.version, writing.records)).or(ahead);
        if let Some(now) = now {
            (tables.flushed_version, tables.records) = now;
        }
        let counted = tables.records;
        tables.records = keys.filter(|_| self.recounts).unwrap_or(counted);
        let count_anew = |writing: &mut Writing| {
            writing.records = (writing.records + tables.records).saturating_sub(counted);
        };
        let before = work.current.tables;
        self.put_in_force(shard, work, tables);
        self.index.tell_of_bypass(shard, work, &before);
        let (place, memtable) = (shards.shard(shard), shards.memtable(shard));
        let replaced = place.helper();
        let set = |place: &Shard| {
            place.set_tables(&tables);
            place.set_helper(helper);
        };
        if let Some(writing) = flushed {
            count_anew(writing);
            for slot in memtable.iter().filter_map(Slot::found) {
                log.flushed(slot.offset);
            }
            place.change(work, writing, |place| {
                set(place);
                memtable.clear();
            });
        } else {
            let mut writing = self.index.lock_to_look(shard);
            count_anew(&mut writing);
            place.change(work, &writing, set);
        }
        shards.give_back_helper(replaced);
    }
}
