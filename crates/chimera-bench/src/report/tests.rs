//! The contract of the JSON, and the text.

use std::path::Path;

use serde_json::Value;

use super::*;
use crate::driver::setup::Setup;
use crate::results::measured::{Measured, histogram};
use crate::results::rows::Counted;
use crate::results::series::Results;

fn measured(operations: u64, latency_ns: Option<u64>) -> Measured {
    let histogram = latency_ns.map(|latency_ns| {
        let mut histogram = histogram();
        histogram.record_n(latency_ns, 1000).expect("in range");
        histogram
    });
    let elapsed = std::time::Duration::from_secs(1);
    Measured { operations, elapsed, histogram }
}

fn facts(engine: &str) -> Facts {
    Facts {
        engine: engine.to_owned(),
        medium: "tmpfs".to_owned(),
        durability: "process".to_owned(),
        flush_instruction: "clwb".to_owned(),
        huge_pages: true,
    }
}

fn results() -> Results {
    let facts = facts("viper");
    let mut results = Results::default();
    for operations in [2_000_000, 1_000_000, 4_000_000] {
        results.add(&facts, "get", 2, measured(operations, None));
    }
    results.add(&facts, "get", 2, measured(1000, Some(500)));
    let counters = Counters { fences: 2.0, ..Counters::default() };
    let apart = ApartRow {
        engine: "viper".to_owned(),
        operation: "block_hand_out".to_owned(),
        during: "get".to_owned(),
        per_operation: 0.01,
        counters,
    };
    let counted = Counted { counters, apart: vec![apart], dimm_spread: Some(1.02) };
    results.enter_counted("viper", &[("get".to_owned(), counted)]);
    results
}

fn report() -> Report {
    let store = StoreRow {
        facts: facts("viper"),
        dram_bytes_per_key: 25.5,
        space_amplification: 1.1,
        verified_records: Some(1000),
    };
    let recovery = RecoveryRow {
        engine: "viper".to_owned(),
        made: "recovery".to_owned(),
        threads: 1,
        records: 1000,
        duration_ns: 1e6,
        records_per_second: 1e9,
        repetitions: 3,
        spread: 0.1,
    };
    Report {
        recovery: vec![recovery],
        ..Report::new("core", &Setup::small(), vec![store], &results())
    }
}

#[test]
fn the_json_has_the_fields_of_the_contract() {
    let text = serde_json::to_string(&report()).expect("serialises");
    let value: Value = serde_json::from_str(&text).expect("is JSON");
    let fields = [
        "command",
        "machine",
        "medium",
        "durability",
        "engine",
        "layout",
        "profile",
        "seed",
        "records",
        "operations",
        "key_bytes",
        "value_bytes",
        "threads",
        "stores",
        "rows",
        "dram_bytes_per_key",
        "space_amplification",
        "recovery",
    ];
    for field in fields {
        assert!(!value[field].is_null(), "`{field}` is missing in {text}");
    }
    for field in ["cpu", "cores", "memory_bytes", "kernel", "flush_instruction"] {
        assert!(!value["machine"][field].is_null(), "`machine.{field}` is missing");
    }
    let row = &value["rows"][0];
    for field in
        ["engine", "durability", "operation", "threads", "ops_per_second", "repetitions", "spread"]
    {
        assert!(!row[field].is_null(), "`{field}` of a row is missing");
    }
    let store = [
        "engine",
        "medium",
        "durability",
        "flush_instruction",
        "huge_pages",
        "dram_bytes_per_key",
        "space_amplification",
        "verified_records",
    ];
    for field in store {
        assert!(!value["stores"][0][field].is_null(), "`stores.{field}` is missing in {text}");
    }
    for field in ["mean", "p50", "p99", "p999", "p9999"] {
        assert!(row["latency_ns"][field].is_number(), "`latency_ns.{field}` is missing");
    }
    let counters = [
        "fences",
        "lines_flushed",
        "lines_reflushed",
        "lines_read",
        "media_writes",
        "media_writes_partial",
        "media_reads",
    ];
    for field in counters {
        assert!(row["counters"][field].is_number(), "`counters.{field}` is missing");
    }
    let recovery =
        ["threads", "records", "duration_ns", "records_per_second", "repetitions", "spread"];
    for field in recovery {
        assert!(value["recovery"][0][field].is_number(), "`recovery.{field}` is missing");
    }
    assert!(value.get("growth").is_none(), "it belongs to another subcommand");
}

#[test]
fn the_json_comes_back_as_it_was() {
    let report = report();
    let text = serde_json::to_string_pretty(&report).expect("serialises");
    assert_eq!(serde_json::from_str::<Report>(&text).expect("deserialises"), report);
}

#[test]
fn rows_are_computed_from_all_repetitions() {
    let report = report();
    let row = &report.rows[0];
    assert!((row.ops_per_second - 2e6).abs() < 1.0, "the median: {}", row.ops_per_second);
    assert!((row.spread - 1.5).abs() < 1e-9, "(4 - 1) / 2: {}", row.spread);
    assert_eq!(row.repetitions, 3);
    assert!((row.latency_ns.mean - 1000.0).abs() < 1e-6, "2 threads: {}", row.latency_ns.mean);
    assert!((499..=501).contains(&row.latency_ns.p50), "{}", row.latency_ns.p50);
    assert!((499..=501).contains(&row.latency_ns.p9999), "{}", row.latency_ns.p9999);
    assert_eq!(report.counters_apart.len(), 1);
}

#[test]
fn the_text_says_what_matters() {
    let mut report = report();
    let text = table::text(&report);
    for part in
        ["tmpfs", "process", "clwb", "seed 42", "block_hand_out in get", "1,000 records verified"]
    {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    assert!(!text.contains("MODELLED"));
    report.modelled = true;
    assert!(table::text(&report).contains("MODELLED"));
}

#[test]
fn engines_are_told_apart() {
    let mut report = report();
    assert!(!table::text(&report).contains("dram-map"));
    let mut results = results();
    results.add(&facts("dram-map"), "get", 2, measured(3_000_000, None));
    results.add(&facts("dram-map"), "get", 2, measured(1000, Some(300)));
    assert_eq!(results.series.len(), 2);
    report.rows = results.series.iter().map(crate::results::series::Series::row).collect();
    let (first, second) = (&report.rows[0], &report.rows[1]);
    assert_eq!((first.engine.as_str(), second.engine.as_str()), ("viper", "dram-map"));
    assert!(first.counters.is_some() && second.counters.is_none());
    let store = StoreRow { facts: facts("dram-map"), ..report.stores[0].clone() };
    report.stores.push(store);
    let text = table::text(&report);
    assert!(text.contains("get        dram-map        2"), "{text}");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("figure.svg");
    plot::draw(&report, &results, &path).expect("draws");
    let figure = std::fs::read_to_string(&path).expect("is there");
    assert!(figure.contains("get dram-map x2") && figure.contains("get viper x2"), "{figure}");
}

#[test]
fn figures_are_drawn() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("figure.svg");
    plot::draw(&report(), &results(), &path).expect("draws");
    let text = std::fs::read_to_string(&path).expect("is there");
    assert!(text.starts_with("<svg") && text.contains("p99.99"), "{text}");
    let nowhere = Path::new("/nowhere/figure.svg");
    assert!(plot::draw(&report(), &results(), nowhere).is_err());
}
