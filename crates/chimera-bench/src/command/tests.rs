//! Every subcommand from its arguments to its result, at tiny sizes.

mod chameleon;
mod directories;
mod documents;
mod engines;
mod options;
mod plots;

use std::collections::BTreeSet;
use std::path::Path;

use chimera::Db;
use chimera_pmem::{Hardware, Medium};
use clap::Parser;

use super::benchmark::Benchmark;
use super::*;
use crate::driver::pass::demand;
use crate::driver::setup::Setup;
use crate::driver::store::Create;
use crate::driver::store::Store;
use crate::report::{RatioRow, Reclamation, Report, Row};

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: BenchCommand,
}

pub(super) fn parse(line: &str) -> BenchCommand {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).command
}

/// Runs a command line in a new directory that must be gone afterwards.
fn run_line(line: &str) -> Result<Report> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    let outcome = run_at(line, &path);
    assert!(!path.exists(), "{line}: the directory is left behind");
    outcome
}

fn run_at(line: &str, path: &Path) -> Result<Report> {
    let has_files = !line.contains("anonymous") && !line.starts_with("chameleon written");
    let place = if has_files { format!(" --path {}", path.display()) } else { String::new() };
    execute(&parse(&format!("{line}{place}")))
}

const TINY: &str = "--records 3000 --operations 1000 --repetitions 1";

fn row<'a>(report: &'a Report, operation: &str, threads: usize) -> &'a Row {
    let is_it = |row: &&Row| row.operation == operation && row.threads == threads;
    report.rows.iter().find(is_it).unwrap_or_else(|| panic!("no row `{operation}`"))
}

fn fences(report: &Report, operation: &str) -> f64 {
    row(report, operation, 1).counters.expect("counted").fences
}

/// What a batch costs beside its writes, of docs/BENCHMARKS.md: 2 fences and 60 lines.
#[test]
fn core_counts_the_records_of_batches_apart() {
    for engine in ["viper", "hikv", "chameleon"] {
        let line = format!("core --any-size --engine {engine} --batch 16 {TINY}");
        let report = run_line(&line).expect("it runs");
        let fences_of_puts = 16.0 * fences(&report, "overwrite");
        assert!((fences(&report, "batch") - fences_of_puts).abs() < 0.5, "{engine}");
        let mut apart = report.counters_apart.iter().filter(|row| row.operation == "batch_record");
        let record = apart.next().expect("a row");
        assert!(apart.next().is_none() && record.during == "batch", "{engine}");
        assert_eq!((record.per_operation, record.counters.fences), (2.0, 1.0), "{engine}");
        // A key may be drawn twice: then the record is shorter.
        let lines = 2.0 * record.counters.lines_flushed;
        assert!((59.5..=60.0).contains(&lines), "{engine}: {lines}");
    }
}

#[test]
fn batches_of_what_is_no_store_are_refused_before_anything_is_measured() {
    for engine in ["dram-map", "viper,fptree"] {
        let line = format!("core --any-size --engine {engine} --batch 16 {TINY}");
        let error = run_line(&line).expect_err("no batches");
        assert!(error.to_string().contains("only stores can"), "{engine}: {error}");
    }
}

#[test]
fn core_measures_counts_recovers_and_verifies() {
    let report = run_line(&format!("core {TINY} --threads 1,2")).expect("runs");
    assert_eq!(report.verified_records, Some(3000));
    assert_eq!(report.rows.len(), 12);
    for row in &report.rows {
        assert!(row.ops_per_second > 0.0 && row.latency_ns.p50 > 0, "{row:?}");
        assert!(row.latency_ns.p9999 >= row.latency_ns.p50, "{row:?}");
    }
    // The protocol's fences, exactly.
    for (operation, expected) in [
        ("insert", 2.0),
        ("get", 0.0),
        ("update", 1.0),
        ("overwrite", 3.0),
        ("modify", 3.0),
        ("delete", 1.0),
    ] {
        let found = fences(&report, operation);
        assert!((found - expected).abs() < 1e-9, "{operation}: {found} fences");
    }
    assert!(report.counters_apart.iter().any(|row| row.operation == "block_hand_out"));
    // Of the updates all are in place: nothing is handed out.
    assert!(report.counters_apart.iter().all(|row| row.during != "update"));
    assert!(report.recovery.iter().all(|row| row.records == 3000 && row.duration_ns > 0.0));
    assert!(report.dram_bytes_per_key > 0.0 && report.space_amplification > 1.0);
}

