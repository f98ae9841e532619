//! What all subcommands have.

use chimera::EngineKind;

use crate::report::Report;
use crate::subject::parse_engine;

/// What all subcommands have.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// The engine to test
    #[arg(long, global = true, default_value = "viper", value_parser = parse_engine)]
    pub(crate) engine: EngineKind,
    /// Everything random follows from it: the same seed, the same run
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print one JSON object instead of a table
    #[arg(long, global = true)]
    pub(crate) json: bool,
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
