//! A C++ program uses the library as its header says.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The static library, which is built beside the tests: of those with the same features the newest one, since other builds may be
/// there as well.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built =
        std::fs::read_dir(test.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libchimera_placement") && path.extension().is_some_and(|end| end == "a")
    };
    // One with the feature `memkind` needs libmemkind.
    let has_features = |path: &PathBuf| {
        let found = Command::new("grep").args(["-qF", "memkind_create_pmem"]).arg(path).status();
        found.unwrap().success() == cfg!(feature = "memkind")
    };
    let age = |path: &PathBuf| path.metadata().and_then(|found| found.modified()).ok();
    let mut built: Vec<PathBuf> = built.filter(is_library).collect();
    built.sort_by_key(|path| std::cmp::Reverse(age(path)));
    built.into_iter().find(has_features).expect("the static library is built with the tests")
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Compiles a program.
fn compile_with(program: &Path, change: impl FnOnce(&mut Command)) {
    let mut compiler = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
    compiler.current_dir(env!("CARGO_MANIFEST_DIR"));
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fno-rtti"]);
    compiler.args(["-I", "include", "-I", "shim"]);
    change(&mut compiler);
    succeed(compiler.args(["-lrocksdb", "-lpthread", "-ldl", "-lm", "-o"]).arg(program));
}

/// Compiles a program with the library.
fn compile(source: &str, program: &Path) {
    compile_with(program, |compiler| {
        compiler.arg(source).arg(library());
        compiler.args(cfg!(feature = "memkind").then_some("-lmemkind"));
    });
}

#[test]
fn a_program_places_block_cache_and_memtables() {
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("rocksdb_user");
    compile("include/example/rocksdb_user.cpp", &program);
    let database = scratch.path().join("db");
    let said = succeed(Command::new(&program).arg(&database).arg(scratch.path()));
    assert_eq!(said, "OK\n");
    let left = scratch.path().join(chimera_placement::region::FILE_NAME);
    assert!(!left.exists(), "removed at the end");
    // What is wrong is said, and nothing crashes.
    let output = Command::new(&program).arg(&database).arg("/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no directory /nowhere"));
}

#[test]
fn a_program_places_allocators_and_tiers() {
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("tiers");
    compile("tests/cpp/tiers.cpp", &program);
    let said = succeed(Command::new(&program).arg(scratch.path().join("db")).arg(scratch.path()));
    assert_eq!(said, "OK\n");
    assert!(!scratch.path().join(chimera_placement::region::FILE_NAME).exists(), "removed");
}

#[test]
fn no_exception_leaves_what_rust_calls() {
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("guards");
    compile("tests/cpp/guards.cpp", &program);
    let said = succeed(Command::new(&program).arg(scratch.path().join("db")));
    assert!(said.ends_with("OK\n"), "{said}");
}

/// Runs a memtable with readers and a writer, compiled with some options.
fn use_memtable(entries: u32, options: &[&str]) {
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("memtable");
    compile_with(&program, |compiler| {
        compiler.args(options).arg("tests/cpp/memtable.cpp");
        compiler.args(["shim/memtable.cpp", "shim/skip_list.cpp", "shim/node_arena.cpp"]);
    });
    let mut run = Command::new(&program);
    // The first race is enough.
    run.env("TSAN_OPTIONS", "halt_on_error=1").arg(entries.to_string());
    assert_eq!(succeed(&mut run), "OK\n");
}

#[test]
fn readers_of_a_memtable_go_on_beside_its_writer() {
    use_memtable(20_000, &["-O2"]);
}

/// The same under ThreadSanitizer: `cargo test --locked --test cpp -- --ignored`. It takes a few seconds, and a g++ that has libtsan,
/// as Debian's has.
#[test]
#[ignore = "needs a compiler with ThreadSanitizer"]
fn a_memtable_has_no_races() {
    use_memtable(20_000, &["-O1", "-g", "-fsanitize=thread"]);
}
