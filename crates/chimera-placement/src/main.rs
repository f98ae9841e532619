//! The command `chimera-placement`: RocksDB with block cache and memtables in persistent memory.
//!
//! - `command_line`: what the user may say. `records`: writing and checking a database with a placement.
#![forbid(unsafe_code)]

mod command_line;
mod records;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use chimera_placement::report::{overhead_text, page, text};
use chimera_placement::study::{StudyOptions, overhead, overhead_runs, run, runs};
use chimera_placement::{Error, Result};
use command_line::{Cli, Command, LoadArguments, StudyArguments};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Run(arguments) => run_study(&arguments),
        Command::Overhead(arguments) => measure_overhead(&arguments),
        Command::Fill(arguments) => records::fill(&arguments),
        Command::Verify(arguments) => records::verify(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chimera-placement: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A bar on standard error, where that is a terminal.
fn bar(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn run_study(arguments: &StudyArguments) -> Result<()> {
    let options = arguments.study_options()?;
    let shown = bar(runs(&options)? as u64);
    let study = run(&options, &mut |what| {
        shown.set_message(what.to_owned());
        shown.inc(1);
    })?;
    shown.finish_and_clear();
    if let Some(directory) = &arguments.report {
        write_file(directory, "placement.html", &page(&study))?;
        write_file(directory, "placement.json", &serde_json::to_string_pretty(&study)?)?;
    }
    print(&if arguments.load.json { serde_json::to_string_pretty(&study)? } else { text(&study) })
}

fn measure_overhead(arguments: &LoadArguments) -> Result<()> {
    let options: StudyOptions = arguments.options();
    let shown = bar(overhead_runs(&options)? as u64);
    let measured = overhead(&options, &mut |what| {
        shown.set_message(what.to_owned());
        shown.inc(1);
    })?;
    shown.finish_and_clear();
    let json = || serde_json::to_string_pretty(&measured);
    print(&if arguments.json { json()? } else { overhead_text(&measured) })
}

fn write_file(directory: &Path, name: &str, contents: &str) -> Result<()> {
    let path = directory.join(name);
    let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, contents));
    written.map_err(|source| Error::System { what: "writing", path: path.clone(), source })?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        // A reader that closed the pipe has read enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::System { what: "writing", path: "standard output".into(), source: error })
        }
        _ => Ok(()),
    }
}
