//! [`BesideScans`]: a writer alone and beside a thread that scans, as data and as text.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::columns::{Table, number};
use crate::results::rows::Latency;

/// A writer alone, and beside a thread that scans so many times a second. Its latencies are in the rows of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BesideScans {
    /// The writer, the thread that scans, and those that apply changes of the order in the background.
    pub threads: usize,
    /// Cores that they share.
    pub cores: usize,
    /// Scans a second that were asked for.
    pub scans_per_second: u32,
    /// Records of each scan.
    pub scan_records: u32,
    /// Of the writer's operations so many percent insert new records; the others overwrite.
    pub inserts_percent: u8,
    /// Stores whose scans hold up nobody, then, where asked for, those whose scans hold up writers.
    pub rows: Vec<BesideScansRow>,
}

/// What was measured of stores with one kind of scans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BesideScansRow {
    /// Whether scans hold up writers until all changes are in the order (HiKV's published barrier).
    pub barrier: bool,
    /// The writer's operations per second without scans: the median over repetitions.
    pub alone_ops_per_second: f64,
    /// The same beside scans.
    pub beside_ops_per_second: f64,
    /// The latter over the former, on the same store: the median over repetitions.
    pub throughput_ratio: f64,
    /// The lowest of them.
    pub throughput_ratio_min: f64,
    /// The highest of them.
    pub throughput_ratio_max: f64,
    /// Scans that were done, and timed.
    pub scans: u64,
    /// Scans per second that were reached: the median over repetitions.
    pub scans_per_second: f64,
    /// How long a scan took from its call; its mean, too, is of scans timed one by one.
    pub scan_latency_ns: Latency,
}

/// The writer's rates, and the scans.
pub(super) fn write(out: &mut String, all: &BesideScans) -> std::fmt::Result {
    let mut rates =
        Table::new(&["writer, M ops/s", "alone", "beside", "kept", "lowest", "highest"]);
    let mut scans = Table::new(&["scans", "scans/s", "mean us", "p50", "p99", "p99.9", "timed"]);
    let millions = |rate: f64| format!("{:.3}", rate / 1e6);
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let microseconds = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
    for row in &all.rows {
        let name = if row.barrier { "barrier" } else { "no barrier" }.to_owned();
        rates.row(vec![
            name.clone(),
            millions(row.alone_ops_per_second),
            millions(row.beside_ops_per_second),
            percent(row.throughput_ratio),
            percent(row.throughput_ratio_min),
            percent(row.throughput_ratio_max),
        ]);
        let latency = &row.scan_latency_ns;
        scans.row(vec![
            name,
            format!("{:.0}", row.scans_per_second),
            format!("{:.1}", latency.mean / 1e3),
            microseconds(latency.p50),
            microseconds(latency.p99),
            microseconds(latency.p999),
            number(row.scans),
        ]);
    }
    rates.write(out)?;
    scans.write(out)?;
    writeln!(
        out,
        "\n{} scans of {} records a second wanted; {} % of what is written is new\nwriter, scans and {} in the \
         background: {} threads on {} cores",
        number(all.scans_per_second.into()),
        number(all.scan_records.into()),
        all.inserts_percent,
        all.threads.saturating_sub(2),
        all.threads,
        all.cores
    )
}
