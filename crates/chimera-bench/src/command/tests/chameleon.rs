//! Benchmarks of ChameleonDB, at tiny sizes.

use chimera::Options;

use super::*;
use crate::report::Chameleon;
use crate::report::chameleon::{Bursts, Ratios, Restart, Written};

/// Two shards, each with bypass indexes of 768 keys.
const SMALL: &str = "--shards 2 --memtable-bytes 256 --repetitions 1";
/// The same where counts are exact.
const SMALL_ONCE: &str = "--shards 2 --memtable-bytes 256";

fn chameleon(line: &str) -> (Report, Chameleon) {
    let small = if line.starts_with("written") { SMALL_ONCE } else { SMALL };
    let report = run_line(&format!("chameleon {line} {small}")).expect("runs");
    let text = serde_json::to_string(&report).expect("serialises");
    assert!(serde_json::from_str::<Report>(&text).expect("is a report").chameleon.is_some());
    let found = report.chameleon.clone().expect("measured");
    (report, found)
}

fn ratios(line: &str) -> (Report, Ratios) {
    match chameleon(&format!("ratios {line}")) {
        (report, Chameleon::Ratios(ratios)) => (report, ratios),
        other => panic!("{other:?}"),
    }
}

fn restart(line: &str) -> (Report, Restart) {
    match chameleon(&format!("restart {line}")) {
        (report, Chameleon::Restart(restart)) => (report, restart),
        other => panic!("{other:?}"),
    }
}

fn bursts(line: &str) -> (Report, Bursts) {
    match chameleon(&format!("bursts {line}")) {
        (report, Chameleon::Bursts(bursts)) => (report, bursts),
        other => panic!("{other:?}"),
    }
}

