//! A real writer process, killed at random moments; and very many short lives.

#[path = "../tools/mod.rs"]
mod tools;

mod writer;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chimera::{Durability, Error, RecordLayout};
use tempfile::TempDir;

use tools::{Chance, assert_sound, contents, from_environment, open, scratch, scratch_on_disk};
use writer::{Model, options};

/// What plain files have by default.
const GROUP: Durability = Durability::Group { max_delay: Duration::from_millis(50) };

/// One test at a time: a process that is being started has copies of all open files, and so of the
/// lock of a store that another test has just closed.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a test of this program as another process.
fn child(test: &str, variables: &[(&str, String)]) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .envs(variables.iter().cloned())
        .stdout(Stdio::null())
        .spawn()
        .expect("a process")
}

/// Waits until the writer has acknowledged so many operations, then kills it.
fn kill_after(writer: &mut Child, acknowledgements: &Path, sessions: u64, operations: u64) {
    loop {
        let done: u64 =
            (0..sessions).map(|session| writer::acknowledged(acknowledgements, session)).sum();
        if done >= operations {
            break;
        }
        if let Some(status) = writer.try_wait().expect("the child is ours") {
            panic!("the writer ended by itself: {status}");
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    writer.kill().expect("the child is ours");
    let status = writer.wait().expect("the child is ours");
    assert!(!status.success(), "the writer was not killed");
}

/// Kills a writer again and again. After each time everything acknowledged is there, and the next one
/// can go on at once, with the next of these durabilities.
fn kill_and_reopen(
    directory: &TempDir,
    sessions: u64,
    layout: RecordLayout,
    durabilities: &[Durability],
) {
    let _alone = alone();
    let path = directory.path().join("store");
    let acknowledgements = directory.path();
    let durability = |cycle: u64| durabilities[cycle as usize % durabilities.len()];
    let mut model = Model::default();
    let mut unclean = 0;
    let cycles = from_environment("CHIMERA_TEST_KILLS", 15);
    let first = from_environment("CHIMERA_TEST_KILLS_SEED", 0);
    for cycle in first..first + cycles {
        let mut chance = Chance::new(cycle);
        let options = options().layout(layout).durability(durability(cycle));
        let mut process =
            writer::start(&path, acknowledgements, sessions, cycle, layout, durability(cycle));
        // Now and then before or while it opens the store.
        let most = if durability(cycle) == Durability::Immediate { 2000 } else { 30_000 };
        let operations = if chance.below(8) == 0 { 0 } else { chance.below(most) };
        std::thread::sleep(Duration::from_micros(chance.below(2000)));
        kill_after(&mut process, acknowledgements, sessions, operations);

        let read_only = cycle % 2 == 1;
        let options = options.durability(durability(cycle + cycle / 2));
        match chimera::Db::open(&path, &options.clone().read_only(read_only).create(false)) {
            Ok(db) => {
                unclean += u64::from(!db.stats().recovery.clean);
                model.verify(&db, acknowledgements, sessions, cycle);
                assert_sound(&db);
                assert_eq!(contents(&db).len() as u64, db.stats().records);
                db.close().expect("nobody else has it");
            }
            Err(Error::NotFound { .. }) if model.is_empty() => {}
            Err(error) => panic!("cycle {cycle}: {error}"),
        }
    }
    assert!(unclean > 0, "no writer was killed while it had the store");
    let db = open(&path, &options().layout(layout));
    let blocks = db.stats().blocks_used;
    assert!(blocks < 3000, "killed writers leave blocks behind: {blocks}");
}

#[test]
fn one_session_on_a_disk() {
    kill_and_reopen(&scratch_on_disk(), 1, RecordLayout::Checked, &[GROUP]);
}

#[test]
fn three_sessions_on_a_disk() {
    kill_and_reopen(&scratch_on_disk(), 3, RecordLayout::Checked, &[GROUP]);
}

#[test]
fn a_shared_mapping_on_a_disk() {
    let durability = [Durability::Process];
    kill_and_reopen(&scratch_on_disk(), 2, RecordLayout::Checked, &durability);
}

/// With a journal and without one, in turn.
#[test]
fn changing_durabilities_on_a_disk() {
    let durabilities = [GROUP, Durability::Process, Durability::Immediate];
    kill_and_reopen(&scratch_on_disk(), 2, RecordLayout::Checked, &durabilities);
}

#[test]
fn one_session_in_memory() {
    kill_and_reopen(&scratch(), 1, RecordLayout::Checked, &[Durability::Auto]);
}

#[test]
fn three_sessions_in_memory() {
    kill_and_reopen(&scratch(), 3, RecordLayout::Checked, &[Durability::Auto]);
}

/// Without versions: the copy at the higher place counts, and either is a value that was written.
#[test]
fn inserts_and_deletes_in_the_published_layout() {
    kill_and_reopen(&scratch(), 3, RecordLayout::Published, &[Durability::Auto]);
}

const SECOND_OPENER: &str = "CHIMERA_TEST_SECOND_OPENER";

#[test]
fn a_second_opener_in_another_process_is_told_who_holds_the_store() {
    if let Ok(path) = std::env::var(SECOND_OPENER) {
        let outcome = chimera::Db::open(path, &options());
        println!("\nOUTCOME {}", outcome.map_or_else(|error| error.to_string(), |_| "ok".into()));
        return;
    }
    let _alone = alone();
    let directory = scratch();
    let second = || {
        let name = "a_second_opener_in_another_process_is_told_who_holds_the_store";
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", name, "--nocapture"])
            .env(SECOND_OPENER, directory.path())
            .output()
            .expect("a process");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let db = open(directory.path(), &options());
    let text = second();
    let process = format!("OUTCOME the store is in use by process {}", std::process::id());
    assert!(text.contains(&process), "{text}");
    drop(db);
    let text = second();
    assert!(text.contains("OUTCOME ok"), "{text}");
}

/// Kills a process while it creates a store: a second attempt succeeds.
#[test]
fn a_killed_creation_is_begun_again() {
    let _alone = alone();
    for round in 0..30 {
        let directory = scratch();
        let path = directory.path().join("store");
        let layout = RecordLayout::Checked;
        let mut process =
            writer::start(&path, directory.path(), 1, round, layout, Durability::Auto);
        while !path.join("superblock").exists() {
            std::thread::yield_now();
        }
        for _ in 0..round * 20 {
            std::hint::spin_loop();
        }
        process.kill().expect("the child is ours");
        process.wait().expect("the child is ours");
        let db = open(&path, &options());
        assert_sound(&db);
    }
}
