//! A store's file that is cut while the command reads it.

mod common;

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use common::{Place, spawn};

const SIGBUS: i32 = 7;
/// More than fit the pipe between the command and its reader.
const RECORDS: u32 = 20_000;

#[test]
fn a_store_that_is_cut_while_it_is_read_is_named() {
    let place = Place::new();
    place.fill(RECORDS);
    let mut command = place.command();
    let mut child =
        spawn(command.args(["list-keys"]).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut output = child.stdout.take().expect("piped");
    // The command has the store open, and waits for its reader.
    output.read_exact(&mut [0; 10]).expect("keys");
    let segment = place.store().join("segment-000000");
    File::options().write(true).open(&segment).expect("there").set_len(4096).expect("it is cut");
    std::io::copy(&mut output, &mut std::io::sink()).expect("the rest");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(SIGBUS), "{}: {text}", output.status);
    assert!(text.contains("of the store's file `"), "{text}");
    assert!(text.contains("segment-000000") && text.contains("was cut"), "{text}");
}
