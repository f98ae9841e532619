//! Workloads, drivers and figures for Chimera, and the study of node layouts: what the command `chimera-bench` does.
//!
//! # Rooms (each uses only those below it)
//! - [`command`]: arguments, and what each subcommand measures.
//! - `floor`: the cost nobody can beat, for comparison with the engine's.
//! - [`report`]: results as JSON, as a table, as figures.
//! - `driver`: stores, threads, clocks, counters.
//! - `results`: what was measured, as plain data: the driver fills in what the report prints.
//! - `simulation`: simulated threads on a modelled device; knows no store.
//! - [`published`]: what papers say, with its words; data files, read by all.
//! - [`interrupt`]: what Ctrl-C leaves behind.
//! - `workload`: keys, values, distributions, mixes; pure arithmetic.
#![forbid(unsafe_code)]

pub mod command;
mod driver;
mod error;
mod floor;
pub mod interrupt;
pub mod published;
pub mod report;
mod results;
mod simulation;
/// What another crate needs to measure its own stores by the same loops.
pub mod measure {
    pub use crate::driver::clock::Measure;
    pub use crate::driver::ledger::Ledger;
    pub use crate::driver::phase::{Action, Extent, Phase, run};
    pub use crate::driver::progress::Progress;
    pub use crate::driver::store::{Footprint, Store, StoreSession};
    pub use crate::driver::verify::verify;
    pub use crate::driver::worker::Data;
    pub use crate::results::machine::bytes_of;
    pub use crate::results::measured::Measured;
    pub use crate::results::statistics::{median, range, spread};
}
pub mod workload;

pub use error::{BenchError, Result};
