//! The figures of a store that nobody has open for writing.

use std::path::Path;

use chimera::{HikvStats, ViperStats};
use serde::Serialize;

use super::levels;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human::{Row, count, duration, size};
use crate::paths;

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten, serialize_with = "paths::fields")]
    path: &'a Path,
    #[serde(flatten)]
    stats: chimera::Stats,
}

pub(super) fn show(
    context: &mut Context,
    path: &Path,
    stats: chimera::Stats,
) -> Result<(), Failure> {
    if context.json {
        return context.output.json(&Report { path, stats });
    }
    let mut rows = common_rows(path, &stats);
    rows.extend(stats.viper().map(viper_rows).unwrap_or_default());
    rows.extend(stats.hikv().map(hikv_rows).unwrap_or_default());
    if let Some(chameleon) = stats.chameleon() {
        rows.extend(levels::rows(chameleon));
        rows.extend(levels::work_rows(chameleon));
    }
    for (name, value) in rows {
        context.output.line(format!("{name:22}{value}"))?;
    }
    Ok(())
}

fn sizes(stats: &chimera::Stats) -> String {
    match stats.key_bytes {
        0 => "of any size".to_owned(),
        key_bytes => format!("{key_bytes} and {} bytes", stats.value_bytes),
    }
}

/// What every engine says of itself.
fn common_rows(path: &Path, stats: &chimera::Stats) -> Vec<Row> {
    let recovery = &stats.recovery;
    let mut rows = vec![
        ("path", path.display().to_string()),
        ("engine", stats.engine.to_string()),
        ("keys, values", sizes(stats)),
        ("medium", stats.medium.to_string()),
        ("durability", stats.durability.to_string()),
        ("flush instruction", stats.flush_instruction.clone()),
        ("huge pages", yes_or_no(stats.huge_pages)),
        ("records", count(stats.records)),
        ("segments", count(stats.segments)),
        ("blocks in use", count(stats.blocks_used)),
        ("persistent memory", size(stats.pmem_bytes)),
        ("of it free", size(stats.reclaim.debt_bytes)),
        ("DRAM of the index", size(stats.dram_index_bytes)),
        ("DRAM of tables", size(stats.dram_table_bytes)),
        ("DRAM per key", format!("{:.1} bytes", stats.dram_bytes_per_key)),
        ("closed in order", yes_or_no(recovery.clean)),
        ("opened in", duration(recovery.duration_ns)),
    ];
    if let (Some(bytes), Some(ratio)) = (stats.user_bytes, stats.space_amplification) {
        rows.push(("keys and values", size(bytes)));
        rows.push(("space amplification", format!("{ratio:.2}")));
    }
    if recovery.duplicates_cleared > 0 {
        rows.push(("interrupted overwrites", count(recovery.duplicates_cleared)));
    }
    if recovery.batches_made > 0 {
        rows.push(("interrupted batches", count(recovery.batches_made)));
    }
    if recovery.batches_taken_back > 0 {
        rows.push(("interrupted batches taken back", count(recovery.batches_taken_back)));
    }
    if stats.records_damaged > 0 {
        rows.push(("damaged records", count(stats.records_damaged)));
    }
    if !stats.losses.is_empty() {
        rows.push(("left out", stats.losses.to_string()));
    }
    rows
}

/// What Viper says beside that.
fn viper_rows(viper: &ViperStats) -> Vec<Row> {
    let mut rows = Vec::new();
    if viper.records_per_page > 0 {
        rows.push(("records per page", count(viper.records_per_page.into())));
        rows.push(("records per block", count(viper.records_per_block.into())));
    }
    rows
}

/// What HiKV says beside that.
fn hikv_rows(hikv: &HikvStats) -> Vec<Row> {
    let items = if hikv.space_is_rebuilt {
        size(hikv.item_bytes)
    } else {
        "not known; `chimera inspect` finds out".to_owned()
    };
    vec![
        ("partitions", count(hikv.partitions.into())),
        ("index segments", count(hikv.index_segments)),
        ("index slots", count(hikv.index_slots)),
        ("runs of items", count(hikv.heap_runs)),
        ("bytes of runs", size(hikv.heap_bytes)),
        ("of them items", items),
    ]
}

fn yes_or_no(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}
