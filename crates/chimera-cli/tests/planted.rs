//! What is no regular file in the place of a file: every command says so at once. None waits for a pipe
//! or reads a device that never ends.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Place, Run, spawn};

/// More than any of these commands takes; far less than for ever.
const PATIENCE: Duration = Duration::from_secs(30);

const FILES: [&str; 4] = ["superblock", "lock", "journal", "segment-000000"];
const COMMANDS: [&[&str]; 10] = [
    &["put", "k", "v"],
    &["get", "key-1"],
    &["delete", "key-1"],
    &["list-keys"],
    &["scan"],
    &["delete", "--prefix", "key"],
    &["stats"],
    &["check"],
    &["doctor"],
    &["export", "-"],
];

/// What can be in the place of a file, and what the message then says.
const KINDS: [(&str, &str); 4] = [
    ("pipe", "a pipe"),
    ("link", "a symbolic link"),
    ("directory", "directory"),
    ("socket", "a socket"),
];

fn plant(kind: &str, at: &Path) {
    match kind {
        "pipe" => {
            let made = Command::new("mkfifo").arg(at).status().expect("mkfifo is there");
            assert!(made.success());
        }
        "link" => symlink("/dev/zero", at).expect("a link"),
        "directory" => fs::create_dir(at).expect("a directory"),
        // It stays when nobody listens any more.
        "socket" => drop(UnixListener::bind(at).expect("a socket")),
        _ => unreachable!("{kind}"),
    }
}

fn remove(at: &Path) {
    if at.is_dir() { fs::remove_dir(at) } else { fs::remove_file(at) }.expect("it was planted");
}

/// Runs a command that must come to an end by itself.
#[track_caller]
fn run(place: &Place, arguments: &[&str]) -> Run {
    let mut command = place.command();
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(&mut command);
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().expect("it runs");
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().expect("it has ended");
    Run {
        code: output.status.code().expect("not ended by a signal"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_file_of_a_store_is_a_regular_file() {
    let place = Place::new();
    place.fill(10);
    let kept = place.directory.path().join("kept");
    for name in FILES {
        let file = place.store().join(name);
        // A store in memory has no journal.
        let had_it = fs::rename(&file, &kept).is_ok();
        assert!(had_it || name == "journal");
        for (kind, text) in KINDS {
            plant(kind, &file);
            for command in COMMANDS {
                let run = run(&place, command).expect(3);
                let context = format!("{command:?}, {name} is a {kind}: {run:?}");
                assert!(run.err.to_lowercase().contains(text), "{context}");
                assert!(run.err.contains(&format!("/{name}`")), "{context}");
            }
            remove(&file);
        }
        if had_it {
            fs::rename(&kept, &file).expect("put back");
        }
    }
    assert_eq!(place.run(["get", "key-1"]).ok(), "value-1\n");
}

#[test]
fn a_new_store_is_not_made_of_what_is_there() {
    let place = Place::new();
    fs::create_dir(place.store()).expect("a directory");
    for name in ["superblock", "lock", "journal"] {
        let file = place.store().join(name);
        for (kind, text) in KINDS {
            plant(kind, &file);
            let run = run(&place, &["put", "k", "v"]).expect(3);
            assert!(run.err.to_lowercase().contains(text), "{name} is a {kind}: {run:?}");
            remove(&file);
        }
    }
}

#[test]
fn published_metrics_are_a_regular_file_of_moderate_size() {
    let place = Place::new();
    place.fill(10);
    let file = place.store().join("metrics");
    for (kind, text) in KINDS {
        plant(kind, &file);
        let run = run(&place, &["stats", "--watch", "--rounds", "1"]).expect(3);
        assert!(run.err.contains("cannot read the published metrics"), "{run:?}");
        assert!(run.err.to_lowercase().contains(text), "{kind}: {run:?}");
        remove(&file);
    }
    let endless = fs::File::create(&file).expect("a file");
    endless.set_len(1 << 40).expect("a length");
    let refused = run(&place, &["stats", "--watch", "--rounds", "1"]).expect(3);
    assert!(refused.err.contains("it has more than"), "{refused:?}");
    fs::write(&file, [0xff; 10]).expect("writable");
    let refused = run(&place, &["stats", "--watch", "--rounds", "1", "--json"]).expect(3);
    assert_eq!(refused.error_kind(), "not_metrics");
}

#[test]
fn an_export_goes_on_with_a_regular_file_only() {
    let place = Place::new();
    place.fill(10);
    let file = place.directory.path().join("stream");
    let name = file.to_str().expect("text");
    for kind in ["pipe", "link"] {
        plant(kind, &file);
        let refused = run(&place, &["export", "--resume", name]).expect(3);
        assert!(refused.err.contains("not a regular file"), "{kind}: {refused:?}");
        let refused = run(&place, &["export", name]).expect(3);
        assert!(refused.err.contains("is there already"), "{kind}: {refused:?}");
        remove(&file);
    }
    run(&place, &["export", "--resume", name]).ok();
}

#[test]
fn an_import_may_read_a_pipe() {
    let place = Place::new();
    place.fill(10);
    let (stream, pipe) =
        (place.directory.path().join("stream"), place.directory.path().join("pipe"));
    run(&place, &["export", stream.to_str().expect("text")]).ok();
    plant("pipe", &pipe);
    let mut writer = Command::new("cp");
    let mut writer = spawn(writer.arg(&stream).arg(&pipe));
    let copy = place.directory.path().join("copy");
    let arguments =
        ["import", "--path", copy.to_str().expect("text"), pipe.to_str().expect("text")];
    let text = run(&place, &arguments).ok();
    assert!(text.contains("imported 10 records"), "{text}");
    assert!(writer.wait().expect("it ends").success());
}
