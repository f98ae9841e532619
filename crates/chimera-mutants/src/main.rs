//! The `chimera-mutants` command: mutants of the source, all in one build, and which tests notice each.
//!
//! `find` says what can be mutated in a file, `splice` writes all of it at once, behind switches of the run-time module
//! `runtime/mutant.rs`. `matrix` numbers the mutants of a room, `build` compiles them, `coverage` says which tests reach which,
//! `trial` runs these in processes, `campaign` does all of it, `outcome` and `report` keep and tell what was found.
#![forbid(unsafe_code)]

mod build;
mod campaign;
mod cli;
mod coverage;
mod find;
mod git;
mod matrix;
mod outcome;
mod process;
mod report;
mod room;
mod site;
mod splice;
#[cfg(test)]
mod tests;
mod trial;
mod workers;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> io::Result<()> {
    let root =
        PathBuf::from(git::git(&std::env::current_dir()?, &["rev-parse", "--show-toplevel"])?);
    let campaign = campaign::Campaign::new(&cli.options, &root)?;
    if let Some(Command::Run { mutant }) = &cli.command {
        return campaign.show(mutant);
    }
    if cli.list {
        for number in campaign.selected() {
            println!("{number} {}", campaign.matrix.name(number));
        }
        return Ok(());
    }
    let outcomes = campaign.run()?;
    if cli.json {
        println!("{}", report::json(&outcomes));
    } else {
        print!("{}", report::text(&outcomes));
    }
    Ok(())
}
