//! The teaching engine: the simplest honest one. Records of any size lie in a
//! [locked log](crate::records::locked_log); a map in DRAM, rebuilt at open, says where each key's record is.
//! docs/ENGINES.md walks through it.
//!
//! # Protocol
//! One lock covers everything:
//! - **put**: append the record, live; enter it into the map; retire the record it replaces. Two fences for a new
//!   key, three with a record to retire.
//! - **get**: read where the map says, verify the checksums.
//! - **delete**: retire the record.
//! - **recovery**: walk the log; of two live records of a key the one with the higher version stays, and the
//!   other is retired. A run without live records is freed.
//!
//! Its price, which the other engines exist to avoid: one reader or writer at a time, the whole key in DRAM,
//! two fences that could be one, and a run that is kept for its last live record.
//!
//! # Invariants
//! 1. A record is durable and live before the record it replaces is retired, and before the write is acknowledged.
//! 2. Of every key one record is live; two only while a put is under way, or after a crash.

mod engine;
mod recovery;

use std::collections::BTreeMap;

use chimera_pmem::{Pmem, Site};

use crate::RunCounts;
use crate::engine::shared::creation::{agree, plan_of_runs};
use crate::engine::{Capabilities, Core, EngineType, Options, Plan};
use crate::pool::{BlockKind, Superblock, runs};
use crate::records::limits::Limits;
use crate::records::locked_log::{self, LockedLog};
use crate::sync::Mutex;
use crate::types::error::{Error, Result};
use crate::types::stream::StreamKind;

/// Steps of recovery that a tool can leave out.
mod steps {
    chimera_pmem::steps! {
        /// Retiring the records that lost.
        RETIRE_LOSERS = "teaching.step.retire_losers";
    }
}

/// The kind of the log's runs.
const LOG: BlockKind = BlockKind::new(1, "log");

/// The engine: one open store.
pub(crate) struct Teaching<P: Pmem> {
    core: Core<P>,
    /// The longest key and value.
    limits: Limits,
    state: Mutex<State<P>>,
}

/// Everything that changes.
struct State<P: Pmem> {
    /// Where the record of each key lies. Keys go by their hash first: that is the order of listings.
    map: BTreeMap<(u64, Vec<u8>), u64>,
    log: LockedLog<P>,
}

/// What the teaching engine says of its store, and of what it is made of.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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

    const CAPABILITIES: Capabilities =
        Capabilities { any_size: true, ordered: true, ..Capabilities::SHARED };

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
        [locked_log::sites::ALL, locked_log::steps::ALL, steps::ALL, runs::sites::ALL].concat()
    }
}
