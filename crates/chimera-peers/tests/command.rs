//! The command: each option has an effect, and the report says what was done.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails the test")]

use std::path::Path;
use std::process::Command;

use chimera_peers::job::{Durability, StoreKind};
use chimera_peers::protocol::Work;
use chimera_peers::results::Report;

struct Run {
    code: Option<i32>,
    out: String,
    error: String,
}

fn run(arguments: &[&str]) -> Run {
    let output =
        Command::new(env!("CARGO_BIN_EXE_chimera-peers")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
}

/// A run that is done at once.
fn tiny(path: &Path, more: &[&str]) -> Run {
    let usual = ["--quick", "--records", "20", "--path", path.to_str().unwrap()];
    run(&[&usual[..], more].concat())
}

fn report(path: &Path, more: &[&str]) -> Report {
    let run = tiny(path, &[more, &["--json"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.error);
    serde_json::from_str(&run.out).unwrap()
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn all_stores_do_everything_and_leave_nothing() {
    let scratch = scratch();
    let report = report(scratch.path(), &["--values", "100"]);
    assert_eq!(report.failures, [], "{report:?}");
    let stores: Vec<_> = report.needs.iter().map(|row| row.store).collect();
    for row in &report.work {
        assert!(row.ops_per_s.median > 0.0 && row.max_ns >= row.p50_ns, "{row:?}");
        assert_eq!(row.repetitions, 1, "{row:?}");
    }
    let all = [StoreKind::Viper, StoreKind::ViperOrdered, StoreKind::Rocksdb, StoreKind::Lmdb];
    for store in all.into_iter().chain([StoreKind::Redb, StoreKind::Fjall]) {
        assert!(stores.contains(&store), "{store}");
        for work in Work::ALL {
            let is_there = report.work.iter().any(|row| row.store == store && row.work == work);
            assert_eq!(is_there, work != Work::Scan || store.is_ordered(), "{store} {work}");
        }
    }
    for row in &report.needs {
        let needs = &row.needs;
        assert_eq!(needs.verified_records, 10, "{row:?}");
        assert!(needs.filled_disk_bytes > 0 && needs.clean_open_ns > 0, "{row:?}");
        assert!(needs.killed_first_value_ns >= needs.killed_open_ns, "{row:?}");
        assert!(needs.peak.anonymous_bytes > 0, "{row:?}");
    }
    assert!(report.probes.iter().all(|row| row.probes > 0), "{report:?}");
    assert!(report.stores.iter().all(|row| row.facts.guarantee.is_some()), "{report:?}");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "everything is removed");
}

#[test]
fn options_choose_what_is_measured() {
    let scratch = scratch();
    let one =
        ["--store", "redb,lmdb", "--durability", "window", "--values", "300", "--threads", "2"];
    let report = report(
        scratch.path(),
        &[&one[..], &["--operations", "7", "--seed", "9", "--repetitions", "2"]].concat(),
    );
    assert_eq!((report.seed, report.needs.len()), (9, 2));
    for row in &report.work {
        assert!([StoreKind::Redb, StoreKind::Lmdb].contains(&row.store), "{row:?}");
        let cell = &row.cell;
        assert_eq!((cell.value_bytes, cell.threads, cell.records), (300, 2, 20), "{row:?}");
        assert_eq!((cell.durability, row.repetitions), (Durability::Window, 2));
        assert_eq!(cell.path, scratch.path());
        if row.work == Work::Get {
            assert_eq!(row.operations, 7, "{row:?}");
        }
    }
}

#[test]
fn bytes_decide_how_many_records_there_are() {
    let scratch = scratch();
    let path = scratch.path().to_str().unwrap();
    let arguments =
        ["--quick", "--bytes", "11600", "--path", path, "--store", "lmdb", "--values", "100"];
    let run = run(&[&arguments[..], &["--durability", "process", "--json"]].concat());
    let report: Report = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report.needs[0].cell.records, 100);
}

#[test]
fn a_table_and_a_figure_show_all_stores() {
    let scratch = scratch();
    let figure = scratch.path().join("figure.svg");
    let stores = ["--store", "viper-ordered,fjall,rocksdb", "--durability", "process"];
    let run = tiny(scratch.path(), &[&stores[..], &["--plot", figure.to_str().unwrap()]].concat());
    assert_eq!(run.code, Some(0), "{}", run.error);
    let drawn = std::fs::read_to_string(&figure).unwrap();
    for name in ["viper-ordered", "fjall", "rocksdb"] {
        assert!(run.out.contains(name) && drawn.contains(name), "{name}: {}", run.out);
    }
    for part in
        ["k ops/s", "scan 100", "MiB on disk, compacted", "after a power loss", "blob files"]
    {
        assert!(run.out.contains(part), "{part}: {}", run.out);
    }
}

#[test]
fn memory_is_limited_and_who_dies_of_it_is_named() {
    let scratch = scratch();
    let enough = report(
        scratch.path(),
        &["--store", "redb", "--durability", "window", "--memory-limit", "1G"],
    );
    let limit = enough.memory_limit.unwrap();
    assert_eq!(limit.bytes, 1_000_000_000);
    assert!(["control group", "RLIMIT_DATA"].contains(&&*limit.by), "{limit:?}");
    let arguments = ["--store", "hikv", "--durability", "window", "--memory-limit", "4M", "--json"];
    let run = tiny(scratch.path(), &arguments);
    assert_eq!(run.code, Some(4), "{}", run.error);
    let report: Report = serde_json::from_str(&run.out).unwrap();
    assert!(report.failures.iter().all(|failure| failure.store == StoreKind::Hikv), "{report:?}");
    assert!(!report.failures.is_empty());
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "everything is removed");
}

#[test]
fn wrong_command_lines_are_told_from_what_cannot_be_done() {
    let scratch = scratch();
    assert_eq!(tiny(scratch.path(), &["--threads", "0"]).code, Some(2));
    assert_eq!(tiny(scratch.path(), &["--store", "none"]).code, Some(2));
    assert_eq!(run(&["--path", "/there/is/none"]).code, Some(3));
    let plot = ["--plot", "/there/is/none.svg"];
    let refused = tiny(scratch.path(), &plot);
    assert_eq!(refused.code, Some(3), "{}", refused.error);
    let help = run(&["--help"]);
    assert!(help.code == Some(0) && help.out.contains("Exit codes"), "{}", help.out);
}
