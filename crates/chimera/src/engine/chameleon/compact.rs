//! Compaction: tables of full levels become one of a lower level (ChameleonDB, section 2.1), and all levels above the last
//! one go to it by way of the bypass index (section 2.2).

use chimera_pmem::Pmem;

use super::counts::Cause;
use super::flush::owner;
use super::options::Compaction;
use super::shard::{Locked, Work};
use super::{Chameleon, TABLE, blocks_for, sites};
use crate::index::Probe;
use crate::index::persistent::shard_manifest::{DUMPS_MAX, LevelAt, ShardTables, TableAt};
use crate::index::probing_table::{
    self, Image, MergeOwner, PersistentTable, Slot, Source, TABLE_ALIGN, VolatileTable, merge_last,
    slots_for,
};
use crate::types::error::Result;

/// Of a table of the last level so many slots out of 100 are in use when it is made.
pub(super) const LAST_LOAD_PERCENT: u32 = 75;

impl<P: Pmem> Chameleon<P> {
    /// Makes room in the first level of a shard, which is full.
    ///
    /// # Errors
    /// When there is no space for a table, or one is damaged. Nothing has changed.
    pub(super) fn compact(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        match self.compaction {
            Compaction::Direct => {
                // A level that would become full is passed.
                let ratio = self.index.shape.ratio;
                let has_room = |level: &LevelAt| level.tables + 1 < ratio;
                self.compact_to(shard, work, has_room)
            }
            Compaction::LevelByLevel => self.compact_levels(shard, work),
        }
    }

    /// Compacts the first levels into one table of the next level that has room; into the last table, where none has.
    fn compact_to(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        has_room: impl Fn(&LevelAt) -> bool,
    ) -> Result<()> {
        let levels = work.current.tables.levels;
        let target = (1..self.index.shape.upper_levels()).find(|level| has_room(&levels[*level]));
        match target {
            Some(level) => self.compact_upper(shard, work, 0..level),
            None => self.compact_last(shard, work),
        }
    }

    /// Compacts each level that is full into the next one.
    fn compact_levels(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let (shape, mut level) = (self.index.shape, 0);
        while work.current.tables.levels[level].tables >= shape.ratio {
            if level + 1 == shape.upper_levels() {
                return self.compact_last(shard, work);
            }
            self.compact_upper(shard, work, level..level + 1)?;
            level += 1;
        }
        Ok(())
    }

    /// Compacts levels into one table of the level behind them.
    fn compact_upper(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        from: std::ops::Range<usize>,
    ) -> Result<()> {
        self.reserve_level(shard, work, from.end)?;
        let mut images = self.index.take_images();
        let filled = self.gather(shard, work, from.clone(), &mut images[0]);
        if filled.is_ok() {
            let mut tables = work.current.tables;
            self.write_upper(shard, &mut images[0], &mut tables, from.end);
            tables.levels[from].iter_mut().for_each(|level| level.tables = 0);
            self.publish(shard, work, tables, None);
        }
        self.index.put_images(images);
        filled
    }