#[test]
fn counters_are_repeatable() {
    let line = format!("core {TINY} --medium anonymous");
    let (first, second) = (run_line(&line).expect("runs"), run_line(&line).expect("runs"));
    assert_eq!(first.verified_records, Some(3000));
    for (first, second) in first.rows.iter().zip(&second.rows) {
        assert_eq!(first.counters, second.counters, "{}", first.operation);
        assert!(first.counters.is_some());
    }
    assert_eq!(first.counters_apart, second.counters_apart);
}

#[test]
fn ycsb_runs_every_workload_and_verifies() {
    let report = run_line(&format!("ycsb --workload all {TINY} --threads 2")).expect("runs");
    let names: Vec<_> = report.rows.iter().map(|row| row.operation.as_str()).collect();
    assert_eq!(names, ["load", "a", "b", "c", "d", "f", "50:50", "10:90"]);
    let verified = report.verified_records.expect("verified");
    assert!((3030..3100).contains(&verified), "workload d inserts about 50: {verified}");
    assert_eq!(report.recovery.len(), report.machine.cores.min(2));
    // Shares of operations by their fences.
    let fences = |name: &str| row(&report, name, 2).counters.expect("counted").fences;
    assert!((fences("load") - 2.0).abs() < 1e-9);
    assert!(fences("c") < 1e-9);
    assert!((1.3..1.7).contains(&fences("a")) && (1.3..1.7).contains(&fences("f")));
    assert!((2.5..2.9).contains(&fences("10:90")));
}

#[test]
fn ordered_writes_and_a_write_ahead_log_take_turns() {
    let line = format!("core {TINY} --engine hikv,hikv-wal --any-size");
    let report = run_line(&line).expect("runs");
    for (operation, fences) in
        [("insert", 2.0), ("overwrite", 2.0), ("modify", 2.0), ("delete", 1.0)]
    {
        for (engine, more) in [("hikv", 0.0), ("hikv-wal", 1.0)] {
            let is_it = |row: &&Row| row.engine == engine && row.operation == operation;
            let row = report.rows.iter().find(is_it).expect("was measured");
            // A run of items now and then.
            let found = row.counters.expect("counted").fences - more - fences;
            assert!((0.0..0.5).contains(&found), "{operation} of {engine}: {row:?}");
        }
    }
}

#[test]
fn ordered_stores_are_scanned() {
    let report = run_line(&format!("ycsb --workload all {TINY} --any-size --order synchronous"))
        .expect("runs");
    assert!(report.rows.iter().any(|row| row.operation == "e"), "{:?}", report.rows);
    let line =
        format!("core {TINY} --engine viper,hikv --any-size --order asynchronous,synchronous");
    let report = run_line(&line).expect("runs");
    let names: BTreeSet<_> = report.rows.iter().map(|row| row.engine.as_str()).collect();
    let expected =
        ["hikv-ordered", "hikv-ordered-synchronous", "viper-ordered", "viper-ordered-synchronous"];
    assert!(names.iter().eq(&expected), "{names:?}");
    assert_eq!(report.rows.iter().filter(|row| row.operation == "scan").count(), expected.len());
    let line = format!("core {TINY} --engine hikv --any-size --order asynchronous,partitioned");
    let report = run_line(&line).expect("runs");
    for engine in ["hikv-ordered", "hikv-ordered-partitioned"] {
        let is_it = |row: &&Row| row.engine == engine && row.operation == "scan";
        assert!(report.rows.iter().any(|row| is_it(&row)), "{engine}: {:?}", report.rows);
        assert!(report.stores.iter().any(|store| store.facts.engine == engine), "{engine}");
    }
    // Beside stores without order nothing is scanned.
    let report = run_line(&format!("core {TINY} --order none,asynchronous")).expect("runs");
    assert!(report.rows.iter().all(|row| row.operation != "scan"));
}

#[test]
fn a_partitioned_order_has_as_many_trees_as_asked_for() {
    for (options, trees) in [("partitioned", 4), ("partitioned --trees 3", 3), ("asynchronous", 1)]
    {
        let line = format!("core {TINY} --medium anonymous --order {options}");
        let BenchCommand::Core(arguments) = parse(&line) else { panic!() };
        let setup = arguments.setups().expect("valid").remove(0);
        let demand = demand(&setup, &[], 1);
        let db: Db<Hardware> = Create::create(&setup, Path::new(""), &demand).expect("made");
        assert_eq!(db.stats().order.expect("ordered").trees, trees, "{options}");
        assert_eq!(db.facts().engine, setup.name(), "{options}");
    }
}

