//! What the study measured, as plain data.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::database::{CacheKind, Counts};
use crate::workload::Mix;

/// Latencies of one kind of operation.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latency {
    /// Operations.
    pub count: u64,
    /// Mean, in nanoseconds.
    pub mean_ns: f64,
    /// Half of all took at most so long.
    pub p50_ns: u64,
    /// 75 of 100.
    pub p75_ns: u64,
    /// 90 of 100.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1000.
    pub p999_ns: u64,
    /// 9999 of 10000.
    pub p9999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Latency {
    /// What a histogram of nanoseconds says.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        if histogram.is_empty() {
            return Self::default();
        }
        Self {
            count: histogram.len(),
            mean_ns: histogram.mean(),
            p50_ns: at(0.5),
            p75_ns: at(0.75),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            p9999_ns: at(0.9999),
            max_ns: histogram.max(),
        }
    }

    /// The percentiles, with their names.
    pub fn percentiles(&self) -> [(&'static str, u64); 6] {
        [
            ("p50", self.p50_ns),
            ("p75", self.p75_ns),
            ("p90", self.p90_ns),
            ("p99", self.p99_ns),
            ("p99.9", self.p999_ns),
            ("p99.99", self.p9999_ns),
        ]
    }
}

/// Bytes of one component at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComponentBytes {
    /// In DRAM.
    pub dram: u64,
    /// In persistent memory.
    pub pmem: u64,
}

/// What was charged for reads of persistent memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Charged {
    /// Reads of blocks and nodes.
    pub reads: u64,
    /// Units that the media read.
    pub media_reads: u64,
    /// Time that threads were made to wait, in nanoseconds.
    pub waited_ns: u64,
}

/// Which run.
#[derive(Clone, Debug, Serialize)]
pub struct RunKey {
    /// Part of the study.
    pub part: Part,
    /// The mix of operations.
    pub mix: Mix,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Threads.
    pub threads: usize,
    /// The placement, by its name.
    pub placement: String,
}

impl RunKey {
    /// Keys and threads as the paper names them, such as `K16_T2`.
    pub fn label(&self) -> String {
        format!("K{}_T{}", self.key_bytes, self.threads)
    }
}

/// A part of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The 24 published workloads.
    Published,
    /// Shares of each component, under the published load.
    Shares,
    /// YCSB A to D.
    Ycsb,
    /// Zipfian reads with 50 to 90 % cache hits.
    Hits,
}

/// One workload with one placement.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which.
    #[serde(flatten)]
    pub key: RunKey,
    /// More threads than cores.
    pub is_oversubscribed: bool,
    /// Operations per second of each repetition.
    pub ops_per_s: Vec<f64>,
    /// Their median.
    pub median_ops_per_s: f64,
    /// (max - min) / median.
    pub spread: f64,
    /// Mean latency of all operations, in microseconds; the median of the repetitions.
    pub mean_us: f64,
    /// Latencies of gets, of all repetitions.
    pub reads: Latency,
    /// Latencies of puts, of all repetitions.
    pub writes: Latency,
    /// What RocksDB counted in the last repetition.
    pub counts: Counts,
    /// The block cache at the end, with the index of a tier.
    pub cache: ComponentBytes,
    /// Memtables at the end.
    pub memtable: ComponentBytes,
    /// What was charged in the last repetition.
    pub charged: Charged,
    /// Bytes that would be in DRAM if persistent memory were not used.
    pub freed_bytes: u64,
    /// Bytes for which persistent memory had no room.
    pub overflow_bytes: u64,
}

impl Row {
    /// Share of lookups that found their block in DRAM or persistent memory.
    pub fn hit_ratio(&self) -> f64 {
        let lookups = self.counts.block_cache_hits + self.counts.block_cache_misses;
        if lookups == 0 { 0.0 } else { self.counts.block_cache_hits as f64 / lookups as f64 }
    }
}

/// What a published value became here.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Where in the paper.
    pub figure: String,
    /// What.
    pub what: String,
    /// The published value.
    pub published: f64,
    /// What was measured; none where nothing was.
    pub measured: Option<f64>,
    /// The unit of both.
    pub unit: String,
    /// The paper's words.
    pub quote: String,
    /// Which reading was taken, and what explains a difference.
    pub reading: String,
}

/// Where and how the study ran.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// The command line.
    pub command: String,
    /// Model of the processor.
    pub cpu: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// The profile, or `none`.
    pub profile: String,
    /// Whether times are modelled.
    pub is_modelled: bool,
    /// Whether persistent memory is a DAX file system.
    pub is_dax: bool,
    /// Bytes of the modelled processor cache; 0 for none.
    pub processor_cache_bytes: u64,
    /// Whether databases were read and written past the system's page cache.
    pub is_direct: bool,
    /// Sizes are published ones divided by this.
    pub scale_down: u64,
    /// Records, of published loads those that keys are drawn from.
    pub records: u64,
    /// Operations of each thread.
    pub operations: u64,
    /// Bytes of the block cache.
    pub cache_bytes: u64,
    /// Which block cache.
    pub cache_kind: CacheKind,
    /// Bytes of the block cache where hits are 50 to 90 %.
    pub hits_cache_bytes: u64,
    /// Bytes of a memtable.
    pub write_buffer_bytes: u64,
    /// Repetitions.
    pub repetitions: usize,
    /// Seed.
    pub seed: u64,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// Where and how.
    pub settings: Settings,
    /// A row for each workload and placement.
    pub rows: Vec<Row>,
    /// Published values beside ours.
    pub findings: Vec<Finding>,
    /// Which reading was taken where the paper contradicts itself.
    pub readings: Vec<&'static str>,
}

impl Study {
    /// A row, if it was measured.
    pub fn row(&self, part: Part, label: &str, mix: Mix, placement: &str) -> Option<&Row> {
        self.rows.iter().find(|row| {
            row.key.part == part
                && row.key.mix == mix
                && row.key.placement == placement
                && row.key.label() == label
        })
    }
}
