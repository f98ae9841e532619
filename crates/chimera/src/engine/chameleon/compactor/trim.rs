//! Room of levels that have no tables is given back.

use chimera_pmem::Pmem;

use super::Compactor;
use crate::engine::chameleon::space::Need;
use crate::types::error::{Error, Result};

impl<P: Pmem> Compactor<P> {
    /// Makes a last table of all that each shard has which keeps room for other levels, and gives that room back. A shard whose
    /// last table finds no room stays as it is.
    ///
    /// # Errors
    /// When a table or a record is damaged. Shards before are trimmed, and no record is lost.
    ///
    /// # Cost
    /// All tables of these shards, and 4 fences for each. Puts to a shard wait meanwhile.
    pub(crate) fn trim(&self) -> Result<()> {
        for shard in 0..self.index().shards().shape().shards() {
            let mut work = self.index().lock_work(shard);
            if !work.current.tables.levels.iter().any(|level| level.at > 0) {
                continue;
            }
            match self.merge_locked(shard, &mut work, Need::Upkeep) {
                Ok(()) | Err(Error::PoolFull { .. }) => {}
                Err(error) => return Err(error),
            }
            self.tables.give_back_levels(shard, &mut work)?;
        }
        Ok(())
    }
}
