//! ChameleonDB (EuroSys'21): a storage log, and an index of many shards, each with levels of hash tables in persistent memory.
//! A bypass index in DRAM leads around the levels above the last one.
//!
//! # Protocol
//! Every write holds the lock of its shard, a word in DRAM, from before it looks for the key until it is done.
//! - **put**: look for the key; append a record to the session's run of the log, flush, *fence*; make the MemTable lead to
//!   it. One fence, whether the key is new or not.
//!   By option it looks for the key in the MemTable alone.
//! - **get**: no lock. Look in the MemTable, the bypass index and the last table; read the record that is found; verify that
//!   no table has moved and no run of the log was freed meanwhile. See [`read`].
//! - **delete**: as a put, of a record without a value: a tombstone.
//! - **flush**: a full MemTable becomes a table of the first level, and goes to the bypass index. The table, with a new copy
//!   of the shard's manifest; *fence*; the word that puts the copy in force, flush, *fence*.
//! - **compaction**: full levels become one table of the next level that has room; if none has, the bypass index and the last
//!   table become a new last table. Steps as for a flush. Then, in DRAM, the log learns which records nothing refers to.
//! - **modes**: a full MemTable goes to the bypass index alone; a full bypass index becomes a last table, or a table of its own.
//!   See [`modes`], [`dump`], and [`latency`] for when gets are protected.
//! - **bound**: a session that has taken a run of the log flushes the shards that the oldest runs wait for. See
//!   [`replay_bound`].
//! - **recovery**: the manifest is read. What the log has beyond it goes to MemTables, by version. Bypass indexes are made of
//!   tables [beside sessions](bypass), and runs of the log are freed again when all are.
//! - **collection**: records of runs with little else are [appended anew](collect), so that the runs become free. In a full
//!   pool [room is held back](space) for that, for tombstones and for last tables.
//!
//! - **comparison points**: an option leaves the bypass index out, and puts [copies or filters](aids) of tables in its place, or
//!   nothing. A get looks at one table after the other, the newest one first. A compaction merges tables. Nothing is collected,
//!   and there are no modes. Media are the same.
//!
//! # Invariants
//! 1. A record is durable before a MemTable leads to it.
//! 2. Versions rise within a shard. Every record of a shard up to the manifest's version is in its tables, or superseded by
//!    one that is; a record above it is in the log, and replayed.
//! 3. The newest slot of each key leads to a record that is there, in DRAM and in tables alone. A record is dropped when
//!    something has superseded it and no table leads to it, or a table in force has what superseded it, and that is durable.
//! 4. A slot in the levels above the last one counts only if the bypass index has it; where there is none, only if no newer
//!    slot is of its key.
//! 5. Of a new key an add-on is told before the MemTable has it. Of a removal it is told when the MemTable has the tombstone.
//!
//! docs/DURABILITY.md has what a crash in each step leaves.

mod aids;
mod alike;
mod budget;
mod bypass;
mod check;
mod collect;
mod compact;
mod counts;
mod creation;
mod dump;
mod engine;
mod flush;
mod latency;
mod levels;
mod list;
mod modes;
mod options;
mod read;
mod recovery;
mod replay_bound;
mod report;
mod shape;
mod shard;
mod shards;
mod space;
mod write;

use std::collections::HashMap;

use chimera_pmem::{CACHE_LINE, Pmem};

use crate::engine::Core;
use crate::engine::shared::client::{Client, SharedClient};
use crate::index::probing_table::PersistentTable;
use crate::pool::runs::Run;
use crate::pool::{BlockKind, Pool};
use crate::records::limits::Limits;
use crate::records::storage_log::{Appender, StorageLog};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::types::totals::Totals;
use budget::Budget;
use collect::Collection;
use counts::Counts;
pub use counts::{IndexWritten, TablesWritten};
use creation::Parameters;
pub(crate) use creation::Type;
pub use latency::ProtectSwitch;
use latency::Sampler;
use modes::Modes;
pub use options::{ChameleonOptions, Compaction, Mode as ChameleonMode, UpperIndex};
pub use report::{ChameleonInspect, ChameleonStats};
pub(crate) use report::{ChameleonInspect as Inspect, ChameleonStats as Stats};
use shard::{Locked, Work, Writing};
use shards::Shards;
use space::Space;

/// Where the engine writes tables, and fences.
mod sites {
    chimera_pmem::sites! {
        /// A MemTable that becomes a table of the first level.
        FLUSH = "chameleon.flush";
        /// A table of another level above the last one.
        UPPER = "chameleon.upper";
        /// A last table.
        LAST = "chameleon.last";
        /// A dumped bypass index.
        DUMP = "chameleon.dump";
        /// Tables, and the copy of the manifest that names them.
        TABLES = "chameleon.tables";
        /// The copy of the manifest that names a level for the first time.
        LEVEL = "chameleon.level";
        /// That all records of runs are in tables, before the write returns that had it done. Another session may have put the
        /// last of them into a table.
        MARKS = "chameleon.marks", may_be_clean;
    }
}

/// Checks and steps that a tool can leave out.
mod steps {
    chimera_pmem::steps! {
        /// Freeing the tables that a crash left, which the manifest does not name.
        FREE_ORPHANS = "chameleon.step.free_orphans";
        /// That the index leads to a record that is collected.
        COLLECT_CURRENT = "chameleon.step.collect_current";
    }
}

