//! `chimera-crashlab kill9`, end to end.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn kill9(arguments: &[&str]) -> (i32, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_chimera-crashlab"))
        .args(["kill9", "--json"])
        .args(arguments)
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text);
    let errors = String::from_utf8_lossy(&output.stderr);
    let report = report.unwrap_or_else(|error| panic!("{error}: {text}{errors}"));
    (output.status.code().expect("it ends by itself"), report)
}

/// `CHIMERA_TEST_KILLS` kills and `CHIMERA_TEST_KILLS_SEED`, for longer runs by hand.
fn from_environment(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

#[test]
fn nothing_acknowledged_is_lost() {
    let cycles = from_environment("CHIMERA_TEST_KILLS", "60");
    let seed = from_environment("CHIMERA_TEST_KILLS_SEED", "1");
    let (code, report) = kill9(&["--cycles", &cycles, "--seed", &seed]);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["cycles"].to_string(), cycles);
    assert_eq!(report["violations"], 0);
    for figure in ["acknowledged", "in_flight", "kills_during_open", "recoveries"] {
        assert!(report[figure].as_u64().expect("a number") > 0, "no {figure}: {report:#}");
    }
    let media = report["media"].as_str().expect("text");
    assert!(media.contains("tmpfs") || !Path::new("/dev/shm").is_dir(), "{media}");
}
