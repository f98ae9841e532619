//! The command under limits of the process: never a silent end by a signal.

mod common;

use std::process::{Command, Stdio};

use common::{Place, Run, spawn};

/// Runs the command on the store of `place`, from a shell with this limit.
fn run_under(place: &Place, limit: &str, arguments: &[&str]) -> Run {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_chimera")).args(arguments);
    command.env("CHIMERA_PATH", place.store()).env_remove("RUST_LOG");
    command.current_dir(place.directory.path()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = spawn(&mut command).wait_with_output().expect("it ends");
    Run {
        code: output.status.code().unwrap_or_else(|| panic!("ended by {}", output.status)),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_limit_of_the_length_of_files_is_an_error_that_names_it() {
    for (limit, file) in [("-f 0", "lock"), ("-f 1", "superblock"), ("-f 2048", "segment")] {
        let place = Place::new();
        let put = ["put", "k", "v", "--durability", "process"];
        let run = run_under(&place, limit, &put).expect(3);
        for word in [file, "RLIMIT_FSIZE", "ulimit -f", "raise that limit"] {
            assert!(run.err.contains(word), "{limit}: {}", run.err);
        }
        assert!(!run.err.contains("delete records"), "{limit}: {}", run.err);
        let run = run_under(&place, limit, &[&put[..], &["--json"]].concat()).expect(3);
        assert_eq!(run.error_kind(), "pool_full");
        place.run(put).ok();
        assert_eq!(place.run(["get", "k"]).ok(), "v\n");
    }
}

#[test]
fn files_that_the_command_writes_itself_are_refused_with_a_word() {
    let place = Place::new();
    place.fill(500);
    let run = run_under(&place, "-f 16", &["export", "all.chimera"]).expect(3);
    assert!(run.err.contains("File too large"), "{}", run.err);
    let run = run_under(&place, "-f 16", &["backup", "copy"]).expect(3);
    assert!(run.err.contains("RLIMIT_FSIZE"), "{}", run.err);
    // The store itself is as it was.
    assert!(place.run(["check"]).ok().contains("500"));
}

#[test]
fn too_little_address_space_is_an_error_that_names_it() {
    let place = Place::new();
    let run = run_under(&place, "-v 100000", &["put", "k", "v"]).expect(3);
    for word in ["address space", "RLIMIT_AS", "ulimit -v"] {
        assert!(run.err.contains(word), "{}", run.err);
    }
    assert!(!run.err.contains("delete records"), "{}", run.err);
    place.run(["put", "k", "v"]).ok();
    let place = Place::new();
    run_under(&place, "-v 600000", &["put", "k", "v"]).ok();
}