/// The kinds of runs.
const LOG: BlockKind = BlockKind::new(1, "chameleon.log");
const MANIFEST: BlockKind = BlockKind::new(2, "chameleon.manifest");
const LEVEL: BlockKind = BlockKind::new(3, "chameleon.level");
const TABLE: BlockKind = BlockKind::new(4, "chameleon.table");

/// Most keys of one hash that are put.
const ALIKE_MAX: u32 = 15;

/// Slots of a bypass index that are being loaded while others are looked at.
const LOADED_AHEAD: usize = 12;

/// The engine: one open store.
pub(crate) struct Chameleon<P: Pmem> {
    core: Core<P>,
    parameters: Parameters,
    limits: Limits,
    log: StorageLog<P>,
    index: Shards<P>,
    table_runs: TableRuns,
    space: Space,
    collection: Collection,
    compaction: Compaction,
    modes: Modes,
    budget: Budget,
    counts: Counts,
    /// Bytes of the log that a restart replays at most, in the normal mode, and who sees to that now.
    replay_bytes_max: u64,
    replay_turn: Mutex<()>,
    /// Puts look for their key in the MemTable alone.
    blind_puts: bool,
    /// What is damaged is passed over.
    salvages: bool,
    /// Records are counted anew where a last table says how many there are. Not while the store is opened: their number is
    /// compared with that of closing, also by the next opening if this one is interrupted.
    recounts: bool,
    /// Bytes of the log that opening has replayed.
    replayed_bytes: u64,
    /// Records that are counted, and that salvage has left out. They stay counted, as in the manifest, because the next opening
    /// counts them as well.
    left_out: u64,
    /// What opening has found in the manifest and in the headers of the log, before it changed any of them.
    found: Totals,
}

/// What a session keeps between operations.
#[derive(Debug)]
pub(crate) struct ChameleonClient {
    shared: SharedClient,
    appender: Appender,
    /// Times some gets.
    sampler: Sampler,
}

impl Client for ChameleonClient {
    #[inline(always)]
    fn shared(&mut self) -> &mut SharedClient {
        &mut self.shared
    }

    #[inline(always)]
    fn shared_ref(&self) -> &SharedClient {
        &self.shared
    }
}

/// The runs of tables.
#[derive(Debug, Default)]
struct TableRuns {
    /// By the offset where a table can begin.
    by_start: Mutex<HashMap<u64, Run>>,
    /// Blocks of last tables and dumps.
    last_blocks: AtomicU64,
}

impl TableRuns {
    fn put(&self, at: u64, run: Run) {
        if run.is(TABLE) {
            self.last_blocks.fetch_add(run.blocks().into(), Ordering::Relaxed);
        }
        lock(&self.by_start).insert(at, run);
    }

    fn take(&self, at: u64) -> Option<Run> {
        let run = lock(&self.by_start).remove(&at);
        if let Some(run) = run.as_ref().filter(|run| run.is(TABLE)) {
            self.last_blocks.fetch_sub(run.blocks().into(), Ordering::Relaxed);
        }
        run
    }

    fn blocks(&self, at: u64) -> Option<u32> {
        lock(&self.by_start).get(&at).map(Run::blocks)
    }

    /// Blocks of all last tables and dumps.
    fn last_blocks(&self) -> u64 {
        self.last_blocks.load(Ordering::Relaxed)
    }
}

impl<P: Pmem> Chameleon<P> {
    /// Locks the MemTable of a shard, also when writes are refused.
    fn lock_to_look(&self, shard: u32) -> Locked<'_, Writing> {
        let environment = &**self.core.environment();
        self.index.shard(shard).lock_to_look(&self.core.poison, environment)
    }

    /// Locks the tables of a shard.
    fn lock_work(&self, shard: u32) -> Locked<'_, Work> {
        let environment = &**self.core.environment();
        self.index.shard(shard).lock_work(&self.core.poison, environment)
    }

    /// Which tables are in force, and what they have.
    fn manifest_totals(&self) -> Totals {
        let mut totals = Totals::default();
        for shard in 0..self.index.shape.shards() {
            let current = self.lock_work(shard).current;
            totals.add_state(shard.into(), current.epoch().into());
            totals.add_state(current.tables.flushed_version, current.tables.records);
            for (place, owner) in self.index.tables_of(shard, &current.tables) {
                let pmem = &self.core.pool.pmem;
                let table = PersistentTable::open(pmem, self.index.extent(place), owner);
                let checksum = table.and_then(|table| table.checksum(pmem));
                // Of a damaged one the error is said where it is found.
                totals.add_state(place.at, checksum.unwrap_or_default());
            }
        }
        totals
    }

    fn count_records(&self) -> u64 {
        let shards = 0..self.index.shape.shards();
        shards.map(|shard| self.lock_to_look(shard).records).fold(0, u64::saturating_add)
    }
}

/// Blocks of a run with room for so many bytes.
fn blocks_for<P: Pmem>(pool: &Pool<P>, bytes: u64) -> u32 {
    (bytes + CACHE_LINE).div_ceil(pool.map.block_bytes).min(u64::from(u32::MAX)) as u32
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
