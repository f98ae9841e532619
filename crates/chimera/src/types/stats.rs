//! [`Stats`]: what a store says of itself.

use serde::Serialize;

use super::operations::OperationStats;
use crate::{Durability, EngineKind, RecordLayout};

/// What a store says of itself. Sizes are in bytes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Engine.
    pub engine: EngineKind,
    /// Record layout.
    pub layout: RecordLayout,
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
    /// Segments mapped.
    pub segments: u64,
    /// Size of a segment.
    pub segment_bytes: u64,
    /// VBlocks handed out so far and in use or free for reuse.
    pub blocks_used: u64,
    /// VBlocks ready to be used without growing.
    pub blocks_ready: u64,
    /// Records one VPage holds.
    pub records_per_page: u32,
    /// Records one VBlock holds.
    pub records_per_block: u32,
    /// Persistent memory in use: used blocks.
    pub pmem_bytes: u64,
    /// Keys and values of live records; none where they may have any size: nobody adds them up.
    pub user_bytes: Option<u64>,
    /// `pmem_bytes` over `user_bytes`.
    pub space_amplification: Option<f64>,
    /// DRAM of the index.
    pub dram_index_bytes: u64,
    /// DRAM of page locks and block states.
    pub dram_table_bytes: u64,
    /// All of the store's DRAM over live records.
    pub dram_bytes_per_key: f64,
    /// Processor time of background work, in nanoseconds.
    pub background_ns: u64,
    /// Space reclamation since the store was opened.
    pub reclaim: ReclaimStats,
    /// What happened at open.
    pub recovery: RecoveryStats,
    /// What its sessions have done since then.
    pub operations: OperationStats,
    /// The journal, where there is one.
    pub journal: Option<chimera_pmem::journal::JournalFigures>,
    /// Flushes and fences, where the backend counts them.
    pub persistence: Option<chimera_pmem::PersistenceCounts>,
}

/// What space reclamation has done since the store was opened, and what there is to do.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ReclaimStats {
    /// Bytes of used blocks that hold no record that counts, roughly; not of blocks that sessions fill.
    pub debt_bytes: u64,
    /// Passes that ended.
    pub passes: u64,
    /// Records moved.
    pub moved_records: u64,
    /// Bytes of their keys and values.
    pub moved_bytes: u64,
    /// Blocks that were emptied, to be used again.
    pub blocks_freed: u64,
    /// Blocks at the end of the pool that were given back.
    pub blocks_given_back: u64,
}

/// What happened when the store was opened.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct RecoveryStats {
    /// Blocks scanned.
    pub blocks_scanned: u64,
    /// Live records found.
    pub records: u64,
    /// Second copies of a key left by an interrupted overwrite and cleared.
    pub duplicates_cleared: u64,
    /// Records that failed their checksum (salvage only).
    pub records_damaged: u64,
    /// Threads that scanned.
    pub threads: usize,
    /// Whether the store had been closed in order.
    pub clean: bool,
    /// Time from the call to the open store, in nanoseconds.
    pub duration_ns: u64,
}
