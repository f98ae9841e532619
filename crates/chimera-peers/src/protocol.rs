//! What a run and the process of a store say to each other: a line of JSON each. The first line is the
//! [`Job`](crate::job::Job); each [`Request`] behind it has one [`Reply`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::stores::Guarantee;

/// Records of a scan, and of a batch.
pub const GROUP: usize = 100;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// All records, into an empty store.
    Fill,
    /// Any record, uniformly, every byte of it.
    Get,
    /// Any record, uniformly.
    Overwrite,
    /// Half gets, half overwrites.
    Mixed,
    /// 100 records from any one on, every byte of them.
    Scan,
    /// 100 overwrites that the store takes together.
    Batch,
    /// Half of the records.
    Delete,
}

impl Work {
    /// In the order in which a store does it.
    pub const ALL: [Self; 7] = [
        Self::Fill,
        Self::Get,
        Self::Overwrite,
        Self::Mixed,
        Self::Scan,
        Self::Batch,
        Self::Delete,
    ];

    /// Whether one operation is of many records.
    pub fn is_grouped(self) -> bool {
        matches!(self, Self::Scan | Self::Batch)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fill => "fill",
            Self::Get => "get",
            Self::Overwrite => "overwrite",
            Self::Mixed => "50/50",
            Self::Scan => "scan 100",
            Self::Batch => "batch 100",
            Self::Delete => "delete half",
        })
    }
}

/// What the process of a store is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Open the store, which has so many of the job's records, or make it.
    Open {
        /// Records `0..loaded` are there.
        loaded: u64,
    },
    /// Do work.
    Run {
        /// Which.
        work: Work,
        /// How many operations.
        operations: u64,
        /// Random numbers follow from it.
        stream: u64,
    },
    /// Give back space that no record needs.
    Compact,
    /// Read all records and check them.
    Verify,
    /// Close the store in order, and end.
    Close,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The store is open.
    Opened {
        /// From the call to the open store.
        open_ns: u64,
        /// From the call to the first value, where there are records.
        first_value_ns: u64,
        /// What it is.
        facts: PeerFacts,
    },
    /// The work is done.
    Ran(Ran),
    /// It is done.
    Done {
        /// How long it took.
        elapsed_ns: u64,
    },
    /// All records are as they should be.
    Verified {
        /// How many.
        records: u64,
    },
    /// It failed.
    Failed {
        /// Why.
        message: String,
    },
}

/// What the store of a process is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerFacts {
    /// Its version.
    pub version: String,
    /// How it is configured, a line each.
    pub configuration: Vec<String>,
    /// How it takes a batch.
    pub batch: String,
    /// What survives what.
    pub guarantee: Option<Guarantee>,
}

/// What was measured of some work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Operations of all threads together.
    pub operations: u64,
    /// From the first thread's start to the end of the sync behind the last operation. So the time in which a store makes
    /// durable what it wrote is a part of it for all stores, however much of it they put off.
    pub elapsed_ns: u64,
    /// The part of it that the sync behind the last operation took.
    pub sync_ns: u64,
    /// Half of the operations took at most so long. As all latencies with a reading of the clock, 20 to 40 ns.
    pub p50_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1000.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}
