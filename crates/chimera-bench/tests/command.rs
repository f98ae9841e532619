//! The command: its result is JSON, and a store that is not a benchmark's is safe from it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chimera::{Db, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What a run printed, and how it ended.
struct Run {
    code: Option<i32>,
    out: String,
    error: String,
}

fn run(arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chimera-bench"));
    let output = command.args(arguments).env_remove("RUST_LOG").output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Run { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
}

/// A benchmark that is done at once.
fn tiny(path: &Path, more: &[&str]) -> Run {
    let path = path.to_str().expect("text");
    let sizes = ["--records", "500", "--operations", "500", "--repetitions", "1"];
    run(&[&["core", "--path", path], &sizes[..], more].concat())
}

fn kind_of(run: &Run) -> String {
    let said: serde_json::Value = serde_json::from_str(&run.error).expect("one JSON object");
    said["error"]["kind"].as_str().expect("a kind").to_owned()
}

#[test]
fn the_result_is_one_json_object() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bench");
    let run = tiny(&path, &["--json", "--seed", "7"]);
    assert_eq!(run.code, Some(0), "{}", run.error);
    let report: serde_json::Value = serde_json::from_str(&run.out).expect("one JSON object");
    for field in ["machine", "medium", "durability", "seed", "rows"] {
        assert!(!report[field].is_null(), "no {field} in {report}");
    }
    assert_eq!(report["seed"], 7);
    assert!(report["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{report}");
    assert!(!path.exists(), "the store is removed at the end");
}

#[test]
fn a_store_is_not_overwritten_unless_told_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let db = Db::open(&path, &Options::new()).expect("a new store");
    db.put(b"k", b"v").expect("room");
    db.close().expect("nobody else has it");
    let refused = tiny(&path, &["--json"]);
    assert_eq!((refused.code, &*kind_of(&refused)), (Some(3), "bench"));
    let db = Db::open(&path, &Options::new()).expect("it is still there");
    assert_eq!(db.get(b"k").expect("sound").as_deref(), Some(&b"v"[..]));
    let wrong = tiny(&path, &["--threads", "0", "--json"]);
    assert_eq!((wrong.code, &*kind_of(&wrong)), (Some(2), "usage"));
    assert_eq!(tiny(&path, &["--threads", "none"]).code, Some(2));
}

#[test]
fn what_is_published_meanwhile_is_gone_at_the_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bench");
    let more = ["--publish-metrics", "0.01", "--latency-sampling", "1", "--no-counters"];
    let run = tiny(&path, &more);
    assert_eq!(run.code, Some(0), "{}", run.error);
    assert!(!path.exists(), "the store is removed at the end");
    assert_eq!(tiny(&path, &["--publish-metrics", "0"]).code, Some(2));
}

#[test]
fn more_is_said_where_it_is_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bench");
    assert!(tiny(&path, &["-v"]).error.contains("chimera-bench: info: "));
    assert!(!tiny(&path, &[]).error.contains("chimera-bench: info: "));
}

#[test]
fn an_interrupted_benchmark_removes_what_it_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bench");
    let start = |more: &[&str]| {
        // Whoever runs these tests may ignore the signal, and children inherit that.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_chimera-bench"));
        command.args(["core", "--quick", "--no-counters", "--path"]).arg(&path).args(more);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        while !path.join("segment-000000").exists() {
            assert!(child.try_wait().expect("a child").is_none(), "it ended without a store");
            std::thread::sleep(Duration::from_millis(1));
        }
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("a child");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130));
        String::from_utf8(output.stderr).expect("text")
    };
    let said = start(&["--json"]);
    assert!(said.contains("\"interrupted\"") && said.contains("is as it was before"), "{said}");
    assert!(!path.exists());
    let said = start(&["--keep"]);
    assert!(said.contains("is kept, with stores that are not complete"), "{said}");
    assert!(path.join("segment-000000").exists());
}

#[test]
fn every_command_explains_itself() {
    let help = run(&["--help"]);
    assert_eq!(help.code, Some(0));
    let list = help.out.split_once("\nCommands:\n").expect("a list of commands").1;
    let list = list.split_once("\n\n").expect("something after it").0;
    let lines = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<_> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"ycsb") && names.contains(&"primitives"), "{names:?}");
    for name in names.into_iter().filter(|name| *name != "help") {
        let own = run(&[name, "--help"]);
        assert!(own.code == Some(0) && own.out.contains("Usage: chimera-bench"), "{}", own.out);
        assert!(own.out.contains("--json"), "{name}");
    }
}
