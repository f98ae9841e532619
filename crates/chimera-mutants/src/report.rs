//! What a run has found, for humans and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::argued::Compared;
use crate::outcome::{Fate, Outcome};

type Counts = BTreeMap<Fate, usize>;

fn counts<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Counts {
    let mut counts = Counts::new();
    outcomes.for_each(|outcome| *counts.entry(outcome.fate).or_default() += 1);
    counts
}

fn row(name: &str, counts: &Counts, width: usize) -> String {
    let mut row = format!("{name:width$}");
    for fate in Fate::ALL {
        let _ = write!(row, " {:>9}", counts.get(&fate).copied().unwrap_or(0));
    }
    row + "\n"
}

/// The mutants that nobody notices and nobody argues, arguments that have no mutant, and a table by file.
pub(crate) fn text(
    outcomes: &BTreeMap<u32, Outcome>,
    compared: &Compared<'_>,
    is_complete: bool,
) -> String {
    let mut files: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes.values() {
        files.entry(&outcome.file).or_default().push(outcome);
    }
    let width = files.keys().map(|file| file.len()).max().unwrap_or(4).max(5);
    let mut text = String::new();
    for outcome in &compared.unexplained {
        let Outcome { file, line, column, what, .. } = outcome;
        let note = if outcome.fate == Fate::Unreached { " (unreached)" } else { "" };
        let _ = writeln!(text, "{file}:{line}:{column}: {what}{note}");
    }
    for stale in compared.stale.iter().filter(|_| is_complete) {
        let _ = writeln!(text, "argued, and no survivor: {stale}");
    }
    let _ = write!(text, "\n{:width$}", "file");
    for fate in Fate::ALL {
        let _ = write!(text, " {:>9}", fate.name());
    }
    text.push('\n');
    for (file, outcomes) in &files {
        text += &row(file, &counts(outcomes.iter().copied()), width);
    }
    text += &row("all", &counts(outcomes.values()), width);
    let (argued, unexplained) = (compared.argued.len(), compared.unexplained.len());
    text + &format!("\nsurvivors: {argued} argued, {unexplained} unexplained\n")
}

/// The same as JSON.
pub(crate) fn json(
    outcomes: &BTreeMap<u32, Outcome>,
    compared: &Compared<'_>,
) -> serde_json::Value {
    let counts: BTreeMap<_, _> =
        counts(outcomes.values()).into_iter().map(|(fate, count)| (fate.name(), count)).collect();
    serde_json::json!({
        "mutants": outcomes.len(),
        "outcomes": counts,
        "argued": compared.argued,
        "unexplained": compared.unexplained,
        "argued_without_survivor": compared.stale,
    })
}
