//! Many stores in one process: the threads, the memory and the addresses that they take. Each test runs in a process of its
//! own, because what is counted is the process's.

#[path = "../tools/mod.rs"]
mod tools;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chimera::{Db, EngineKind, Options};
use tempfile::TempDir;

use tools::{from_environment, scratch, scratch_on_disk};

/// Where a child makes its stores.
const STORES: &str = "CHIMERA_TEST_MANY_STORES";

/// Most anonymous memory of a store with a record, in KiB.
const STORE_KIB_MAX: u64 = 1024;

/// Background threads beside one for each processor, at most.
const WORKERS_EXTRA: u64 = 16;

/// Runs the test `name` in a process of its own, from a shell that runs `before` first.
#[track_caller]
fn in_child(before: &str, name: &str, stores: &Path) {
    let output = Command::new("sh")
        .args(["-c", &format!("{before} && exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture", "--include-ignored"])
        .env(STORES, stores)
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{}\n{out}\n{err}", output.status);
    out.lines().filter(|line| line.contains("stores")).for_each(|line| println!("{line}"));
}

fn stores_of_child() -> Option<PathBuf> {
    std::env::var_os(STORES).map(Into::into)
}

/// A number of `/proc/self/status`: of KiB, or of threads.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line of it");
    let word = line.trim_start_matches(':').split_whitespace().next();
    word.and_then(|word| word.parse().ok()).expect("a number")
}

/// Stores that take little space in files.
fn small_files(kind: EngineKind) -> Options {
    Options::new()
        .engine(kind)
        .segment_bytes(4 << 20)
        .populate_ahead_bytes(64 << 10)
        .journal_bytes(64 << 10)
}

/// Opens so many stores in a directory, puts a record into each, and checks what they take.
fn open_many(directory: &Path, kind: EngineKind, count: u64) {
    let options = small_files(kind);
    let (memory, threads_before) = (status("RssAnon"), status("Threads"));
    let key = |number: u64| number.to_le_bytes();
    let open = |number: u64| {
        let db = tools::open(&directory.join(number.to_string()), &options);
        db.put(key(number), b"value").unwrap_or_else(|error| panic!("store {number}: {error}"));
        db
    };
    let stores: Vec<Db> = (0..count).map(open).collect();
    for (number, db) in stores.iter().enumerate() {
        let found = db.get(key(number as u64)).expect("it can be read");
        assert_eq!(found.as_deref(), Some(&b"value"[..]), "store {number}");
    }
    let each = status("RssAnon").saturating_sub(memory) / count;
    let threads = status("Threads") - threads_before;
    println!(
        "{count} stores of {kind}: {each} KiB of anonymous memory each, {threads} threads, {} MiB of addresses each",
        (status("VmSize") / count) >> 10,
    );
    assert!(each <= STORE_KIB_MAX, "{each} KiB for each store");
    let processors = std::thread::available_parallelism().expect("Linux").get().max(2);
    assert!(threads <= processors as u64 + WORKERS_EXTRA, "{threads} threads");
    for db in stores {
        db.close().expect("nobody else has it");
    }
    let start = Instant::now();
    while status("Threads") > threads_before {
        assert!(start.elapsed() < Duration::from_secs(20), "background threads stay");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const ENGINES: [EngineKind; 3] = [EngineKind::Viper, EngineKind::Hikv, EngineKind::Chameleon];

/// As many open files as the user may have.
const FILES: &str = "ulimit -n $(ulimit -Hn)";

/// Runs `open_many` in a child for each engine.
fn each_engine(name: &str, before: &str, scratch: fn() -> TempDir, count: u64) {
    if let Some(stores) = stores_of_child() {
        let last = stores.file_name().expect("a name").to_string_lossy().into_owned();
        let kind = ENGINES.into_iter().find(|kind| kind.name() == last).expect("an engine");
        return open_many(&stores, kind, count);
    }
    for kind in ENGINES {
        let directory = scratch();
        in_child(before, name, &directory.path().join(kind.name()));
    }
}

#[test]
fn stores_in_memory_share_threads_and_are_small() {
    each_engine("stores_in_memory_share_threads_and_are_small", FILES, scratch, 300);
}

#[test]
fn stores_on_a_disk_share_threads_and_are_small() {
    each_engine("stores_on_a_disk_share_threads_and_are_small", FILES, scratch_on_disk, 30);
}

/// A limit of 8 GiB of addresses.
#[test]
fn few_addresses_are_enough_for_some_stores() {
    let name = "few_addresses_are_enough_for_some_stores";
    each_engine(name, "ulimit -v 8388608", scratch, 8);
}

/// `CHIMERA_TEST_STORES` says how many.
#[test]
#[ignore = "takes minutes and some GiB of disk"]
fn a_thousand_stores_are_open_at_once() {
    let count = from_environment("CHIMERA_TEST_STORES", 1000);
    let name = "a_thousand_stores_are_open_at_once";
    each_engine(name, FILES, scratch_on_disk, count);
}
