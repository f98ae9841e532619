//! Ctrl-C: exit code 130, what is removed, and what is said.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Place, Run, spawn};
use rustix::process::{Pid, Signal, kill_process};

const INTERRUPTED: i32 = 130;
/// More than any of this takes; far less than for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the command as on a terminal: whoever runs these tests may ignore the signal, and children inherit that.
fn start(place: &Place, arguments: &[&str]) -> Child {
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_chimera")).args(arguments);
    command.env("CHIMERA_PATH", place.store()).env_remove("RUST_LOG");
    command.current_dir(place.directory.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn(&mut command)
}

fn interrupt(child: &Child) {
    // One that has ended takes no signal.
    let _ = kill_process(Pid::from_child(child), Signal::INT);
}

fn end(child: Child) -> Run {
    let output = child.wait_with_output().expect("it ends");
    Run {
        // Ended by the signal before it was waited for.
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs a command and interrupts it once `is_time`, by the time since it was started and the number of the attempt. Again,
/// after `prepare`, until it was not done sooner.
fn interrupted(
    place: &Place,
    arguments: &[&str],
    prepare: impl Fn(),
    is_time: impl Fn(Duration, u64) -> bool,
) -> Run {
    let begun = Instant::now();
    for attempt in 0.. {
        prepare();
        let (mut child, started) = (start(place, arguments), Instant::now());
        while !is_time(started.elapsed(), attempt) && child.try_wait().expect("a child").is_none() {
            thread::sleep(Duration::from_micros(100));
        }
        interrupt(&child);
        let run = end(child);
        if run.code == INTERRUPTED {
            return run;
        }
        // It was done sooner, or did not wait for the signal yet.
        assert!(run.code <= 0, "{run:?}");
        assert!(begun.elapsed() < PATIENCE, "it is never interrupted: {run:?}");
    }
    unreachable!("attempts have no end")
}

/// Removes what is at a path, if there is anything.
fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn an_export_removes_its_file_unless_it_can_go_on() {
    let place = Place::new();
    place.fill(60_000);
    let file = place.directory.path().join("new.stream");
    let (anew, is_begun) = (|| remove(&file), |_, _| file.exists());
    let run = interrupted(&place, &["export", "new.stream"], anew, is_begun);
    let says = "chimera: interrupted: `new.stream` was not complete and was removed";
    assert!(run.err.starts_with(says), "{run:?}");
    assert_eq!((names(place.directory.path()), run.out.as_str()), (vec!["store".to_owned()], ""));
    let run = interrupted(&place, &["--json", "export", "new.stream"], anew, is_begun);
    assert_eq!((run.error_kind().as_str(), file.exists()), ("interrupted", false));

    let resumed = ["export", "new.stream", "--resume"];
    let run = interrupted(&place, &resumed, anew, is_begun);
    assert!(run.err.contains("the same command goes on with it"), "{run:?}");
    assert!(file.exists());
    assert!(place.run(resumed).ok().starts_with("exported 60,000 records"));
    assert_eq!(place.run(["import", "--path", "copy", "new.stream"]).expect(0).err, "");
    assert!(place.run(["check"]).ok().ends_with("sound\n"));
}

#[test]
fn an_export_into_a_pipe_says_that_it_is_not_complete() {
    let place = Place::new();
    place.fill(12_000);
    let mut child = start(&place, &["export", "-"]);
    // Nobody reads on: the pipe is full.
    let mut first = [0; 1];
    child.stdout.as_mut().expect("piped").read_exact(&mut first).expect("a stream");
    interrupt(&child);
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    assert!(err.starts_with("chimera: interrupted: the stream is not complete"), "{err}");
    assert_eq!(child.wait().expect("it ends").code(), Some(INTERRUPTED));
}

#[test]
fn a_backup_is_removed() {
    let place = Place::new();
    place.fill(60_000);
    let above = place.directory.path().join("a");
    let segment = above.join("copy/segment-000000");
    let anew = || remove(&above);
    let run = interrupted(&place, &["backup", "a/copy"], anew, |_, _| segment.exists());
    let says = "chimera: interrupted: the backup in `a/copy` was not complete and was removed";
    assert!(run.err.starts_with(says) && run.err.lines().count() == 1, "{run:?}");
    assert_eq!(names(place.directory.path()), ["store"]);
    // A directory that was there stays, and is empty.
    let copy = place.directory.path().join("kept");
    let anew = || {
        remove(&copy);
        fs::create_dir(&copy).expect("made");
    };
    interrupted(&place, &["backup", "kept"], anew, |_, _| copy.join("superblock").exists());
    assert_eq!(names(&copy), [""; 0]);
    place.run(["backup", "kept"]).ok();
    assert!(place.run(["check", "--path", "kept"]).ok().ends_with("sound\n"));
}

#[test]
fn an_import_keeps_what_it_has_and_says_where_to_go_on() {
    let place = Place::new();
    place.fill(12_000);
    place.run(["export", "all.stream"]).ok();
    let stream = fs::read(place.directory.path().join("all.stream")).expect("a stream");
    let half = &stream[..stream.len() / 4 * 3];
    let import = ["import", "--path", "copy", "-", "--segment-size", "4MiB"];
    let mut child = start(&place, &import);
    let mut input = child.stdin.take().expect("piped");
    input.write_all(half).expect("it reads");
    // What follows is waited for.
    thread::sleep(Duration::from_secs(1));
    interrupt(&child);
    let run = end(child).expect(INTERRUPTED);
    drop(input);
    let (_, position) = run.err.split_once("--resume ").expect("a position");
    assert!(run.err.contains(" records were stored and are kept"), "{run:?}");
    let kept = place.run(["list-keys", "--path", "copy"]).ok().lines().count();
    assert!(kept > 0 && kept < 12_000, "{kept}");
    let resumed = ["import", "--path", "copy", "all.stream", "--resume", position.trim_end()];
    assert!(place.run(resumed).ok().contains("were passed over"));
    let stats = place.run(["stats", "--path", "copy", "--json"]).json();
    assert_eq!((&stats["records"], &stats["recovery"]["clean"]), (&12_000.into(), &true.into()));
}

#[test]
fn an_import_without_a_record_leaves_no_store() {
    let place = Place::new();
    place.fill(10);
    place.run(["export", "all.stream"]).ok();
    let stream = fs::read(place.directory.path().join("all.stream")).expect("a stream");
    // Its header is longer than nothing and shorter than this.
    for bytes in [0, stream.len() / 2] {
        let mut child = start(&place, &["--json", "import", "--path", "copy", "-"]);
        let mut input = child.stdin.take().expect("piped");
        input.write_all(&stream[..bytes]).expect("it reads");
        thread::sleep(Duration::from_secs(1));
        interrupt(&child);
        let run = end(child).expect(INTERRUPTED);
        drop(input);
        assert_eq!(run.error_kind(), "interrupted");
        assert!(run.err.contains("nothing was stored"), "{run:?}");
        assert!(!place.directory.path().join("copy").exists(), "{run:?}");
    }
}

#[test]
fn a_watch_ends_without_a_word_and_a_put_says_what_it_has_not_done() {
    let place = Place::new();
    place.fill(1);
    let child = start(&place, &["put", "k", "-"]);
    thread::sleep(Duration::from_millis(300));
    interrupt(&child);
    let run = end(child).expect(INTERRUPTED);
    assert!(run.err.contains("the rest is not done"), "{run:?}");
    place.run(["get", "k"]).expect(1);
    let every = Duration::from_millis(10);
    let options = chimera::Options::new().publish_metrics(every);
    let db = chimera::Db::open(place.store(), &options).expect("a store");
    thread::sleep(Duration::from_millis(100));
    let mut child = start(&place, &["stats", "--watch", "--json", "--every", "0.01"]);
    let mut first = [0; 1];
    child.stdout.as_mut().expect("piped").read_exact(&mut first).expect("a look");
    interrupt(&child);
    assert_eq!(end(child).expect(INTERRUPTED).err, "");
    common::close(db);
}

#[test]
fn reading_and_compaction_leave_the_store_as_it_was() {
    let place = Place::new();
    place.fill(60_000);
    for (command, says) in [("check", "nothing was changed"), ("compact", "every record is kept")] {
        // Neither before it waits for the signal nor when it is done.
        let is_time = |since, attempt| since > Duration::from_millis(2 + 2 * (attempt % 40));
        let run = interrupted(&place, &[command], || (), is_time);
        assert!(run.err.contains(says), "{run:?}");
    }
    assert!(place.run(["check"]).ok().ends_with("sound\n"));
    assert_eq!(place.run(["stats", "--json"]).json()["records"], 60_000);
}

#[test]
fn a_batch_stops_between_lines() {
    let place = Place::new();
    let mut child = start(&place, &["batch", "-"]);
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"put\tone\t1\nput\ttwo\t2\nput\tthree").expect("it reads");
    thread::sleep(Duration::from_secs(1));
    interrupt(&child);
    let run = end(child).expect(INTERRUPTED);
    drop(input);
    assert!(run.err.contains("the lines up to number 2 are done and kept"), "{run:?}");
    assert_eq!(place.run(["scan"]).ok(), "one\ntwo\n");
}
