//! Arguments, and what each subcommand measures.

mod adaption;
mod benchmark;
mod beside_scans;
mod chameleon;
mod common;
pub(crate) mod core;
mod device;
mod floor;
mod given;
mod growth;
mod indexes;
mod memory;
mod primitives;
mod reclaim;
mod recovery;
mod variants;
mod ycsb;

use std::io::{Write, stdout};

use crate::error::{BenchError, Result};
use crate::report::{Report, plot, table};
pub use adaption::AdaptionArguments;
use benchmark::measure;
pub use beside_scans::BesideScansArguments;
pub use chameleon::{
    BurstsArguments, ChameleonCommand, RatiosArguments, RestartArguments, ShapeArguments, Side,
    WrittenArguments,
};
pub use common::Common;
pub use core::CoreArguments;
pub use device::DeviceArguments;
pub use floor::FloorArguments;
pub use growth::GrowthArguments;
pub use indexes::IndexesArguments;
pub use memory::MemoryArguments;
pub use primitives::{PrimitivesCommand, RunArguments, run_primitives};
pub use reclaim::ReclaimArguments;
pub use recovery::RecoveryArguments;
pub use variants::VariantsArguments;
pub use ycsb::YcsbArguments;

/// What to measure.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Insert, get, update in place, overwrite, read-modify-write and delete on a loaded store; then
    /// recovery
    Core(CoreArguments),
    /// YCSB workloads on a new store, which is then reopened and verified record by record
    Ycsb(YcsbArguments),
    /// The engine against the cost nobody can beat, interleaved, independent and chained
    Floor(FloorArguments),
    /// Inserting into a growing pool against a populated one
    Growth(GrowthArguments),
    /// Time to open a store by its size and the number of threads
    Recovery(RecoveryArguments),
    /// DRAM per key over a range of sizes, and of an empty store
    Memory(MemoryArguments),
    /// Gets and puts beside space reclamation, a third of the records being deleted
    Reclaim(ReclaimArguments),
    /// The engine against all in DRAM and unaligned pages
    Variants(VariantsArguments),
    /// A fixed pool of threads that serve or apply changes of the order of keys, divided as HiKV does, against
    /// fixed divisions
    Adaption(AdaptionArguments),
    /// One writer alone, and beside a thread that scans so many times a second
    BesideScans(BesideScansArguments),
    /// Kinds of indexes in DRAM (hash table, B-tree, skip list), and stores of hikv without and with order
    Indexes(IndexesArguments),
    /// The model of persistent memory alone, in simulated time, beside what was published of the real one
    Device(DeviceArguments),
    /// ChameleonDB and the stores that it is compared with
    #[command(subcommand)]
    Chameleon(Box<ChameleonCommand>),
}

/// Runs a benchmark and prints its result on the standard output: tables, or with `json` one JSON
/// object (a [`Report`]).
///
/// # Errors
/// When the arguments make no sense, the store fails, or a record is wrong after the run.
pub fn run(command: &BenchCommand, json: bool) -> Result<()> {
    if let BenchCommand::Device(arguments) = command {
        return arguments.run(json);
    }
    let report = execute(command)?;
    let mut text = if json {
        serde_json::to_string_pretty(&report).map_err(|error| BenchError::Output(error.into()))?
    } else {
        table::text(&report)
    };
    if json {
        text.push('\n');
    }
    stdout().write_all(text.as_bytes()).map_err(BenchError::Output)
}

/// Runs a benchmark, and draws its figures where they are asked for.
fn execute(command: &BenchCommand) -> Result<Report> {
    let (report, results, common) = match command {
        BenchCommand::Core(arguments) => measure(arguments)?,
        BenchCommand::Ycsb(arguments) => measure(arguments)?,
        BenchCommand::Floor(arguments) => measure(arguments)?,
        BenchCommand::Growth(arguments) => measure(arguments)?,
        BenchCommand::Recovery(arguments) => measure(arguments)?,
        BenchCommand::Memory(arguments) => measure(arguments)?,
        BenchCommand::Reclaim(arguments) => measure(arguments)?,
        BenchCommand::Variants(arguments) => measure(arguments)?,
        BenchCommand::Adaption(arguments) => measure(arguments)?,
        BenchCommand::BesideScans(arguments) => measure(arguments)?,
        BenchCommand::Indexes(arguments) => measure(arguments)?,
        BenchCommand::Device(_) => {
            let what = "there is no store to measure: `device` has a report of its own";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        BenchCommand::Chameleon(command) => command.measure()?,
    };
    if let Some(path) = &common.plot {
        plot::draw(&report, &results, path)?;
    }
    Ok(report)
}

#[cfg(test)]
pub(crate) mod tests;
