//! Tables to be read as a whole: as sources of a compaction; and, where there is no bypass index, for their helpers.
//!
//! # Superseded slots
//! A store with bypass indexes may free the record of a superseded slot above the last level. The store may be opened without
//! bypass indexes later. Such a slot lies behind the newer one of its key, in the order in which readers and merges look. A
//! merge drops it: where its record is gone, or is of a key with another hash, the slot is taken for superseded by the newer
//! slot of the same hash.

use std::ops::Range;

use chimera_pmem::Pmem;

use super::Index;
use crate::engine::chameleon::shape::{Shape, Upper};
use crate::engine::chameleon::shard::Work;
use crate::engine::chameleon::shards::owner;
use crate::index::persistent::shard_manifest::{LevelAt, TableAt};
use crate::index::probing_table::{Image, PersistentTable, Source};
use crate::types::error::Result;

impl<P: Pmem> Index<P> {
    /// The tables of some levels of a shard, or their copies, the newest one first.
    ///
    /// # Errors
    /// When a table is damaged.
    pub(crate) fn upper_sources(
        &self,
        shard: u32,
        work: &Work,
        levels: Range<usize>,
    ) -> Result<Vec<Source<'_>>> {
        let has_copies = self.shards.shard(shard).is_bypassed();
        let mut sources = Vec::new();
        for level in levels {
            let LevelAt { at, tables } = work.current.tables.levels[level];
            for table in (0..tables).rev() {
                let upper = Upper { shard, level, table };
                let copy = self.shards.helpers().copy(upper).filter(|_| has_copies);
                sources.push(match copy {
                    Some(copy) => Source::Volatile(copy),
                    None => Source::Persistent(self.open_table(
                        self.shards.table_at(level, at, table),
                        shard,
                        level,
                    )?),
                });
            }
        }
        Ok(sources)
    }

    /// Entries of all tables together.
    ///
    /// # Errors
    /// When a table is damaged.
    pub(crate) fn count_entries(&self, sources: &[Source<'_>]) -> Result<u64> {
        let count = |source: &Source<'_>| match source {
            Source::Volatile(table) => Ok(table.len()),
            Source::Persistent(table) => table.entries(&self.core().pool.pmem),
        };
        sources.iter().map(|source| count(source).map(u64::from)).sum()
    }

    /// The table of a shard that lies there.
    ///
    /// # Errors
    /// When it is damaged.
    pub(crate) fn open_table(
        &self,
        table: TableAt,
        shard: u32,
        level: usize,
    ) -> Result<PersistentTable> {
        let place = self.shards.extent(table);
        PersistentTable::open(&self.core().pool.pmem, place, owner(shard, level))
    }

    /// What takes the place of the bypass index of a shard whose last table was written: an `empty` one; without bypass
    /// indexes, the helper of that table.
    pub(crate) fn helper_of_last(&self, empty: u32, last: Option<TableAt>, image: &Image) -> u32 {
        let Some(last) = last.filter(|_| !self.shards.has_bypass()) else { return empty };
        let (helper, builder) = self.shards.helpers().begin_last(Shape::slots_of(last.bytes));
        builder.fill(image.iter());
        helper
    }
}
