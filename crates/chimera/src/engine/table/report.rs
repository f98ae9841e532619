//! [`Stats`] and [`InspectReport`]: what a store says of itself, with a part that its engine says.

use super::engines::{EngineInspect, EngineStats};
#[cfg(not(loom))]
use crate::engine::chameleon::{ChameleonInspect, ChameleonStats};
use crate::engine::hikv::{HikvInspect, HikvStats};
#[cfg(all(feature = "baselines", not(loom)))]
use crate::engine::log_hash::{LogHashInspect, LogHashStats};
use crate::engine::options::EngineKind;
use crate::engine::viper::{ViperInspect, ViperStats};
use crate::types::durability::Durability;
use crate::types::losses::Losses;
use crate::types::operations::OperationStats;
use crate::types::order::OrderStats;
use crate::types::scrub::ScrubStats;
use crate::types::stats::{ReclaimStats, RecoveryStats};
use crate::types::verify_reads::VerifyReads;

/// What a store says of itself. Sizes are in bytes.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// Engine.
    pub engine: EngineKind,
    /// Key size; 0 where keys and values may have any.
    pub key_bytes: u32,
    /// Value size.
    pub value_bytes: u32,
    /// What the store lies on.
    pub medium: chimera_pmem::Medium,
    /// The durability in force.
    pub durability: Durability,
    /// Flush instruction in use.
    pub flush_instruction: String,
    /// Whether the pool's memory has huge pages.
    pub huge_pages: bool,
    /// Live records.
    pub records: u64,
    /// Records that failed their checksum at open and are not served (salvage only).
    pub records_damaged: u64,
    /// What damage has kept out so far (salvage only): see [`Db::losses`](crate::Db::losses).
    pub losses: Losses,
    /// Segments mapped.
    pub segments: u64,
    /// Size of a segment.
    pub segment_bytes: u64,
    /// Size of a block.
    pub block_bytes: u64,
    /// Blocks handed out so far and in use or free for reuse.
    pub blocks_used: u64,
    /// Blocks ready to be used without growing.
    pub blocks_ready: u64,
    /// Persistent memory in use: used blocks.
    pub pmem_bytes: u64,
    /// Keys and values of live records; none where they may have any size, because they are not added up.
    pub user_bytes: Option<u64>,
    /// `pmem_bytes` over `user_bytes`.
    pub space_amplification: Option<f64>,
    /// DRAM of the index.
    pub dram_index_bytes: u64,
    /// DRAM of locks and other tables, that of the order of keys among them.
    pub dram_table_bytes: u64,
    /// All of the store's DRAM over live records.
    pub dram_bytes_per_key: f64,
    /// Processor time of background work, in nanoseconds.
    pub background_ns: u64,
    /// Space reclamation since the store was opened.
    pub reclaim: ReclaimStats,
    /// Whether gets verify the sums of values.
    pub verify_reads: VerifyReads,
    /// What was verified in the background, and by `check`, since the store was opened.
    pub scrub: ScrubStats,
    /// What happened at open.
    pub recovery: RecoveryStats,
    /// What its sessions have done since then.
    pub operations: OperationStats,
    /// The journal, where there is one.
    pub journal: Option<chimera_pmem::journal::JournalFigures>,
    /// The memory of pages of plain files, where there is a journal.
    pub pages: Option<chimera_pmem::journal::PageFigures>,
    /// Flushes and fences, where the backend counts them.
    pub persistence: Option<chimera_pmem::PersistenceCounts>,
    /// The order of keys, where there is one.
    pub order: Option<OrderStats>,
    /// What its engine says.
    pub details: EngineStats,
}

/// What a store is made of, as [`Db::inspect`](crate::Db::inspect) found it. Beside writers the parts are
/// as of moments a little apart.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct InspectReport {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Blocks handed out so far.
    pub blocks_used: u64,
    /// Blocks beyond the used ones, ready for use.
    pub blocks_ready: u64,
    /// Live records.
    pub records: u64,
    /// What damage has kept out (salvage only): see [`Db::losses`](crate::Db::losses).
    pub losses: Losses,
    /// What its engine says.
    pub details: EngineInspect,
}

impl Stats {
    /// What Viper says, if that is the engine.
    pub fn viper(&self) -> Option<&ViperStats> {
        match &self.details {
            EngineStats::Viper(viper) => Some(viper),
            _ => None,
        }
    }

    /// What HiKV says, if that is the engine.
    pub fn hikv(&self) -> Option<&HikvStats> {
        match &self.details {
            EngineStats::Hikv(hikv) => Some(hikv),
            _ => None,
        }
    }

    /// What ChameleonDB says, if that is the engine.
    #[cfg(not(loom))]
    pub fn chameleon(&self) -> Option<&ChameleonStats> {
        match &self.details {
            EngineStats::Chameleon(chameleon) => Some(chameleon),
            _ => None,
        }
    }

    /// What `pmem-hash` or `dram-hash` says, if that is the engine.
    #[cfg(all(feature = "baselines", not(loom)))]
    pub fn log_hash(&self) -> Option<&LogHashStats> {
        match &self.details {
            EngineStats::PmemHash(stats) | EngineStats::DramHash(stats) => Some(stats),
            _ => None,
        }
    }
}

impl InspectReport {
    /// What Viper says, if that is the engine.
    pub fn viper(&self) -> Option<&ViperInspect> {
        match &self.details {
            EngineInspect::Viper(viper) => Some(viper),
            _ => None,
        }
    }

    /// What HiKV says, if that is the engine.
    pub fn hikv(&self) -> Option<&HikvInspect> {
        match &self.details {
            EngineInspect::Hikv(hikv) => Some(hikv),
            _ => None,
        }
    }

    /// What ChameleonDB says, if that is the engine.
    #[cfg(not(loom))]
    pub fn chameleon(&self) -> Option<&ChameleonInspect> {
        match &self.details {
            EngineInspect::Chameleon(chameleon) => Some(chameleon),
            _ => None,
        }
    }

    /// What `pmem-hash` or `dram-hash` says, if that is the engine.
    #[cfg(all(feature = "baselines", not(loom)))]
    pub fn log_hash(&self) -> Option<&LogHashInspect> {
        match &self.details {
            EngineInspect::PmemHash(inspect) | EngineInspect::DramHash(inspect) => Some(inspect),
            _ => None,
        }
    }
}
