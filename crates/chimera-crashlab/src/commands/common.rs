//! What all subcommands have.

use chimera::EngineKind;

use crate::report::Report;
use crate::subject::parse_engine;

/// What all subcommands have. Those that have no use for one of them refuse it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// The engine to test [default: viper]
    #[arg(long, global = true, value_parser = parse_engine)]
    engine: Option<EngineKind>,
    /// Everything random follows from it: the same seed, the same run [default: 1]
    #[arg(long, global = true)]
    seed: Option<u64>,
    /// Print one JSON object instead of a table
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl Common {
    /// The engine to test.
    pub(crate) fn engine(&self) -> EngineKind {
        self.engine.unwrap_or(EngineKind::Viper)
    }

    /// What everything random follows from.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Refuses an engine that is given.
    ///
    /// # Errors
    /// When one is given, with the reason.
    pub(crate) fn refuse_engine(&self, why: &str) -> Result<(), String> {
        refuse(self.engine.is_some(), "engine", why)
    }

    /// Refuses a seed that is given.
    ///
    /// # Errors
    /// When one is given, with the reason.
    pub(crate) fn refuse_seed(&self, why: &str) -> Result<(), String> {
        refuse(self.seed.is_some(), "seed", why)
    }
}

/// Fails where an option is given that has no effect.
///
/// # Errors
/// With the reason.
pub(crate) fn refuse(is_given: bool, option: &str, why: &str) -> Result<(), String> {
    if is_given { Err(format!("--{option} has no effect here: {why}")) } else { Ok(()) }
}

/// Why a command could not be run.
pub(crate) type Outcome = Result<Report, Box<dyn std::error::Error>>;

/// A bar on standard error, on terminals only.
pub(crate) fn progress_bar(length: u64) -> indicatif::ProgressBar {
    let style = indicatif::ProgressStyle::with_template(
        "{wide_bar} {human_pos}/{human_len} {elapsed} (about {eta} left)",
    );
    let bar = indicatif::ProgressBar::new(length);
    bar.with_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()))
}
