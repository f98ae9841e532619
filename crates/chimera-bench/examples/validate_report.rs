//! Reads the JSON of a benchmark from standard input and says what is wrong with it, timings aside:
//! `chimera bench core --quick --json | validate_report`.

use std::io::Read;
use std::process::ExitCode;

use chimera_bench::report::{BesideScansRow, Report, Row, StoreRow};

fn main() -> ExitCode {
    let mut text = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut text) {
        eprintln!("cannot read standard input: {error}");
        return ExitCode::FAILURE;
    }
    let report = match serde_json::from_str::<Report>(&text) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("not a report: {error}");
            return ExitCode::FAILURE;
        }
    };
    let faults = faults(&report);
    for fault in &faults {
        eprintln!("{}: {fault}", report.command);
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What cannot be, whatever the machine.
fn faults(report: &Report) -> Vec<String> {
    let counts = !matches!(report.command.as_str(), "reclaim" | "beside-scans" | "indexes");
    let mut faults: Vec<_> = report.rows.iter().flat_map(|row| row_faults(row, counts)).collect();
    faults.extend(report.stores.iter().flat_map(|store| store_faults(store, report)));
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    expect(!report.rows.is_empty(), "no rows");
    expect(!report.stores.is_empty(), "no stores");
    expect(report.machine.cores > 0, "no cores");
    expect(report.recovery.iter().all(|row| row.records_per_second > 0.0), "a recovery of nothing");
    let is_floor = report.command == "floor";
    expect(is_floor == report.ratios.as_ref().is_some_and(|ratios| !ratios.is_empty()), "ratios");
    let has_goals = report.ratios.iter().flatten().all(|row| row.goal >= 1.0);
    expect(has_goals, "a ratio without a goal");
    let is_reclaim = report.command == "reclaim";
    expect(is_reclaim == report.reclamation.is_some(), "reclamation");
    let shrunk = report.reclamation.as_ref().is_none_or(|reclamation| {
        reclamation.compacted_amplification < reclamation.thinned_amplification
    });
    expect(shrunk, "nothing was reclaimed");
    let is_beside = report.command == "beside-scans";
    expect(is_beside == report.beside_scans.is_some(), "beside scans");
    let rows = report.beside_scans.iter().flat_map(|beside| &beside.rows);
    let was_scanned = |row: &BesideScansRow| row.throughput_ratio > 0.0 && row.scans > 0;
    expect(rows.clone().all(was_scanned), "nothing was written or scanned");
    faults
}

/// Whether nothing survives the end of the process: then there is no recovery, and nothing to count.
fn is_volatile(durability: &str) -> bool {
    durability == "none"
}

fn store_faults(store: &StoreRow, report: &Report) -> Vec<String> {
    let engine = &store.facts.engine;
    let is_volatile = is_volatile(&store.facts.durability);
    // A bare index does not say what it takes.
    let is_bare = report.command == "indexes" && is_volatile;
    let is_verified = matches!(report.command.as_str(), "core" | "ycsb");
    let is_reopened = is_verified && !is_volatile && store.facts.medium != "anonymous";
    let checks = [
        (is_bare || store.dram_bytes_per_key > 0.0, "no DRAM per key"),
        (is_volatile || store.space_amplification >= 1.0, "space amplification below 1"),
        (!is_verified || store.verified_records > Some(0), "nothing was verified"),
        (
            !is_reopened || report.recovery.iter().any(|row| row.engine == *engine),
            "no recovery rows",
        ),
        (report.rows.iter().any(|row| row.engine == *engine), "no rows"),
    ];
    let failed = checks.iter().filter(|(holds, _)| !holds);
    failed.map(|(_, what)| format!("{engine}: {what}")).collect()
}

fn row_faults(row: &Row, counts: bool) -> Vec<String> {
    let counts = counts && !is_volatile(&row.durability);
    let latency = &row.latency_ns;
    let ordered = [latency.p50, latency.p99, latency.p999, latency.p9999].is_sorted();
    let counters = row.counters.unwrap_or_default();
    // Means of exact counts are exact, but for the last bit of the division.
    let is = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    let engine = row.engine.split('-').next().unwrap_or_default();
    let fences = match (engine, row.operation.as_str()) {
        _ if !counts => true,
        (_, "insert" | "load") | ("hikv", "overwrite" | "update") => is(counters.fences, 2.0),
        (_, "overwrite") => is(counters.fences, 3.0),
        (_, "update" | "delete") => is(counters.fences, 1.0) && is(counters.lines_flushed, 1.0),
        (_, "get" | "scan") => is(counters.fences, 0.0) && is(counters.lines_flushed, 0.0),
        _ => true,
    };
    let checks = [
        (row.ops_per_second > 0.0 && row.repetitions > 0, "nothing was measured"),
        (ordered && latency.p50 > 0, "percentiles are not in order"),
        (!row.engine.is_empty() && !row.durability.is_empty(), "an engine without a name"),
        (row.counters.is_some() == counts, "nothing was counted, or what is not to be"),
        (fences, "the counters are not those of the protocol"),
    ];
    let failed = checks.iter().filter(|(holds, _)| !holds);
    failed.map(|(_, what)| format!("{} {}: {what}", row.engine, row.operation)).collect()
}
