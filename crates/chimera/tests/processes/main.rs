//! Several processes at one store, one after the other and at the same time. Killed ones: the command
//! `chimera-crashlab kill9` and its test.

#[path = "../tools/mod.rs"]
mod tools;

mod forks;
mod short_lives;

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tools::{open, scratch, small};

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

const SECOND_OPENER: &str = "CHIMERA_TEST_SECOND_OPENER";

#[test]
fn a_second_opener_in_another_process_is_told_who_holds_the_store() {
    if let Ok(path) = std::env::var(SECOND_OPENER) {
        let outcome = chimera::Db::open(path, &small());
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
    let db = open(directory.path(), &small());
    let text = second();
    let process = format!("OUTCOME the store is in use by process {}", std::process::id());
    assert!(text.contains(&process), "{text}");
    drop(db);
    let text = second();
    assert!(text.contains("OUTCOME ok"), "{text}");
}
