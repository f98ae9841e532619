//! Several engines in one run.

use chimera::{Db, Options};

use super::*;
use crate::report::StoreRow;

const BOTH: &str = "--engine viper,dram-map";

fn row_of<'a>(report: &'a Report, engine: &str, operation: &str) -> &'a Row {
    let is_it = |row: &&Row| row.engine == engine && row.operation == operation;
    report.rows.iter().find(is_it).unwrap_or_else(|| panic!("no `{operation}` of {engine}"))
}

fn store_of<'a>(report: &'a Report, engine: &str) -> &'a StoreRow {
    report.stores.iter().find(|store| store.facts.engine == engine).expect("was measured")
}

#[test]
fn engines_take_turns_and_are_reported_side_by_side() {
    let report = run_line(&format!("core {TINY} {BOTH} --threads 2,1")).expect("runs");
    let names: Vec<_> = report.stores.iter().map(|store| store.facts.engine.as_str()).collect();
    assert_eq!(names, ["viper", "dram-map"]);
    assert_eq!(report.rows.len(), 24);
    let first: Vec<_> = report.rows[..3]
        .iter()
        .map(|row| (row.operation.as_str(), row.engine.as_str(), row.threads))
        .collect();
    let expected = [("insert", "viper", 2), ("insert", "dram-map", 2), ("get", "viper", 2)];
    assert_eq!(first, expected);
    for row in &report.rows {
        assert!(row.ops_per_second > 0.0 && row.latency_ns.p50 > 0, "{row:?}");
        let (durability, counts) =
            if row.engine == "viper" { (&*report.durability, true) } else { ("none", false) };
        assert_eq!((row.durability.as_str(), row.counters.is_some()), (durability, counts));
    }
    for store in &report.stores {
        assert_eq!(store.verified_records, Some(3000), "{store:?}");
        assert!(store.dram_bytes_per_key > 0.0, "{store:?}");
    }
    let baseline = store_of(&report, "dram-map");
    assert!(baseline.dram_bytes_per_key > 216.0, "the records themselves: {baseline:?}");
    assert_eq!(baseline.facts.medium, "dram");
    assert!(report.recovery.iter().all(|row| row.engine == "viper" && row.records == 3000));
    assert!(!report.recovery.is_empty());
    let text = table::text(&report);
    for part in ["engine viper, dram-map", "insert     dram-map", "dram-map: medium dram"] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

#[test]
fn a_baseline_may_be_measured_alone() {
    for command in ["core", "ycsb --workload all"] {
        let report = run_line(&format!("{command} {TINY} --engine dram-map")).expect("runs");
        assert_eq!((report.engine.as_str(), report.durability.as_str()), ("dram-map", "none"));
        assert!(report.verified_records >= Some(3000) && report.recovery.is_empty());
        let text = table::text(&report);
        assert!(!text.contains("reopening") && !text.contains("amplification"), "{text}");
    }
}

#[test]
fn the_same_is_measured_whether_alone_or_in_turns() {
    let alone = run_line(&format!("ycsb {TINY} --medium anonymous")).expect("runs");
    let line = format!("ycsb {TINY} --medium anonymous --engine dram-map,viper");
    let both = run_line(&line).expect("runs");
    for row in &alone.rows {
        assert_eq!(row_of(&both, "viper", &row.operation).counters, row.counters);
    }
    assert_eq!(both.engine, "dram-map", "the first one");
    assert_eq!(store_of(&both, "viper").verified_records, alone.verified_records);
    assert_eq!(store_of(&both, "dram-map").verified_records, alone.verified_records);
}

#[test]
fn every_engine_keeps_its_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    let line = format!("core {TINY} {BOTH} --no-counters");
    run_at(&format!("{line} --keep"), &path).expect("runs");
    let db = Db::open(path.join("viper"), &Options::new()).expect("is kept");
    assert_eq!(db.stats().records, 3000);
    db.close().expect("closes");
    let error = run_at(&line, &path).expect_err("there is a store");
    assert!(matches!(error, BenchError::Exists { .. }), "{error}");
    run_at(&format!("{line} --overwrite"), &path).expect("may remove it");
    assert!(path.read_dir().expect("was there before").next().is_none());
}

#[test]
fn engines_are_compared_where_that_makes_sense() {
    for line in [
        "core --engine viper,viper",
        "floor --engine viper,dram-map",
        "growth --engine dram-map",
        "recovery --engine dram-map",
        "memory --engine dram-map",
        "reclaim --engine dram-map",
        "variants --engine dram-map",
    ] {
        let outcome = run_line(line);
        assert!(matches!(outcome, Err(BenchError::Arguments(_))), "{line}: {outcome:?}");
    }
}

#[test]
fn modes_of_verifying_gets_take_turns() {
    let modes = "--verify-reads always,sampled,never";
    let report = run_line(&format!("core {TINY} {modes} {BOTH}")).expect("runs");
    let names: Vec<_> = report.stores.iter().map(|store| store.facts.engine.as_str()).collect();
    assert_eq!(names, ["viper", "viper-sampled", "viper-never", "dram-map"]);
    for name in &names[..3] {
        assert!(row_of(&report, name, "get").counters.is_some(), "{name}");
        assert_eq!(store_of(&report, name).verified_records, Some(3000), "{name}");
        assert!(report.recovery.iter().any(|row| row.engine == *name), "{name}");
    }
    for wrong in ["core --verify-reads never,never", "floor --verify-reads always,never"] {
        assert!(run_line(&format!("{wrong} {TINY}")).is_err(), "{wrong}");
    }
}
