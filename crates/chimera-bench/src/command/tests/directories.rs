//! Benchmarks remove what they made, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use chimera::{Db, Options};

use super::*;

/// A command that is done at once.
const LINE: &str = "core --records 3000 --operations 1000 --repetitions 1 --no-counters";

/// A store with one record that nobody may touch.
fn precious(path: &Path) -> Db {
    let options = Options::new().fixed_size(8, 8).segment_bytes(1 << 20);
    let db = Db::open(path, &options).expect("opens");
    db.put(b"precious", b"12345678").expect("puts");
    db
}

fn assert_precious(path: &Path) {
    let db = Db::open(path, &Options::new()).expect("opens");
    assert_eq!(db.get(b"precious").expect("reads").as_deref(), Some(&b"12345678"[..]));
    db.close().expect("closes");
}

/// All files below a directory, with what is in them.
fn all_files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("lists") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(all_files(&path));
        } else {
            files.push((path.clone(), fs::read(&path).expect("reads")));
        }
    }
    files.sort();
    files
}

fn run_overwriting(path: &Path) -> Result<Report> {
    run_at(&format!("{LINE} --overwrite"), path)
}

#[test]
fn a_store_that_no_benchmark_made_is_never_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    let db = precious(&path);
    for line in [LINE.to_owned(), format!("{LINE} --overwrite"), format!("{LINE} --keep")] {
        let error = run_at(&line, &path).expect_err("there is a store");
        assert!(matches!(error, BenchError::Foreign { .. }), "{error}");
    }
    db.close().expect("closes");
    let before = all_files(&path);
    for line in [LINE, "growth --quick", "reclaim --quick", "recovery --quick", "floor --quick"] {
        let error = run_at(&format!("{line} --overwrite"), &path).expect_err("there is a store");
        assert!(matches!(error, BenchError::Foreign { .. }), "{error}");
        assert_eq!(all_files(&path), before, "{line}");
    }
    assert_precious(&path);
}

#[test]
fn a_store_that_a_benchmark_kept_is_removed_when_told_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    run_at(&format!("{LINE} --keep"), &path).expect("runs");
    let error = run_at(LINE, &path).expect_err("there is a store");
    assert!(matches!(error, BenchError::Exists { .. }), "{error}");
    let db = Db::open(&path, &Options::new()).expect("the benchmark's store is kept");
    assert_eq!(db.stats().records, 3000);
    let error = run_overwriting(&path).expect_err("it is open");
    assert!(matches!(error, BenchError::InUse { .. }), "{error}");
    db.close().expect("closes");
    run_at(&format!("{LINE} --overwrite --keep"), &path).expect("may remove it");
    run_overwriting(&path).expect("may remove it");
    assert!(path.exists(), "the directory was there before");
    assert_eq!(all_files(&path), [], "nothing is left in it");

    fs::write(path.join("letter"), "dear").expect("writes");
    let error = run_overwriting(&path).expect_err("not a store");
    assert!(matches!(error, BenchError::Foreign { .. }), "{error}");
    assert!(path.join("letter").exists());
}

#[test]
fn what_lies_beside_a_kept_store_is_not_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    for name in ["letter", "segment", "superblock.old"] {
        run_at(&format!("{LINE} --keep"), &path).expect("runs");
        fs::write(path.join(name), "dear").expect("writes");
        let before = all_files(&path);
        let error = run_overwriting(&path).expect_err("something else is there");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(all_files(&path), before, "nothing is removed");
        fs::remove_file(path.join(name)).expect("removes");
        run_overwriting(&path).expect("may remove the rest");
    }
    // A store of somebody else's in a place where benchmarks make theirs.
    run_at(&format!("{LINE} --keep"), &path).expect("runs");
    for name in ["growing", "viper"] {
        let inside = path.join(name);
        precious(&inside).close().expect("closes");
        let error = run_overwriting(&path).expect_err("a store of somebody else's");
        assert!(matches!(error, BenchError::Foreign { .. }), "{error}");
        assert_precious(&inside);
        fs::remove_dir_all(&inside).expect("removes");
    }
    run_overwriting(&path).expect("may remove the rest");
}

#[test]
fn a_store_that_moved_into_a_benchmarks_place_is_not_taken_for_its() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    run_at(&format!("{LINE} --keep"), &path).expect("runs");
    fs::remove_dir_all(&path).expect("removes");
    precious(&path).close().expect("closes");
    let error = run_overwriting(&path).expect_err("it has no marker");
    assert!(matches!(error, BenchError::Foreign { .. }), "{error}");
    assert_precious(&path);
}

#[test]
fn two_benchmarks_never_share_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    let setup = Setup { path: path.clone(), overwrite: true, ..Setup::small() };
    let workspace = crate::driver::workspace::Workspace::prepare(&setup).expect("is free");
    let error = run_overwriting(&path).expect_err("the other one has it");
    assert!(matches!(error, BenchError::InUse { .. }), "{error}");
    drop(workspace);
    assert!(!path.exists());
}

#[test]
fn the_default_directory_is_not_that_of_anybodys_data() {
    let BenchCommand::Core(arguments) = parse("core") else { panic!() };
    let setup = arguments.setups().expect("valid").remove(0);
    assert_eq!(setup.path, Path::new("chimera-bench-data"));
}
