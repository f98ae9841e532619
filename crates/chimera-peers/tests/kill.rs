//! A store whose process is killed has what was acknowledged, as its guarantee says.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails the test")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use chimera_peers::job::{Durability, Job, StoreKind};
use chimera_peers::protocol::{Reply, Request, Work};

const RECORDS: u64 = 300;

/// The process of a store.
struct Process {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Process {
    fn start(job: &Job) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_chimera-peers"))
            .arg("worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (requests, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut process = Self { child, requests, replies: BufReader::new(out) };
        process.send(job);
        process
    }

    fn send(&mut self, what: &impl serde::Serialize) {
        writeln!(self.requests, "{}", serde_json::to_string(what).unwrap()).unwrap();
    }

    fn ask(&mut self, request: &Request) -> Reply {
        self.send(request);
        let mut line = String::new();
        self.replies.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn survives_a_kill(store: StoreKind, durability: Durability, path: &Path) {
    let job = Job {
        store,
        path: path.join(format!("{store}-{durability}")),
        durability,
        value_bytes: 1000,
        records: RECORDS,
        threads: 2,
        cache_bytes: 8 << 20,
        seed: 42,
        data_limit_bytes: None,
    };
    let what = format!("{store} {durability}");
    {
        let mut process = Process::start(&job);
        let opened = process.ask(&Request::Open { loaded: 0 });
        assert!(matches!(opened, Reply::Opened { .. }), "{what}: {opened:?}");
        let fill = Request::Run { work: Work::Fill, operations: RECORDS, stream: 0 };
        let filled = process.ask(&fill);
        assert!(
            matches!(filled, Reply::Ran(ran) if ran.operations == RECORDS),
            "{what}: {filled:?}"
        );
        // Killed somewhere in the middle.
        process.send(&Request::Run { work: Work::Overwrite, operations: 1 << 40, stream: 1 });
        std::thread::sleep(Duration::from_millis(150));
    }
    let mut process = Process::start(&job);
    let opened = process.ask(&Request::Open { loaded: RECORDS });
    assert!(matches!(opened, Reply::Opened { .. }), "{what}: {opened:?}");
    assert_eq!(process.ask(&Request::Verify), Reply::Verified { records: RECORDS }, "{what}");
    assert!(matches!(process.ask(&Request::Close), Reply::Done { .. }), "{what}");
}

#[test]
fn every_store_survives_a_kill() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for store in StoreKind::ALL {
        for durability in [Durability::Operation, Durability::Window, Durability::Process] {
            survives_a_kill(store, durability, directory.path());
        }
    }
}

#[test]
fn what_is_asked_in_vain_is_refused_in_words() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let job = Job {
        store: StoreKind::Redb,
        path: directory.path().join("store"),
        durability: Durability::Process,
        value_bytes: 100,
        records: 10,
        threads: 1,
        cache_bytes: 1 << 20,
        seed: 42,
        data_limit_bytes: None,
    };
    let mut process = Process::start(&job);
    let refused = process.ask(&Request::Verify);
    assert!(
        matches!(&refused, Reply::Failed { message } if message.contains("not open")),
        "{refused:?}"
    );
    let refused = process.ask(&Request::Open { loaded: 10 });
    assert!(
        matches!(&refused, Reply::Failed { message } if message.contains("first record")),
        "{refused:?}"
    );
}
