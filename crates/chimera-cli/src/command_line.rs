//! What the user may say: the command line, and the command that it asks for.

use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::arguments::Global;
use crate::commands::{
    Context, backup::Backup, batch::Batch, bench::PassedOn, check::Check, compact::Compact,
    completion::Completion, delete::Delete, doctor::Doctor, export::Export, get::Get,
    import::Import, inspect::Inspect, list_keys::ListKeys, man::Man, put::Put, scan::Scan,
    stats::Stats, update_u64::UpdateU64,
};
use crate::failure::Failure;
use crate::interrupt::Plan;
use crate::paths;
use crate::text::Forms;

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  chimera put greeting 'hello world'     creates the store `chimera-data` if there is none
  chimera get greeting
  chimera list-keys --values --limit 10
  chimera scan --prefix user: --values   in the order of keys
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
  4  done with --salvage, but damage has kept something out: how much, and the first place, is said
  130  interrupted by Ctrl-C: what only this command had made is removed, and how it stands is said

Where --path is not given, the variable CHIMERA_PATH says where the store is.
Errors go to standard error; with --json as {\"error\": {\"kind\": .., \"message\": ..}}.
A path that is not UTF-8 has signs of replacement in JSON, and `path_hex` beside it has its bytes.";

/// A key-value store for persistent memory, or for a memory-mapped file.
#[derive(Debug, Parser)]
#[command(name = "chimera", version, after_help = EXAMPLES_AND_EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Put(Put),
    Get(Get),
    Delete(Delete),
    UpdateU64(UpdateU64),
    Batch(Batch),
    ListKeys(ListKeys),
    Scan(Scan),
    Stats(Stats),
    Doctor(Doctor),
    Check(Check),
    Inspect(Inspect),
    Compact(Compact),
    Export(Export),
    Import(Import),
    Backup(Backup),
    /// Measure throughput, latency and what the memory does: runs `chimera-bench`, which is built apart
    #[command(disable_help_flag = true)]
    Bench(PassedOn),
    /// Measure node layouts of trees in persistent memory: runs `chimera-bench primitives`
    #[command(disable_help_flag = true)]
    Primitives(PassedOn),
    Completion(Completion),
    Man(Man),
}

/// Reads the command line of this process, and whether it has a path of its own.
///
/// # Errors
/// What clap says: a wrong command line, or a question for help or version.
pub(crate) fn read() -> Result<(Cli, bool), clap::Error> {
    let matches = Cli::command().try_get_matches()?;
    let path_is_given = matches.value_source("path") == Some(ValueSource::CommandLine);
    Ok((Cli::from_arg_matches(&matches)?, path_is_given))
}

impl Command {
    /// Carries it out.
    ///
    /// # Errors
    /// Whatever keeps it from being done.
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        self.refuse_unused(context)?;
        if self.has_store() {
            paths::refuse_dangling(&context.path)?;
        }
        match self {
            Self::Put(put) => put.run(context),
            Self::Get(get) => get.run(context),
            Self::Delete(delete) => delete.run(context),
            Self::UpdateU64(update) => update.run(context),
            Self::Batch(batch) => batch.run(context),
            Self::ListKeys(list) => list.run(context),
            Self::Scan(scan) => scan.run(context),
            Self::Stats(stats) => stats.run(context),
            Self::Doctor(Doctor {}) => Doctor::run(context),
            Self::Check(Check {}) => Check::run(context),
            Self::Inspect(inspect) => inspect.run(context),
            Self::Compact(compact) => compact.run(context),
            Self::Export(export) => export.run(context),
            Self::Import(import) => import.run(context),
            Self::Backup(backup) => backup.run(context),
            Self::Bench(passed_on) => passed_on.run(context, &[]),
            Self::Primitives(passed_on) => passed_on.run(context, &["primitives"]),
            Self::Completion(completion) => completion.run(context, Cli::command()),
            Self::Man(man) => man.run(context, Cli::command()),
        }
    }
}

impl Command {
    /// Refuses what is said of all commands and has no effect on this one.
    fn refuse_unused(&self, context: &Context) -> Result<(), Failure> {
        let refuse = |what: &str| Err(Failure::Usage(what.to_owned()));
        let (has_keys, has_values) = self.has_keys_and_values();
        if context.forms != Forms::new(false, false) && !has_keys {
            return refuse("--hex has no effect here: this command neither takes nor shows keys");
        }
        if context.forms == Forms::new(false, true) && !has_values {
            return refuse(
                "--hex-value has no effect here: this command neither takes nor shows values",
            );
        }
        if context.json && matches!(self, Self::Completion(_) | Self::Man(_)) {
            return refuse("--json has no effect here: what is printed is for another program");
        }
        if context.path_is_given && matches!(self, Self::Completion(_) | Self::Man(_)) {
            return refuse("--path has no effect here: no store is looked at");
        }
        Ok(())
    }

    /// Whether it takes or shows keys, and whether values.
    fn has_keys_and_values(&self) -> (bool, bool) {
        match self {
            Self::Put(_) | Self::Get(_) | Self::Batch(_) => (true, true),
            Self::ListKeys(list) => (true, list.shows_values()),
            Self::Scan(scan) => (true, scan.shows_values()),
            Self::Delete(_) | Self::UpdateU64(_) => (true, false),
            _ => (false, false),
        }
    }

    /// What it does when it is interrupted; none of a command that becomes another one.
    pub(crate) fn when_interrupted(&self) -> Option<Plan> {
        Some(match self {
            Self::Bench(_) | Self::Primitives(_) => return None,
            Self::Stats(stats) if stats.watches() => Plan::Quiet,
            Self::Put(_) | Self::Delete(_) | Self::UpdateU64(_) => {
                Plan::Say("what was written so far is kept, the rest is not done")
            }
            Self::Compact(_) => Plan::Say(
                "every record is kept, and so is what was gained; to go on, compact the store again",
            ),
            _ => Plan::Say("nothing was changed"),
        })
    }

    /// Whether it looks at the store at the path.
    fn has_store(&self) -> bool {
        !matches!(self, Self::Bench(_) | Self::Primitives(_) | Self::Completion(_) | Self::Man(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
