//! `plant`: plant historical bugs and see whether the lab finds them.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Instant;

use super::common::{Common, Outcome, progress_bar};
use crate::chance::Chance;
use crate::explore::{Campaign, Found, lint, shrink, staged_read};
use crate::linter::Lint;
use crate::report::Report;
use crate::subject::{Bug, Fixture, Form, Shape};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Crash states to verify of every sound form, and at most of every planted one
    #[arg(long, default_value_t = 200_000)]
    states: u64,
    /// Threads for the sound forms
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    threads: u64,
}

pub(crate) fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_engine("bugs are planted in fixtures of their own")?;
    let started = Instant::now();
    let bar = progress_bar(arguments.states * Bug::ALL.len() as u64);
    let mut report = Report::new();
    let (mut found, mut sound_states, mut lines) = (0_u64, 0, Vec::new());
    for (number, bug) in (0..).zip(Bug::ALL) {
        let progress = |states| bar.set_position(number * arguments.states + states);
        let trial = |form, threads| Trial {
            fixture: Fixture { bug, form },
            states: arguments.states,
            threads,
            seed: common.seed(),
            progress: &progress,
        };
        let sound = trial(Form::Sound, arguments.threads).run()?;
        sound_states += sound.states;
        if sound.is_found() {
            report.problem(format!("{}, sound form: {sound}\n{}", bug.title(), sound.details()));
        }
        let mut is_found = true;
        for form in bug.planted() {
            // One thread, so that the same seed finds it in the same state.
            let planted = trial(*form, 1).run()?;
            is_found &= planted.is_found();
            if !planted.is_found() {
                report.problem(format!("{} ({form:?}): {planted}", bug.title()));
            }
            lines.push(format!("{}: {planted}", bug.title()));
        }
        found += u64::from(is_found);
    }
    bar.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    report
        .figure("seed", common.seed())
        .figure("planted", Bug::ALL.len())
        .figure("found", found)
        .figure("sound_states", sound_states)
        .figure("seconds", (seconds * 10.0).round() / 10.0)
        .figure("bugs", lines);
    Ok(report)
}

/// One form of a fixture, to be explored.
struct Trial<'a> {
    fixture: Fixture,
    /// At least so many, if nothing is found.
    states: u64,
    threads: u64,
    seed: u64,
    progress: &'a (dyn Fn(u64) + Sync),
}

/// What was found in it.
#[derive(Debug, Default)]
struct Verdict {
    states: u64,
    /// What the oracle says, and after how many operations, as few as it takes.
    oracle: Option<(String, usize)>,
    lints: BTreeSet<Lint>,
}

impl Trial<'_> {
    /// Explores it: by random operations of one thread, or with a reader beside a writer, or both.
    fn run(&self) -> Result<Verdict, Box<dyn std::error::Error>> {
        let mut verdict = Verdict::default();
        let needs_two = self.fixture.bug.needs_two_threads();
        if needs_two {
            self.stage(&mut verdict)?;
        }
        if !needs_two || self.fixture.form == Form::Sound {
            self.explore(&mut verdict);
        }
        Ok(verdict)
    }

    fn explore(&self, verdict: &mut Verdict) {
        let campaign = Campaign {
            shape: &|_: &mut Chance| Shape::Fixture(self.fixture),
            seed: self.seed,
            states: self.states,
            epochs: 0,
            threads: self.threads,
            mutation: None,
            progress: self.progress,
        };
        let summary = campaign.run();
        verdict.states += summary.counts.states;
        verdict.lints.extend(summary.lints);
        // The oracle cuts a run short: what the linter would have said is asked apart.
        verdict.lints.extend(lint(&self.fixture, self.seed));
        if let Some(found) = summary.found.into_iter().next() {
            let Found { case, violation } = shrink(found);
            let operations = case.epochs.iter().map(|epoch| epoch.actions.len()).sum();
            verdict.oracle = Some((violation.what, operations));
        }
    }

    fn stage(&self, verdict: &mut Verdict) -> Result<(), Box<dyn std::error::Error>> {
        let races = staged_read(&self.fixture, self.seed).map_err(|failure| failure.to_string())?;
        verdict.states += races.states;
        verdict.lints.extend(races.lints);
        // Two puts and a lookup.
        verdict.oracle = races.violation.map(|violation| (violation.what, 3));
        Ok(())
    }
}

impl Verdict {
    fn is_found(&self) -> bool {
        self.oracle.is_some() || !self.lints.is_empty()
    }

    /// The linter's rules that are broken.
    fn rules(&self) -> Vec<&'static str> {
        let rules: BTreeSet<_> = self.lints.iter().map(|lint| lint.rule).collect();
        rules.into_iter().collect()
    }

    /// What exactly.
    fn details(&self) -> String {
        let oracle = self.oracle.iter().map(|(what, _)| what.clone());
        let lints = self.lints.iter();
        let lints = lints.map(|lint| format!("{} at {}: {}", lint.rule, lint.site, lint.what));
        oracle.chain(lints).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_found() {
            return write!(f, "nothing found in {} states", self.states);
        }
        if let Some((what, operations)) = &self.oracle {
            let states = self.states;
            write!(f, "oracle, after {states} states, operations needed {operations}: {what}")?;
        }
        if !self.lints.is_empty() {
            let separator = if self.oracle.is_some() { "; " } else { "" };
            write!(f, "{separator}linter, {}", self.rules().join(" and "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(bug: Bug, form: Form, states: u64) -> Verdict {
        let fixture = Fixture { bug, form };
        Trial { fixture, states, threads: 1, seed: 1, progress: &|_| {} }.run().expect("it runs")
    }

    #[test]
    fn sound_forms_are_sound() {
        for bug in Bug::ALL {
            let verdict = trial(bug, Form::Sound, 5_000);
            assert!(!verdict.is_found(), "{}: {}", bug.title(), verdict.details());
            assert!(verdict.states >= 5_000, "{}: {verdict}", bug.title());
        }
    }

    #[test]
    fn oracle_finds_every_planted_bug() {
        for bug in Bug::ALL {
            for form in bug.planted() {
                let verdict = trial(bug, *form, 50_000);
                assert!(verdict.oracle.is_some(), "{} ({form:?}): {verdict}", bug.title());
            }
        }
    }

    /// The reader is let in before every step of a write, and nothing reverts.
    #[test]
    fn readers_are_let_in_everywhere() {
        let fixture = Fixture { bug: Bug::UnpersistedRead, form: Form::Sound };
        let races = staged_read(&fixture, 1).expect("it runs");
        // Beginning, lookup (two loads), load, copy, flush, fence, publish, flush, fence, end.
        assert_eq!(races.places, 11);
        assert!(races.lints.is_empty() && races.violation.is_none(), "{races:?}");
    }

    /// What the linter knows nothing about, only the oracle finds.
    #[test]
    fn linter_finds_its_part() {
        for bug in Bug::ALL {
            let expected: &[&str] = match bug {
                Bug::CommitFlag => &["A2"],
                Bug::FlushRange => &["A1", "A2"],
                Bug::UnpersistedRead => &["A3"],
                _ => &[],
            };
            for form in bug.planted() {
                let verdict = trial(bug, *form, 0);
                let rules = verdict.rules();
                assert_eq!(rules, expected, "{} ({form:?}): {}", bug.title(), verdict.details());
            }
        }
    }
}
