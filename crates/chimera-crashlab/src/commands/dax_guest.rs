//! `dax-guest`: the store on emulated persistent memory, its power cut again and again.

use std::path::PathBuf;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use super::common::{Common, Outcome};
use crate::dax_guest::campaign::Campaign;
use crate::dax_guest::machine::Machine;
use crate::dax_guest::setup::{self, Programs, Tools};
use crate::dax_guest::variants;
use crate::report::Report;

const EXAMPLES: &str = "\
Examples:
  chimera-crashlab dax-guest --install       # once: gets QEMU, a kernel and a busybox, then runs
  chimera-crashlab dax-guest
  chimera-crashlab dax-guest --engine hikv
  chimera-crashlab dax-guest --cuts 200 --exact 50 --seed 7 --json

Nothing is fetched or installed without --install. What is missing is named, and nothing is run then.
The programs for the guest are built with cargo: run this in the project's directory.

Missing flushes are not noticed here, because the emulated machine has no cache that could lose
anything: `explore` and `mutate` are for that.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Power cuts at random moments
    #[arg(long, default_value_t = 20)]
    cuts: u64,
    /// Power cuts before exact steps of an operation
    #[arg(long, default_value_t = 3)]
    exact: u64,
    /// Leave out the variants of the machine
    #[arg(long)]
    no_variants: bool,
    /// First get what is missing from this system's packages, by apt-get (scripts/dax-guest-setup)
    #[arg(long)]
    install: bool,
    /// Where kernel, modules and busybox are kept [default: chimera-dax-guest in the user's cache]
    #[arg(long, value_name = "DIRECTORY")]
    guest_directory: Option<PathBuf>,
    /// The test program for the guest, statically linked, instead of building it
    #[arg(long, value_name = "FILE", requires = "chimera_binary")]
    guest_binary: Option<PathBuf>,
    /// The command `chimera`, statically linked, instead of building it
    #[arg(long, value_name = "FILE", requires = "guest_binary")]
    chimera_binary: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let started = Instant::now();
    let guest = arguments.guest_directory.clone().unwrap_or_else(setup::default_directory);
    let mut report = Report::new();
    report.figure("engine", common.engine().to_string()).figure("seed", common.seed());
    let mut tools = Tools::find(&guest);
    if arguments.install && tools.is_err() {
        setup::install(&guest)?;
        tools = Tools::find(&guest);
    }
    let tools = match tools {
        Ok(tools) => tools,
        Err(missing) => {
            let missing = missing.join(", ");
            report.skipped(format!(
                "missing: {missing}. `chimera-crashlab dax-guest --install` gets it from the \
                 packages of Debian and its kin; for other systems see scripts/dax-guest-setup"
            ));
            return Ok(report);
        }
    };
    let programs = programs(arguments)?;
    let archive = tools.archive(&programs)?;
    let directory = tempfile::tempdir()?;
    let machine = Machine { tools, archive, directory: directory.path().to_owned() };
    let mut campaign = Campaign::new(machine, common.engine(), common.seed(), progress(arguments));

    campaign.cuts(arguments.cuts, arguments.exact)?;
    let variants = match (campaign.found.has_violations(), arguments.no_variants) {
        (false, false) => campaign.variants()?,
        (false, true) => {
            campaign.finish()?;
            Vec::new()
        }
        (true, _) => Vec::new(),
    };

    campaign.progress.finish_and_clear();
    let found = campaign.found;
    report
        .figure("cuts", found.cuts)
        .figure("exact_cuts", found.exact_steps.len())
        .figure("exact_steps", found.exact_steps)
        .figure("variants", variants)
        .figure("starts", found.starts)
        .figure("acknowledged", found.acknowledged)
        .figure("verified_records", found.verified_records)
        .figure("duplicates_cleared", found.duplicates_cleared)
        .figure("violations", found.violations.len())
        .figure("seconds", started.elapsed().as_secs());
    let wrong: Vec<_> = found.violations.into_iter().chain(found.problems).collect();
    if !wrong.is_empty() {
        let kept = directory.keep();
        report.figure("kept", kept.display().to_string());
    }
    for text in wrong {
        report.problem(text);
    }
    Ok(report)
}

fn programs(arguments: &Arguments) -> Result<Programs, String> {
    match (&arguments.guest_binary, &arguments.chimera_binary) {
        (Some(guest), Some(chimera)) => {
            Ok(Programs { guest: guest.clone(), chimera: chimera.clone() })
        }
        _ => setup::build(),
    }
}

/// A bar on the standard error, where that is a terminal.
fn progress(arguments: &Arguments) -> ProgressBar {
    let variants = if arguments.no_variants { 1 } else { variants::STARTS };
    let bar = ProgressBar::new(arguments.cuts + arguments.exact + variants);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({elapsed})");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
