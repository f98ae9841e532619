//! What is printed on a terminal.

mod common;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use common::{Place, spawn};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A new terminal: the end that reads what is shown, and the end to print to.
fn terminal() -> (File, OwnedFd) {
    let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&reader).expect("granted");
    unlockpt(&reader).expect("unlocked");
    let name = ptsname(&reader, Vec::new()).expect("a name");
    let printer = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
    (File::from(reader), printer.expect("opened"))
}

/// Standard output of a command on a terminal.
fn shown(place: &Place, arguments: &[&str]) -> String {
    let (mut reader, printer) = terminal();
    let mut command = place.command();
    command.args(arguments).stdout(Stdio::from(printer));
    let mut child = spawn(&mut command);
    // Ours is closed with the command: the terminal ends with the child.
    drop(command);
    let (mut bytes, mut some) = (Vec::new(), [0; 256]);
    loop {
        match reader.read(&mut some) {
            Ok(0) => break,
            Ok(length) => bytes.extend_from_slice(&some[..length]),
            // A terminal that nobody holds any more is an error of input.
            Err(error) if error.kind() != ErrorKind::Interrupted => break,
            Err(_) => {}
        }
    }
    assert!(child.wait().expect("it ends").success());
    String::from_utf8(bytes).expect("text")
}

#[test]
fn a_value_cannot_steer_the_terminal() {
    let place = Place::new();
    let value = b"red \x1b[31m bell \x07\xff\nnext\tline";
    place.run_with_input(&["put", "k", "-"], value);
    // The terminal itself begins lines on the left.
    let expected = "red \\x1b[31m bell \\x07\\xff\r\nnext\tline\r\n";
    assert_eq!(shown(&place, &["get", "k"]).replace("        ", "\t"), expected);
    assert!(shown(&place, &["get", "k", "--hex-value"]).starts_with("726564201b5b"));
    // Elsewhere it comes as it is.
    assert_eq!(place.run_with_input(&["get", "k"], b""), [&value[..], b"\n"].concat());
    assert_eq!(place.run_with_input(&["get", "k", "--raw"], b""), value);
}
