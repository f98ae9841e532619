//! The teaching engine: the simplest honest one. Records of any size lie one after the other in a log of runs
//! of blocks; a map in DRAM, rebuilt at open, says where each key's record is. docs/ENGINES.md walks through it.
//!
//! # Protocol
//! One lock covers everything. `log` has the steps:
//! - **put**: append the record and make it live; enter it into the map; retire the record it replaces.
//!   Two fences for a new key, three with a record to retire.
//! - **get**: read where the map says, verify the checksums.
//! - **delete**: retire the record.
//! - **recovery**: walk the runs; of two live records of a key the one with the higher version stays, and the
//!   other is retired. A run without live records is freed.
//!
//! Its price, which the other engines exist to avoid: one reader or writer at a time, the whole key in DRAM,
//! two fences that could be one, and a run that is kept for its last live record.
//!
//! # Invariants
//! 1. A record is durable before its word says that it is live. That word is durable before the record it
//!    replaces is retired, and before the write is acknowledged.
//! 2. Behind the last record of a run lies a word that is durably zero.
//! 3. The first word of a run is durably zero before the run is taken.

mod engine;
mod log;
mod recovery;

use std::collections::BTreeMap;

use chimera_pmem::{Pmem, Site};
use serde::Serialize;

use super::shared::creation::{agree, plan_of_runs};
use super::{Capabilities, Core, EngineType, Options, Plan};
use crate::RunCounts;
use crate::pool::{Superblock, runs};
use crate::sync::Mutex;
use crate::types::error::{Error, Result};
use crate::types::stream::StreamKind;

/// The engine: one open store.
pub(crate) struct Teaching<P: Pmem> {
    core: Core<P>,
    state: Mutex<State>,
}

/// Everything that changes.
#[derive(Default)]
struct State {
    /// Where the record of each key lies. Keys go by their hash first: that is the order of listings.
    map: BTreeMap<(u64, Vec<u8>), u64>,
    /// Runs of the log, by the offset of their first record.
    runs: BTreeMap<u64, LogRun>,
    /// The run that is appended to.
    filling: Option<u64>,
    /// The highest version that was given.
    clock: u64,
}

/// A run of the log.
struct LogRun {
    run: runs::Run,
    /// Offsets where its last record ends, and where the run does.
    tail: u64,
    end: u64,
    live_records: u64,
}

/// What the teaching engine says of its store, and of what it is made of.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TeachingReport {
    /// Runs of blocks.
    pub runs: RunCounts,
}

pub(crate) use self::{TeachingReport as Inspect, TeachingReport as Stats};

/// What is known of the engine before a store is open.
pub(crate) struct Type;

impl EngineType for Type {
    /// Its area of the superblock is empty.
    type Parameters = ();

    const CAPABILITIES: Capabilities = Capabilities { any_size: true, ..Capabilities::NONE };

    fn plan(options: &Options) -> Result<Plan> {
        plan_of_runs(options)
    }

    fn parameters(superblock: &Superblock, options: &Options) -> Result<()> {
        if !superblock.area.is_empty() {
            return Err(Error::corrupted("the superblock has an area of another engine", 128));
        }
        agree(superblock, StreamKind { key_bytes: 0, value_bytes: 0 }, options)
    }

    fn sites() -> Vec<Site> {
        [log::sites::ALL, log::steps::ALL, runs::sites::ALL].concat()
    }
}
