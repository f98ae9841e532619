//! `chimera inspect`.

use chimera::InspectReport;
use clap::Args;
use serde::Serialize;

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human::{count, size};
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
    path: &'a std::path::Path,
    #[serde(flatten)]
    report: InspectReport,
}

/// A line of the table: a name and what is said.
type Row = (&'static str, String);

impl Inspect {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let db = store::open_to_read(&self.store)?;
        let bar = Bar::new("inspecting", "blocks");
        let report = db.inspect(bar.as_ref().map(Bar::callback).as_ref());
        drop(bar);
        if context.json {
            return context.output.json(&Report { path: &self.store.place.path, report });
        }
        for (name, value) in common_rows(&report).into_iter().chain(viper_rows(&report)) {
            context.output.line(format!("{name:24}{value}"))?;
        }
        for line in histogram(&report) {
            context.output.line(line)?;
        }
        Ok(())
    }
}

/// What every engine is made of.
fn common_rows(report: &InspectReport) -> Vec<Row> {
    let InspectReport { blocks, bytes, .. } = report;
    vec![
        ("records", count(report.records)),
        ("blocks", format!("{} of {}", count(blocks.used), size(report.block_bytes))),
        ("  damaged", count(blocks.damaged)),
        ("bytes of live records", size(bytes.live)),
        ("bytes that are dead", size(bytes.dead)),
        ("bytes of room", size(bytes.room)),
        ("bytes of overhead", size(bytes.overhead)),
    ]
}

/// What Viper is made of beside that.
fn viper_rows(report: &InspectReport) -> Vec<Row> {
    let InspectReport { blocks, pages, index, .. } = report;
    let mut rows = vec![
        ("blocks of pages", format!("{} of {}", count(blocks.paged), size(report.page_bytes))),
        ("blocks of one page", count(blocks.large)),
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
        ("entries of the index", count(index.entries)),
        ("  in the overflow", count(index.overflow)),
        ("segments of the index", count(index.segments)),
        ("  load", format!("{:.1} %", 100.0 * index.load)),
        ("  depth of directory", index.directory_depth.to_string()),
        ("  bytes of DRAM", size(index.bytes)),
    ]);
    rows
}

/// Blocks by the part of them that live records take.
fn histogram(report: &InspectReport) -> Vec<String> {
    let fill = &report.fill;
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
