//! A new last table: of the bypass index, or of all tables above; of dumps, and of the last table before.

use chimera_pmem::Pmem;

use super::{Compactor, Dropped};
use crate::engine::chameleon::edit::Edit;
use crate::engine::chameleon::shape::LAST_LOAD_PERCENT;
use crate::engine::chameleon::shard::{Locked, Work, Writing};
use crate::engine::chameleon::space::{LastRoom, Need};
use crate::index::persistent::shard_manifest::ShardTables;
use crate::index::probing_table::{Image, Source, merge_last, slots_for};
use crate::types::error::{Error, Result};

impl<P: Pmem> Compactor<P> {
    /// Makes a new last table of all tables of a shard, or of the bypass index where it has what lies above; of the MemTable as
    /// well, where it is locked. The levels above are empty then.
    ///
    /// # Errors
    /// When there is no space for it, or a table or a record is damaged. Nothing has changed.
    pub(crate) fn compact_last(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        mut flushed: Option<&mut Locked<'_, Writing>>,
        need: Need,
    ) -> Result<()> {
        let (index, before) = (self.index(), work.current.tables);
        let empty = index.shards().take_bypass(shard)?;
        let mut images = index.shards().take_images();
        let mut dropped = Dropped { index, slots: Vec::new() };
        let has_memtable = flushed.is_some();
        let merged = self.merge_last(shard, work, has_memtable, need, &mut images, &mut dropped);
        let replaced = match merged {
            Ok(room) => {
                let image = &mut images[0];
                let written = room.as_ref().map(|it| self.tables.write_last(shard, image, it.at));
                let tables = Edit::Last(written).apply(&before);
                let helper = index.helper_of_last(empty, tables.last, image);
                let keyed = (flushed.as_deref_mut(), Some(u64::from(image.len())));
                self.tables.install_below_bypass(shard, work, tables, keyed, helper);
                for slot in dropped.slots {
                    index.records().drop_slot(slot);
                }
                self.replace_last(shard, work, flushed.as_deref(), (before, room), image)
            }
            Err(error) => {
                index.shards().give_back_helper(empty);
                Err(error)
            }
        };
        index.shards().put_images(images);
        replaced
    }

    /// Makes the image of a new last table. Room for it, if it has any entry.
    fn merge_last(
        &self,
        shard: u32,
        work: &Locked<'_, Work>,
        with_memtable: bool,
        need: Need,
        [image, scratch]: &mut [Image; 2],
        dropped: &mut Dropped<'_, P>,
    ) -> Result<Option<LastRoom>> {
        let (index, tables) = (self.index(), work.current.tables);
        let (shards, upper) = (index.shards(), index.shards().shape().upper_levels());
        let mut sources: Vec<_> =
            with_memtable.then(|| Source::Volatile(shards.memtable(shard))).into_iter().collect();
        if shards.has_bypass() {
            sources.push(Source::Volatile(shards.bypass(shard)));
        } else {
            sources.append(&mut index.upper_sources(shard, work, 0..upper)?);
        }
        let dumps = tables.dumps.into_iter().rev().flatten().map(|dump| (dump, upper + 1));
        for (table, level) in dumps.chain(tables.last.map(|last| (last, upper))) {
            sources.push(Source::Persistent(index.open_table(table, shard, level)?));
        }
        let entries = index.count_entries(&sources)?;
        let too_many = || Error::PoolFull {
            reason: "a shard has more keys than a table can have: use more shards".to_owned(),
        };
        // As long as no entry is superseded. Where a table could not be that long, as many as fit.
        let usual = slots_for(entries, LAST_LOAD_PERCENT);
        let slots = usual.or_else(|| slots_for(entries, 100)).ok_or_else(too_many)?;
        let (old, mut room) = (tables.last, Ok(None));
        let slots_for_last =
            |entries: u32| match self.tables.space().room_for_last(entries, old, need) {
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
        let pmem = &index.core().pool.pmem;
        merge_last(pmem, &sources, slots, slots_for_last, [image, scratch], dropped)?;
        room
    }

    /// Frees the last table that was `before`, now that there is another one; and moves that, if it is in the reserve.
    fn replace_last(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        flushed: Option<&Locked<'_, Writing>>,
        (before, room): (ShardTables, Option<LastRoom>),
        image: &mut Image,
    ) -> Result<()> {
        let (space, pool) = (self.tables.space(), &self.index().core().pool);
        space.free_lower(&before)?;
        let Some(LastRoom { run, at, slots, is_borrowed }) = room else { return Ok(()) };
        if !is_borrowed {
            space.put(at, run);
            return Ok(());
        }
        let Some(place) = space.take_place(slots) else {
            // Another session was faster: it stays in the reserve.
            space.put(at, run);
            return Ok(());
        };
        let moved = self.tables.write_last(shard, image, place.at);
        let tables = Edit::Last(Some(moved)).apply(&work.current.tables);
        self.tables.install(shard, work, tables, flushed);
        space.put(place.at, place.run);
        pool.pmem.withdrawn(pool.run_bytes(&run));
        pool.free_run(run)
    }

    /// Makes a new last table of all that a shard has, the MemTable included. Puts to the shard wait.
    ///
    /// # Errors
    /// When there is no room, or a table or a record is damaged. Nothing has changed.
    ///
    /// # Cost
    /// All tables of the shard.
    pub(crate) fn merge_shard(&self, shard: u32, need: Need) -> Result<()> {
        self.merge_locked(shard, &mut self.index().lock_work(shard), need)
    }

    /// As [`merge_shard`](Self::merge_shard), with the tables of the shard locked.
    pub(crate) fn merge_locked(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        need: Need,
    ) -> Result<()> {
        let index = self.index();
        index.complete_bypass(shard, work)?;
        let _permit = self.wait();
        let mut writing = index.lock_to_look(shard);
        let has_upper = if index.shards().has_bypass() {
            !index.shards().bypass(shard).is_empty()
        } else {
            work.current.tables.levels.iter().any(|level| level.tables > 0)
        };
        let has_entries = has_upper || !index.shards().memtable(shard).is_empty();
        if !has_entries && need != Need::Growth {
            return Ok(());
        }
        // No table refers to what is not durable.
        index.log().sync_all();
        self.compact_last(shard, work, Some(&mut writing), need)?;
        writing.refuses_puts = !self.tables.has_growth_room(shard);
        Ok(())
    }
}
