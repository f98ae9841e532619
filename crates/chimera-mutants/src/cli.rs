//! Arguments of the command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::room::Room;

/// Makes mutants of the source and sees which tests notice: docs/TESTING.md, "Mutants of the source"
#[derive(Debug, Parser)]
#[command(name = "chimera-mutants", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Print the mutants that there are, and end
    #[arg(long)]
    pub(crate) list: bool,
    /// Print what was found as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try one mutant and print how it reads and all that the tests print
    Run {
        /// Its name or number, as `--list` prints them
        mutant: String,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// journal, pool, records, index, engine or ordered
    #[arg(long, value_parser = Room::named, global = true, default_value = "journal")]
    pub(crate) room: Room,
    /// Try the survivors against tests of whole stores
    #[arg(long, global = true)]
    pub(crate) wide: bool,
    /// Only these binaries of tests of whole stores, by their names
    #[arg(long, global = true, value_delimiter = ',')]
    pub(crate) targets: Vec<String>,
    /// Part K, from 0, of N parts: K/N
    #[arg(long, value_parser = shard, default_value = "0/1")]
    pub(crate) shard: (u32, u32),
    /// Processes of tests at once
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: usize,
    /// Only mutants whose name contains this
    #[arg(long)]
    pub(crate) only: Option<String>,
    /// Only tests whose name contains this
    #[arg(long, global = true)]
    pub(crate) tests: Option<String>,
    /// Seconds that a test may take at least
    #[arg(long, global = true, default_value_t = 20)]
    pub(crate) timeout: u64,
    /// Tests that take more seconds than this are not asked
    #[arg(long, global = true, default_value_t = 600)]
    pub(crate) slowest: u64,
    /// Tests of each binary that are asked at most, from fast to slow ones
    #[arg(long, global = true, default_value_t = usize::MAX, hide_default_value = true)]
    pub(crate) most: usize,
    /// Where everything is kept, instead of `target/mutants/ROOM`
    #[arg(long, global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Where tests keep temporary files, instead of a directory there
    #[arg(long, global = true)]
    pub(crate) scratch: Option<PathBuf>,
    /// Forget what is known of older source
    #[arg(long, global = true)]
    pub(crate) fresh: bool,
    /// Try survivors again, and all mutants of files that have changed
    #[arg(long, global = true, conflicts_with = "fresh")]
    pub(crate) again: bool,
}

fn shard(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parts.filter(|(k, n)| k < n).ok_or_else(|| format!("K/N with K below N, not {text}"))
}
