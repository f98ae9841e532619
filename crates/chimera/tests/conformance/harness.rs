//! Runs every test for every configuration, and prints the table of results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Completion, Trial};

use crate::configurations::Configuration;

/// The argument that asks for the table.
const TABLE: &str = "--table";

/// Tests of one theme.
pub(crate) struct Theme {
    pub(crate) name: &'static str,
    pub(crate) tests: &'static [Test],
}

/// A test, for any configuration that has what it needs.
#[derive(Clone, Copy)]
pub(crate) struct Test {
    pub(crate) name: &'static str,
    /// Names of capabilities.
    pub(crate) needs: &'static [&'static str],
    pub(crate) run: fn(&Configuration),
}

/// The tests of a module: `tests![name, name: needs capability capability]`.
macro_rules! tests {
    ($($name:ident $(: needs $($need:ident)+)?),+ $(,)?) => {
        &[$($crate::harness::Test {
            name: stringify!($name),
            needs: &[$($(stringify!($need)),+)?],
            run: $name,
        }),+]
    };
}
pub(crate) use tests;

/// What came of a test for a configuration.
#[derive(Clone, Copy)]
enum Outcome {
    Passed,
    /// The capability that is missing.
    Skipped(&'static str),
    Failed,
}

/// Outcomes by the name of the test and of the configuration. What was not run has none.
type Outcomes = Arc<Mutex<BTreeMap<(String, &'static str), Outcome>>>;

/// Runs what the arguments of the process ask for.
pub(crate) fn run(themes: &'static [Theme], configurations: &'static [Configuration]) -> ExitCode {
    let (wanted, arguments): (Vec<_>, Vec<_>) =
        std::env::args().partition(|argument| argument == TABLE);
    let outcomes = Outcomes::default();
    let mut trials = Vec::new();
    for theme in themes {
        for test in theme.tests {
            let pair = |configuration| trial(theme, *test, configuration, outcomes.clone());
            trials.extend(configurations.iter().map(pair));
        }
    }
    let conclusion = libtest_mimic::run(&Arguments::from_iter(arguments), trials);
    if !wanted.is_empty() {
        print(themes, configurations, &outcomes);
    }
    conclusion.exit_code()
}

fn trial(
    theme: &Theme,
    test: Test,
    configuration: &'static Configuration,
    outcomes: Outcomes,
) -> Trial {
    let about = format!("{}::{}", theme.name, test.name);
    Trial::ignorable_test(format!("{about}::{}", configuration.name), move || {
        let note = |outcome| {
            let mut outcomes = outcomes.lock().expect("nothing panics while it is held");
            outcomes.insert((about.clone(), configuration.name), outcome);
        };
        if let Some(missing) = configuration.lacks(test.needs) {
            note(Outcome::Skipped(missing));
            return Ok(Completion::ignored_with(format!("no {missing}")));
        }
        // A panic leaves it at that.
        note(Outcome::Failed);
        (test.run)(configuration);
        note(Outcome::Passed);
        Ok(Completion::Completed)
    })
}

fn print(themes: &[Theme], configurations: &[Configuration], outcomes: &Outcomes) {
    let outcomes = outcomes.lock().expect("no test is running");
    let names = themes.iter().flat_map(|theme| {
        let tests = theme.tests.iter();
        tests.map(|test| test.name.len() + 2).chain([theme.name.len()])
    });
    let width = names.max().unwrap_or(0);
    let cells = |first: &str, cells: Vec<String>| {
        let mut line = format!("{first:width$}");
        for (cell, configuration) in cells.iter().zip(configurations) {
            let column = configuration.name.len().max("skip: another_engine".len());
            let _ = write!(line, "  {cell:column$}");
        }
        println!("{}", line.trim_end());
    };
    cells("", configurations.iter().map(|it| it.name.to_owned()).collect());
    cells("engine", configurations.iter().map(|it| it.engine.to_string()).collect());
    for theme in themes {
        // A capability that nobody has tests for yet.
        let without = |it: &Configuration| match it.lacks(&[theme.name]) {
            Some(missing) => format!("skip: {missing}"),
            None => "no test yet".to_owned(),
        };
        let heads = configurations.iter().filter(|_| theme.tests.is_empty()).map(without);
        cells(theme.name, heads.collect());
        for test in theme.tests {
            let about = format!("{}::{}", theme.name, test.name);
            let outcome = |it: &Configuration| match outcomes.get(&(about.clone(), it.name)) {
                Some(Outcome::Passed) => "ok".to_owned(),
                Some(Outcome::Skipped(missing)) => format!("skip: {missing}"),
                Some(Outcome::Failed) => "FAILED".to_owned(),
                None => "not run".to_owned(),
            };
            let outcomes = configurations.iter().map(outcome).collect();
            cells(&format!("  {}", test.name), outcomes);
        }
    }
}
