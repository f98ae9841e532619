//! What the user may say: the command line, and the arguments that commands share.

use std::path::PathBuf;

use chimera::Durability;
use chimera_bench::command::BenchCommand;
use clap::{Args, Parser, Subcommand, ValueHint};

use crate::commands::{
    backup::Backup, check::Check, compact::Compact, completion::Completion, delete::Delete,
    doctor::Doctor, export::Export, get::Get, import::Import, inspect::Inspect,
    list_keys::ListKeys, put::Put, stats::Stats, update_u64::UpdateU64,
};

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  chimera put greeting 'hello world'     creates the store `chimera-data` if there is none
  chimera get greeting
  chimera list-keys --values --limit 10
  chimera update-u64 --create visitors 1
  chimera check
  chimera export records.stream
  chimera backup copy
  chimera doctor                         what this machine and this directory can do

Exit codes:
  0  done
  1  there is no such key; or `check` found damage
  2  the command line is wrong
  3  anything else: no store, store in use, damaged, full, ...

Errors go to standard error; with --json as {\"error\": {\"kind\": .., \"message\": ..}}.";

/// A key-value store for persistent memory, or for a memory-mapped file.
#[derive(Debug, Parser)]
#[command(name = "chimera", version, after_help = EXAMPLES_AND_EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Arguments of every command.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// Print one JSON object instead of text; errors, too
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) json: bool,
    /// Keys and values are given, and shown with all their bytes, in hexadecimal
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) hex: bool,
    /// Say more on standard error; twice for even more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    #[arg(help_heading = "For every command")]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Put(Put),
    Get(Get),
    Delete(Delete),
    UpdateU64(UpdateU64),
    ListKeys(ListKeys),
    Stats(Stats),
    Doctor(Doctor),
    Check(Check),
    Inspect(Inspect),
    Compact(Compact),
    Export(Export),
    Import(Import),
    Backup(Backup),
    /// Measure throughput, latency and what the memory does
    Bench {
        #[command(subcommand)]
        command: BenchCommand,
    },
    Completion(Completion),
}

/// Where the store is.
#[derive(Args, Clone, Debug)]
pub(crate) struct StorePath {
    /// Directory of the store, or a DAX device such as /dev/dax0.0
    #[arg(long, value_name = "DIR", env = "CHIMERA_PATH", default_value = "chimera-data")]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) path: PathBuf,
}

/// How to open the store.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreArguments {
    #[command(flatten)]
    pub(crate) place: StorePath,
    /// Open in spite of damage, or after a power loss; damaged records are left out
    #[arg(long)]
    pub(crate) salvage: bool,
}

/// How to open the store for writing.
#[derive(Args, Clone, Debug)]
pub(crate) struct WriteArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// What a write survives: auto, immediate, group:MILLISECONDS or process
    ///
    /// `auto` is the strongest that the medium has: `immediate` (power loss) on persistent memory,
    /// `process` (end of the process) on ordinary files. Whatever it is, the command ends only when
    /// the store is closed, which on an ordinary file writes everything to the disk.
    #[arg(long, value_name = "MODE", default_value = "auto")]
    pub(crate) durability: Durability,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
