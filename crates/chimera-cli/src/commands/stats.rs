//! `chimera stats`.

use std::path::Path;

use clap::Args;
use serde::Serialize;

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human::{count, duration, size};
use crate::store;

/// Print what the store says of itself: records, sizes, medium, durability, recovery
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  chimera stats\n  chimera stats --json")]
pub(crate) struct Stats {
    #[command(flatten)]
    store: StoreArguments,
}

#[derive(Serialize)]
struct Report<'a> {
    path: &'a Path,
    #[serde(flatten)]
    stats: chimera::Stats,
}

impl Stats {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let db = store::open_to_read(&self.store)?;
        let path = &self.store.place.path;
        let stats = db.stats();
        if context.json {
            return context.output.json(&Report { path, stats });
        }
        for (name, value) in rows(path, &stats) {
            context.output.line(format!("{name:22}{value}"))?;
        }
        Ok(())
    }
}

fn sizes(stats: &chimera::Stats) -> String {
    match stats.key_bytes {
        0 => "of any size".to_owned(),
        key_bytes => format!("{key_bytes} and {} bytes", stats.value_bytes),
    }
}

fn rows(path: &Path, stats: &chimera::Stats) -> Vec<(&'static str, String)> {
    let recovery = &stats.recovery;
    let mut rows = vec![
        ("path", path.display().to_string()),
        ("engine", stats.engine.to_string()),
        ("keys, values", sizes(stats)),
        ("record layout", format!("{:?}", stats.layout).to_lowercase()),
        ("medium", stats.medium.to_string()),
        ("durability", stats.durability.to_string()),
        ("flush instruction", stats.flush_instruction.clone()),
        ("huge pages", if stats.huge_pages { "yes" } else { "no" }.to_owned()),
        ("records", count(stats.records)),
        ("segments", count(stats.segments)),
        ("blocks in use", count(stats.blocks_used)),
        ("persistent memory", size(stats.pmem_bytes)),
        ("of it free", size(stats.reclaim.debt_bytes)),
        ("DRAM of the index", size(stats.dram_index_bytes)),
        ("DRAM of tables", size(stats.dram_table_bytes)),
        ("DRAM per key", format!("{:.1} bytes", stats.dram_bytes_per_key)),
        ("closed in order", if recovery.clean { "yes" } else { "no" }.to_owned()),
        ("opened in", duration(recovery.duration_ns)),
    ];
    if stats.key_bytes > 0 {
        rows.push(("records per page", count(stats.records_per_page.into())));
        rows.push(("records per block", count(stats.records_per_block.into())));
        rows.push(("keys and values", size(stats.user_bytes)));
        rows.push(("space amplification", format!("{:.2}", stats.space_amplification)));
    }
    if recovery.duplicates_cleared > 0 {
        rows.push(("interrupted overwrites", count(recovery.duplicates_cleared)));
    }
    if stats.records_damaged > 0 {
        rows.push(("damaged records", count(stats.records_damaged)));
    }
    rows
}
