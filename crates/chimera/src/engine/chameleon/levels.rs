//! Tables above the last level as sources of a compaction; and, where there is no bypass index, what is made of tables instead.
//!
//! # Slots that do not count
//! A store with bypass indexes may free the record of a superseded slot above the last level. The store may be opened without
//! bypass indexes later. Such a slot lies behind the newer one of its key, in the order in which readers and merges look. A
//! merge drops it: where its record is not there, or is of a key with another hash, the slot is taken for superseded by the newer
//! slot of the same hash.

use std::ops::Range;

use chimera_pmem::Pmem;

use super::Chameleon;
use super::aids::{Making, Upper};
use super::shape::Shape;
use super::shard::Work;
use super::shards::owner;
use crate::index::persistent::shard_manifest::{LevelAt, TableAt};
use crate::index::probing_table::{Image, PersistentTable, Source};
use crate::types::error::Result;

impl<P: Pmem> Chameleon<P> {
    /// The tables of some levels of a shard, or their copies, the newest one first.
    ///
    /// # Errors
    /// When a table is damaged.
    pub(super) fn upper_sources(
        &self,
        shard: u32,
        work: &Work,
        levels: Range<usize>,
    ) -> Result<Vec<Source<'_>>> {
        let has_copies = self.index.shard(shard).is_bypassed();
        let mut sources = Vec::new();
        for level in levels {
            let LevelAt { at, tables } = work.current.tables.levels[level];
            for table in (0..tables).rev() {
                let upper = Upper { shard, level, table };
                let copy = self.index.aids.copy(upper).filter(|_| has_copies);
                sources.push(match copy {
                    Some(copy) => Source::Volatile(copy),
                    None => Source::Persistent(self.open_table(
                        self.index.table_at(level, at, table),
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
    pub(super) fn count_entries(&self, sources: &[Source<'_>]) -> Result<u64> {
        let count = |source: &Source<'_>| match source {
            Source::Volatile(table) => Ok(table.len()),
            Source::Persistent(table) => table.entries(&self.core.pool.pmem),
        };
        sources.iter().map(|source| count(source).map(u64::from)).sum()
    }

    /// The table of a shard that lies there.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn open_table(
        &self,
        table: TableAt,
        shard: u32,
        level: usize,
    ) -> Result<PersistentTable> {
        let place = self.index.extent(table);
        PersistentTable::open(&self.core.pool.pmem, place, owner(shard, level))
    }

    /// What takes the place of the bypass index of a shard whose last table was written: another one, `spare`; without one,
    /// what is made of that table.
    pub(super) fn aid_of_last(&self, spare: u32, last: Option<TableAt>, image: &Image) -> u32 {
        let Some(last) = last.filter(|_| !self.index.has_bypass()) else { return spare };
        let (aid, making) = self.index.aids.begin_last(Shape::slots_of(last.bytes));
        making.fill(image.iter());
        aid
    }

    /// Makes what is made of all tables of a shard, where there is no bypass index.
    ///
    /// # Errors
    /// When a table is damaged.
    ///
    /// # Cost
    /// All tables of the shard of which something is made.
    pub(super) fn make_of_tables(&self, shard: u32, work: &Work) -> Result<()> {
        let (shape, tables) = (&self.index.shape, work.current.tables);
        for level in 0..shape.upper_levels() {
            let LevelAt { at, tables } = tables.levels[level];
            for table in 0..tables {
                let making = self.index.aids.begin_upper(Upper { shard, level, table });
                self.make_of(making, self.index.table_at(level, at, table), shard, level)?;
            }
        }
        let Some(last) = tables.last else { return Ok(()) };
        let (aid, making) = self.index.aids.begin_last(Shape::slots_of(last.bytes));
        let made = self.make_of(making, last, shard, shape.upper_levels());
        made.inspect_err(|_| self.index.give_back_aid(aid))?;
        self.index.shard(shard).set_aid(aid);
        Ok(())
    }

    fn make_of(&self, making: Making<'_>, table: TableAt, shard: u32, level: usize) -> Result<()> {
        if matches!(making, Making::Nothing) {
            return Ok(());
        }
        self.open_table(table, shard, level)?.for_each(&self.core.pool.pmem, |slot| {
            making.enter(slot);
            Ok(())
        })
    }
}