    /// Puts what levels have into the image of a table of the level behind them, but for what was superseded. The bypass
    /// index knows that: it has the newest slot of each key.
    fn gather(
        &self,
        shard: u32,
        work: &Locked<'_, Work>,
        from: std::ops::Range<usize>,
        image: &mut Image,
    ) -> Result<()> {
        let bypass = self.index.bypass(shard);
        image.begin(self.index.shape.table_slots(from.end));
        for level in from {
            let LevelAt { at, tables } = work.current.tables.levels[level];
            for table in (0..tables).rev() {
                let place = self.index.extent(self.index.table_at(level, at, table));
                let table =
                    PersistentTable::open(&self.core.pool.pmem, place, owner(shard, level))?;
                table.for_each(&self.core.pool.pmem, |slot| {
                    if is_in(bypass, slot) {
                        assert!(image.enter(slot), "a table of a level has room for those above");
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Makes a new last table of the bypass index, of dumps and of the last table before. The levels above are empty then.
    pub(super) fn compact_last(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let spare = self.index.take_bypass()?;
        let mut images = self.index.take_images();
        let mut dropped = Dropped { engine: self, slots: Vec::new() };
        let written = self.write_last(shard, work, &mut images, &mut dropped);
        self.index.put_images(images);
        let last = written.inspect_err(|_| self.index.give_back_bypass(spare))?;
        let (slots, before) = (dropped.slots, work.current.tables);
        let tables = ShardTables { last, dumps: [None; DUMPS_MAX], ..before };
        self.replace_bypass(shard, work, tables, spare);
        for slot in slots {
            self.drop_slot(slot);
        }
        let old = before.dumps.into_iter().flatten().chain(before.last);
        let runs: Vec<_> = old.filter_map(|table| self.table_runs.take(table.at)).collect();
        runs.into_iter().try_for_each(|run| self.core.pool.free_run(run))
    }

    /// Writes a new last table. Where it lies, if it has any entry.
    fn write_last(
        &self,
        shard: u32,
        work: &Locked<'_, Work>,
        [image, scratch]: &mut [Image; 2],
        dropped: &mut Dropped<'_, P>,
    ) -> Result<Option<TableAt>> {
        let (pmem, upper) = (&self.core.pool.pmem, self.index.shape.upper_levels());
        let tables = work.current.tables;
        let bypass = self.index.bypass(shard);
        let (mut sources, mut entries) = (vec![Source::Volatile(bypass)], u64::from(bypass.len()));
        let dumps = tables.dumps.into_iter().rev().flatten().map(|dump| (dump, upper + 1));
        for (table, level) in dumps.chain(tables.last.map(|last| (last, upper))) {
            let table = PersistentTable::open(pmem, self.index.extent(table), owner(shard, level))?;
            entries += u64::from(table.entries(pmem)?);
            sources.push(Source::Persistent(table));
        }
        let too_many = || crate::types::error::Error::PoolFull {
            reason: "a shard has more keys than a table can have: use more shards".to_owned(),
        };
        let slots = slots_for(entries, 100).ok_or_else(too_many)?;
        let slots_for_last =
            |entries: u32| slots_for(entries.into(), LAST_LOAD_PERCENT).unwrap_or(slots);
        merge_last(pmem, &sources, slots, slots_for_last, [image, scratch], dropped)?;
        if image.len() == 0 {
            return Ok(None);
        }
        self.write_table(image, owner(shard, upper), Cause::Last).map(Some)
    }

    /// Writes a table to a run of its own. The caller fences.
    pub(super) fn write_table(
        &self,
        image: &mut Image,
        owner: u64,
        cause: Cause,
    ) -> Result<TableAt> {
        let pool = &self.core.pool;
        let run = pool.take_bare_run(TABLE, blocks_for(pool, image.bytes() + TABLE_ALIGN))?;
        let at = pool.run_bytes(&run).offset().next_multiple_of(TABLE_ALIGN);
        let table = TableAt { at, bytes: image.bytes() };
        image.write(&pool.pmem, self.index.extent(table), owner, probing_table::sites::TABLE);
        self.counts.wrote(cause, image.bytes());
        self.table_runs.put(at, run);
        Ok(table)
    }

    /// Puts tables in force that have all that the bypass index and the levels above the last one have: `spare` takes the
    /// place of the bypass index, and the levels are empty.
    pub(super) fn replace_bypass(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        mut tables: ShardTables,
        spare: u32,
    ) {
        // No table refers to what is not durable, and none is without what that has superseded.
        self.log.sync_all();
        tables.levels.iter_mut().for_each(|level| level.tables = 0);
        if let Some(ahead) = work.ahead {
            (tables.flushed_version, tables.records) = (ahead.version, ahead.records);
        }
        let before = work.current.tables;
        let staged = self.index.manifest.stage(shard, &work.current, tables);
        self.core.pool.pmem.fence(sites::TABLES);
        self.publish_manifest(shard, work, staged);
        self.tell_of_bypass(shard, work, &before);
        let full = self.index.shard(shard).bypass();
        let writing = self.lock_to_look(shard);
        self.index.shard(shard).change(work, &writing, |shard| {
            shard.set_tables(&tables);
            shard.set_bypass(spare);
        });
        drop(writing);
        self.index.give_back_bypass(full);
    }
}

/// Whether a table has this very slot.
fn is_in(table: VolatileTable<'_>, slot: Slot) -> bool {
    let is_it =
        |location| if location == slot.location { Probe::Found(()) } else { Probe::NotThis };
    matches!(table.probe(slot.hash, |found| is_it(found.location)), Probe::Found(()))
}

/// What of a merge the log is to know.
struct Dropped<'e, P: Pmem> {
    engine: &'e Chameleon<P>,
    /// Slots that are not in the new table.
    slots: Vec<Slot>,
}

impl<P: Pmem> MergeOwner for Dropped<'_, P> {
    fn prefetch(&mut self, slot: Slot) {
        if let Some(found) = slot.found() {
            self.engine.log.prefetch(found.offset);
        }
    }

    fn is_same_key(&mut self, newer: Slot, older: Slot) -> Result<bool> {
        Ok(self.engine.is_same_key(newer, older))
    }

    fn dropped(&mut self, slot: Slot) {
        self.slots.push(slot);
    }
}
