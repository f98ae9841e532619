//! Arguments, and what each subcommand does.

mod common;
mod damage;
mod dax_guest;
mod explore;
mod found;
mod kill9;
mod mutate;
mod plant;
mod primitives;
mod replay;

use std::process::ExitCode;

use crate::report::Report;
use common::Common;

/// The crash lab: simulated power failures, killed processes, and whether the tests notice
#[derive(Debug, clap::Parser)]
#[command(name = "chimera-crashlab", version, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Crash a simulated store at every step, in every way that matters, and verify what is left
    Explore(explore::Arguments),
    /// Break each persistence step in turn and see whether the lab notices
    Mutate(mutate::Arguments),
    /// Plant historical bugs and see whether the lab finds them
    Plant(plant::Arguments),
    /// Crash the nodes, runs and trees of the primitives study; with --mutate, break each of their steps in turn
    Primitives(primitives::Arguments),
    /// Run one failure again, from what `explore` printed
    Replay(replay::Arguments),
    /// Kill a writing process at random moments and verify what it acknowledged
    Kill9(kill9::Arguments),
    /// Damage the files of stores, and see whether anything is missing without a word
    Damage(damage::Arguments),
    /// Run the store on emulated persistent memory in a virtual machine and cut its power
    DaxGuest(dax_guest::Arguments),
}

/// Runs a command line: 0 for a pass, 1 for problems found, 2 when it could not be run.
pub fn run(cli: &Cli) -> ExitCode {
    let common = &cli.common;
    let outcome = match &cli.command {
        Command::Explore(arguments) => explore::run(arguments, common),
        Command::Mutate(arguments) => mutate::run(arguments, common),
        Command::Plant(arguments) => plant::run(arguments, common),
        Command::Primitives(arguments) => primitives::run(arguments, common),
        Command::Replay(arguments) => replay::run(arguments, common),
        Command::Kill9(arguments) => kill9::run(arguments, common),
        Command::Damage(arguments) => damage::run(arguments, common),
        Command::DaxGuest(arguments) => dax_guest::run(arguments, common),
    };
    let printed = outcome.and_then(|report: Report| report.print(common.json).map_err(Into::into));
    printed.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}
