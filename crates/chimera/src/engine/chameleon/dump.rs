//! Dumps: a full bypass index becomes a table of its own, where merging it into the last one is put off (ChameleonDB,
//! section 2.4). The next last-level compaction takes all dumps along.

use chimera_pmem::Pmem;

use super::counts::Cause;
use super::shape::LAST_LOAD_PERCENT;
use super::shard::{Locked, Work};
use super::shards::owner;
use super::space::Spend;
use super::{Chameleon, TABLE, blocks_for};
use crate::index::persistent::shard_manifest::TableAt;
use crate::index::probing_table::{Image, TABLE_ALIGN, slots_for};
use crate::types::error::{Error, Result};

impl<P: Pmem> Chameleon<P> {
    /// Empties the bypass index of a shard, and the levels above the last one.
    ///
    /// # Errors
    /// When there is no space for a table, or one is damaged. Nothing has changed.
    pub(super) fn empty_bypass(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let dumps = work.current.tables.dumps.iter().flatten().count();
        if self.modes.protects_gets(&**self.core.environment()) && dumps < self.modes.dumps_max() {
            self.dump(shard, work)
        } else {
            self.compact_last(shard, work, None, Spend::Nothing)
        }
    }

    /// Writes the bypass index as a table in front of the last one, behind which there is room for one more dump.
    ///
    /// # Errors
    /// When there is no space for it. Nothing has changed.
    ///
    /// # Cost
    /// The lines of the table, 2 fences. From then on a get of a key that is not found before looks in one more place.
    pub(super) fn dump(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let spare = self.index.take_aid()?;
        let mut images = self.index.take_images();
        let written = self.write_dump(shard, &mut images[0]);
        self.index.put_images(images);
        let dump = written.inspect_err(|_| self.index.give_back_aid(spare))?;
        let mut tables = work.current.tables;
        // The oldest one lies first, and all vanish at once.
        let place = tables.dumps.iter_mut().find(|dump| dump.is_none());
        *place.expect("room for a dump") = Some(dump);
        self.replace_bypass(shard, work, tables, (None, None), spare);
        Ok(())
    }

    fn write_dump(&self, shard: u32, image: &mut Image) -> Result<TableAt> {
        let bypass = self.index.bypass(shard);
        let slots = slots_for(bypass.len().into(), LAST_LOAD_PERCENT).ok_or_else(|| {
            Error::PoolFull { reason: "a bypass index is too large for a table".to_owned() }
        })?;
        let fits = image.fill(slots, bypass.iter());
        assert!(fits, "the table has a slot for each entry");
        let pool = &self.core.pool;
        let run = pool.take_bare_run(TABLE, blocks_for(pool, image.bytes() + TABLE_ALIGN))?;
        let at = pool.run_bytes(&run).offset().next_multiple_of(TABLE_ALIGN);
        self.table_runs.put(at, run);
        let owner = owner(shard, self.index.shape.upper_levels() + 1);
        Ok(self.write_table(image, at, owner, Cause::Dump))
    }
}
