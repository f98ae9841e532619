//! `chimera-bench`: the benchmarks alone. The `chimera` command has them as `chimera bench`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use chimera_bench::command::{self, BenchCommand};
use clap::Parser;

/// Measures Chimera: throughput, latency, counters, recovery, memory
#[derive(Debug, Parser)]
#[command(name = "chimera-bench", version)]
struct Arguments {
    /// Print one JSON object instead of tables
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: BenchCommand,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match command::run(&arguments.command, arguments.json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chimera-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
