//! [`Report`]: what was measured, as `--json` prints it. Fields are only ever added.

use std::path::PathBuf;

use chimera_bench::report::Machine;
use serde::{Deserialize, Serialize};

use crate::job::{Durability, StoreKind};
use crate::protocol::{PeerFacts, Work};

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The command line.
    pub command: String,
    /// Where it ran.
    pub machine: Machine,
    /// Keys, values and choices follow from it.
    pub seed: u64,
    /// Stores that were made for each row.
    pub repetitions: usize,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// What memory was limited to, where it was.
    pub memory_limit: Option<MemoryLimit>,
    /// What the stores are, how they are configured, what they guarantee.
    pub stores: Vec<StoreRow>,
    /// What the disks themselves did, between the stores' turns.
    pub probes: Vec<ProbeRow>,
    /// What was measured of each kind of work.
    pub work: Vec<WorkRow>,
    /// What each store needed, and how long it took to open.
    pub needs: Vec<NeedsRow>,
    /// Stores that failed or whose process ended; what they had done before is in the other rows.
    pub failures: Vec<Failure>,
}

/// A limit of memory for the process of each store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimit {
    /// For each of them.
    pub bytes: u64,
    /// What limits: `control group` (all memory, the page cache of its files included), or `RLIMIT_DATA` (private memory,
    /// mapped whether used or not).
    pub by: String,
}

/// What is the same for all stores that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The directory in which stores were made.
    pub path: PathBuf,
    /// What that lies on.
    pub medium: String,
    /// What acknowledged writes survive.
    pub durability: Durability,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Threads.
    pub threads: usize,
    /// Records of the fill.
    pub records: u64,
}

/// A store at a durability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreRow {
    /// The store.
    pub store: StoreKind,
    /// What acknowledged writes survive, in short.
    pub durability: Durability,
    /// The rest.
    #[serde(flatten)]
    pub facts: PeerFacts,
}

/// What a disk did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeRow {
    /// Where.
    pub path: PathBuf,
    /// How often it was tried.
    pub probes: usize,
    /// Bytes per second of a new file with one `fdatasync` at its end.
    pub sequential_bytes_per_s: Spread,
    /// Nanoseconds of 4 KiB overwritten and an `fdatasync`, each the median of 16.
    pub sync_ns: Spread,
}

/// Some numbers in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Their median.
    pub median: f64,
    /// The lowest.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
}

impl Spread {
    /// Of these.
    pub fn of(numbers: &[f64]) -> Self {
        let (lowest, highest) = chimera_bench::measure::range(numbers);
        Self { median: chimera_bench::measure::median(numbers), lowest, highest }
    }

    /// (highest - lowest) / median.
    pub fn relative(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.highest - self.lowest) / self.median }
    }
}

/// What was measured of one kind of work of one store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkRow {
    /// What is compared.
    #[serde(flatten)]
    pub cell: Cell,
    /// The store.
    pub store: StoreKind,
    /// The work.
    pub work: Work,
    /// Operations of a repetition.
    pub operations: u64,
    /// Operations per second of all threads together, over the repetitions; those of `scan` and `batch` are of 100 records
    /// each. The time of a sync behind the last one is in it.
    pub ops_per_s: Spread,
    /// Nanoseconds of the sync behind the last operation: the median.
    pub sync_ns: f64,
    /// Latencies in nanoseconds, each the median of the repetitions, with a reading of the clock in each: 20 to 40 ns.
    pub p50_ns: f64,
    /// 99 of 100 took at most so long.
    pub p99_ns: f64,
    /// 999 of 1000.
    pub p999_ns: f64,
    /// The longest of all repetitions.
    pub max_ns: f64,
    /// Repetitions that came so far.
    pub repetitions: usize,
}

/// Resident memory of a process by its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// `RssAnon`: its own, which the system cannot take back.
    pub anonymous_bytes: u64,
    /// `RssFile`: mapped pages of files, which the system can take back once they are written.
    pub file_bytes: u64,
    /// `RssShmem`: mapped pages of `tmpfs`.
    pub shared_bytes: u64,
}

impl Memory {
    /// The most of each kind.
    #[must_use]
    pub fn most(self, other: Self) -> Self {
        Self {
            anonymous_bytes: self.anonymous_bytes.max(other.anonymous_bytes),
            file_bytes: self.file_bytes.max(other.file_bytes),
            shared_bytes: self.shared_bytes.max(other.shared_bytes),
        }
    }
}

/// What a store needed, and how long it took to open. Medians of the repetitions, but for the peak: the most of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeedsRow {
    /// What is compared.
    #[serde(flatten)]
    pub cell: Cell,
    /// The store.
    pub store: StoreKind,
    /// Numbers; of stores that failed, what came before.
    #[serde(flatten)]
    pub needs: Needs,
    /// Repetitions that came to their end.
    pub repetitions: usize,
}

/// What a store needed in one repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// Bytes of keys and values after the fill.
    pub live_bytes: u64,
    /// Bytes on disk after the fill (`st_blocks`).
    pub filled_disk_bytes: u64,
    /// After half of the records were deleted.
    pub halved_disk_bytes: u64,
    /// After compaction.
    pub compacted_disk_bytes: u64,
    /// The time of the compaction.
    pub compaction_ns: u64,
    /// Opening after a clean close, to the open store.
    pub clean_open_ns: u64,
    /// And to the first value.
    pub clean_first_value_ns: u64,
    /// Opening after `kill -9`, to the open store.
    pub killed_open_ns: u64,
    /// And to the first value.
    pub killed_first_value_ns: u64,
    /// Memory after the fill.
    pub filled: Memory,
    /// The most of each kind, seen each 20 ms while the store had its turn.
    pub peak: Memory,
    /// Records read and found right at the end, after the kill.
    pub verified_records: u64,
}

/// A store that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was compared.
    #[serde(flatten)]
    pub cell: Cell,
    /// The store.
    pub store: StoreKind,
    /// Which repetition, from 1 on.
    pub repetition: usize,
    /// What it was to do.
    pub during: String,
    /// What it said, or how its process ended.
    pub message: String,
}
