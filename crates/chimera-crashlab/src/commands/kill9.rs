//! `kill9`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

use super::common::{Common, Outcome, refuse};
use crate::kill9::{self, Plan, writer};
use crate::report::Report;

/// Where tmpfs is mounted on Linux.
const TMPFS: &str = "/dev/shm";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many times to kill a writer
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    cycles: u64,
    /// What the stores lie on
    #[arg(long, value_enum, default_value_t = Medium::Both)]
    medium: Medium,
    /// Where stores on plain files are made [default: the system's directory for temporary files]
    #[arg(long)]
    directory: Option<PathBuf>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Medium {
    /// Plain files
    File,
    /// Files in memory, in /dev/shm
    Tmpfs,
    /// One after the other
    Both,
}

#[derive(Debug, clap::Subcommand)]
enum Role {
    /// The process that is killed
    #[command(hide = true)]
    Writer(writer::Arguments),
}

pub(crate) fn run(arguments: &Arguments, common: &Common) -> Outcome {
    if let Some(Role::Writer(writer)) = &arguments.role {
        writer::run(writer)?;
        // Nobody but the parent reads the output, and it expects no report.
        std::process::exit(0);
    }
    let is_ignored = arguments.directory.is_some() && arguments.medium == Medium::Tmpfs;
    refuse(is_ignored, "directory", "no store lies on plain files")?;
    let mut report = Report::new();
    let places = places(arguments);
    if places.is_empty() {
        report.skipped(format!("there is no {TMPFS} here"));
        return Ok(report);
    }
    let plan = Plan {
        engine: common.engine(),
        cycles: arguments.cycles,
        places,
        seed: common.seed(),
        program: std::env::current_exe()?,
    };
    let bar = progress(arguments.cycles, common.json);
    let outcome = kill9::run(&plan, || bar.inc(1))?;
    bar.finish_and_clear();
    report
        .figure("engine", common.engine().to_string())
        .figure("seed", common.seed())
        .figure("media", outcome.media.join(", "))
        .figure("cycles", outcome.cycles)
        .figure("stores", outcome.stores)
        .figure("acknowledged", outcome.acknowledged)
        .figure("in_flight", outcome.in_flight)
        .figure("in_flight_done", outcome.in_flight_done)
        .figure("batches_cut_off", outcome.batches_cut_off)
        .figure("kills_during_open", outcome.kills_during_open)
        .figure("kills_during_close", outcome.kills_during_close)
        .figure("recoveries", outcome.recoveries)
        .figure("violations", outcome.violations.len());
    for violation in outcome.violations {
        report.problem(violation);
    }
    Ok(report)
}

fn places(arguments: &Arguments) -> Vec<PathBuf> {
    let files = arguments.directory.clone().unwrap_or_else(std::env::temp_dir);
    let memory = Path::new(TMPFS).is_dir().then(|| PathBuf::from(TMPFS));
    match arguments.medium {
        Medium::File => vec![files],
        Medium::Tmpfs => memory.into_iter().collect(),
        Medium::Both => [files].into_iter().chain(memory).collect(),
    }
}

fn progress(cycles: u64, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
    let bar = ProgressBar::new(cycles).with_message("kills");
    style.map(|style| bar.clone().with_style(style)).unwrap_or(bar)
}
