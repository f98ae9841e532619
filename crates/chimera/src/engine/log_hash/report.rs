//! What a log with one hash table says of itself.

use crate::RunCounts;

/// What `pmem-hash` and `dram-hash` say of their stores.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LogHashStats {
    /// Segments of the index; 1 where it is one table.
    pub index_segments: u64,
    /// Entries that it has room for.
    pub index_slots: u64,
    /// log2 of the words of its directory.
    pub directory_depth: u32,
    /// Runs of the log, and their bytes. Nothing of them is ever freed.
    pub log_runs: u64,
    /// Bytes of these runs.
    pub log_bytes: u64,
    /// Bytes of the log that opening has replayed.
    pub replayed_log_bytes: u64,
}

/// What of it the index says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(super) segments: u64,
    pub(super) slots: u64,
    pub(super) directory_depth: u32,
}

/// What a store of `pmem-hash` or `dram-hash` is made of.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LogHashInspect {
    /// As [`Stats`](crate::Stats) has them.
    pub sizes: LogHashStats,
    /// Entries of the index over slots.
    pub index_load: f64,
    /// Runs of blocks.
    pub runs: RunCounts,
}
