//! [`Ratios`]: stores that ChameleonDB is compared with, in one run.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::super::columns::{Table, number};
use super::{microseconds, percent};

/// ChameleonDB and what it is compared with. Throughput and latencies are in the rows of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Shards of ChameleonDB's index.
    pub shards: u32,
    /// Bytes that a session gathers before they are made durable, where a side has batches.
    pub batch_bytes: u32,
    /// Puts look whether their key is there; otherwise only those of stores that have to.
    pub exact_puts: bool,
    /// One for each store.
    pub sides: Vec<SideRow>,
    /// Of stores with levels: how many keys were above the last one.
    pub shares: Vec<ShareRow>,
    /// Ratios, and what they are to be.
    pub goals: Vec<GoalRow>,
}

/// A store that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideRow {
    /// Its name.
    pub side: String,
    /// The durability in force.
    pub durability: String,
    /// DRAM over records, once all were loaded.
    pub dram_bytes_per_key: f64,
    /// The same over that of `dram-hash`, where that was measured.
    pub dram_of_dram_hash: Option<f64>,
    /// The longest put, inserts and overwrites, of all latency passes.
    pub put_ns_max: u64,
    /// The longest get.
    pub get_ns_max: u64,
}

/// Keys above the last level when gets were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareRow {
    /// The store.
    pub side: String,
    /// The gets' name in the rows of the report.
    pub gets: String,
    /// Records that the store had.
    pub records: u64,
    /// Keys in MemTables, bypass indexes and upper levels over all: the mean of all passes.
    pub share: f64,
}

/// A ratio of two stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalRow {
    /// The work, or `DRAM`.
    pub what: String,
    /// The store.
    pub side: String,
    /// The store that it is compared with.
    pub than: String,
    /// Threads; 0 where these do not matter.
    pub threads: usize,
    /// The first over the second: the median over passes.
    pub ratio: f64,
    /// The lowest of them.
    pub ratio_min: f64,
    /// The highest of them.
    pub ratio_max: f64,
    /// What it is to be at least, where that is said; at most, for DRAM.
    pub goal: Option<f64>,
}

impl GoalRow {
    /// The work of a row that compares DRAM.
    pub(crate) const DRAM: &str = "DRAM";

    /// Whether it is what it is to be.
    pub fn is_met(&self) -> Option<bool> {
        self.goal.map(
            |goal| {
                if self.what == Self::DRAM { self.ratio <= goal } else { self.ratio >= goal }
            },
        )
    }
}

/// Sides, shares and goals.
pub(super) fn write(out: &mut String, all: &Ratios) -> std::fmt::Result {
    let mut sides = Table::new(&[
        "side",
        "durability",
        "DRAM B/key",
        "of dram-hash",
        "largest put us",
        "largest get us",
    ]);
    for row in &all.sides {
        sides.row(vec![
            row.side.clone(),
            row.durability.clone(),
            format!("{:.2}", row.dram_bytes_per_key),
            row.dram_of_dram_hash.map_or_else(String::new, percent),
            microseconds(row.put_ns_max),
            microseconds(row.get_ns_max),
        ]);
    }
    sides.write(out)?;
    let mut shares = Table::new(&["above the last level", "gets", "records", "share of keys"]);
    for row in &all.shares {
        let cells =
            vec![row.side.clone(), row.gets.clone(), number(row.records), percent(row.share)];
        shares.row(cells);
    }
    if !shares.is_empty() {
        shares.write(out)?;
    }
    let mut goals =
        Table::new(&["ratio of", "to", "work", "threads", "median", "lowest", "highest", "goal"]);
    for row in &all.goals {
        let sign = if row.what == GoalRow::DRAM { "<=" } else { ">=" };
        let verdict = if row.is_met() == Some(true) { "met" } else { "MISSED" };
        goals.row(vec![
            row.side.clone(),
            row.than.clone(),
            row.what.clone(),
            if row.threads == 0 { String::new() } else { row.threads.to_string() },
            format!("{:.2}", row.ratio),
            format!("{:.2}", row.ratio_min),
            format!("{:.2}", row.ratio_max),
            row.goal.map_or_else(String::new, |goal| format!("{sign} {goal:.2} {verdict}")),
        ]);
    }
    if !goals.is_empty() {
        goals.write(out)?;
    }
    writeln!(
        out,
        "\n{} shards; batches of {} B where durability is batched; puts {}",
        number(all.shards.into()),
        number(all.batch_bytes.into()),
        if all.exact_puts {
            "look whether their key is new"
        } else {
            "do not look whether their key is new, but for pmem-hash and dram-hash, which find it anyway"
        }
    )
}
