//! The rows of a report, and what of them is known before it is printed.

use serde::{Deserialize, Serialize};

/// What a store says of itself and of where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The engine, or the baseline, that was measured.
    pub engine: String,
    /// What the store lay on.
    pub medium: String,
    /// The durability in force; `none` where nothing survives the end of the process.
    pub durability: String,
    /// The instruction that flushed lines; `none` where nothing is flushed.
    pub flush_instruction: String,
    /// Whether the system gave the store huge pages.
    pub huge_pages: bool,
}

/// One of the stores that were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreRow {
    /// What it says of itself.
    #[serde(flatten)]
    pub facts: Facts,
    /// Its DRAM over its records, once these were loaded.
    pub dram_bytes_per_key: f64,
    /// Persistent memory in use over bytes of keys and values, once the records were loaded; 0 where
    /// nothing lies in persistent memory.
    pub space_amplification: f64,
    /// Records read and found right after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_records: Option<u64>,
}

/// What was measured of one kind of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The engine, or the baseline, that did it.
    pub engine: String,
    /// The durability in force meanwhile.
    pub durability: String,
    /// The kind of work.
    pub operation: String,
    /// Threads that did it.
    pub threads: usize,
    /// Operations per second of all threads together, without a clock reading for each: the median
    /// over the throughput passes.
    pub ops_per_second: f64,
    /// Latency in nanoseconds.
    pub latency_ns: Latency,
    /// Throughput passes.
    pub repetitions: usize,
    /// (max - min) / median of operations per second.
    pub spread: f64,
    /// Means per operation, counted in a pass of their own; absent when not counted, and where nothing
    /// lies in persistent memory.
    pub counters: Option<Counters>,
    /// Lines written to the busiest of six DIMMs over the mean of all, as modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimm_spread: Option<f64>,
}

/// Latency in nanoseconds. The mean is that of the throughput passes: threads over operations per
/// second. The percentiles come from separate passes in which the clock is read for each operation;
/// they contain one such reading, 20 to 40 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 99 of 100 operations took at most so long.
    pub p99: u64,
    /// 999 of 1000.
    pub p999: u64,
    /// 9999 of 10,000.
    pub p9999: u64,
}

/// Means per operation. Exact and repeatable: counted on one thread with the report's seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Fences.
    pub fences: f64,
    /// Distinct lines of 64 bytes flushed.
    pub lines_flushed: f64,
    /// Flushes of a line that the same operation had flushed already.
    pub lines_reflushed: f64,
    /// Distinct lines of persistent memory read, also by prefetching or to write a part of them.
    pub lines_read: f64,
    /// Media units written, whole or partial.
    pub media_writes: f64,
    /// Those of them that had to be read as well, because some of their lines were not written.
    pub media_writes_partial: f64,
    /// Media units read, not to complete others.
    pub media_reads: f64,
}

/// Work nested in operations and booked apart from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApartRow {
    /// The engine that did it.
    pub engine: String,
    /// `block_hand_out`, `batch_record`.
    pub operation: String,
    /// The kind of work in which it happened.
    pub during: String,
    /// How often it happened per operation.
    pub per_operation: f64,
    /// Means for each time it happened.
    pub counters: Counters,
}

/// How long opening a store took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryRow {
    /// The engine.
    pub engine: String,
    /// `recovery`: the open store. `order, loaded` or `order, gathered`: the first record of a scan, whose order was written
    /// at the last close or made of all keys.
    pub made: String,
    /// Threads that scanned.
    pub threads: usize,
    /// Records found.
    pub records: u64,
    /// Time from the call until it was there: the median.
    pub duration_ns: f64,
    /// Records found per second of that.
    pub records_per_second: f64,
    /// How often it was measured.
    pub repetitions: usize,
    /// (max - min) / median of the duration.
    pub spread: f64,
}

/// What was counted of one kind of work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counted {
    /// Means per operation.
    pub(crate) counters: Counters,
    /// What was booked apart.
    pub(crate) apart: Vec<ApartRow>,
    /// Lines written to the busiest DIMM over the mean of all.
    pub(crate) dimm_spread: Option<f64>,
}
