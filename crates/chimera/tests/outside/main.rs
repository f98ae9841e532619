//! What the machine and others do to an open store from outside: files that are removed, replaced or in the way, another
//! working directory, limits of the process. What every engine must pass is in conformance.

#[path = "../tools/mod.rs"]
mod tools;

mod foreign;
mod large_values;
mod limits;
mod memory;
mod removed;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chimera::{Db, Result};

use tools::{key, value};

/// One test at a time where there are other processes: one that is being started has copies of all open files, and
/// so of the lock of a store that another test has just closed.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the child is told to make its store.
const STORE: &str = "CHIMERA_TEST_OUTSIDE_STORE";

/// The store of this process, if it is a child.
fn store_of_child() -> Option<std::path::PathBuf> {
    std::env::var_os(STORE).map(Into::into)
}

/// Runs a test of this program as another process, from a shell that runs `before` first.
fn run_child(before: &str, test: &str, store: &Path) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{before} && exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .env(STORE, store)
        .stdin(Stdio::null())
        .output()
        .expect("a shell")
}

/// Asserts that a child was not ended by a signal, and that the test passed there.
#[track_caller]
fn assert_passed(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    assert!(out.contains("1 passed"), "{out}");
}

/// Puts records from `first` on until one is refused; the first number that was.
fn put_until_refused(db: &Db, first: u64) -> (u64, chimera::Error) {
    let mut session = db.session();
    for number in first..first + 100_000 {
        let outcome: Result<bool> = session.put(key(number), value(number, 1));
        if let Err(error) = outcome {
            return (number, error);
        }
    }
    panic!("a hundred thousand records were taken");
}

/// How many segments the store at `path` has.
fn segments(path: &Path) -> usize {
    let names = tools::names(path);
    names.iter().filter(|name| name.to_string_lossy().starts_with("segment-")).count()
}

#[test]
fn a_store_of_a_relative_path_grows_in_another_working_directory() {
    if let Some(store) = store_of_child() {
        std::env::set_current_dir(store.parent().expect("an absolute path")).expect("is there");
        let db = tools::open(Path::new("store"), &tools::small());
        tools::fill(&mut db.session(), 0..10, 1);
        std::env::set_current_dir("/").expect("is there");
        tools::fill(&mut db.session(), 10..1000, 1);
        db.sync().expect("all files are in their places");
        db.close().expect("nobody else has it");
        let db = tools::open(&store, &tools::small());
        assert!(segments(&store) > 3, "{} segments", segments(&store));
        assert_eq!(tools::contents(&db).len(), 1000);
        tools::assert_sound(&db);
        return;
    }
    let _alone = alone();
    let directory = tools::scratch();
    let name = "a_store_of_a_relative_path_grows_in_another_working_directory";
    assert_passed(&run_child("true", name, &directory.path().join("store")));
}
