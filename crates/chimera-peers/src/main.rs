//! The command `chimera-peers`: Chimera beside RocksDB, LMDB, redb and fjall in one run.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;

use clap::Parser;

use chimera_bench::report::check_plot;
use chimera_peers::options::Options;
use chimera_peers::{BenchError, Result, report, run, worker};

/// Some store failed.
const STORE_FAILED: u8 = 4;

fn main() -> ExitCode {
    // A limit of file sizes is an error of a write, and not the end of the process.
    chimera_pmem::file_size_signal::ignore();
    if std::env::args().nth(1).as_deref() == Some(worker::WORKER) {
        return serve();
    }
    match measure(&Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            eprintln!("chimera-peers: {failures} failures of stores: see the end of the report");
            ExitCode::from(STORE_FAILED)
        }
        // Nobody reads the output any more.
        Err(BenchError::Output(source)) if source.kind() == ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("chimera-peers: error: {error}");
            ExitCode::from(if matches!(error, BenchError::Arguments(_)) { 2 } else { 3 })
        }
    }
}

/// The process of one store.
fn serve() -> ExitCode {
    match worker::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chimera-peers: error: the process of a store: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures, prints and draws; how many stores failed.
fn measure(options: &Options) -> Result<usize> {
    let plan = options.plan()?;
    if let Some(path) = &options.plot {
        check_plot(path)?;
    }
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let measured = run::run(&plan, command)?;
    let mut text = if options.json {
        serde_json::to_string_pretty(&measured).map_err(|error| BenchError::Output(error.into()))?
    } else {
        report::text(&measured)
    };
    if options.json {
        text.push('\n');
    }
    stdout().write_all(text.as_bytes()).map_err(BenchError::Output)?;
    if let Some(path) = &options.plot {
        report::draw(&measured, path)?;
    }
    Ok(measured.failures.len())
}
