//! [`Given`]: which arguments a command line gives, so that those without an effect are refused.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::error::{BenchError, Result};

/// An option that has no effect, and why.
pub(super) type Unused = (&'static str, &'static str);

/// Stores that are removed after each pass cannot be left.
pub(super) const NOT_KEPT: Unused = ("keep", "a store is removed after its pass");
/// Nothing is counted.
pub(super) const NOT_COUNTED: Unused = ("no-counters", "nothing is counted here");
/// Nothing that is measured verifies by choice.
pub(super) const NO_GETS: Unused = ("verify-reads", "no gets are measured");
/// What ends phases elsewhere.
pub(super) const NO_DURATION: Unused =
    ("duration", "each side does the same number of operations: give --operations");

/// The names of the arguments that a command line gives, in contrast to those that have their defaults.
///
/// It takes no argument itself. It is to be the first field, because reading an argument takes it away.
#[derive(Clone, Debug, Default)]
pub struct Given(Vec<String>);

impl Given {
    /// Whether an option is given.
    pub(super) fn has(&self, option: &str) -> bool {
        let id = option.replace('-', "_");
        self.0.contains(&id)
    }

    /// Refuses options that are given and have no effect.
    ///
    /// # Errors
    /// When one of them is given, with the reason.
    pub(super) fn refuse(&self, unused: &[Unused]) -> Result<()> {
        match unused.iter().find(|(option, _)| self.has(option)) {
            Some((option, why)) => Err(BenchError::Arguments(refusal(option, why))),
            None => Ok(()),
        }
    }

    /// Refuses all of these options, for one reason.
    ///
    /// # Errors
    /// When one of them is given.
    pub(super) fn refuse_all(&self, options: &[&str], why: &str) -> Result<()> {
        match options.iter().find(|option| self.has(option)) {
            Some(option) => Err(BenchError::Arguments(refusal(option, why))),
            None => Ok(()),
        }
    }
}

fn refusal(option: &str, why: &str) -> String {
    format!("--{option} has no effect here: {why}")
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = matches.ids().map(clap::Id::as_str);
        let is_given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
        Ok(Self(names.filter(is_given).map(str::to_owned).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
