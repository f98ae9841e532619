//! `mutate`: break each persistence step in turn and see whether the lab notices.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use super::common::{Common, Outcome, progress_bar};
use super::found::save;
use crate::explore::{Found, shrink};
use crate::mutate::{Matrix, Mutant, Outcome as Matrixed};
use crate::report::Report;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Crash states to verify before a mutant counts as not noticed
    #[arg(long, default_value_t = 300_000)]
    states: u64,
    /// Histories of several sessions for the mutants that no state has killed
    #[arg(long, default_value_t = 10_000)]
    histories: u64,
    /// Only mutants whose name contains this, for example `drop-fence`
    #[arg(long)]
    only: Option<String>,
    /// Directory for the smallest case that shows each mutant, for `replay`
    #[arg(long)]
    save: Option<PathBuf>,
    /// Find out only what is not known: a mutant's kept case decides where it has one, and what is argued to make no
    /// difference is not run. The linter is asked of the others only
    #[arg(long)]
    short: bool,
    /// Threads; each has a share that follows from the seed
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    threads: u64,
}

/// Arguments why mutants make no difference at all, to the linter neither, for each mutant: one argument may be
/// that of several.
const EQUIVALENT_MAX: f64 = 0.03;
/// Part of those that a crash can show that the crash oracles alone must kill.
const ORACLE_MIN: f64 = 0.95;

pub(crate) fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let bar = progress_bar(0);
    let failed = RefCell::new(None);
    let keep = |found: &Found| {
        let Some(directory) = &arguments.save else { return };
        let found = shrink(found.clone());
        let name = found.case.mutation.map(|mutation| mutation.to_string().replace(' ', "-"));
        let path = directory.join(format!("{}.json", name.unwrap_or_default()));
        *failed.borrow_mut() = save(&found, &path).err();
    };
    let matrix = Matrix {
        engine: common.engine(),
        seed: common.seed(),
        states: arguments.states,
        histories: arguments.histories,
        threads: arguments.threads,
        is_short: arguments.short,
        only: arguments.only.as_deref(),
        keep: &keep,
        progress: &|done, all| {
            bar.set_length(all);
            bar.set_position(done);
        },
    };
    let outcome = matrix.run();
    bar.finish_and_clear();
    if let Some(error) = failed.take() {
        return Err(error);
    }
    report(arguments, common, &outcome)
}

fn report(arguments: &Arguments, common: &Common, outcome: &Matrixed) -> Outcome {
    let count = |is: &dyn Fn(&Mutant) -> bool| outcome.mutants.iter().filter(|m| is(m)).count();
    let mutants = outcome.mutants.len();
    // The linter may see the broken rule all the same.
    let equivalent = count(&|mutant| mutant.equivalent.is_some() && mutant.oracle.is_none());
    let by_oracle = count(&|mutant| mutant.oracle.is_some());
    let part = |some: usize, of: usize| if of == 0 { 0.0 } else { some as f64 / of as f64 };
    let oracle_part = part(by_oracle, mutants - equivalent);
    let survivors: Vec<_> = outcome
        .mutants
        .iter()
        .filter(|mutant| !mutant.is_killed() && mutant.equivalent.is_none())
        .map(|mutant| mutant.mutation.clone())
        .collect();
    let mut report = Report::new();
    report
        .figure("engine", common.engine().to_string())
        .figure("seed", common.seed())
        .figure("short", arguments.short)
        .figure("mutants", mutants)
        .figure("killed", count(&Mutant::is_killed))
        .figure("killed_by_linter", count(&|mutant| mutant.linter.is_some()))
        .figure("killed_by_oracle", by_oracle)
        .figure("killed_by_oracle_part", (oracle_part * 1000.0).round() / 1000.0)
        .figure("equivalent", equivalent)
        .figure("survivors", survivors.len());
    if common.json {
        report.figure("matrix", serde_json::to_value(&outcome.mutants)?);
    } else {
        let lines: Vec<_> = outcome.mutants.iter().map(line).collect();
        report.figure("matrix", lines);
    }
    if let Some(what) = &outcome.unmutated {
        report.problem(format!("without any mutation: {what}"));
    }
    // The short form is of too few states to come everywhere; `explore` counts crash points by window.
    if arguments.short {
        report.figure("unexecuted", outcome.unexecuted.len());
    } else {
        for site in &outcome.unexecuted {
            report.problem(format!("no run executes the site {site}"));
        }
    }
    for survivor in survivors {
        report.problem(format!("nobody notices {survivor}"));
    }
    // Of a part of the matrix the parts say nothing; the short form asks the linter of nothing that is argued.
    if arguments.only.is_none() && !arguments.short {
        if oracle_part < ORACLE_MIN {
            report.problem(format!("the crash oracles alone kill only {oracle_part:.3}"));
        }
        let unseen = outcome.mutants.iter().filter(|mutant| !mutant.is_killed());
        let reasons: BTreeSet<_> = unseen.filter_map(|mutant| mutant.equivalent).collect();
        if part(reasons.len(), mutants) > EQUIVALENT_MAX {
            let reasons = reasons.len();
            report.problem(format!(
                "{reasons} arguments that a step is not needed, for {mutants} mutants"
            ));
        }
    }
    Ok(report)
}

/// A row of the matrix for people.
fn line(mutant: &Mutant) -> String {
    let mark = |killed: bool, name: &'static str| if killed { name } else { "-" };
    let fate = mutant.equivalent.filter(|_| mutant.oracle.is_none()).unwrap_or_default();
    format!(
        "{:<48} {:<7} {:<7} {fate}",
        mutant.mutation,
        mark(mutant.linter.is_some(), "linter"),
        mark(mutant.oracle.is_some(), "oracle"),
    )
}
