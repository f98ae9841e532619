//! What ChameleonDB says of itself.

use serde::Serialize;

use super::Compaction;
use crate::RunCounts;
use crate::engine::{EngineInspect, EngineStats, InspectReport, Stats};

/// What ChameleonDB says of its store.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ChameleonStats {
    /// Shards of the index.
    pub shards: u32,
    /// Slots of a MemTable.
    pub memtable_slots: u32,
    /// Slots of a bypass index.
    pub bypass_slots: u32,
    /// Levels, the last one included.
    pub levels: u32,
    /// Tables of a level that make one of the next.
    pub ratio: u32,
    /// How tables are put together.
    pub compaction: Compaction,
    /// Entries of all MemTables.
    pub memtable_entries: u64,
    /// Entries of all bypass indexes.
    pub bypass_entries: u64,
    /// Shards whose bypass index is complete. Until it is, a get looks at every table of its shard.
    pub shards_bypassed: u32,
    /// Tables of each level above the last one.
    pub level_tables: Vec<u64>,
    /// Tables of the last level.
    pub last_tables: u64,
    /// Bytes of these.
    pub last_bytes: u64,
    /// Bytes of the log that opening has replayed.
    pub replayed_log_bytes: u64,
}

impl Stats {
    /// What ChameleonDB says, if that is the engine.
    pub fn chameleon(&self) -> Option<&ChameleonStats> {
        match &self.details {
            EngineStats::Chameleon(chameleon) => Some(chameleon),
            _ => None,
        }
    }
}

impl InspectReport {
    /// What ChameleonDB says, if that is the engine.
    pub fn chameleon(&self) -> Option<&ChameleonInspect> {
        match &self.details {
            EngineInspect::Chameleon(chameleon) => Some(chameleon),
            _ => None,
        }
    }
}

/// What a store of ChameleonDB is made of.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ChameleonInspect {
    /// As [`Stats`](crate::Stats) has them.
    pub sizes: ChameleonStats,
    /// Runs of blocks.
    pub runs: RunCounts,
}
