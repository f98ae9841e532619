//! [`Restart`]: from opening a store to its first answer, and to a complete index.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::super::columns::{Table, number};
use super::millions;

/// The size that the goal of the first answer is set for, and the goal in seconds.
const FIRST_ANSWER_GOAL: (&str, f64) = ("31,250,000", 0.2);
/// What the first answer of `dram-hash` is to take, in those of ChameleonDB, at least.
const DRAM_HASH_GOAL: f64 = 10.0;

/// Stores that were opened, by the number of records. The number of shards is the same for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restart {
    /// Shards of ChameleonDB's index.
    pub shards: u32,
    /// How long gets were measured once bypass indexes were complete.
    #[serde(default)]
    pub after_ms: f64,
    /// One for each store and size.
    pub rows: Vec<RestartRow>,
    /// The first answer of `dram-hash` over that of `chameleon`, at the largest size.
    pub dram_hash_ratio: Option<f64>,
    /// The first answer of `chameleon` at the largest size over that at the smallest.
    pub size_ratio: Option<f64>,
}

/// A store with so many records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestartRow {
    /// The store.
    pub side: String,
    /// The durability in force.
    pub durability: String,
    /// Records in it.
    pub records: u64,
    /// From the call to the answer of the first get: the median.
    pub first_answer_ns: f64,
    /// The lowest of them.
    pub first_answer_ns_min: f64,
    /// The highest of them.
    pub first_answer_ns_max: f64,
    /// From the call until all bypass indexes were complete: the median. Absent where they never were.
    pub complete_ns: Option<f64>,
    /// Gets per second from the first answer until then, on one thread; absent where all was complete at once.
    pub gets_per_second_between: Option<f64>,
    /// Gets per second after that.
    pub gets_per_second_after: f64,
    /// Bytes of the log that were replayed.
    pub replayed_log_bytes: u64,
    /// DRAM over records, at the end.
    pub dram_bytes_per_key: f64,
    /// How often it was opened.
    pub repetitions: usize,
}

/// Rows and ratios.
pub(super) fn write(out: &mut String, all: &Restart) -> std::fmt::Result {
    let mut table = Table::new(&[
        "side",
        "durability",
        "records",
        "first answer ms",
        "lowest",
        "highest",
        "complete ms",
        "M gets/s between",
        "after",
        "replayed MiB",
        "DRAM B/key",
    ]);
    let milliseconds = |ns: f64| format!("{:.2}", ns / 1e6);
    for row in &all.rows {
        table.row(vec![
            row.side.clone(),
            row.durability.clone(),
            number(row.records),
            milliseconds(row.first_answer_ns),
            milliseconds(row.first_answer_ns_min),
            milliseconds(row.first_answer_ns_max),
            row.complete_ns.map_or_else(|| "never".to_owned(), milliseconds),
            row.gets_per_second_between.map_or_else(String::new, millions),
            millions(row.gets_per_second_after),
            format!("{:.2}", row.replayed_log_bytes as f64 / f64::from(1 << 20)),
            format!("{:.2}", row.dram_bytes_per_key),
        ]);
    }
    table.write(out)?;
    writeln!(out, "\n{} shards at all sizes; stores are closed before", number(all.shards.into()))?;
    let (records, seconds) = FIRST_ANSWER_GOAL;
    writeln!(out, "goal of chameleon's first answer: at most {seconds} s at {records} records")?;
    if let Some(ratio) = all.size_ratio {
        writeln!(out, "chameleon's first answer, largest size over smallest: {ratio:.2}")?;
    }
    if let Some(ratio) = all.dram_hash_ratio {
        let verdict = if ratio >= DRAM_HASH_GOAL { "met" } else { "MISSED" };
        let goal = format!("goal >= {DRAM_HASH_GOAL:.0} {verdict}");
        writeln!(
            out,
            "first answer of dram-hash over chameleon's, largest size: {ratio:.1} ({goal})"
        )?;
    }
    Ok(())
}
