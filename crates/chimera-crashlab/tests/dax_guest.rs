//! `dax-guest` where nothing of what it needs is there.

use std::process::Command;

#[test]
fn what_is_missing_is_said_and_no_failure() {
    let empty = tempfile::tempdir().expect("a directory");
    let run = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_chimera-crashlab"))
            .args(["dax-guest", "--guest-directory"])
            .arg(empty.path())
            .args(more)
            .env("PATH", empty.path())
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = run(&[]);
    for word in ["skipped", "qemu-system-x86_64", "vmlinuz", "busybox", "--install"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    let report: serde_json::Value = serde_json::from_str(&run(&["--json"])).expect("JSON");
    assert!(report["skipped"].is_string(), "{report}");
    assert_eq!(report["problems"], serde_json::json!([]));
}
