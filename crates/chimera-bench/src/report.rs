//! [`Report`]: the result of a benchmark, as `--json` prints it.
//!
//! Fields are only ever added. Those that belong to one subcommand are absent elsewhere.

pub(crate) mod machine;
pub(crate) mod plot;
pub(crate) mod table;

use chimera::{Db, RecordLayout, Stats};
use chimera_pmem::Pmem;
use chimera_pmem::instrumented::Profile;
use serde::{Deserialize, Serialize};

use crate::driver::backend::Backend;
use crate::driver::series::{Results, Series, median, ratio, spread};
use crate::driver::setup::Setup;
use crate::driver::worker::Data;
pub use machine::Machine;
pub use table::number;

/// The result of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The subcommand.
    pub command: String,
    /// Where it ran.
    pub machine: Machine,
    /// What the store lay on.
    pub medium: String,
    /// The durability in force.
    pub durability: String,
    /// The engine.
    pub engine: String,
    /// The record layout: `checked` or `published`.
    pub layout: String,
    /// The latency profile.
    pub profile: String,
    /// Whether timings are modelled: latency was injected, as the profile says.
    pub modelled: bool,
    /// Whether the system gave the store huge pages.
    pub huge_pages: bool,
    /// Everything random follows from it.
    pub seed: u64,
    /// Records loaded before what is measured.
    pub records: u64,
    /// Operations of each kind of work in each pass; those of a phase with a duration may be others.
    pub operations: u64,
    /// Bytes per key, or their mean.
    pub key_bytes: u32,
    /// Bytes per value, or their mean.
    pub value_bytes: u32,
    /// `fixed`: a store for records of one size; `any`: one for records of any size, which have the
    /// same; `mixed`: the latter, with sizes distributed normally around the mean.
    #[serde(default)]
    pub sizes: String,
    /// Numbers of threads measured.
    pub threads: Vec<usize>,
    /// More threads than cores were asked for: their rows say nothing about scaling.
    pub oversubscribed: bool,
    /// What was measured of each kind of work.
    pub rows: Vec<Row>,
    /// Work nested in operations and booked apart from them.
    pub counters_apart: Vec<ApartRow>,
    /// The store's DRAM over its records, once these were loaded.
    pub dram_bytes_per_key: f64,
    /// Persistent memory in use over bytes of keys and values, once the records were loaded.
    pub space_amplification: f64,
    /// How long opening took.
    pub recovery: Vec<RecoveryRow>,
    /// Records read and found right after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_records: Option<u64>,
    /// `floor`: how much slower the engine is than its floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratios: Option<Vec<RatioRow>>,
    /// `growth`: a growing pool against a populated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// `reclaim`: work beside space reclamation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclamation: Option<Reclamation>,
    /// `memory`: DRAM by the number of records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// What was measured of one kind of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
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
    /// Means per operation, counted in a pass of their own; absent when not counted.
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
    /// Media units of 256 bytes written, if buffers evict only to make room.
    pub media_writes_lazy: f64,
    /// Media units of 256 bytes written, if buffers evict a unit once it is whole.
    pub media_writes_eager: f64,
    /// Media units of 256 bytes read.
    pub media_reads: f64,
}

/// Work nested in operations and booked apart from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApartRow {
    /// `block_hand_out` or `block_mark`.
    pub operation: String,
    /// The kind of work in which it happened.
    pub during: String,
    /// How often it happened per operation.
    pub per_operation: f64,
    /// Means for each time it happened.
    pub counters: Counters,
}

/// How long opening a store took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryRow {
    /// Threads that scanned.
    pub threads: usize,
    /// Records found.
    pub records: u64,
    /// Time from the call to the open store: the median.
    pub duration_ns: f64,
    /// Records found per second of that.
    pub records_per_second: f64,
    /// How often it was measured.
    pub repetitions: usize,
    /// (max - min) / median of the duration.
    pub spread: f64,
}

/// How much slower the engine is than its floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioRow {
    /// The operation.
    pub operation: String,
    /// `independent` or `chained`.
    pub shape: String,
    /// Threads on both sides.
    pub threads: usize,
    /// Time per operation of the engine over that of the floor: the median over repetitions, both
    /// sides of each measured one after the other.
    pub ratio: f64,
    /// The lowest of them.
    pub ratio_min: f64,
    /// The highest of them.
    pub ratio_max: f64,
}

/// A growing pool against a populated one, one writer inserting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Time per insert, growing over populated.
    pub time_ratio: f64,
    /// Median latency, growing over populated.
    pub p50_ratio: f64,
    /// 99th percentile of latency, growing over populated.
    pub p99_ratio: f64,
    /// Processor time of the background task per record inserted, in nanoseconds.
    pub background_ns_per_record: f64,
    /// Processor time of the background task over the time of the inserts.
    pub background_core_share: f64,
}

/// Work beside space reclamation in the background, against the same without; a third of the records
/// was deleted before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reclamation {
    /// Percent of a block that must be free for it to be reclaimed.
    pub percent: u32,
    /// Most bytes of keys and values that are moved per second.
    pub bytes_per_second_max: u64,
    /// One for each kind of work and number of threads.
    pub rows: Vec<ReclaimRow>,
    /// Persistent memory in use over live keys and values, after the load.
    pub loaded_amplification: f64,
    /// After the deletes, nothing being reclaimed.
    pub thinned_amplification: f64,
    /// At the end, after `Db::compact`.
    pub compacted_amplification: f64,
    /// Records that `Db::compact` moved per second, alone, where nothing had been reclaimed.
    pub compact_records_per_second: f64,
}

