//! `chimera compact`.

use chimera::Losses;
use clap::Args;
use serde::Serialize;

use crate::arguments::WriteArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human::{count, size};
use crate::losses;
use crate::progress::Bar;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  chimera compact
  chimera compact --free-percent 50 --path users

Records are moved as overwrites, so a crash at any time keeps each of them. An open store of `viper`
or `chameleon` reclaims space in the background; this command is for a store that is not open.";

/// Rewrite blocks that are partly free, then shrink the tail of the file
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compact {
    #[command(flatten)]
    write: WriteArguments,
    /// Rewrite blocks that are at least this free, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    free_percent: u32,
}

#[derive(Serialize)]
struct Report {
    bytes_before: u64,
    bytes_after: u64,
    free_bytes_after: u64,
    moved_records: u64,
    moved_bytes: u64,
    blocks_freed: u64,
    blocks_given_back: u64,
    losses: Losses,
}

impl Compact {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let db = store::open_to_write(&context.path, &self.write)?;
        let before = db.stats();
        let bytes_before = before.pmem_bytes;
        let bar = Bar::new("compacting", "bytes");
        let done = db.compact(self.free_percent, bar.as_ref().map(Bar::callback).as_ref())?;
        let after = db.stats();
        let losses = db.losses();
        db.close()?;
        let report = Report {
            bytes_before,
            bytes_after: after.pmem_bytes,
            free_bytes_after: after.reclaim.debt_bytes,
            moved_records: done.moved_records,
            moved_bytes: done.moved_bytes,
            blocks_freed: done.blocks_freed,
            blocks_given_back: done.blocks_given_back,
            losses,
        };
        if context.json {
            context.output.json(&report)?;
        } else {
            context.output.line(line(&report))?;
        }
        losses::end(report.losses)
    }
}

/// What was gained.
fn line(report: &Report) -> String {
    format!(
        "{} in use instead of {}, {} of it free; moved {} records",
        size(report.bytes_after),
        size(report.bytes_before),
        size(report.free_bytes_after),
        count(report.moved_records),
    )
}