#[test]
fn ycsb_takes_distributions_and_single_workloads() {
    for distribution in ["uniform", "zipfian --theta 0.5", "latest --theta 0.5"] {
        let line =
            format!("ycsb --workload d,a --distribution {distribution} {TINY} --no-counters");
        let report = run_line(&line).expect("runs");
        assert_eq!(report.rows.len(), 2);
        assert!(report.rows.iter().all(|row| row.counters.is_none()));
    }
    let error = run_line("ycsb --theta 1").expect_err("no such exponent");
    assert!(error.to_string().contains("theta"), "{error}");
}

#[test]
fn floor_compares_every_operation_in_both_shapes() {
    let report = run_line(&format!("floor {TINY}")).expect("runs");
    assert_eq!(report.rows.len(), 20);
    let ratios = report.ratios.as_ref().expect("compared");
    assert_eq!(ratios.len(), 10);
    for (operation, shape, goal) in
        [("insert", "chained", 1.25), ("get", "independent", 2.0), ("get", "chained", 1.3)]
    {
        let is_it = |row: &&RatioRow| row.operation == operation && row.shape == shape;
        let row = ratios.iter().find(is_it).expect("compared");
        assert!((row.goal - goal).abs() < 1e-9, "{row:?}");
    }
    let goals = table::text(&report);
    assert!(goals.contains("goal"), "{goals}");
    for row in &report.rows {
        let is_floor = row.operation.contains("/floor/");
        let (engine, durability) =
            if is_floor { ("floor", "process") } else { ("viper", &*report.durability) };
        assert_eq!((&*row.engine, &*row.durability), (engine, durability), "{row:?}");
    }
    assert!(ratios.iter().all(|row| row.ratio > 0.0 && row.ratio_min <= row.ratio_max));
    for (operation, expected) in [("insert", 2.0), ("overwrite", 3.0), ("update", 1.0)] {
        for side in ["floor", "engine"] {
            for shape in ["independent", "chained"] {
                let found = fences(&report, &format!("{operation}/{side}/{shape}"));
                assert!((found - expected).abs() < 1e-9, "{operation} {side}: {found}");
            }
        }
    }
    let anonymous = format!("floor {TINY} --medium anonymous --threads 2 --value-size 4");
    let report = run_line(&anonymous).expect("runs");
    assert_eq!(report.ratios.map(|ratios| ratios.len()), Some(8), "no place for a counter");
}

#[test]
fn growth_compares_two_pools() {
    let report = run_line("growth --records 3000 --repetitions 1").expect("runs");
    let growth = report.growth.expect("compared");
    assert!(growth.time_ratio > 0.0 && growth.p50_ratio > 0.0 && growth.p99_ratio > 0.0);
    assert_eq!(report.rows.len(), 2);
    assert_eq!(report.operations, 3000);
}

#[test]
fn adaption_compares_divisions_of_a_pool() {
    for (pool, engine, divisions) in [(4, "hikv", 3), (2, "viper", 2)] {
        let line = format!("adaption {TINY} --engine {engine} --any-size --pool {pool}");
        let report = run_line(&line).expect("runs");
        let adaption = report.adaption.clone().expect("compared");
        assert_eq!((adaption.threads, adaption.rows.len()), (pool, 3 * divisions));
        for row in &adaption.rows {
            assert!(row.ops_per_second > 0.0, "{row:?}");
            assert!((1.0..pool as f64).contains(&row.serving_threads), "{row:?}");
            assert!(row.division == "adaptive" || row.decisions == 0, "{row:?}");
        }
        let text = table::text(&report);
        assert!(text.contains(&format!("a pool of {pool} threads on")), "{text}");
    }
    let error = run_line("adaption --order synchronous").expect_err("nothing is applied later");
    assert!(error.to_string().contains("--order has no effect"), "{error}");
}

