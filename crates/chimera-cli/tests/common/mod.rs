//! Running the command in tests, each run a process of its own.
#![allow(dead_code, reason = "not every test file uses every helper")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use chimera::Db;
use tempfile::TempDir;

/// Held while a child comes into being, and while a store of this process is closed: between fork
/// and exec a child has all files of this process, and so holds the locks of its stores.
static SPAWNING: Mutex<()> = Mutex::new(());

/// Makes the checksums of a copy of the superblock right, as docs/FORMAT.md has them.
pub(crate) fn seal_superblock(copy: &mut [u8]) {
    let common = xxhash_rust::xxh3::xxh3_64(&copy[..8 * 15]);
    copy[8 * 15..8 * 16].copy_from_slice(&common.to_le_bytes());
    let length = u64::from_le_bytes(copy[8 * 16..8 * 17].try_into().expect("8 bytes"));
    let area = &copy[8 * 18..8 * (21 + length as usize)];
    let area = xxhash_rust::xxh3::xxh3_64_with_seed(area, common ^ length);
    copy[8 * 17..8 * 18].copy_from_slice(&area.to_le_bytes());
}

/// Starts a command.
pub(crate) fn spawn(command: &mut Command) -> Child {
    let _alone = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().expect("the command starts")
}

/// Closes a store of this process.
pub(crate) fn close(db: Db) {
    let _alone = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
    db.close().expect("no other user");
}

/// What a run of the command left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Asserts the exit code and gives back what was printed.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Asserts success and gives back standard output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        self.expect(0).out
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The lines of standard output, each as JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<serde_json::Value> {
        let read = |line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line} of {self:?}"))
        };
        self.out.lines().map(read).collect()
    }

    /// The error that was reported as JSON.
    #[track_caller]
    pub(crate) fn error(&self) -> serde_json::Value {
        let report: serde_json::Value =
            serde_json::from_str(&self.err).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert!(report["error"]["message"].is_string(), "{self:?}");
        report["error"].clone()
    }

    /// The kind of it.
    #[track_caller]
    pub(crate) fn error_kind(&self) -> String {
        self.error()["kind"].as_str().expect("a kind").to_owned()
    }
}

/// A directory for one test, and the store in it.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// Where the store is.
    pub(crate) fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// The command, ready to be given arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chimera"));
        command.env("CHIMERA_PATH", self.store()).env_remove("RUST_LOG");
        command.current_dir(self.directory.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs the command on the store.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Run {
        let mut command = self.command();
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = spawn(&mut command).wait_with_output().expect("it ends");
        Run {
            code: output.status.code().expect("not ended by a signal"),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// As [`run`](Self::run), with something on standard input; gives back standard output.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn(&mut command);
        child.stdin.take().expect("piped").write_all(input).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success());
        output.stdout
    }

    /// A store with keys `key-0`, `key-1`, ... and values `value-0`, ..., made in this process.
    pub(crate) fn fill(&self, records: u32) {
        let options = chimera::Options::new()
            .fixed_size(16, 200)
            .segment_bytes(4 << 20)
            .populate_ahead_bytes(0);
        let db = Db::open(self.store(), &options).expect("a new store");
        for number in 0..records {
            let mut key = format!("key-{number}").into_bytes();
            let mut value = format!("value-{number}").into_bytes();
            key.resize(16, 0);
            value.resize(200, 0);
            db.put(&key, &value).expect("room");
        }
        close(db);
    }
}