fn written(line: &str) -> (Report, Written) {
    match chameleon(&format!("written {line}")) {
        (report, Chameleon::Written(written)) => (report, written),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sides_take_turns_and_are_compared() {
    let (report, ratios) = ratios("--records 3900 --operations 1000");
    let sides: Vec<_> = ratios.sides.iter().map(|row| (&*row.side, &*row.durability)).collect();
    // As the other sides are without batches.
    let given = &*report.stores[6].facts.durability;
    assert_ne!(given, "batched");
    let expected = [
        ("chameleon", "batched"),
        ("chameleon-write-intensive", "batched"),
        ("chameleon-unbatched", given),
        ("pmem-lsm-nf", "batched"),
        ("pmem-lsm-f", "batched"),
        ("pmem-lsm-pink", "batched"),
        ("pmem-hash", given),
        ("dram-hash", "batched"),
    ];
    assert_eq!(sides, expected);
    assert!(report.stores.iter().all(|store| store.verified_records == Some(3900)));
    let work = ["put", "get, 40 % above", "get, 10 % above", "get", "overwrite"];
    let rows: Vec<_> = report.rows.iter().map(|row| (&*row.operation, &*row.engine)).collect();
    let all = work.iter().flat_map(|work| expected.iter().map(move |side| (*work, side.0)));
    assert_eq!(rows, all.collect::<Vec<_>>());
    assert!(report.rows.iter().all(|row| row.ops_per_second > 0.0 && row.latency_ns.p50 > 0));
    // Six sides have levels, and gets are measured three times.
    assert_eq!(ratios.shares.len(), 18);
    assert!(ratios.shares.iter().all(|row| row.share > 0.0 && row.share < 0.7), "{ratios:?}");
    let with_goal: Vec<_> =
        ratios.goals.iter().filter(|row| row.goal.is_some()).map(|row| &*row.what).collect();
    assert_eq!(with_goal, ["DRAM", "put", "put", "get", "get", "get", "put"]);
    let text = table::text(&report);
    for part in ["chameleon ratios", "of dram-hash", "batched", "share of keys", ">= 1.25"] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

#[test]
fn few_sides_are_compared_on_several_threads_in_anonymous_memory() {
    let line = "--records 500 --operations 200 --sides dram-hash,chameleon --threads 1,2 \
                --medium anonymous --batch-bytes 0 --profile optane-100";
    let (report, ratios) = ratios(line);
    assert!(report.modelled);
    assert_eq!(report.rows.len(), 2 * 2 * 3);
    assert!(ratios.sides.iter().all(|row| row.durability != "batched"), "{ratios:?}");
    assert_eq!((ratios.goals.len(), &*ratios.goals[0].what), (1, "DRAM"));
}

#[test]
fn stores_of_several_sizes_are_opened() {
    let (report, restart) = restart("--sizes 500,3900 --after 0.01");
    let rows: Vec<_> = restart.rows.iter().map(|row| (&*row.side, row.records)).collect();
    let sides = ["chameleon", "chameleon-write-intensive", "dram-hash"];
    let expected = sides.into_iter().flat_map(|side| [(side, 500), (side, 3900)]);
    assert_eq!(rows, expected.collect::<Vec<_>>());
    for row in &restart.rows {
        assert!(row.first_answer_ns > 0.0 && row.gets_per_second_after > 0.0, "{row:?}");
        assert!(row.complete_ns.is_some_and(|ns| ns >= row.first_answer_ns), "{row:?}");
        assert!(row.replayed_log_bytes > 0 && row.dram_bytes_per_key > 0.0, "{row:?}");
    }
    assert!(restart.dram_hash_ratio.is_some() && restart.size_ratio.is_some());
    assert_eq!(report.stores.len(), 3);
    assert!(table::text(&report).contains("first answer of dram-hash"));
}

#[test]
fn the_last_stores_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    for line in
        ["restart --sizes 500,800 --after 0.01", "bursts --records 800 --operations 90 --rest 0"]
    {
        let path = directory.path().join(&line[..6]);
        run_at(&format!("chameleon {line} {SMALL} --sides chameleon --keep"), &path).expect("runs");
        let db = Db::open(path.join("chameleon"), &Options::new()).expect("is kept");
        // Blind puts count some more than once.
        assert_eq!(db.keys().count(), 800, "{line}");
    }
}

#[test]
fn bursts_of_puts_go_over_gets() {
    let line = "--records 3000 --operations 4000 --rest 0.02 --window 1";
    let (report, bursts) = bursts(line);
    let sides: Vec<_> = bursts.rows.iter().map(|row| &*row.side).collect();
    assert_eq!(sides, ["chameleon", "chameleon-get-protect", "pmem-hash"]);
    for row in &bursts.rows {
        assert_eq!(row.puts.operations, 2 * 4000, "{row:?}");
        assert!(row.rest_gets.operations + row.burst_gets.operations >= 1000, "{row:?}");
        let windows = bursts.windows.iter().filter(|window| window.side == row.side);
        let gets: Vec<_> = windows.map(|window| window.gets).collect();
        assert!(!gets.is_empty() && gets.iter().all(|gets| *gets >= 1000), "{gets:?}");
    }
    assert!(bursts.protected_p99_ratio.is_some());
    assert!(report.stores.iter().all(|store| store.verified_records == Some(3000)));
    assert!(table::text(&report).contains("gets in bursts"));
}

#[test]
fn bytes_are_counted_by_cause_and_repeatably() {
    let line = "--value-sizes 64,256 --put-mib 1 --quick";
    let (report, first) = written(line);
    assert_eq!(written(line).1, first);
    let compactions: Vec<_> =
        first.amplifications.iter().map(|row| (&*row.compaction, &*row.puts_of)).collect();
    let expected = ["level by level", "direct"]
        .into_iter()
        .flat_map(|compaction| [(compaction, "the same keys"), (compaction, "new keys")]);
    assert_eq!(compactions, expected.collect::<Vec<_>>());
    assert_eq!(first.rows.len(), 3 * 2);
    for row in &first.rows {
        assert!(row.media_written > row.user_bytes, "{row:?}");
        assert!(row.by_puts + row.other > row.user_bytes, "the log: {row:?}");
        assert!(row.media_read_by_gets >= row.gets * u64::from(row.value_bytes), "{row:?}");
        let has_tables = row.flushes > 0 && row.upper > 0 && row.last > 0 && row.manifest > 0;
        assert_eq!(has_tables, row.side == "chameleon", "{row:?}");
    }
    let of = |side: &str| {
        let is_it = |row: &&crate::report::chameleon::WrittenRow| row.side == side;
        first.rows.iter().find(is_it).expect("counted").media_written
    };
    assert!(of("dram-hash") < of("pmem-hash"), "an index in persistent memory is written");
    assert!(table::text(&report).contains("per user B"));
}

#[test]
fn senseless_arguments_of_chameleon_are_refused() {
    for line in [
        "ratios --sides chameleon,chameleon",
        "ratios --engine hikv",
        "ratios --duration 1",
        "ratios --records 0",
        "restart --sizes 0",
        "restart --after inf",
        "restart --threads 2",
        "restart --medium anonymous",
        "bursts --threads 2",
        "bursts --rest inf",
        "written --mixed-sizes",
    ] {
        let outcome = run_line(&format!("chameleon {line}"));
        assert!(matches!(outcome, Err(BenchError::Arguments(_))), "{line}: {outcome:?}");
    }
    let outcome = run_line("chameleon ratios --shards 3 --quick");
    assert!(matches!(outcome, Err(BenchError::Store(_))), "{outcome:?}");
    for line in ["chameleon", "chameleon ratios --sides cceh", "chameleon bursts --bursts 0"] {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        assert!(Line::try_parse_from(words).is_err(), "{line}");
    }
}

#[test]
fn the_full_size_is_that_of_the_goals() {
    let line = "chameleon ratios --records 31250000 --profile optane-100";
    let BenchCommand::Chameleon(command) = parse(line) else { panic!() };
    let ChameleonCommand::Ratios(arguments) = *command else { panic!() };
    let setups = arguments.setups().expect("valid");
    let tuning = setups[0].tuning.expect("of ChameleonDB");
    assert_eq!((tuning.shards, tuning.memtable_bytes, tuning.batch_bytes), (512, 8192, 4096));
    let batches: Vec<_> = setups.iter().map(|it| it.tuning.map(|it| it.batch_bytes)).collect();
    assert_eq!(batches, [4096, 4096, 0, 4096, 4096, 4096, 0, 4096].map(Some));
    assert_eq!((setups[0].key_bytes, setups[0].value_bytes), (8, 8));
}
