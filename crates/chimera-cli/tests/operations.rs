//! The commands of docs/OPERATIONS.md, in their order, in an empty directory; and what it promises of streams.

mod common;

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use common::Place;

/// The commands of a page: its blocks of `sh`.
fn commands(text: &str) -> String {
    let block = |rest: &str| rest.split("\n```").next().unwrap_or_default().to_owned();
    let blocks: Vec<_> = text.split("\n```sh\n").skip(1).map(block).collect();
    assert!(blocks.len() > 6, "only {} blocks", blocks.len());
    blocks.join("\n")
}

#[test]
fn the_commands_of_the_page_do_what_they_say() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/OPERATIONS.md");
    let commands = commands(&std::fs::read_to_string(page).expect("the page"));
    let place = Place::new();
    let program = Path::new(env!("CARGO_BIN_EXE_chimera")).parent().expect("a directory");
    let path = env::var_os("PATH").unwrap_or_default();
    let all = [program.to_owned()].into_iter().chain(env::split_paths(&path));
    let output = Command::new("sh")
        .args(["-e", "-x", "-c", &commands])
        .current_dir(place.directory.path())
        .env("PATH", env::join_paths(all).expect("no colons"))
        .env_remove("CHIMERA_PATH")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    assert!(out.contains("the first user\n") && out.contains("damaged: "), "{out}\n{err}");
    assert!(out.contains("chimera_records 2") && err.contains("left out"), "{out}\n{err}");
}

/// The promise of streams: `docs/examples/elements-1.stream` was written in version 1 of the format, and is never written anew.
#[test]
fn a_stream_of_version_1_is_read() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let place = Place::new();
    let stream = examples.join("elements-1.stream").display().to_string();
    place.run(["import", "--path", "copy", &stream, "--segment-size", "4MiB"]).ok();
    let read = place.run(["scan", "--path", "copy", "--values"]).ok();
    let text = std::fs::read_to_string(examples.join("elements.tsv")).expect("text");
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(read.lines().collect::<Vec<_>>(), lines);
}
