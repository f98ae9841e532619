//! [`Report`]: the result of a benchmark, as `--json` prints it.
//!
//! Fields are only ever added. Those that belong to one subcommand are absent elsewhere.

use chimera::baselines::RecordLayout;
use chimera_pmem::instrumented::Profile;
use serde::{Deserialize, Serialize};

use super::beside_scans::BesideScans;
use super::chameleon::Chameleon;
use super::updates::UpdatesRow;
use crate::driver::setup::Setup;
use crate::results::machine::{Machine, cores};
use crate::results::rows::{ApartRow, RecoveryRow, Row, StoreRow};
use crate::results::series::{Results, Series};

/// The result of a benchmark. Where several engines were measured, what is said of one store is said of
/// the first engine's, and [`stores`](Self::stores) has all of them.
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
    /// The stores that were measured: one for each engine, in the order asked for.
    pub stores: Vec<StoreRow>,
    /// What was measured of each kind of work on each engine.
    pub rows: Vec<Row>,
    /// Work nested in operations and booked apart from them.
    pub counters_apart: Vec<ApartRow>,
    /// The store's DRAM over its records, once these were loaded.
    pub dram_bytes_per_key: f64,
    /// Persistent memory in use over bytes of keys and values, once the records were loaded.
    pub space_amplification: f64,
    /// What asynchronous updates of the order's tree save, where a run can tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<UpdatesRow>,
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
    /// `adaption`: a pool of threads, divided in several ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaption: Option<Adaption>,
    /// `beside-scans`: a writer alone and beside scans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_scans: Option<BesideScans>,
    /// `chameleon`: ChameleonDB and what it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chameleon: Option<Chameleon>,
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
    /// What the ratio is to be at most.
    pub goal: f64,
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

/// A pool of threads that serve or apply changes of the order of keys, divided in several ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adaption {
    /// Threads of the pool.
    pub threads: usize,
    /// Cores that they share.
    pub cores: usize,
    /// One for each mix and division.
    pub rows: Vec<AdaptionRow>,
}

/// A mix and a division.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdaptionRow {
    /// Gets for each insert.
    pub gets_per_insert: u64,
    /// `adaptive`, or threads that serve and threads that apply.
    pub division: String,
    /// Operations served per second, until all changes were in the tree: the median over repetitions.
    pub ops_per_second: f64,
    /// The lowest of them.
    pub ops_per_second_min: f64,
    /// The highest of them.
    pub ops_per_second_max: f64,
    /// Threads that served, on average over decisions.
    pub serving_threads: f64,
    /// How often it was decided.
    pub decisions: u64,
}

impl Report {
    /// A report with what is common to all subcommands, of at least one store.
    pub(crate) fn new(
        command: &str,
        setup: &Setup,
        stores: Vec<StoreRow>,
        results: &Results,
    ) -> Self {
        let first = stores[0].clone();
        let counted = |series: &Series| series.counted.clone();
        let mut apart: Vec<ApartRow> = Vec::new();
        for row in results.series.iter().filter_map(counted).flat_map(|counted| counted.apart) {
            if !apart.contains(&row) {
                apart.push(row);
            }
        }
        let rows: Vec<_> = results.series.iter().map(Series::row).collect();
        Self {
            command: command.to_owned(),
            updates: super::updates::rows(&rows),
            machine: Machine::here(first.facts.flush_instruction),
            medium: first.facts.medium,
            durability: first.facts.durability,
            engine: first.facts.engine,
            layout: layout_name(setup.layout).to_owned(),
            profile: setup.profile.to_string(),
            modelled: setup.profile != Profile::Dram,
            huge_pages: first.facts.huge_pages,
            seed: setup.seed,
            records: setup.records,
            operations: setup.operations,
            key_bytes: setup.key_bytes,
            value_bytes: setup.value_bytes,
            sizes: setup.sizing.to_string(),
            threads: setup.threads.clone(),
            oversubscribed: setup.threads.iter().any(|threads| *threads > cores()),
            rows,
            counters_apart: apart,
            dram_bytes_per_key: first.dram_bytes_per_key,
            space_amplification: first.space_amplification,
            recovery: Vec::new(),
            verified_records: first.verified_records,
            stores,
            ratios: None,
            growth: None,
            reclamation: None,
            memory: None,
            adaption: None,
            beside_scans: None,
            chameleon: None,
        }
    }
}

fn layout_name(layout: RecordLayout) -> &'static str {
    match layout {
        RecordLayout::Checked => "checked",
        RecordLayout::Published => "published",
    }
}
