//! [`Written`]: bytes written and read, by cause.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::super::columns::{Table, number};
use super::percent;

/// How far the index may be from its formula.
const DEVIATION_GOAL: f64 = 0.1;

/// Bytes written and read, counted exactly, on one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The index of ChameleonDB against its formulas.
    pub amplifications: Vec<AmplificationRow>,
    /// One for each store and size of values.
    pub rows: Vec<WrittenRow>,
}

/// How often the index is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AmplificationRow {
    /// `level by level` or `direct`.
    pub compaction: String,
    /// `the same keys`: overwrites, one key after the other; or `new keys`, from an empty store on.
    pub puts_of: String,
    /// Shards.
    pub shards: u32,
    /// Keys that there are: the ratio between levels times those of full bypass indexes.
    pub keys: u64,
    /// Puts.
    pub puts: u64,
    /// Bytes of tables for each byte of an entry that was put.
    pub amplification: f64,
    /// The same of the manifest.
    pub manifest: f64,
    /// What `amplification` is by the formula.
    pub formula: Option<f64>,
}

impl AmplificationRow {
    /// How far it is from the formula, as a part of it.
    pub fn deviation(&self) -> Option<f64> {
        self.formula.map(|formula| self.amplification / formula - 1.0)
    }
}

/// New records with values of one size, and gets of some of them. Bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenRow {
    /// The store.
    pub side: String,
    /// The durability in force.
    pub durability: String,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Records that were put.
    pub records: u64,
    /// Their keys and values.
    pub user_bytes: u64,
    /// Written to the modelled media, in whole units.
    pub media_written: u64,
    /// Lines that puts themselves wrote back: the log, and the index of stores without levels.
    pub by_puts: u64,
    /// Tables of the first level.
    pub flushes: u64,
    /// Tables of the levels below, without the last one.
    pub upper: u64,
    /// Tables of the last level.
    pub last: u64,
    /// Dumped bypass indexes.
    pub dumps: u64,
    /// The manifest.
    pub manifest: u64,
    /// What else was written back: batches that a flush ended, runs that were taken.
    pub other: u64,
    /// Read from the modelled media by puts, and by compactions.
    pub media_read: u64,
    /// Records that were read.
    pub gets: u64,
    /// Read from the modelled media by these.
    pub media_read_by_gets: u64,
}

/// The index, then bytes by the size of values.
pub(super) fn write(out: &mut String, all: &Written) -> std::fmt::Result {
    let mut index = Table::new(&[
        "index written, B per B",
        "puts of",
        "shards",
        "keys",
        "puts",
        "tables",
        "manifest",
        "formula",
        "off",
        "goal",
    ]);
    for row in &all.amplifications {
        let deviation = row.deviation();
        let is_met = deviation.map(|deviation| deviation.abs() <= DEVIATION_GOAL);
        let verdict = is_met.map(|is_met| if is_met { "met" } else { "MISSED" });
        index.row(vec![
            row.compaction.clone(),
            row.puts_of.clone(),
            number(row.shards.into()),
            number(row.keys),
            number(row.puts),
            format!("{:.3}", row.amplification),
            format!("{:.3}", row.manifest),
            row.formula.map_or_else(String::new, |formula| format!("{formula:.3}")),
            deviation.map_or_else(String::new, percent),
            verdict.map_or_else(String::new, |it| format!("{} {it}", percent(DEVIATION_GOAL))),
        ]);
    }
    index.write(out)?;
    writes(all, out)?;
    reads(all, out)?;
    writeln!(
        out,
        "\ncounted, one thread, anonymous memory; media in units of 256 B, the rest as lines of 64 B or bytes of tables"
    )
}

fn writes(all: &Written, out: &mut String) -> std::fmt::Result {
    let mut table = Table::new(&[
        "written, KiB",
        "durability",
        "value B",
        "records",
        "user",
        "media",
        "per user B",
        "puts",
        "flushes",
        "upper",
        "last",
        "dumps",
        "manifest",
        "other",
    ]);
    let kibibytes = |bytes: u64| number(bytes / 1024);
    for row in &all.rows {
        let per_user_byte = row.media_written as f64 / row.user_bytes.max(1) as f64;
        table.row(vec![
            row.side.clone(),
            row.durability.clone(),
            number(row.value_bytes.into()),
            number(row.records),
            kibibytes(row.user_bytes),
            kibibytes(row.media_written),
            format!("{per_user_byte:.3}"),
            kibibytes(row.by_puts),
            kibibytes(row.flushes),
            kibibytes(row.upper),
            kibibytes(row.last),
            kibibytes(row.dumps),
            kibibytes(row.manifest),
            kibibytes(row.other),
        ]);
    }
    table.write(out)
}

fn reads(all: &Written, out: &mut String) -> std::fmt::Result {
    let mut table = Table::new(&[
        "read from media",
        "value B",
        "by puts KiB",
        "per user B",
        "gets",
        "B per get",
    ]);
    for row in &all.rows {
        let per_user_byte = row.media_read as f64 / row.user_bytes.max(1) as f64;
        table.row(vec![
            row.side.clone(),
            number(row.value_bytes.into()),
            number(row.media_read / 1024),
            format!("{per_user_byte:.3}"),
            number(row.gets),
            format!("{:.1}", row.media_read_by_gets as f64 / row.gets.max(1) as f64),
        ]);
    }
    table.write(out)
}
