//! `damage`: damaged stores, and whether anything is missing without a word.

use std::time::Instant;

use chimera::EngineKind;
use chimera_pmem::Site;
use serde_json::{Value, json};

use super::common::{Common, Outcome, progress_bar};
use crate::damage::{Campaign, Counts, Step, Tally};
use crate::report::Report;

/// Violations to print one by one, for people.
const VIOLATIONS_MAX: usize = 40;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Damaged stores to open and read
    #[arg(long, default_value_t = 100_000)]
    cases: u64,
    /// Run only the case with this number, of the same seed
    #[arg(long, conflicts_with_all = ["cases", "threads"])]
    case: Option<u64>,
    /// Threads; what a case is does not depend on them
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    threads: u64,
    /// Leave a check out, by the name of its step: a fault that must be found
    #[arg(long)]
    skip: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let started = Instant::now();
    let cases = arguments.case.map_or(0..arguments.cases, |case| case..case + 1);
    let bar = progress_bar(cases.end - cases.start);
    let campaign = Campaign {
        engine: common.engine(),
        seed: common.seed(),
        cases,
        threads: arguments.threads,
        skipped: arguments.skip.as_deref().map(|name| check(common.engine(), name)).transpose()?,
        progress: &|cases| bar.set_position(cases),
    };
    let tally = campaign.run();
    bar.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    let sum = tally.sum();
    let mut report = Report::new();
    report
        .figure("engine", common.engine().to_string())
        .figure("seed", common.seed())
        .figure("stores", tally.stores)
        .figure("cases", sum.cases)
        .figure("without_a_change", tally.unchanged)
        .figure("unharmed", sum.unharmed)
        .figure("noticed", sum.noticed.values().sum::<u64>())
        .figure("allowed", sum.allowed.values().sum::<u64>())
        .figure("violations", sum.violations)
        .figure("cases_per_second", (sum.cases as f64 / seconds).round())
        .figure("seconds", (seconds * 10.0).round() / 10.0);
    if common.json {
        report.figure("table", cells(&tally));
    } else {
        let by_structure = tally.by(|structure, _| structure.to_owned());
        report.figure("by_structure", table(by_structure.iter()));
        let by_kind = tally.by(|_, kind| kind);
        let by_kind: Vec<_> =
            by_kind.into_iter().map(|(kind, counts)| (kind.to_string(), counts)).collect();
        report.figure("by_kind", table(by_kind.iter().map(|(kind, counts)| (kind, counts))));
        let lost = tally.by(|structure, kind| format!("{structure}, {kind}"));
        let lost = lost.iter().filter(|(_, counts)| counts.violations > 0);
        report.figure("missing_without_a_word", table(lost));
        let allowances = sum.allowed.iter().map(|(name, count)| format!("{count:>9}  {name:?}"));
        report.figure("allowances", allowances.collect::<Vec<_>>());
    }
    let printed_max = if common.json { usize::MAX } else { VIOLATIONS_MAX };
    for violation in tally.violations.iter().take(printed_max) {
        let (case, seed, engine) = (violation.case, common.seed(), common.engine());
        report.problem(format!(
            "{}, {}: {} (--engine {engine} --seed {seed} --case {case})",
            violation.structure, violation.kind, violation.text
        ));
    }
    if tally.violations.len() > printed_max {
        report.problem(format!("{} more", tally.violations.len() - printed_max));
    }
    Ok(report)
}

/// The name of a check of an engine.
fn check(engine: EngineKind, name: &str) -> Result<&'static str, String> {
    let mut steps = chimera::sites(engine).into_iter().filter(|site| site.is_step());
    let found = steps.find(|site| site.name() == name);
    found.map(Site::name).ok_or_else(|| format!("{engine} has no check `{name}`"))
}

/// The columns of a table.
fn columns(counts: &Counts) -> Vec<(&'static str, u64)> {
    let noticed =
        |steps: &[Step]| steps.iter().filter_map(|step| counts.noticed.get(step)).sum::<u64>();
    vec![
        ("cases", counts.cases),
        ("unharmed", counts.unharmed),
        ("open", noticed(&[Step::Open])),
        ("check", noticed(&[Step::Check])),
        ("get", noticed(&[Step::Get])),
        ("export", noticed(&[Step::List, Step::Scan, Step::Export])),
        ("later", noticed(&[Step::Compact, Step::Close])),
        ("allowed", counts.allowed.values().sum()),
        ("violations", counts.violations),
    ]
}

fn table<'a>(rows: impl Iterator<Item = (&'a String, &'a Counts)>) -> Vec<String> {
    let heads = columns(&Counts::default());
    let head: Vec<_> = heads.iter().map(|(name, _)| format!("{name:>11}")).collect();
    let row = |(name, counts): (&String, &Counts)| {
        let cells = columns(counts);
        let cells: Vec<_> = cells.iter().map(|(_, count)| format!("{count:>11}")).collect();
        format!("{}  {name}", cells.concat())
    };
    std::iter::once(head.concat()).chain(rows.map(row)).collect()
}

/// Structure by kind, for programs.
fn cells(tally: &Tally) -> Vec<Value> {
    let cell = |((structure, kind), counts): (&(&str, crate::damage::Kind), &Counts)| {
        let mut cell = json!({ "structure": structure, "kind": kind.to_string() });
        for (name, count) in columns(counts) {
            cell[name] = count.into();
        }
        let allowed =
            counts.allowed.iter().map(|(name, count)| (format!("{name:?}"), json!(count)));
        cell["allowances"] = Value::Object(allowed.collect());
        cell
    };
    tally.counts.iter().map(cell).collect()
}
