//! `bench` and `primitives` run another command, with the arguments as they are.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::Place;

/// Runs a copy of the command in a directory of its own, with no other programs to be found. The exit code, and both outputs.
fn run(directory: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let copy = directory.join("chimera");
    if !copy.exists() {
        fs::copy(env!("CARGO_BIN_EXE_chimera"), &copy).expect("a copy");
    }
    let output = Command::new(&copy).args(arguments).env("PATH", "").output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// One test: a program that was just written cannot be run while another thread's child still has it open.
#[test]
fn arguments_are_passed_on_to_the_command_that_measures() {
    let place = Place::new();
    let (code, _, said) = run(place.directory.path(), &["bench", "core"]);
    assert!(code == Some(3) && said.contains("hint: "), "{said}");
    let (code, _, said) = run(place.directory.path(), &["--json", "primitives", "run"]);
    assert!(code == Some(3) && said.contains("\"no_bench\""), "{said}");
    let directory = place.directory.path();
    let program = directory.join("chimera-bench");
    fs::write(&program, "#!/bin/sh\necho \"$@\"\nexit 7\n").expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
    for (arguments, passed_on) in [
        (&["bench", "core", "--json", "--help"][..], "core --json --help\n"),
        (&["bench", "--help"], "--help\n"),
        (&["--json", "-v", "bench", "ycsb"], "ycsb --json -v\n"),
        (&["--path", "/d", "bench", "core"], "--path /d core\n"),
        (&["bench", "core", "--path", "/d"], "core --path /d\n"),
        (&["primitives", "run", "--all"], "primitives run --all\n"),
    ] {
        assert_eq!(run(directory, arguments), (Some(7), passed_on.to_owned(), String::new()));
    }
}
