//! [`Tables`]: tables in persistent memory are written, and put in force. It decides neither which nor when.
//!
//! A table is written where no table in force lies. What is then [installed](install) is an [edit](super::edit): the manifest
//! names the tables afterwards, durably, and readers look at them. What the log is told follows from that.

mod install;

use chimera_pmem::Pmem;

use super::counts::{Cause, IndexWritten};
use super::edit::Edit;
use super::index::Index;
use super::shape::Upper;
use super::shard::{Locked, Work};
use super::shards::owner;
use super::sites;
use super::space::Space;
use crate::index::persistent::shard_manifest::{CHANGE_BYTES, Current, ShardTables, TableAt};
use crate::index::probing_table::Image;
use crate::sync::{Mutex, lock};
use crate::types::error::Result;

/// Tables of all shards, and the runs that they lie in.
pub(super) struct Tables<P: Pmem> {
    index: Index<P>,
    space: Space<P>,
    written: Mutex<IndexWritten>,
    /// Records are counted anew where a last table says how many there are. Not while the store is opened: their number is
    /// compared with that of closing, also by the next opening if this one is interrupted.
    recounts: bool,
}

impl<P: Pmem> Tables<P> {
    pub(super) fn new(index: Index<P>, space: Space<P>) -> Self {
        Self { index, space, written: Mutex::default(), recounts: false }
    }

    #[inline(always)]
    pub(super) fn index(&self) -> &Index<P> {
        &self.index
    }

    /// Before there are sessions.
    pub(super) fn index_mut(&mut self) -> &mut Index<P> {
        &mut self.index
    }

    pub(super) fn space(&self) -> &Space<P> {
        &self.space
    }

    /// From now on records are counted anew with each last table: the store was opened.
    pub(super) fn begin_recounting(&mut self) {
        self.recounts = true;
    }

    /// What was written since the store was opened.
    pub(super) fn written(&self) -> IndexWritten {
        *lock(&self.written)
    }

    /// A MemTable went to a bypass index alone.
    pub(super) fn note_absorbed(&self) {
        lock(&self.written).absorbed += 1;
    }

    /// Whether the last table of a shard has room for two more full MemTables.
    pub(super) fn has_growth_room(&self, shard: u32) -> bool {
        self.space.has_growth_room(self.index.shards(), shard)
    }

    /// Takes room for the tables of a level, where it has none.
    pub(super) fn reserve_level(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        level: usize,
    ) -> Result<()> {
        if work.current.tables.levels[level].at > 0 {
            return Ok(());
        }
        let at = self.space.take_level(level)?;
        let tables = Edit::Level { level, at }.apply(&work.current.tables);
        let staged = self.index.shards().manifest().stage(shard, &work.current, tables);
        self.index.core().pool.pmem.fence(sites::LEVEL);
        self.publish_manifest(shard, work, staged);
        Ok(())
    }

    /// Writes a table behind those that a level has. The caller fences.
    pub(super) fn write_upper(
        &self,
        shard: u32,
        image: &mut Image,
        tables: &ShardTables,
        level: usize,
    ) {
        let (place, shards) = (tables.levels[level], self.index.shards());
        let table = shards.table_at(level, place.at, place.tables);
        let cause = if level == 0 { Cause::Flush } else { Cause::Upper };
        self.write_table(image, table.at, owner(shard, level), cause);
        let upper = Upper { shard, level, table: place.tables };
        shards.helpers().begin_upper(upper).fill(image.iter());
    }

    /// Writes a dump of a shard that begins at `at`. The caller fences.
    pub(super) fn write_dump(&self, shard: u32, image: &mut Image, at: u64) -> TableAt {
        let owner = owner(shard, self.index.shards().shape().upper_levels() + 1);
        self.write_table(image, at, owner, Cause::Dump)
    }

    /// Writes a last table of a shard that begins at `at`. The caller fences.
    pub(super) fn write_last(&self, shard: u32, image: &mut Image, at: u64) -> TableAt {
        let owner = owner(shard, self.index.shards().shape().upper_levels());
        self.write_table(image, at, owner, Cause::Last)
    }

    fn write_table(&self, image: &mut Image, at: u64, owner: u64, cause: Cause) -> TableAt {
        let table = TableAt { at, bytes: image.bytes() };
        let extent = self.index.shards().extent(table);
        image.write(&self.index.core().pool.pmem, extent, owner, cause.site());
        lock(&self.written).wrote(cause, image.bytes());
        table
    }

    /// Makes the manifest name tables that were written, durably.
    fn put_in_force(&self, shard: u32, work: &mut Locked<'_, Work>, tables: ShardTables) {
        let staged = self.index.shards().manifest().stage(shard, &work.current, tables);
        self.index.core().pool.pmem.fence(sites::TABLES);
        self.publish_manifest(shard, work, staged);
    }

    /// Puts a copy of the manifest in force, which is durable.
    fn publish_manifest(&self, shard: u32, work: &mut Work, staged: Current) {
        self.index.shards().manifest().publish(shard, &staged);
        work.current = staged;
        lock(&self.written).manifest.add(CHANGE_BYTES);
    }
}
