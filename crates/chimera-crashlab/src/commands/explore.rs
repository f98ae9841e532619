//! `explore`: crash a simulated store at every step, in every way that matters.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chimera::EngineKind;

use super::common::{Common, Outcome, progress_bar};
use super::found::{describe, save};
use crate::chance::Chance;
use crate::explore::{Campaign, Windows, shrink};
use crate::plain_file::{self, Findings, Plan};
use crate::report::Report;
use crate::schedules::CrashCampaign;
use crate::subject::{EngineShape, Shape};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Crash states to verify, at least
    #[arg(long, default_value_t = 2_000_000)]
    states: u64,
    /// Times that a store goes on after a crash, at least
    #[arg(long, default_value_t = 10_000)]
    epochs: u64,
    /// Histories of several sessions at once, crashed at many points
    #[arg(long, default_value_t = 1_000)]
    histories: u64,
    /// Stores on simulated plain files, half of them `Group` and half `Immediate`
    #[arg(long, default_value_t = 40)]
    plain_files: u64,
    /// Threads; each has a share that follows from the seed
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    threads: u64,
    /// Where to write a failure, for `replay`
    #[arg(long, default_value = "crash-case.json")]
    save: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let started = Instant::now();
    let bar = progress_bar(arguments.states);
    let engine = common.engine();
    let campaign = Campaign {
        shape: &|chance: &mut Chance| Shape::Engine(EngineShape::random(engine, chance)),
        seed: common.seed(),
        states: arguments.states,
        epochs: arguments.epochs,
        threads: arguments.threads,
        mutation: None,
        progress: &|states| bar.set_position(states),
    };
    let summary = campaign.run();
    let seconds = started.elapsed().as_secs_f64();
    bar.set_length(arguments.histories);
    let crashes = CrashCampaign {
        engine,
        seed: common.seed(),
        histories: arguments.histories,
        threads: arguments.threads,
        mutation: None,
        progress: &|histories| bar.set_position(histories),
    };
    let crashes = crashes.run();
    bar.set_length(arguments.plain_files);
    let plain_files = plain_files(arguments, common, &|stores| bar.set_position(stores));
    bar.finish_and_clear();
    let violations = summary.found.len() + plain_files.violations.len();
    let mut report = Report::new();
    report
        .figure("engine", engine.to_string())
        .figure("seed", common.seed())
        .figure("distinct_states", summary.counts.states)
        .figure("epochs", summary.counts.epochs)
        .figure("epochs_cut_in_recovery", summary.counts.nested)
        .figure("kills", summary.counts.kills)
        .figure("crash_points", summary.counts.points)
        .figure("crash_points_by_window", windows(&summary.windows, engine))
        .figure("media_errors", summary.counts.damages)
        .figure("stores", summary.stores)
        .figure("states_per_second", (summary.counts.states as f64 / seconds).round())
        .figure("seconds", (seconds * 10.0).round() / 10.0)
        .figure("histories", crashes.histories)
        .figure("operations_in_histories", crashes.operations)
        .figure("states_in_histories", crashes.states)
        .figure("plain_file_states", plain_files.states)
        .figure("violations", violations + usize::from(crashes.problem.is_some()))
        .figure("lints", summary.lints.union(&crashes.lints).count());
    for violation in &plain_files.violations {
        report.problem(format!("plain file: {violation}"));
    }
    if let Some(problem) = &crashes.problem {
        let number = problem.number;
        report.problem(format!(
            "history {number} of a batch, seed {}: {}",
            common.seed(),
            problem.text
        ));
    }
    for lint in summary.lints.union(&crashes.lints) {
        report.problem(format!("{} at {}: {}", lint.rule, lint.site, lint.what));
    }
    for found in summary.found.into_iter().take(1) {
        let found = shrink(found);
        save(&found, &arguments.save)?;
        report.problem(describe(&found, &arguments.save));
    }
    Ok(report)
}

/// Crash points by window, the rarest first: with 0 for sites of the engine at which no crash was tried.
fn windows(windows: &Windows, engine: EngineKind) -> Vec<String> {
    let sites = chimera::sites(engine).into_iter().filter(|site| !site.is_step());
    let mut all: Windows = sites.map(|site| (site.name(), 0)).collect();
    all.extend(windows);
    let mut sorted: Vec<_> = all.into_iter().collect();
    sorted.sort_by_key(|(name, points)| (*points, *name));
    sorted.into_iter().map(|(name, points)| format!("{points:>12}  {name}")).collect()
}

/// One in so many stores on plain files has large values: an odd number, for both durabilities.
const LARGE_ONE_IN: u64 = 5;

/// Stores on plain files that lose unsynced pages, each checked against its own promise.
fn plain_files(
    arguments: &Arguments,
    common: &Common,
    progress: &(dyn Fn(u64) + Sync),
) -> Findings {
    let (all, next) = (Mutex::new(Findings::default()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= arguments.plain_files {
                        return;
                    }
                    let plan = if number % 2 == 0 { Plan::group } else { Plan::immediate };
                    let plan = plan(common.seed().wrapping_add(number));
                    let engine = common.engine();
                    let plan = match number % LARGE_ONE_IN {
                        2 if engine == EngineKind::Viper => plan.with_large_values(),
                        _ => plan,
                    };
                    let found = plain_file::explore(&Plan { engine, ..plan });
                    all.lock().unwrap_or_else(PoisonError::into_inner).add(found);
                    progress(number);
                }
            });
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}