#[test]
fn a_writer_is_measured_alone_and_beside_scans() {
    for (options, barriers, threads) in [
        ("--barrier", 2, 3),
        ("--engine hikv --any-size --order synchronous --inserts 0 --medium anonymous", 1, 2),
        ("--inserts 100 --scans-per-second 100000 --scan-length 3 --medium anonymous", 1, 3),
    ] {
        let report = run_line(&format!("beside-scans {TINY} {options}")).expect("runs");
        assert_eq!(report.rows.len(), 2 * barriers, "{options}");
        let beside = report.beside_scans.clone().expect("compared");
        assert_eq!((beside.rows.len(), beside.threads), (barriers, threads), "{options}");
        assert_eq!(report.oversubscribed, threads > report.machine.cores);
        for (number, row) in beside.rows.iter().enumerate() {
            assert_eq!(row.barrier, number == 1);
            assert!(row.throughput_ratio > 0.0 && row.scans_per_second > 0.0, "{row:?}");
            // One pass for throughput and one for latency.
            let latency = &row.scan_latency_ns;
            assert!(row.scans >= 2 && latency.mean > 0.0 && latency.p999 >= latency.p50, "{row:?}");
        }
        let text = table::text(&report);
        for part in ["no barrier", "write/beside scans", &format!("{threads} threads on")] {
            assert!(text.contains(part), "`{part}` is missing in:\n{text}");
        }
    }
    for (options, part) in [
        ("--threads 2", "one writer"),
        ("--engine dram-map", "one engine"),
        ("--order asynchronous,synchronous", "one mode"),
        ("--duration 1", "--duration has no effect"),
    ] {
        let error = run_line(&format!("beside-scans {options}")).expect_err("senseless");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn kinds_of_indexes_are_compared() {
    for options in ["", "--key-size 8 --order synchronous --medium anonymous"] {
        let report = run_line(&format!("indexes {TINY} {options}")).expect("runs");
        let ordered = if options.is_empty() { "hikv-ordered" } else { "hikv-ordered-synchronous" };
        let kinds = ["hash-table", "b-tree", "skip-list", "hikv", ordered];
        let stores: Vec<_> = report.stores.iter().map(|it| it.facts.engine.as_str()).collect();
        assert_eq!(stores, kinds);
        assert!(report.stores.iter().all(|store| store.verified_records == Some(4000)));
        let rows: Vec<_> = report.rows.iter().map(|row| (&*row.operation, &*row.engine)).collect();
        let mut expected: Vec<_> = kinds.iter().map(|kind| ("insert", *kind)).collect();
        expected.extend(kinds.iter().map(|kind| ("get", *kind)));
        expected.extend([("scan", "b-tree"), ("scan", "skip-list"), ("scan", ordered)]);
        assert_eq!(rows, expected);
        assert!(report.rows.iter().all(|row| row.ops_per_second > 0.0 && row.latency_ns.p50 > 0));
        assert!(table::text(&report).contains("skip-list: DRAM not known"));
    }
    for options in ["--engine hikv-wal", "--threads 2", "--key-size 12", "--value-size 200"] {
        let outcome = run_line(&format!("indexes {TINY} {options}"));
        assert!(matches!(outcome, Err(BenchError::Arguments(_))), "{options}: {outcome:?}");
    }
}

#[test]
fn reclaim_compares_two_stores_and_gets_space_back() {
    for options in ["", "--any-size", "--mixed-sizes --threads 2"] {
        let report = run_line(&format!("reclaim {TINY} {options}")).expect("runs");
        assert_eq!(report.rows.len(), 4, "{options}");
        let reclamation = report.reclamation.expect("compared");
        assert_eq!(reclamation.rows.len(), 2);
        assert!(reclamation.rows.iter().all(|row| row.throughput_ratio > 0.0));
        assert!(reclamation.compact_records_per_second > 0.0);
        let Reclamation {
            loaded_amplification,
            thinned_amplification,
            compacted_amplification,
            ..
        } = reclamation;
        assert!(thinned_amplification > 1.4 * loaded_amplification, "{options}");
        assert!(compacted_amplification < 1.2 * loaded_amplification, "{options}");
    }
}

#[test]
fn recovery_opens_stores_of_all_sizes() {
    let report =
        run_line("recovery --records 3000 --repetitions 1 --recovery-threads 1,2").expect("runs");
    let sizes: Vec<_> = report.recovery.iter().map(|row| row.records).collect();
    for size in [0, 750, 1500, 3000] {
        assert!(sizes.contains(&size), "{sizes:?}");
    }
    let error = run_line("recovery --medium anonymous").expect_err("cannot be reopened");
    assert!(error.to_string().contains("anonymous"), "{error}");
}

#[test]
fn memory_samples_every_factor() {
    let report = run_line("memory --from 1000 --to 5000").expect("runs");
    let memory = report.memory.expect("sampled");
    let records: Vec<_> = memory.samples.iter().map(|sample| sample.records).collect();
    assert_eq!(records[..4], [1000, 1200, 1440, 1728]);
    assert!(memory.bytes_per_key_max >= memory.bytes_per_key_mean);
    assert!(memory.bytes_per_key_mean > 0.0 && memory.empty_dram_bytes > 0);
    assert_eq!((report.key_bytes, report.value_bytes), (8, 8));
    assert!(run_line("memory --from 5 --to 4").is_err());
}

#[test]
fn variants_are_all_measured() {
    let report = run_line(&format!("variants {TINY}")).expect("runs");
    assert_eq!(report.rows.len(), 18);
    assert!(fences(&report, "insert/viper") > 0.0);
    assert!(row(&report, "insert/dram", 1).counters.is_none());
    let names: Vec<_> = report.rows[..3].iter().map(|row| row.operation.as_str()).collect();
    assert_eq!(names, ["insert/viper", "insert/dram", "insert/unaligned"]);
}

#[test]
fn options_of_the_store_are_carried_out() {
    for options in [
        "--layout published",
        "--growing",
        "--key-size 8 --value-size 8",
        "--any-size",
        "--any-size --growing --threads 2",
        "--any-size --value-size 5000",
        "--mixed-sizes",
    ] {
        let report = run_line(&format!("core {TINY} --no-counters {options}"));
        let report = report.unwrap_or_else(|error| panic!("{options}: {error}"));
        assert_eq!(report.verified_records, Some(3000), "{options}");
        let layout = if options.contains("published") { "published" } else { "checked" };
        assert_eq!(report.layout, layout);
    }
    let line = "core --records 300 --operations 100 --repetitions 1 --any-size --value-size 100000";
    assert_eq!(run_line(line).expect("runs").verified_records, Some(300), "values in chunks");
}

#[test]
fn a_latency_profile_is_named_and_labelled() {
    let line = format!("core {TINY} --no-counters --profile hikv-nvm:1400");
    let report = run_line(&line).expect("runs");
    assert!(report.modelled);
    assert_eq!(report.profile, "hikv-nvm:1400");
    let BenchCommand::Core(arguments) = parse(&line) else { panic!() };
    let timed = arguments.setups().expect("valid").remove(0).timed();
    let timing = timed.device.and_then(|device| device.timing).expect("it takes time");
    assert_eq!(timing.persist_ns, 1400);
    assert!(!timed.counters, "counting would slow down what is timed");
}

#[test]
fn a_duration_ends_phases() {
    let line = "ycsb --workload a,d --records 2000 --operations 100000 --duration 0.02 \
                --repetitions 1 --no-counters";
    let report = run_line(line).expect("runs");
    assert!(report.rows.iter().all(|row| row.ops_per_second > 0.0));
}

#[test]
fn another_medium_than_expected_is_refused() {
    let error = run_line(&format!("core {TINY} --medium fsdax")).expect_err("not on fsdax");
    match error {
        BenchError::WrongMedium { expected, found, .. } => {
            assert_eq!(expected, Medium::FsDax);
            assert_ne!(found, Medium::FsDax);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn senseless_arguments_are_refused() {
    for line in [
        "core --records 0",
        "core --threads 0",
        "core --repetitions 0",
        "core --key-size 1 --records 1000",
        "core --duration 0",
        "floor --duration 1",
        "recovery --recovery-threads 0",
        "ycsb --workload e",
        "ycsb --workload e --order none,asynchronous",
        "core --order asynchronous,asynchronous",
    ] {
        let outcome = run_line(line);
        assert!(matches!(outcome, Err(BenchError::Arguments(_))), "{line}: {outcome:?}");
    }
    for line in [
        "core --engine none",
        "core --medium cloud",
        "core --layout odd",
        "core --profile slow",
        "core --index tape",
        "core --populate --growing",
        "core --order sorted",
        "core --order partitioned --trees 1",
        "ycsb --workload g",
    ] {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        assert!(Line::try_parse_from(words).is_err(), "{line}");
    }
}

#[test]
fn quick_is_small_and_yields_to_explicit_sizes() {
    let BenchCommand::Core(arguments) = parse("core --quick --records 7") else { panic!() };
    let setup = arguments.setups().expect("valid").remove(0);
    assert_eq!((setup.records, setup.operations, setup.repetitions), (7, 7, 2));
    let BenchCommand::Ycsb(arguments) = parse("ycsb --quick") else { panic!() };
    assert_eq!(arguments.setups().expect("valid").remove(0).records, 20_000);
}