/// One kind of work beside reclamation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReclaimRow {
    /// `get`, or `put` of records that are there.
    pub operation: String,
    /// Threads that did it, beside that of reclamation.
    pub threads: usize,
    /// Operations per second beside reclamation over those without: the median over repetitions.
    pub throughput_ratio: f64,
    /// The lowest of them.
    pub throughput_ratio_min: f64,
    /// The highest of them.
    pub throughput_ratio_max: f64,
    /// Keys and values that reclamation moved meanwhile.
    pub moved_bytes_per_second: f64,
}

/// DRAM by the number of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Private memory that the process gained by opening an empty store, in bytes.
    pub empty_resident_bytes: u64,
    /// What an empty store says of its DRAM, in bytes.
    pub empty_dram_bytes: u64,
    /// One for every factor 1.2 of records.
    pub samples: Vec<MemorySample>,
    /// The largest `dram_bytes_per_key` of the samples.
    pub bytes_per_key_max: f64,
    /// The mean of `dram_bytes_per_key` over the samples.
    pub bytes_per_key_mean: f64,
}

/// DRAM at one number of records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemorySample {
    /// Records in the store.
    pub records: u64,
    /// What the store says of its DRAM, per record.
    pub dram_bytes_per_key: f64,
    /// Private memory that the process gained since before the store was opened, per record; absent
    /// where the pool itself is private memory.
    pub resident_bytes_per_key: Option<f64>,
}

/// What a store says of where it is.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    medium: String,
    durability: String,
    flush_instruction: String,
    huge_pages: bool,
    dram_bytes_per_key: f64,
    space_amplification: f64,
}

impl Facts {
    /// Of an open store, and of what it said of itself once it was loaded with records of `data`.
    pub(crate) fn of<B: Backend>(db: &Db<B>, loaded: &Stats, data: &Data) -> Self {
        let hardware = db.pmem().hardware();
        let user_bytes = loaded.records as f64 * data.record_bytes();
        Self {
            medium: hardware.medium().to_string(),
            durability: db.effective_durability().to_string(),
            flush_instruction: hardware.flush_instruction().to_string(),
            huge_pages: hardware.uses_huge_pages(),
            dram_bytes_per_key: loaded.dram_bytes_per_key,
            space_amplification: ratio(loaded.pmem_bytes as f64, user_bytes),
        }
    }
}

impl Report {
    /// A report with what is common to all subcommands.
    pub(crate) fn new(command: &str, setup: &Setup, facts: Facts, results: &Results) -> Self {
        let cores = crate::driver::pass::cores();
        let counted = |series: &Series| series.counted.clone();
        let mut apart: Vec<ApartRow> = Vec::new();
        for row in results.series.iter().filter_map(counted).flat_map(|counted| counted.apart) {
            if !apart.contains(&row) {
                apart.push(row);
            }
        }
        Self {
            command: command.to_owned(),
            machine: Machine::here(facts.flush_instruction),
            medium: facts.medium,
            durability: facts.durability,
            engine: setup.engine.to_string(),
            layout: layout_name(setup.layout).to_owned(),
            profile: setup.profile.to_string(),
            modelled: setup.profile != Profile::Dram,
            huge_pages: facts.huge_pages,
            seed: setup.seed,
            records: setup.records,
            operations: setup.operations,
            key_bytes: setup.key_bytes,
            value_bytes: setup.value_bytes,
            sizes: setup.sizing.to_string(),
            threads: setup.threads.clone(),
            oversubscribed: setup.threads.iter().any(|threads| *threads > cores),
            rows: results.series.iter().map(Row::of).collect(),
            counters_apart: apart,
            dram_bytes_per_key: facts.dram_bytes_per_key,
            space_amplification: facts.space_amplification,
            recovery: Vec::new(),
            verified_records: None,
            ratios: None,
            growth: None,
            reclamation: None,
            memory: None,
        }
    }
}

impl Row {
    /// The row of a series.
    pub(crate) fn of(series: &Series) -> Self {
        let ops_per_second = median(&series.throughputs);
        let at = |percentile| series.latencies.value_at_percentile(percentile);
        Self {
            operation: series.operation.clone(),
            threads: series.threads,
            ops_per_second,
            latency_ns: Latency {
                mean: ratio(series.threads as f64 * 1e9, ops_per_second),
                p50: at(50.0),
                p99: at(99.0),
                p999: at(99.9),
                p9999: at(99.99),
            },
            repetitions: series.throughputs.len(),
            spread: spread(&series.throughputs),
            counters: series.counted.as_ref().map(|counted| counted.counters),
            dimm_spread: series.counted.as_ref().and_then(|counted| counted.dimm_spread),
        }
    }
}

fn layout_name(layout: RecordLayout) -> &'static str {
    match layout {
        RecordLayout::Checked => "checked",
        RecordLayout::Published => "published",
    }
}

#[cfg(test)]
mod tests;
