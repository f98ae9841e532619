//! [`Plan`] and [`Outcome`]: what to do, and what was found.

use std::path::PathBuf;

use chimera::EngineKind;
use chimera_pmem::{Environment, RealEnvironment};

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The engine of the stores.
    pub engine: EngineKind,
    /// How many times a writer is killed.
    pub cycles: u64,
    /// Directories to make stores in.
    pub places: Vec<PathBuf>,
    /// The moments of kills, as far as these can be chosen, and all operations follow from it.
    pub seed: u64,
    /// This program.
    pub program: PathBuf,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Kills.
    pub cycles: u64,
    /// Stores that these kills were shared by.
    pub stores: u64,
    /// Operations that the writers acknowledged before they were killed.
    pub acknowledged: u64,
    /// Operations that had begun and not ended.
    pub in_flight: u64,
    /// Of these, how many were found done.
    pub in_flight_done: u64,
    /// Batches that were cut off with their record durable, and are made when the store is opened.
    pub batches_cut_off: u64,
    /// Kills before the writer had its store open.
    pub kills_during_open: u64,
    /// Kills after the writer had begun to close it.
    pub kills_during_close: u64,
    /// Stores that had not been closed in order when they were opened to be verified.
    pub recoveries: u64,
    /// Media the stores lay on, as the stores say.
    pub media: Vec<String>,
    /// What is wrong, with what is needed to look at it.
    pub violations: Vec<String>,
}

/// Repeatable chance.
#[derive(Debug)]
pub(crate) struct Chance(RealEnvironment);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(RealEnvironment::with_seed(seed))
    }

    /// A number below `limit`.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.0.random_u64() % limit
    }
}
