//! The `chimera` command: stores from the command line.
//!
//! - `command_line`: what the user may say. `arguments`: what commands share of it.
//! - `commands`: one module for each command; `commands::doctor` reports on the machine.
//! - `store`: opening a store the way a command needs it, with a progress bar.
//! - `paths`: paths that lead nowhere, and paths in JSON.
//! - `text`: keys and values as text or hexadecimal, to and from a store's fixed sizes.
//! - `output`, `failure`, `progress`: standard output, errors with their exit codes, bars.
//! - `interrupt`: what Ctrl-C leaves behind.
//! - `losses`: what damage has kept out of the store, and so out of what a command prints.
//!
//! The command knows no file format: whatever it says of a store, the library told it.
#![forbid(unsafe_code)]

mod arguments;
mod command_line;
mod commands;
mod failure;
mod human;
mod interrupt;
mod losses;
mod output;
mod paths;
mod progress;
mod store;
mod text;

use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;

use commands::Context;
use failure::Failure;

fn main() -> ExitCode {
    let (cli, path_is_given) = match command_line::read() {
        Ok(read) => read,
        Err(error) => return refuse(&error),
    };
    start_logging(cli.global.verbose);
    if let Err(error) = chimera_pmem::bus_error::install() {
        eprintln!("chimera: warning: a SIGBUS will not be explained: {error}");
    }
    chimera_pmem::file_size_signal::ignore();
    let json = cli.global.json;
    // A command that becomes another one leaves the signal to that.
    if let Some(plan) = cli.command.when_interrupted() {
        interrupt::install(json, plan);
    }
    let mut context = Context::new(&cli.global, path_is_given);
    // A report may be complete although the command failed: `check` of a damaged store.
    let (outcome, printed) = (cli.command.run(&mut context), context.output.finish());
    let outcome = match outcome {
        // Nobody was told of what else was done.
        Ok(()) | Err(Failure::Losses(_)) if printed.is_err() => printed,
        outcome => outcome,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(json);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Ends on a command line that clap did not take: help, version, or a usage error.
fn refuse(error: &clap::Error) -> ExitCode {
    let is_question = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let json = std::env::args_os().any(|argument| argument == "--json");
    if json && !is_question {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        Failure::Usage(text.trim_end().to_owned()).report(true);
    } else {
        // A reader that closed the pipe has read enough.
        let _ = error.print();
    }
    if is_question { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

/// Sends the libraries' messages to standard error: warnings always, more with `-v` and `-vv`, or as
/// the variable `RUST_LOG` says.
fn start_logging(verbose: u8) {
    let level = match verbose {
        // A command says of its own accord what salvage left out.
        0 => "warn,chimera::losses=error",
        1 => "info",
        _ => "debug",
    };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(level))
        .format(|buffer, record| {
            if interrupt::is_ending() {
                return Ok(());
            }
            let level = record.level().as_str().to_lowercase();
            writeln!(buffer, "chimera: {level}: {}", record.args())
        })
        .init();
}
