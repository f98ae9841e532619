//! A MemTable becomes a table of the first level, and goes to the bypass index (ChameleonDB, sections 2.1 and 2.2), where there
//! is one.

use chimera_pmem::Pmem;

use super::Compactor;
use crate::engine::chameleon::edit::Edit;
use crate::engine::chameleon::shard::{Locked, Work};
use crate::engine::chameleon::space::Need;
use crate::index::probing_table::Image;
use crate::types::error::Result;

impl<P: Pmem> Compactor<P> {
    /// Writes the MemTable of a shard to the first level, and empties it. The bypass index has nothing that no table has.
    ///
    /// # Errors
    /// When there is no space for tables, or a table or a record is damaged. The MemTable stays as it is.
    pub(crate) fn flush(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let index = self.index();
        index.complete_bypass(shard, work)?;
        if !self.upper_has_room(shard) {
            // Tables have more entries than a store with a bypass index makes.
            let _permit = self.wait();
            self.compact_last(shard, work, None, Need::Upkeep)?;
        }
        if self.needs_compaction(work) {
            let _permit = self.wait();
            self.compact(shard, work)?;
        }
        self.tables.reserve_level(shard, work, 0)?;
        let mut images = index.shards().take_images();
        let flushed = self.flush_locked(shard, work, &mut images[0]);
        index.shards().put_images(images);
        flushed
    }

    /// Whether a bypass index has room for all that is above the last table, and for a full MemTable: also where there is none,
    /// because the next process may have one; and memory to grow, if it must. Not where a table is damaged.
    fn upper_has_room(&self, shard: u32) -> bool {
        let (index, shards) = (self.index(), self.index().shards());
        let memtable = index.lock_to_look(shard).entries_max;
        let entries_max = shards.shape().bypass_entries_max();
        let entries_max =
            entries_max.min(shards.bypass_entries_in_budget(shard).unwrap_or(entries_max));
        shards.upper_entries(shard).is_some_and(|above| above + memtable <= entries_max)
    }

    /// As [`flush`](Self::flush), where the first level has room for a table. Puts to the shard wait.
    fn flush_locked(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        image: &mut Image,
    ) -> Result<()> {
        let (index, shards) = (self.index(), self.index().shards());
        let writing = index.lock_to_look(shard);
        let memtable = shards.memtable(shard);
        if memtable.is_empty() {
            return Ok(());
        }
        shards.enlarge_bypass(shard, memtable.len(), work, &writing)?;
        // No table refers to what is not durable.
        index.log().sync_all();
        let fits = image.fill(shards.shape().table_slots(0), memtable.iter());
        assert!(fits, "a table of the first level has as many slots as a MemTable");
        let before = work.current.tables;
        self.tables.write_upper(shard, image, &before, 0);
        if shards.has_bypass() {
            // Readers find each entry all the time: in the MemTable, until it is in the bypass index.
            index.absorb(shard, work);
        }
        let edit = Edit::Flush { version: writing.version, records: writing.records };
        self.tables.install_flushed(shard, work, edit.apply(&before), &writing);
        Ok(())
    }
}
