//! The `chimera-crashlab` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use chimera_crashlab::commands::Cli;
use clap::Parser;

fn main() -> ExitCode {
    chimera_crashlab::commands::run(&Cli::parse())
}
