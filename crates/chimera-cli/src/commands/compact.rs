//! `chimera compact`.

use chimera::{EngineKind, Losses};
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

Records are moved as overwrites, so a crash at any time keeps each of them. An open store reclaims
space in the background; this command is for a store that is not open.";

/// Rewrite blocks that are partly free, then shrink the tail of the file
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compact {
    #[command(flatten)]
    write: WriteArguments,
    /// Rewrite blocks that are at least this free, in percent [default: 10]. Refused by engines that move no records
    #[arg(long, value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    free_percent: Option<u32>,
}

/// Blocks that are at least so free are rewritten, unless told otherwise.
const FREE_PERCENT: u32 = 10;

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
        let db = store::open_to_write(&self.write)?;
        let before = db.stats();
        if self.free_percent.is_some() && !moves_records(before.engine) {
            let engine = before.engine;
            let what = format!("--free-percent has no effect here: `{engine}` moves no records");
            return Err(Failure::Usage(what));
        }
        let bytes_before = before.pmem_bytes;
        let bar = Bar::new("compacting", "bytes");
        let done = db.compact(
            self.free_percent.unwrap_or(FREE_PERCENT),
            bar.as_ref().map(Bar::callback).as_ref(),
        )?;
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
            context.output.line(format!("{}; {}", common_line(&report), viper_line(&report)))?;
        }
        losses::end(report.losses)
    }
}

/// Whether records of an engine's stores are moved to make space free.
fn moves_records(engine: EngineKind) -> bool {
    engine.capabilities().reclaim || matches!(engine, EngineKind::Hikv | EngineKind::Chameleon)
}

/// What was gained, whatever the engine.
fn common_line(report: &Report) -> String {
    format!(
        "{} in use instead of {}, {} of it free",
        size(report.bytes_after),
        size(report.bytes_before),
        size(report.free_bytes_after),
    )
}

/// What Viper did for it.
fn viper_line(report: &Report) -> String {
    format!("moved {} records", count(report.moved_records))
}
