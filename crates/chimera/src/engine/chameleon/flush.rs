//! A full MemTable becomes a table of the first level, and goes to the bypass index (ChameleonDB, sections 2.1 and 2.2), where
//! there is one.

use chimera_pmem::{Operation, Pmem};

use super::aids::Upper;
use super::counts::Cause;
use super::shard::{Locked, Work, Writing};
use super::shards::owner;
use super::space::Spend;
use super::{Chameleon, LEVEL, LOADED_AHEAD, blocks_for, sites};
use crate::index::Resolve;
use crate::index::persistent::shard_manifest::{CHANGE_BYTES, Current, LevelAt, ShardTables};
use crate::index::probing_table::{Image, Slot, TABLE_ALIGN, Upserted};
use crate::types::error::{Error, Result};

impl<P: Pmem> Chameleon<P> {
    /// Makes room in the MemTable of a shard, unless somebody else has: by a flush, or where there is no room for that by a
    /// new last table.
    ///
    /// # Errors
    /// When there is no space for tables, or a table or a record is damaged. The MemTable stays as it is.
    #[cold]
    pub(super) fn make_room(&self, number: u32, shard: u32, spend: Spend) -> Result<()> {
        let _booked = self.core.book(Operation::BlockHandOut, number);
        let mut work = self.lock_work(shard);
        let is_backed = self.is_backed(shard);
        {
            let mut writing = self.lock_to_look(shard);
            writing.is_closed &= !is_backed;
            if !self.is_short(shard, &writing, spend) {
                return Ok(());
            }
        }
        if self.core.pool.read_only {
            let reason = "the log has more that is in no table than a store open for reading only has room for: open it for \
                          writing once";
            return Err(Error::PoolFull { reason: reason.to_owned() });
        }
        let emptied = is_backed.then(|| self.empty_memtable(shard, &mut work));
        drop(work);
        match emptied {
            None | Some(Err(Error::PoolFull { .. })) => self.fold(shard, spend)?,
            Some(emptied) => emptied?,
        }
        self.log.free_ready()?;
        self.hold();
        if spend == Spend::Growth && self.lock_to_look(shard).is_closed {
            let reason = "the table of a shard has no room to grow".to_owned();
            return Err(Error::PoolFull { reason });
        }
        Ok(())
    }

    pub(super) fn is_memtable_full(&self, shard: u32) -> bool {
        let writing = self.lock_to_look(shard);
        self.index.memtable(shard).is_full(writing.entries_max)
    }

    /// Writes the MemTable of a shard to the first level, and empties it. The bypass index has nothing that no table has.
    pub(super) fn flush(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        self.complete_bypass(shard, work)?;
        if !self.upper_has_room(shard) {
            // Tables have more entries than a store with a bypass index makes.
            let _permit = self.budget.wait(&**self.core.environment());
            self.compact_last(shard, work, None, Spend::Nothing)?;
        }
        if self.needs_compaction(work) {
            let _permit = self.budget.wait(&**self.core.environment());
            self.compact(shard, work)?;
        }
        self.reserve_level(shard, work, 0)?;
        let mut images = self.index.take_images();
        self.flush_locked(shard, work, &mut images[0]);
        self.index.put_images(images);
        Ok(())
    }

    /// Whether a bypass index has room for all that is above the last table, and for a full MemTable: also where there is none,
    /// because the next process may have one. Not where a table is damaged.
    fn upper_has_room(&self, shard: u32) -> bool {
        let memtable = self.lock_to_look(shard).entries_max;
        let entries_max = self.index.shape.bypass_entries_max();
        self.index.upper_entries(shard).is_some_and(|above| above + memtable <= entries_max)
    }

    /// Whether the first level of a shard is full.
    pub(super) fn needs_compaction(&self, work: &Work) -> bool {
        work.current.tables.levels[0].tables >= self.index.shape.ratio
    }

    /// As [`flush`](Self::flush), where the first level has room for a table. Puts to the shard wait.
    fn flush_locked(&self, shard: u32, work: &mut Locked<'_, Work>, image: &mut Image) {
        let mut writing = self.lock_to_look(shard);
        let memtable = self.index.memtable(shard);
        if memtable.is_empty() {
            return;
        }
        // No table refers to what is not durable.
        self.log.sync_all();
        let fits = image.fill(self.index.shape.table_slots(0), memtable.iter());
        assert!(fits, "a table of the first level has as many slots as a MemTable");
        let mut tables = work.current.tables;
        tables.flushed_version = writing.version;
        tables.records = writing.records;
        self.write_upper(shard, image, &mut tables, 0);
        if self.index.has_bypass() {
            // Readers find each entry all the time: in the MemTable, until it is in the bypass index.
            self.absorb(shard, work);
        }
        self.publish(shard, work, tables, Some(&mut writing));
        work.superseded.drain(..).for_each(|slot| self.drop_slot(slot));
    }

