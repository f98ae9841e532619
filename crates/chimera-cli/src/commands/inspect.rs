//! `chimera inspect`.

use chimera::{ChameleonInspect, HikvInspect, InspectReport, ViperInspect};
use clap::Args;
use serde::Serialize;

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::commands::stats::levels;
use crate::failure::Failure;
use crate::human::{Row, count, size};
use crate::losses;
use crate::paths;
use crate::progress::Bar;
use crate::store;

/// Signs of the longest bar.
const BAR: u64 = 40;

/// Print what the store is made of: blocks, pages, how full they are, the index
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  chimera inspect --path users\n  chimera inspect --path users --json"
)]
pub(crate) struct Inspect {
    #[command(flatten)]
    store: StoreArguments,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten, serialize_with = "paths::fields")]
    path: &'a std::path::Path,
    #[serde(flatten)]
    report: InspectReport,
}

impl Inspect {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let db = store::open_to_read(&context.path, &self.store)?;
        let bar = Bar::new("inspecting", "blocks");
        let report = db.inspect(bar.as_ref().map(Bar::callback).as_ref());
        drop(bar);
        if context.json {
            let path = &context.path;
            context.output.json(&Report { path, report })?;
            return losses::end(db.losses());
        }
        let mut rows = common_rows(&report);
        rows.extend(report.viper().map(viper_rows).unwrap_or_default());
        rows.extend(report.hikv().map(hikv_rows).unwrap_or_default());
        rows.extend(report.chameleon().map(chameleon_rows).unwrap_or_default());
        for (name, value) in rows {
            context.output.line(format!("{name:24}{value}"))?;
        }
        for line in report.viper().map(histogram).unwrap_or_default() {
            context.output.line(line)?;
        }
        losses::end(db.losses())
    }
}

/// What every store is made of.
fn common_rows(report: &InspectReport) -> Vec<Row> {
    vec![
        ("records", count(report.records)),
        ("blocks", format!("{} of {}", count(report.blocks_used), size(report.block_bytes))),
    ]
}

/// What Viper is made of beside that.
fn viper_rows(viper: &ViperInspect) -> Vec<Row> {
    let ViperInspect { blocks, pages, bytes, index, .. } = viper;
    let mut rows = vec![
        ("  of pages", count(blocks.paged)),
        ("  that are one page", count(blocks.large)),
        ("  damaged", count(blocks.damaged)),
        ("blocks of records", count(blocks.paged + blocks.large)),
        ("  in use by a session", count(blocks.owned)),
        ("  waiting to be filled", count(blocks.queued)),
        ("  resting", count(blocks.resting)),
        ("  without a record", count(blocks.empty)),
        ("pages", count(pages.pages)),
        ("  with records", count(pages.filled)),
    ];
    if pages.damaged > 0 {
        rows.push(("  damaged", count(pages.damaged)));
    }
    rows.extend([
        ("bytes of live records", size(bytes.live)),
        ("bytes that are dead", size(bytes.dead)),
        ("bytes of room", size(bytes.room)),
        ("bytes of overhead", size(bytes.overhead)),
        ("entries of the index", count(index.entries)),
        ("  in the overflow", count(index.overflow)),
        ("segments of the index", count(index.segments)),
        ("  load", format!("{:.1} %", 100.0 * index.load)),
        ("  depth of directory", index.directory_depth.to_string()),
        ("  bytes of DRAM", size(index.bytes)),
    ]);
    rows
}

/// What HiKV is made of beside that.
fn hikv_rows(hikv: &HikvInspect) -> Vec<Row> {
    let HikvInspect { sizes, runs, .. } = hikv;
    vec![
        ("free blocks", count(runs.free_blocks)),
        ("runs of items", count(sizes.heap_runs)),
        ("  bytes", size(sizes.heap_bytes)),
        ("  of them items", format!("{:.1} %", 100.0 * hikv.heap_load)),
        ("partitions of the index", count(sizes.partitions.into())),
        ("  segments", count(sizes.index_segments)),
        ("  slots", count(sizes.index_slots)),
        ("  load", format!("{:.1} %", 100.0 * hikv.index_load)),
        ("  depth of directory", hikv.directory_depth.to_string()),
    ]
}

/// What ChameleonDB is made of beside that.
fn chameleon_rows(chameleon: &ChameleonInspect) -> Vec<Row> {
    let mut rows = vec![("free blocks", count(chameleon.runs.free_blocks))];
    rows.extend(levels::rows(&chameleon.sizes));
    rows
}

/// Blocks by the part of them that live records take.
fn histogram(viper: &ViperInspect) -> Vec<String> {
    let fill = &viper.fill;
    let parts = (1_u64..).zip(fill.tenths).map(|(tenth, blocks)| (10 * tenth, blocks));
    let all: Vec<_> = std::iter::once((0, fill.empty)).chain(parts).collect();
    let most = all.iter().map(|(_, blocks)| *blocks).max().unwrap_or_default().max(1);
    let line = |(percent, blocks): &(u64, u64)| {
        let bar =
            "#".repeat((u128::from(*blocks) * u128::from(BAR)).div_ceil(most.into()) as usize);
        format!("  up to {percent:>3} % {:>14}  {bar}", count(*blocks)).trim_end().to_owned()
    };
    let heading = "blocks of records by how much of them live records take".to_owned();
    std::iter::once(heading).chain(all.iter().map(line)).collect()
}
