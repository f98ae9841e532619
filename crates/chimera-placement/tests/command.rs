//! The command, as a user calls it.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const FILE_NAME: &str = chimera_placement::region::FILE_NAME;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chimera-placement"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn succeed(arguments: &[&str]) -> String {
    let output = output(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a command that fails says. A crash is no failure.
fn fail(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {:?}", output.status);
    String::from_utf8(output.stderr).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The options of a placement.
fn place<'a>(placement: &'a str, pmem: &'a Path) -> Vec<&'a str> {
    let mut options = vec!["--placement", placement];
    if placement != "dram" {
        options.extend(["--pmem", text(pmem)]);
    }
    options
}

const PLACEMENTS: [&str; 7] =
    ["dram", "cache", "memtable", "both", "both-60", "tier", "tier-lz4-exclusive"];

#[test]
fn records_of_a_killed_process_are_there_again() {
    for placement in PLACEMENTS {
        let scratch = tempfile::tempdir().unwrap();
        let database = scratch.path().join("db");
        let place = place(placement, scratch.path());
        let small = ["--cache-bytes", "1000000", "--write-buffer-bytes", "1000000"];
        let fill = ["fill", text(&database), "--records", "1000000000"];
        let arguments: Vec<&str> = fill.into_iter().chain(place.clone()).chain(small).collect();
        let mut child = command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        // So many that memtables were flushed and files compacted.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let last = lines.map(Result::unwrap).find(|line| line == "12000");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(last.is_some(), "{placement}: it ended by itself");
        assert_eq!(scratch.path().join(FILE_NAME).exists(), placement != "dram", "left behind");
        let verify = ["verify", text(&database), "--records", "12000"];
        let arguments: Vec<&str> = verify.into_iter().chain(place).chain(small).collect();
        let said = succeed(&arguments);
        assert!(said.starts_with("12000 records as written"), "{placement}: {said}");
        assert!(!scratch.path().join(FILE_NAME).exists(), "{placement}: removed at the end");
    }
}

#[test]
fn a_database_may_change_its_placement() {
    let scratch = tempfile::tempdir().unwrap();
    let database = scratch.path().join("db");
    let common = |command, placement| {
        let arguments = [command, text(&database), "--records", "3000"];
        succeed(&[&arguments[..], &place(placement, scratch.path())].concat())
    };
    common("fill", "both");
    for placement in PLACEMENTS {
        assert!(common("verify", placement).starts_with("3000 records"));
    }
}

#[test]
fn records_that_are_missing_or_changed_are_found() {
    let scratch = tempfile::tempdir().unwrap();
    let database = scratch.path().join("db");
    succeed(&["fill", text(&database), "--records", "1000", "--placement", "dram"]);
    let said = fail(&["verify", text(&database), "--records", "1001", "--placement", "dram"]);
    assert!(said.contains("record 1000 is wrong: it is missing"), "{said}");
}

#[test]
fn what_is_wrong_with_persistent_memory_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    let database = scratch.path().join("db");
    let fill = ["fill", text(&database), "--records", "10", "--placement", "both"];
    let with = |more: &[&str]| fail(&[&fill[..], more].concat());
    assert!(with(&[]).contains("needs --pmem DIR"));
    assert!(with(&["--pmem", "/nowhere/at/all"]).contains("there is no directory /nowhere/at/all"));
    let file = scratch.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(with(&["--pmem", text(&file)]).contains("is not a directory"));
    let scratch_text = text(scratch.path());
    let large = ["--pmem", scratch_text, "--cache-bytes", "1000000000000000"];
    assert!(with(&large).contains("no room"));
    assert!(!database.exists(), "nothing was made");
    // Unless the machine really has DAX there.
    let required = output(&[&fill[..], &["--pmem", scratch_text, "--require-dax"]].concat());
    let said = String::from_utf8_lossy(&required.stderr);
    assert!(required.status.success() || said.contains("MAP_SYNC"), "{said}");
}

/// Sizes beyond any memory are said to be so: nothing wraps around, and nothing panics.
#[test]
fn sizes_beyond_any_memory_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let database = scratch.path().join("db");
    let most = u64::MAX.to_string();
    let half = (u64::MAX / 2).to_string();
    for placement in PLACEMENTS {
        let place = place(placement, scratch.path());
        for size in ["--cache-bytes", "--write-buffer-bytes"] {
            for bytes in [&most, &half] {
                let fill = ["fill", text(&database), "--records", "10", size, bytes.as_str()];
                // RocksDB takes less than half as a limit that is never reached.
                if placement == "dram" && *bytes == half {
                    continue;
                }
                let said = fail(&[&fill[..], &place].concat());
                let is_said = said.contains("any process can have") || said.contains("has at most");
                assert!(is_said, "{placement} {size} {bytes}: {said}");
            }
        }
    }
    assert!(!database.exists(), "nothing was made");
    for command in ["run", "overhead"] {
        let path = ["--path", text(scratch.path())];
        let said = fail(&[&[command, "--quick", "--repetitions", &most][..], &path].concat());
        assert!(said.contains("--repetitions"), "{said}");
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn two_processes_on_one_file_are_told_apart() {
    let scratch = tempfile::tempdir().unwrap();
    let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
    let pmem = ["--placement", "both", "--pmem", text(scratch.path())];
    let arguments = [&["fill", text(&one), "--records", "1000000000"][..], &pmem].concat();
    let mut child = command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "1000");
    let said = fail(&[&["fill", text(&two), "--records", "10"][..], &pmem].concat());
    assert!(said.contains("in use by another process"), "{said}");
    // The first one goes on.
    assert_eq!(lines.next().unwrap().unwrap(), "2000");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn placements_and_options_that_make_no_sense_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = ["--path", text(scratch.path())];
    let run = |more: &[&str]| fail(&[&["run"][..], &path, more].concat());
    assert!(run(&["--scale-down", "0"]).contains("--scale-down"));
    assert!(run(&["--scale-down", "1000"]).contains("--scale-down"));
    assert!(run(&["--quick", "--repetitions", "0"]).contains("--repetitions"));
    assert!(run(&["--quick", "--processor-cache", "5"]).contains("--processor-cache"));
    assert!(run(&["--quick", "--profile", "ddr5"]).contains("no latency profile"));
    assert!(run(&["--quick", "--placement", "disk"]).contains("no placement"));
    assert!(run(&["--quick", "--part", "ycsb", "--placement", "cache-40"]).contains("no part"));
    assert!(run(&["--quick", "--cache", "hyper-clock"]).contains("HyperClockCache"));
    assert!(fail(&["run", "--quick", "--path", "/nowhere/at/all"]).contains("no directory"));
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left behind");
}

/// An option that would change nothing is refused.
#[test]
fn options_without_an_effect_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = text(scratch.path());
    for option in
        ["--report", "--part", "--placement", "--profile", "--processor-cache", "--direct"]
    {
        let said = fail(&["overhead", "--quick", option, "0", "--path", path]);
        assert!(said.contains(option), "{said}");
    }
    let said = fail(&[
        "run",
        "--quick",
        "--profile",
        "dram",
        "--processor-cache",
        "1048576",
        "--path",
        path,
    ]);
    assert!(said.contains("--processor-cache has no effect"), "{said}");
    let database = scratch.path().join("db");
    for command in ["fill", "verify"] {
        let said = fail(&[
            command,
            text(&database),
            "--records",
            "10",
            "--placement",
            "dram",
            "--pmem",
            path,
        ]);
        assert!(said.contains("--pmem"), "{said}");
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// Past the page cache only where there is one.
#[test]
fn misses_are_reads_of_the_disk_where_that_is_asked_for() {
    let options = ["run", "--direct", "--scale-down", "100", "--operations", "500"];
    let part = ["--repetitions", "1", "--part", "hits", "--placement", "tier", "--path"];
    let run = |path: &'static str| [&options[..], &part[..], &[path]].concat();
    assert!(fail(&run("/dev/shm")).contains("--direct has no effect"));
    let directory = env!("CARGO_TARGET_TMPDIR");
    let output = output(&run(directory));
    let said = String::from_utf8_lossy(if output.status.success() {
        &output.stdout
    } else {
        &output.stderr
    });
    let expected = match output.status.code() {
        Some(0) => "past the system's page cache",
        _ => "--direct has no effect",
    };
    assert!(said.contains(expected), "{said}");
}

#[test]
fn the_study_prints_a_table_and_writes_a_report() {
    let scratch = tempfile::tempdir().unwrap();
    let report = scratch.path().join("report");
    let printed = succeed(&[
        "run",
        "--quick",
        "--scale-down",
        "100",
        "--operations",
        "1000",
        "--path",
        text(scratch.path()),
        "--report",
        text(&report),
    ]);
    for expected in [
        "MODELLED: profile optane-100",
        "K8_T1 ",
        "K16_T8",
        "both-60",
        "YCSB D",
        "tier-lz4",
        "15 %",
    ] {
        assert!(printed.contains(expected), "{expected} is missing:\n{printed}");
    }
    let page = fs::read_to_string(report.join("placement.html")).unwrap();
    for expected in [
        "Figure 5",
        "Figure 6",
        "Figure 7:",
        "Figure 7b",
        "Figure 8",
        "prefers-color-scheme:dark",
        "(modelled)",
    ] {
        assert!(page.contains(expected), "{expected} is missing");
    }
    assert!(!page.contains("http://") && !page.contains("https://"), "it needs nothing else");
    let json = fs::read_to_string(report.join("placement.json")).unwrap();
    let study: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = study["rows"].as_array().unwrap();
    let of = |part| rows.iter().filter(|row| row["part"] == part).count();
    assert_eq!((of("published"), of("shares"), of("ycsb"), of("hits")), (24, 8, 16, 12));
    for row in rows {
        check_row(row);
    }
    let left: Vec<_> =
        fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["report"], "databases and persistent memory are removed");
}

/// What the counters of a row must say, whatever the times are.
fn check_row(row: &serde_json::Value) {
    let number = |path: &str| row.pointer(path).and_then(serde_json::Value::as_u64).unwrap();
    let placement = row["placement"].as_str().unwrap();
    let operations = number("/reads/count") + number("/writes/count");
    assert_eq!(operations, 1000 * number("/threads"), "{row}");
    let gets = number("/counts/memtable_hits") + number("/counts/memtable_misses");
    assert_eq!(gets, number("/reads/count"), "{row}");
    assert_eq!(number("/overflow_bytes"), 0, "{row}");
    let in_pmem = number("/cache/pmem") + number("/memtable/pmem");
    if placement == "dram" {
        assert_eq!((in_pmem, number("/charged/reads")), (0, 0), "{row}");
    } else if row["part"] == "hits" {
        assert!(in_pmem > 100_000 && number("/charged/reads") > 0, "{row}");
    }
    if placement == "cache" || placement == "both" {
        assert_eq!(number("/cache/dram"), 0, "{row}");
        assert!(number("/charged/reads") >= number("/counts/pmem_cache_hits"), "{row}");
    }
    if placement == "both" && row["part"] == "published" {
        assert!(number("/charged/reads") > 1000, "nodes of memtables are charged: {row}");
    }
    if placement.starts_with("tier") && row["part"] == "hits" {
        assert!(number("/counts/tier_hits") > 0, "{row}");
    }
}

#[test]
fn nothing_is_charged_under_a_profile_that_takes_no_time() {
    let scratch = tempfile::tempdir().unwrap();
    let printed = succeed(&[
        "run",
        "--quick",
        "--operations",
        "300",
        "--part",
        "hits",
        "--placement",
        "both",
        "--profile",
        "dram",
        "--json",
        "--path",
        text(scratch.path()),
    ]);
    let study: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(study["settings"]["is_modelled"], false);
    assert_eq!(study["settings"]["profile"], "none");
    for row in study["rows"].as_array().unwrap() {
        assert_eq!(row["charged"]["reads"], 0, "{row}");
    }
}

#[test]
fn the_overhead_is_measured_in_pairs() {
    let scratch = tempfile::tempdir().unwrap();
    let printed = succeed(&[
        "overhead",
        "--quick",
        "--operations",
        "500",
        "--repetitions",
        "2",
        "--json",
        "--path",
        text(scratch.path()),
    ]);
    let measured: serde_json::Value = serde_json::from_str(&printed).unwrap();
    // A row for each of two loads, and twice as many where libmemkind is built in.
    let contenders = if chimera_placement::database::has_memkind() { 2 } else { 1 };
    let rows = measured["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * contenders);
    for row in rows {
        assert_eq!(row["ops_per_s"].as_array().unwrap().len(), 2);
        assert!(row["hit_ratio"].as_f64().unwrap() > 0.1, "{row}");
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}
