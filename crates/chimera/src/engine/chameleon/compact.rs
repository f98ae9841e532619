//! Compaction: tables of full levels become one of a lower level (ChameleonDB, section 2.1), and all levels above the last
//! one go to it by way of the bypass index (section 2.2). Without a bypass index tables are merged.

use std::collections::VecDeque;

use chimera_pmem::Pmem;

use super::counts::Cause;
use super::options::Compaction;
use super::shape::LAST_LOAD_PERCENT;
use super::shard::{Locked, Shard, Work, Writing};
use super::shards::owner;
use super::space::{LastRoom, Spend};
use super::{Chameleon, LOADED_AHEAD};
use crate::index::Probe;
use crate::index::persistent::shard_manifest::{DUMPS_MAX, LevelAt, ShardTables, TableAt};
use crate::index::probing_table::{
    Image, MergeOwner, Slot, Source, VolatileTable, merge, merge_last, slots_for,
};
use crate::types::error::Result;

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
            None => self.compact_last(shard, work, None, Spend::Nothing),
        }
    }

    /// Compacts each level that is full into the next one.
    fn compact_levels(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let shape = self.index.shape;
        // The lowest one first: after a crash, or without room, two may be full.
        let full = |work: &Work| {
            let is_full = |level: &usize| work.current.tables.levels[*level].tables >= shape.ratio;
            (0..shape.upper_levels()).rev().find(is_full)
        };
        while let Some(level) = full(work) {
            if level + 1 == shape.upper_levels() {
                return self.compact_last(shard, work, None, Spend::Nothing);
            }
            self.compact_upper(shard, work, level..level + 1)?;
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
        let slots = self.index.shape.table_slots(from.end);
        let sources = self.upper_sources(shard, work, from.clone())?;
        if self.count_entries(&sources)? > u64::from(slots) {
            // Levels are fuller than these compactions leave them: others were at work before.
            return self.compact_last(shard, work, None, Spend::Nothing);
        }
        self.reserve_level(shard, work, from.end)?;
        let mut images = self.index.take_images();
        let filled = self.gather(shard, &sources, slots, &mut images[0]);
        if filled.is_ok() {
            let mut tables = work.current.tables;
            self.write_upper(shard, &mut images[0], &mut tables, from.end);
            tables.levels[from].iter_mut().for_each(|level| level.tables = 0);
            self.publish(shard, work, tables, None);
        }
        self.index.put_images(images);
        filled
    }

    /// Puts what tables have, the newest one first, into the image of one table, but for what was superseded. The bypass index
    /// knows that: it has the newest slot of each key. Without one they are merged.
    fn gather(
        &self,
        shard: u32,
        sources: &[Source<'_>],
        slots: u32,
        image: &mut Image,
    ) -> Result<()> {
        let pmem = &self.core.pool.pmem;
        if !self.index.has_bypass() {
            let mut dropped = Dropped { engine: self, slots: Vec::new() };
            return merge(pmem, sources, slots, image, &mut dropped);
        }
        let bypass = self.index.bypass(shard);
        image.begin(slots);
        let mut enter = |slot| {
            if is_in(bypass, slot) {
                assert!(image.enter(slot), "a table of a level has room for those above");
            }
        };
        // The bypass index is far larger than any cache: where a slot would be is loaded while others are looked at.
        let mut waiting = VecDeque::with_capacity(LOADED_AHEAD);
        let mut visit = |slot: Slot| {
            if waiting.len() == LOADED_AHEAD {
                waiting.pop_front().into_iter().for_each(&mut enter);
            }
            bypass.prefetch(slot.hash);
            waiting.push_back(slot);
            Ok(())
        };
        for source in sources {
            match source {
                Source::Volatile(table) => table.iter().try_for_each(&mut visit)?,
                Source::Persistent(table) => table.for_each(pmem, &mut visit)?,
            }
        }
        waiting.into_iter().for_each(enter);
        Ok(())
    }

    /// Makes a new last table of the bypass index, or of all tables above, of dumps and of the last table before; of the
    /// MemTable as well, where it is locked. The levels above are empty then.
    pub(super) fn compact_last(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        mut flushed: Option<&mut Locked<'_, Writing>>,
        spend: Spend,
    ) -> Result<()> {
        let (spare, before) = (self.index.take_aid()?, work.current.tables);
        let mut images = self.index.take_images();
        let mut dropped = Dropped { engine: self, slots: Vec::new() };
        let has_memtable = flushed.is_some();
        let merged = self.merge_last(shard, work, has_memtable, spend, &mut images, &mut dropped);
        let slots = dropped.slots;
        let replaced = match merged {
            Ok(room) => {
                let tables = self.write_last(shard, work, room.as_ref(), &mut images[0]);
                let aid = self.aid_of_last(spare, tables.last, &images[0]);
                let keys = u64::from(images[0].len());
                self.replace_bypass(shard, work, tables, (flushed.as_deref_mut(), Some(keys)), aid);
                for slot in slots {
                    self.drop_slot(slot);
                }
                self.settle_last(shard, work, flushed.as_deref(), (before, room), &mut images[0])
            }
            Err(error) => {
                self.index.give_back_aid(spare);
                Err(error)
            }
        };
        self.index.put_images(images);
        replaced
    }

    /// Makes the image of a new last table. Room for it, if it has any entry.
    fn merge_last(
        &self,
        shard: u32,
        work: &Locked<'_, Work>,
        with_memtable: bool,
        spend: Spend,
        [image, scratch]: &mut [Image; 2],
        dropped: &mut Dropped<'_, P>,
    ) -> Result<Option<LastRoom>> {
        let (pmem, upper) = (&self.core.pool.pmem, self.index.shape.upper_levels());
        let tables = work.current.tables;
        let mut sources: Vec<_> = with_memtable
            .then(|| Source::Volatile(self.index.memtable(shard)))
            .into_iter()
            .collect();
        if self.index.has_bypass() {
            sources.push(Source::Volatile(self.index.bypass(shard)));
        } else {
            sources.append(&mut self.upper_sources(shard, work, 0..upper)?);
        }
        let dumps = tables.dumps.into_iter().rev().flatten().map(|dump| (dump, upper + 1));
        for (table, level) in dumps.chain(tables.last.map(|last| (last, upper))) {
            sources.push(Source::Persistent(self.open_table(table, shard, level)?));
        }
        let entries = self.count_entries(&sources)?;
        let too_many = || crate::types::error::Error::PoolFull {
            reason: "a shard has more keys than a table can have: use more shards".to_owned(),
        };
        // As long as no entry is superseded. Where a table could not be that long, as many as fit.
        let usual = slots_for(entries, LAST_LOAD_PERCENT);
        let slots = usual.or_else(|| slots_for(entries, 100)).ok_or_else(too_many)?;
        let (old, mut room) = (tables.last, Ok(None));
        let slots_for_last = |entries: u32| match self.room_for_last(entries, old, spend) {
            Ok(found) => {
                let wanted = found.as_ref().map_or(slots, |room| room.slots);
                room = Ok(found);
                wanted
            }
            Err(error) => {
                room = Err(error);
                slots
            }
        };
        merge_last(pmem, &sources, slots, slots_for_last, [image, scratch], dropped)?;
        room
    }

    /// Writes a new last table. The tables of the shard, then. The caller fences.
    pub(super) fn write_last(
        &self,
        shard: u32,
        work: &Locked<'_, Work>,
        room: Option<&LastRoom>,
        image: &mut Image,
    ) -> ShardTables {
        let mut tables = work.current.tables;
        tables.last = room.map(|room| {
            let owner = owner(shard, self.index.shape.upper_levels());
            self.write_table(image, room.at, owner, Cause::Last)
        });
        tables.dumps = [None; DUMPS_MAX];
        tables.levels.iter_mut().for_each(|level| level.tables = 0);
        tables
    }

    /// Writes a table that begins at `at`. The caller fences.
    pub(super) fn write_table(
        &self,
        image: &mut Image,
        at: u64,
        owner: u64,
        cause: Cause,
    ) -> TableAt {
        let table = TableAt { at, bytes: image.bytes() };
        let extent = self.index.extent(table);
        image.write(&self.core.pool.pmem, extent, owner, cause.site());
        self.counts.wrote(cause, image.bytes());
        table
    }

    /// Puts tables in force that have all that the bypass index and the levels above the last one have: `aid` takes the place
    /// of the bypass index, or of what was made of the last table, and the levels are empty. With the MemTable locked it is
    /// emptied, because they have what it had, too. Where it is known how many keys the tables have, records are counted anew,
    /// unless the store is being opened: blind puts have counted some keys more than once.
    pub(super) fn replace_bypass(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        mut tables: ShardTables,
        (flushed, keys): (Option<&mut Locked<'_, Writing>>, Option<u64>),
        aid: u32,
    ) {
        // No table refers to what is not durable, and none is without what that has superseded.
        self.log.sync_all();
        tables.levels.iter_mut().for_each(|level| level.tables = 0);
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
        self.tell_of_bypass(shard, work, &before);
        let (place, memtable) = (self.index.shard(shard), self.index.memtable(shard));
        let replaced = place.aid();
        let set = |place: &Shard| {
            place.set_tables(&tables);
            place.set_aid(aid);
        };
        if let Some(writing) = flushed {
            count_anew(writing);
            for slot in memtable.iter().filter_map(Slot::found) {
                self.log.flushed(slot.offset);
            }
            place.change(work, writing, |place| {
                set(place);
                memtable.clear();
            });
        } else {
            let mut writing = self.lock_to_look(shard);
            count_anew(&mut writing);
            place.change(work, &writing, set);
        }
        self.index.give_back_aid(replaced);
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
        let engine = self.engine;
        // Without a bypass index there may be slots whose records are gone, from another life of the store.
        let is_same = if engine.index.has_bypass() {
            engine.is_same_key(newer, older)
        } else {
            engine.is_superseded(newer, older)
        };
        if !is_same {
            engine.check_tombstone(newer)?;
        }
        Ok(is_same)
    }

    fn dropped(&mut self, slot: Slot) {
        if self.engine.index.has_bypass() {
            self.slots.push(slot);
        }
    }
}
