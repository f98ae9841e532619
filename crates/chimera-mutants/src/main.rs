//! The `chimera-mutants` command: mutants of the source, all in one build, and which tests notice each.
//!
//! `find` says what can be mutated in a file, `splice` writes all of it at once, behind switches of the run-time module
//! `runtime/mutant.rs`. `matrix` numbers the mutants of a room, `build` compiles them, `coverage` says which tests reach which,
//! `trial` runs these in processes, `campaign` does all of it, `outcome` and `report` keep and tell what was found. `known` says
//! which outcomes stay in force when the source changes, `argued` which survivors have a reason.
#![forbid(unsafe_code)]

mod argued;
mod build;
mod campaign;
mod cli;
mod coverage;
mod find;
mod git;
mod known;
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

/// Exit code for a survivor that nobody has argued, or an argument without a survivor.
const UNEXPLAINED: u8 = 2;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(UNEXPLAINED),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all survivors are argued.
fn run(cli: &Cli) -> io::Result<bool> {
    let root =
        PathBuf::from(git::git(&std::env::current_dir()?, &["rev-parse", "--show-toplevel"])?);
    let campaign = campaign::Campaign::new(&cli.options, &root)?;
    if let Some(Command::Run { mutant }) = &cli.command {
        campaign.show(mutant)?;
        return Ok(true);
    }
    if cli.list {
        for number in campaign.selected() {
            println!("{number} {}", campaign.matrix.name(number));
        }
        return Ok(true);
    }
    let argued = argued::Argued::read(&root, &cli.options.room)?;
    let outcomes = campaign.run()?;
    let compared = argued.compare(&cli.options.room, &outcomes);
    let is_complete = outcomes.len() == campaign.matrix.count as usize;
    if cli.json {
        println!("{}", report::json(&outcomes, &compared));
    } else {
        print!("{}", report::text(&outcomes, &compared, is_complete));
    }
    let has_stale = is_complete && !compared.stale.is_empty();
    Ok(compared.unexplained.is_empty() && !has_stale)
}
