//! A file that is cut while it is mapped: the process ends by SIGBUS, with an explanation. Each case is
//! a process of its own.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use chimera_pmem::environment::OpenMode;
use chimera_pmem::{Environment, Hardware, HardwareOptions, Pmem, RealEnvironment, bus_error};

const CASE: &str = "CHIMERA_TEST_BUS_ERROR";
const FILE: &str = "CHIMERA_TEST_BUS_ERROR_FILE";
const SIGBUS: i32 = 7;
const FILE_BYTES: u64 = 65_536;

/// What the other process does. Does nothing when run as a test.
#[test]
fn as_another_process() {
    let Ok(case) = std::env::var(CASE) else { return };
    let path = std::env::var(FILE).expect("the parent says");
    let environment = RealEnvironment::new();
    let file = environment.open(Path::new(&path), OpenMode::ReadWrite).expect("the file");
    let pmem = Hardware::new(HardwareOptions::default()).expect("address space");
    pmem.map(0, &file, 0, FILE_BYTES).expect("a mapping");
    assert_eq!(pmem.load_u64(40_968), 0);
    if case != "not installed" {
        bus_error::install().expect("a handler");
        bus_error::install().expect("nothing more");
    }
    if case == "sent by somebody" {
        let this = rustix::process::getpid();
        // Whoever was there before may take one for a failed access, and return.
        for _ in 0..100_000 {
            rustix::process::kill_process(this, rustix::process::Signal::BUS).expect("sent");
        }
    } else {
        file.set_length(8192).expect("the file is cut");
        println!("{}", pmem.load_u64(40_968));
    }
    std::process::exit(0);
}

/// Runs a case in another process: how it ended, what it said, and the name of the file.
fn run(case: &str) -> (ExitStatus, String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("segment-000000");
    std::fs::write(&path, vec![0; FILE_BYTES as usize]).expect("a file");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "as_another_process", "--nocapture"])
        .env(CASE, case)
        .env(FILE, &path)
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, text, path.display().to_string())
}

#[test]
fn a_cut_file_is_named() {
    let (status, text, path) = run("cut");
    assert_eq!(status.signal(), Some(SIGBUS), "{status}: {text}");
    let words = format!("chimera: SIGBUS at byte 40968 of the store's file `{path}`");
    assert!(text.contains(&words), "{text}");
    assert!(text.contains("was cut while it was open"), "{text}");
}

/// The proof that the words are the handler's.
#[test]
fn without_the_handler_there_is_no_word() {
    let (status, text, _) = run("not installed");
    assert_eq!(status.signal(), Some(SIGBUS), "{status}: {text}");
    assert!(!text.contains("SIGBUS"), "{text}");
}

#[test]
fn a_signal_from_elsewhere_is_not_explained() {
    let (status, text, _) = run("sent by somebody");
    assert_eq!(status.signal(), Some(SIGBUS), "{status}: {text}");
    assert!(!text.contains("chimera:"), "{text}");
}
