//! [`Bursts`]: bursts of puts over a steady load of gets.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

use super::super::columns::{Table, number};
use super::{microseconds, millions};

/// What the 99th percentile of gets in bursts is to be with the Get-Protect Mode, of that without, at most.
const PROTECTED_GOAL: f64 = 0.8;

/// Gets on one thread all the time, and puts in bursts on others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bursts {
    /// Bursts of each repetition.
    pub bursts: u32,
    /// Puts of a burst, which overwrite.
    pub puts: u64,
    /// Threads that put.
    pub writers: u32,
    /// The Get-Protect Mode's threshold, which is in force.
    pub threshold_ns: u64,
    /// Where it comes from. Absent where no side has the mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
    /// Gets alone before each burst, and after the last one.
    #[serde(default)]
    pub rest_ms: f64,
    /// The shortest window.
    #[serde(default)]
    pub window_ms: u64,
    /// The latency profile, and with it the share of the bandwidth.
    pub profile: String,
    /// Whether the reader had a processor to itself.
    pub is_pinned: bool,
    /// The 99th percentile of gets in bursts with the mode over that without: median, lowest, highest.
    pub protected_p99_ratio: Option<(f64, f64, f64)>,
    /// One for each store.
    pub rows: Vec<BurstsRow>,
    /// What happened over time in the last repetition, of one store after the other.
    pub windows: Vec<BurstsWindow>,
}

/// The threshold of the Get-Protect Mode: what was asked for, or relative to the tail at rest where that is more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// In force.
    pub ns: u64,
    /// Asked for.
    pub asked_ns: u64,
    /// The 99th percentile of gets at rest without the mode, which was measured first.
    pub rest_p99_ns: u64,
    /// The relative threshold is so many times that.
    pub over_rest: f64,
    /// Whether the relative threshold is in force.
    pub is_relative: bool,
}

/// A store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstsRow {
    /// The store.
    pub side: String,
    /// The durability in force.
    pub durability: String,
    /// Gets per second without puts: the median over repetitions.
    pub rest_gets_per_second: f64,
    /// Gets per second during bursts.
    pub burst_gets_per_second: f64,
    /// Puts per second during bursts.
    pub burst_puts_per_second: f64,
    /// Gets without puts, of all repetitions.
    pub rest_gets: BurstsTail,
    /// Gets during bursts.
    pub burst_gets: BurstsTail,
    /// Puts.
    pub puts: BurstsTail,
    /// How often the Get-Protect Mode began or ended in the last repetition.
    pub protect_switches: u64,
    /// Bypass indexes that were dumped then.
    pub dumps: u64,
}

/// Latencies in nanoseconds. Each has a reading of the clock, 20 to 40 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstsTail {
    /// How many.
    pub operations: u64,
    /// Median.
    pub p50: u64,
    /// 99 of 100 took at most so long.
    pub p99: u64,
    /// 999 of 1000.
    pub p999: u64,
    /// 9999 of 10,000.
    pub p9999: u64,
    /// The longest.
    pub max: u64,
}

/// At least 1000 gets, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstsWindow {
    /// The store.
    pub side: String,
    /// When it began, from the first get.
    pub from_ms: f64,
    /// Gets in it.
    pub gets: u64,
    /// Gets per second.
    pub gets_per_second: f64,
    /// Puts per second.
    pub puts_per_second: f64,
    /// Their 99th percentile.
    pub get_p99_ns: u64,
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, rest) = (microseconds(self.asked_ns), microseconds(self.rest_p99_ns));
        let over = self.over_rest;
        write!(f, "Get-Protect Mode above a p99 of {} us: ", microseconds(self.ns))?;
        if self.is_relative {
            write!(
                f,
                "{over:.2} times that at rest, {rest} us, which is more than the {asked} us asked for"
            )
        } else {
            write!(f, "as asked for; {over:.2} times that at rest, {rest} us, is not more")
        }
    }
}

/// Tails, rates and the ratio.
pub(super) fn write(out: &mut String, all: &Bursts) -> fmt::Result {
    let mut tails = Table::new(&[
        "us",
        "side",
        "durability",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "largest",
        "M ops/s",
        "timed",
    ]);
    for row in &all.rows {
        for (what, tail, rate) in [
            ("gets at rest", &row.rest_gets, row.rest_gets_per_second),
            ("gets in bursts", &row.burst_gets, row.burst_gets_per_second),
            ("puts", &row.puts, row.burst_puts_per_second),
        ] {
            tails.row(vec![
                what.to_owned(),
                row.side.clone(),
                row.durability.clone(),
                microseconds(tail.p50),
                microseconds(tail.p99),
                microseconds(tail.p999),
                microseconds(tail.p9999),
                microseconds(tail.max),
                millions(rate),
                number(tail.operations),
            ]);
        }
    }
    tails.write(out)?;
    let mut modes = Table::new(&["side", "began or ended", "dumps"]);
    for row in all.rows.iter().filter(|row| row.protect_switches + row.dumps > 0) {
        modes.row(vec![row.side.clone(), number(row.protect_switches), number(row.dumps)]);
    }
    if !modes.is_empty() {
        modes.write(out)?;
    }
    let place =
        if all.is_pinned { "on a processor of its own" } else { "NOT on a processor of its own" };
    writeln!(
        out,
        "\n{} bursts of {} puts by {} threads; the reader {place}; profile {}",
        all.bursts,
        number(all.puts),
        all.writers,
        all.profile,
    )?;
    if let Some(threshold) = &all.threshold {
        writeln!(out, "{threshold}")?;
    }
    if let Some((median, least, most)) = all.protected_p99_ratio {
        let verdict = if median <= PROTECTED_GOAL { "met" } else { "MISSED" };
        writeln!(
            out,
            "p99 of gets in bursts, protected over not: {median:.2} ({least:.2} to {most:.2}; goal <= {PROTECTED_GOAL} \
             {verdict})"
        )?;
    }
    Ok(())
}
