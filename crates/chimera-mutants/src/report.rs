//! What a run has found, for humans and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

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

/// A table by file, and the mutants that nobody notices.
pub(crate) fn text(outcomes: &BTreeMap<u32, Outcome>) -> String {
    let mut files: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes.values() {
        files.entry(&outcome.file).or_default().push(outcome);
    }
    let width = files.keys().map(|file| file.len()).max().unwrap_or(4).max(5);
    let mut text = String::new();
    for outcome in outcomes.values().filter(|outcome| outcome.fate.survives()) {
        let Outcome { file, line, column, what, .. } = outcome;
        let note = if outcome.fate == Fate::Unreached { " (unreached)" } else { "" };
        let _ = writeln!(text, "{file}:{line}:{column}: {what}{note}");
    }
    let _ = write!(text, "\n{:width$}", "file");
    for fate in Fate::ALL {
        let _ = write!(text, " {:>9}", fate.name());
    }
    text.push('\n');
    for (file, outcomes) in &files {
        text += &row(file, &counts(outcomes.iter().copied()), width);
    }
    text + &row("all", &counts(outcomes.values()), width)
}

/// The same as JSON.
pub(crate) fn json(outcomes: &BTreeMap<u32, Outcome>) -> serde_json::Value {
    let counts: BTreeMap<_, _> =
        counts(outcomes.values()).into_iter().map(|(fate, count)| (fate.name(), count)).collect();
    let survivors: Vec<_> = outcomes.values().filter(|outcome| outcome.fate.survives()).collect();
    serde_json::json!({ "mutants": outcomes.len(), "outcomes": counts, "survivors": survivors })
}