    /// Enters the MemTable of a shard, which the caller has locked, into its bypass index, which has room. A probe comes to a
    /// newer entry of a key before it comes to an older one, also where damage hides that both are of one key: else what the
    /// key had before would be its value.
    pub(super) fn absorb(&self, shard: u32, work: &mut Work) {
        let bypass = self.index.bypass(shard);
        let with_room = "the bypass index has room";
        let memtable = self.index.memtable(shard);
        // What comes later is being loaded: the bypass index is far larger than any cache, and its misses overlap so.
        let mut later = memtable.iter();
        later.by_ref().take(LOADED_AHEAD).for_each(|slot| bypass.prefetch(slot.hash));
        for new in memtable.iter() {
            if let Some(slot) = later.next() {
                bypass.prefetch(slot.hash);
            }
            let mut unclear = None;
            let upserted = bypass.upsert(new, u32::MAX, |old| {
                let old = Slot { hash: new.hash, location: old.location };
                if self.is_same_key(new, old) {
                    Resolve::KeepNew
                } else if self.are_whole([new, old]) {
                    Resolve::OtherKey
                } else {
                    unclear = Some(old);
                    Resolve::KeepOld
                }
            });
            if let Upserted::Replaced(location) = upserted.expect(with_room) {
                self.superseded(work, Slot { hash: new.hash, location });
            }
            if let Some(old) = unclear {
                // In this order: it is there all the time.
                bypass.insert(old, u32::MAX).expect(with_room);
                bypass.replace(new.hash, old.location, new.location);
            }
        }
    }

    /// No table that is read refers to this slot's record any more, and whatever superseded it is durable.
    pub(super) fn drop_slot(&self, slot: Slot) {
        if let Some(found) = slot.found() {
            self.log.dropped(found.offset, found.bytes);
        }
    }

    /// Takes room for the tables of a level, where it never had any.
    pub(super) fn reserve_level(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        level: usize,
    ) -> Result<()> {
        if work.current.tables.levels[level].at > 0 {
            return Ok(());
        }
        let pool = &self.core.pool;
        let blocks = blocks_for(pool, self.index.shape.level_bytes(level));
        let run = pool.take_bare_run(LEVEL, blocks)?;
        let mut tables = work.current.tables;
        let at = pool.run_bytes(&run).offset().next_multiple_of(TABLE_ALIGN);
        self.table_runs.put(at, run);
        tables.levels[level] = LevelAt { at, tables: 0 };
        let staged = self.index.manifest.stage(shard, &work.current, tables);
        pool.pmem.fence(sites::LEVEL);
        self.publish_manifest(shard, work, staged);
        Ok(())
    }

    /// Puts a copy of the manifest in force, which is durable.
    pub(super) fn publish_manifest(&self, shard: u32, work: &mut Work, staged: Current) {
        self.index.manifest.publish(shard, &staged);
        work.current = staged;
        self.counts.wrote(Cause::Manifest, CHANGE_BYTES);
    }

    /// Writes a table behind those that a level has. The caller fences.
    pub(super) fn write_upper(
        &self,
        shard: u32,
        image: &mut Image,
        tables: &mut ShardTables,
        level: usize,
    ) {
        let place = tables.levels[level];
        let table = self.index.table_at(level, place.at, place.tables);
        let cause = if level == 0 { Cause::Flush } else { Cause::Upper };
        let owner = owner(shard, level);
        image.write(&self.core.pool.pmem, self.index.extent(table), owner, cause.site());
        let upper = Upper { shard, level, table: place.tables };
        self.index.aids.begin_upper(upper).fill(image.iter());
        tables.levels[level].tables += 1;
        self.counts.wrote(cause, image.bytes());
    }

    /// Puts tables in force that were written. With the MemTable locked it is emptied, because they have what it had.
    pub(super) fn publish(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        tables: ShardTables,
        flushed: Option<&mut Locked<'_, Writing>>,
    ) {
        self.put_in_force(shard, work, tables);
        let memtable = self.index.memtable(shard);
        let Some(writing) = flushed else {
            let writing = self.lock_to_look(shard);
            self.index.shard(shard).change(work, &writing, |shard| shard.set_tables(&tables));
            return;
        };
        for slot in memtable.iter().filter_map(Slot::found) {
            self.log.flushed(slot.offset);
        }
        self.index.shard(shard).change(work, writing, |shard| {
            shard.set_tables(&tables);
            memtable.clear();
        });
    }
}

impl<P: Pmem> Chameleon<P> {
    /// Makes the manifest name tables that were written, durably.
    pub(super) fn put_in_force(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        tables: ShardTables,
    ) {
        let staged = self.index.manifest.stage(shard, &work.current, tables);
        self.core.pool.pmem.fence(sites::TABLES);
        self.publish_manifest(shard, work, staged);
    }
}
