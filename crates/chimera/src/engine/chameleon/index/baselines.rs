//! Helpers of tables that were found, where there is no bypass index.

use chimera_pmem::Pmem;

use super::Index;
use crate::engine::chameleon::baselines::HelperBuilder;
use crate::engine::chameleon::shape::{Shape, Upper};
use crate::engine::chameleon::shard::Work;
use crate::index::persistent::shard_manifest::{LevelAt, TableAt};
use crate::types::error::Result;

impl<P: Pmem> Index<P> {
    /// Makes the helpers of all tables of a shard, where there is no bypass index.
    ///
    /// # Errors
    /// When a table is damaged.
    ///
    /// # Cost
    /// All tables of the shard that have a helper.
    pub(super) fn make_helpers(&self, shard: u32, work: &Work) -> Result<()> {
        let (shape, tables) = (self.shards.shape(), work.current.tables);
        for level in 0..shape.upper_levels() {
            let LevelAt { at, tables } = tables.levels[level];
            for table in 0..tables {
                let builder = self.shards.helpers().begin_upper(Upper { shard, level, table });
                self.make_helper(builder, self.shards.table_at(level, at, table), shard, level)?;
            }
        }
        let Some(last) = tables.last else { return Ok(()) };
        let (helper, builder) = self.shards.helpers().begin_last(Shape::slots_of(last.bytes));
        let made = self.make_helper(builder, last, shard, shape.upper_levels());
        made.inspect_err(|_| self.shards.give_back_helper(helper))?;
        self.shards.shard(shard).set_helper(helper);
        Ok(())
    }

    fn make_helper(
        &self,
        builder: HelperBuilder<'_>,
        table: TableAt,
        shard: u32,
        level: usize,
    ) -> Result<()> {
        if matches!(builder, HelperBuilder::Nothing) {
            return Ok(());
        }
        self.open_table(table, shard, level)?.for_each(&self.core().pool.pmem, |slot| {
            builder.enter(slot);
            Ok(())
        })
    }
}
