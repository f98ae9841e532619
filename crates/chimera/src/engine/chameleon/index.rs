//! [`Index`]: all shards over the log. What finds a record, what enters one, and what makes a bypass index.
//!
//! It writes nothing to persistent memory. [Tables](super::tables) are made by the layers above, which hand it the locks that
//! they hold.
//!
//! - `find`: what a writer looks for, in a shard that it has locked. `read`: gets, without a lock.
//! - `same_hash`: all keys of a hash. `part`: hashes in the order of listings. `list`, `check`: all of them.
//! - `absorb`: a MemTable goes to its bypass index. `bypass`: bypass indexes after a restart.
//! - `sources`: tables to be read as a whole, and their helpers.

mod absorb;
#[cfg(feature = "baselines")]
mod baselines;
mod bypass;
mod check;
mod find;
mod list;
mod part;
mod read;
mod same_hash;
mod sources;

use chimera_pmem::Pmem;

use super::records::Records;
use super::shard::{Locked, Work, Writing};
use super::shards::Shards;
use crate::engine::Core;
use crate::index::probing_table::PersistentTable;
use crate::records::storage_log::StorageLog;
use crate::sync::atomic::AtomicU64;
use crate::types::error::Result;
use crate::types::totals::Totals;
pub(super) use absorb::LOADED_AHEAD;
pub(super) use check::{check_step, verify_all};
pub(super) use find::{Key, Old};
pub(super) use list::list_from;

/// All shards, and the log that their slots refer to.
pub(super) struct Index<P: Pmem> {
    records: Records<P>,
    shards: Shards<P>,
    /// Records when the last pass of verification began: to count them takes the lock of every shard.
    records_to_verify: AtomicU64,
}

impl<P: Pmem> Index<P> {
    pub(super) fn new(records: Records<P>, shards: Shards<P>) -> Self {
        Self { records, shards, records_to_verify: AtomicU64::new(0) }
    }

    #[inline(always)]
    pub(super) fn core(&self) -> &Core<P> {
        self.records.core()
    }

    #[inline(always)]
    pub(super) fn log(&self) -> &StorageLog<P> {
        self.records.log()
    }

    #[inline(always)]
    pub(super) fn records(&self) -> &Records<P> {
        &self.records
    }

    #[inline(always)]
    pub(super) fn shards(&self) -> &Shards<P> {
        &self.shards
    }

    /// Before there are sessions.
    pub(super) fn shards_mut(&mut self) -> &mut Shards<P> {
        &mut self.shards
    }

    // ---- locks ---------------------------------------------------------------------------------

    /// Locks the MemTable of a shard for a write.
    ///
    /// # Errors
    /// When writes are refused.
    #[inline]
    pub(super) fn lock(&self, shard: u32) -> Result<Locked<'_, Writing>> {
        let core = self.core();
        self.shards.shard(shard).lock(&core.poison, &**core.environment())
    }

    /// Locks the MemTable of a shard, also when writes are refused.
    pub(super) fn lock_to_look(&self, shard: u32) -> Locked<'_, Writing> {
        let core = self.core();
        self.shards.shard(shard).lock_to_look(&core.poison, &**core.environment())
    }

    /// Locks the tables of a shard.
    pub(super) fn lock_work(&self, shard: u32) -> Locked<'_, Work> {
        let core = self.core();
        self.shards.shard(shard).lock_work(&core.poison, &**core.environment())
    }

    pub(super) fn is_memtable_full(&self, shard: u32) -> bool {
        let writing = self.lock_to_look(shard);
        self.shards.memtable(shard).is_full(writing.entries_max)
    }

    // ---- all shards ----------------------------------------------------------------------------

    pub(super) fn count_records(&self) -> u64 {
        let shards = 0..self.shards.shape().shards();
        shards.map(|shard| self.lock_to_look(shard).records).fold(0, u64::saturating_add)
    }

    /// Writes since the store was made.
    pub(super) fn count_writes(&self) -> u64 {
        (0..self.shards.shape().shards()).map(|shard| self.lock_to_look(shard).version).sum()
    }

    /// Which tables are in force, and what they have.
    pub(super) fn manifest_totals(&self) -> Totals {
        let mut totals = Totals::default();
        for shard in 0..self.shards.shape().shards() {
            let current = self.lock_work(shard).current;
            totals.add_state(shard.into(), current.epoch().into());
            totals.add_state(current.tables.flushed_version, current.tables.records);
            for (place, owner) in self.shards.tables_of(shard, &current.tables) {
                let pmem = &self.core().pool.pmem;
                let table = PersistentTable::open(pmem, self.shards.extent(place), owner);
                let checksum = table.and_then(|table| table.checksum(pmem));
                // Of a damaged one the error is said where it is found.
                totals.add_state(place.at, checksum.unwrap_or_default());
            }
        }
        totals
    }
}
