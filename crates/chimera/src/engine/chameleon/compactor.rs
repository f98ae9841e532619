//! [`Compactor`]: MemTables become tables, and tables others (ChameleonDB, sections 2.1 and 2.2). The caller holds the lock of
//! the shard's tables, and says what is to be done.
//!
//! Each compaction is a [plan](plan), made of what there is; tables that are written; and an [edit](super::edit) that is
//! installed. Until that nothing has changed.
//!
//! - `flush`: a MemTable becomes a table of the first level. `upper`: full levels become a table of one of the next.
//! - `last`: all of a shard becomes its last table. `dump`: a bypass index becomes a table of its own.
//! - `trim`: room of levels without tables is given back. `budget`: how many run at once.

mod budget;
mod dump;
mod flush;
mod last;
mod plan;
mod trim;
mod upper;

use chimera_pmem::Pmem;

use super::index::Index;
use super::shard::Work;
use super::tables::Tables;
use crate::engine::options::variants::Compaction;
use crate::index::probing_table::{MergeOwner, Slot};
use crate::types::error::Result;
use budget::{Budget, Permit};

/// Makes tables of MemTables and of tables.
pub(super) struct Compactor<P: Pmem> {
    tables: Tables<P>,
    compaction: Compaction,
    budget: Budget,
}

impl<P: Pmem> Compactor<P> {
    /// So many compactions run at once; none: as many as there are writers.
    pub(super) fn new(tables: Tables<P>, compaction: Compaction, threads: Option<u32>) -> Self {
        Self { tables, compaction, budget: Budget::new(threads) }
    }

    #[inline(always)]
    pub(super) fn index(&self) -> &Index<P> {
        self.tables.index()
    }

    pub(super) fn tables(&self) -> &Tables<P> {
        &self.tables
    }

    /// Before there are sessions.
    pub(super) fn tables_mut(&mut self) -> &mut Tables<P> {
        &mut self.tables
    }

    /// How tables are put together.
    #[cfg(feature = "baselines")]
    pub(super) fn compaction(&self) -> Compaction {
        self.compaction
    }

    /// A permit for a compaction, as soon as there is one.
    pub(super) fn wait(&self) -> Permit<'_> {
        self.budget.wait(&**self.index().core().environment())
    }

    /// Whether a compaction more would have to wait, at this moment.
    pub(super) fn is_spent(&self) -> bool {
        self.budget.is_spent()
    }

    /// Whether the first level of a shard is full.
    pub(super) fn needs_compaction(&self, work: &Work) -> bool {
        plan::is_full(&work.current.tables, 0, self.index().shards().shape())
    }
}

/// What of a merge the log is to know.
struct Dropped<'e, P: Pmem> {
    index: &'e Index<P>,
    /// Slots that are not in the new table.
    slots: Vec<Slot>,
}

impl<P: Pmem> MergeOwner for Dropped<'_, P> {
    fn prefetch(&mut self, slot: Slot) {
        if let Some(found) = slot.found() {
            self.index.log().prefetch(found.offset);
        }
    }

    fn is_same_key(&mut self, newer: Slot, older: Slot) -> Result<bool> {
        let records = self.index.records();
        // Without a bypass index there may be slots whose records are gone, from another life of the store.
        let is_same = if self.index.shards().has_bypass() {
            records.is_same_key(newer, older)
        } else {
            records.is_superseded(newer, older)
        };
        if !is_same {
            records.check_tombstone(newer)?;
        }
        Ok(is_same)
    }

    fn dropped(&mut self, slot: Slot) {
        if self.index.shards().has_bypass() {
            self.slots.push(slot);
        }
    }
}
