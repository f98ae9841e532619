//! Runs the same benchmark with two binaries of `chimera` in turn, and prints for each row the median of the
//! paired ratios of throughput, new over old:
//!
//! `compare_binaries OLD NEW ROUNDS bench core --records 1000000 --no-counters`
//!
//! Each round runs both, in an order that alternates. Fails when a median is below 0.97.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Command, ExitCode};

use serde_json::Value;

/// A row that is slower than this has become slower.
const RATIO_MIN: f64 = 0.97;

/// Operations per second by operation and threads.
type Rates = BTreeMap<(String, u64), f64>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match compare(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn compare(arguments: &[String]) -> Result<bool, Box<dyn Error>> {
    let [old, new, rounds, benchmark @ ..] = arguments else {
        return Err("usage: compare_binaries OLD NEW ROUNDS BENCHMARK..".into());
    };
    let rounds: usize = rounds.parse()?;
    let mut ratios: BTreeMap<(String, u64), Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        let (before, after) = if round % 2 == 0 {
            let before = rates(old, benchmark)?;
            (before, rates(new, benchmark)?)
        } else {
            let after = rates(new, benchmark)?;
            (rates(old, benchmark)?, after)
        };
        for (row, rate) in after {
            if let Some(before) = before.get(&row) {
                ratios.entry(row).or_default().push(rate / before);
            }
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    let mut is_kept = !ratios.is_empty();
    println!("{:16} {:>7} {:>7} {:>7} {:>7}", "operation", "threads", "median", "least", "most");
    for ((operation, threads), mut found) in ratios {
        found.sort_by(f64::total_cmp);
        let median = found[found.len() / 2];
        is_kept &= median >= RATIO_MIN;
        let (least, most) = (found[0], found[found.len() - 1]);
        println!("{operation:16} {threads:7} {median:7.3} {least:7.3} {most:7.3}");
    }
    Ok(is_kept)
}

/// What one run of a binary prints.
fn rates(binary: &str, benchmark: &[String]) -> Result<Rates, Box<dyn Error>> {
    let output = Command::new(binary).args(benchmark).arg("--json").output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{binary} failed: {said}").into());
    }
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let rows = report["rows"].as_array().ok_or("the report has no rows")?;
    let rate = |row: &Value| {
        let operation = row["operation"].as_str()?.to_owned();
        Some(((operation, row["threads"].as_u64()?), row["ops_per_second"].as_f64()?))
    };
    rows.iter().map(|row| rate(row).ok_or("a row without a rate".into())).collect()
}
