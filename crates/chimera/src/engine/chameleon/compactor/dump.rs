//! Dumps: a full bypass index becomes a table of its own, where merging it into the last one is put off (ChameleonDB,
//! section 2.4). The next last-level compaction takes all dumps along.

use chimera_pmem::Pmem;

use super::Compactor;
use crate::engine::chameleon::edit::Edit;
use crate::engine::chameleon::shape::LAST_LOAD_PERCENT;
use crate::engine::chameleon::shard::{Locked, Work};
use crate::index::persistent::shard_manifest::TableAt;
use crate::index::probing_table::{Image, slots_for};
use crate::types::error::{Error, Result};

impl<P: Pmem> Compactor<P> {
    /// Writes the bypass index as a table in front of the last one, which has room for one more dump. Then the bypass index is
    /// empty, and so are the levels above the last one.
    ///
    /// # Errors
    /// When there is no space for it. Nothing has changed.
    ///
    /// # Cost
    /// The lines of the table, 2 fences. From then on a get of a key that is not found before looks in one more place.
    pub(crate) fn dump(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let shards = self.index().shards();
        let empty = shards.take_bypass(shard)?;
        let mut images = shards.take_images();
        let written = self.write_dump(shard, &mut images[0]);
        shards.put_images(images);
        let dump = written.inspect_err(|_| shards.give_back_helper(empty))?;
        let tables = Edit::Dump(dump).apply(&work.current.tables);
        self.tables.install_below_bypass(shard, work, tables, (None, None), empty);
        Ok(())
    }

    fn write_dump(&self, shard: u32, image: &mut Image) -> Result<TableAt> {
        let bypass = self.index().shards().bypass(shard);
        let slots = slots_for(bypass.len().into(), LAST_LOAD_PERCENT).ok_or_else(|| {
            Error::PoolFull { reason: "a bypass index is too large for a table".to_owned() }
        })?;
        let fits = image.fill(slots, bypass.iter());
        assert!(fits, "the table has a slot for each entry");
        let at = self.tables.space().take_dump(image.bytes())?;
        Ok(self.tables.write_dump(shard, image, at))
    }
}
