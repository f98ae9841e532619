//! Rules about the code itself, checked from the code itself.

mod calls;
mod circles;
mod documents;
mod functions;
mod imports;
mod methods;
mod rooms;
mod source;
mod tokens;

use std::fmt::Write as _;
use std::fs;

use source::{Source, crates, sources};

/// This test's own files.
const HERE: &str = "chimera/tests/tidiness";

/// Fails with a list of what is wrong.
fn assert_none(wrong: &str, rule: &str) {
    assert!(wrong.is_empty(), "{rule}:\n{wrong}");
}

/// Fails when code that `applies` has one of `words`.
fn forbid(rule: &str, words: &[&str], applies: impl Fn(&Source) -> bool) {
    let mut wrong = String::new();
    for source in sources().iter().filter(|source| applies(source)) {
        for (number, line) in source.code() {
            if words.iter().any(|word| line.contains(word)) {
                let _ = writeln!(wrong, "{}:{number}: {}", source.path.display(), line.trim());
            }
        }
    }
    assert_none(&wrong, rule);
}

#[test]
fn files_are_short() {
    let mut wrong = String::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > 600 {
            let _ = writeln!(wrong, "{}: {lines} lines", source.path.display());
        }
    }
    assert_none(&wrong, "a file has at most 600 lines");
}

/// Attributes that silence a lint whether it would say something or not, by file. Shorter only.
const SILENCED: [(&str, &str); 4] = [
    ("chimera/src/lib.rs", "#![cfg_attr(loom, allow(dead_code,"),
    ("chimera-mutants/src/runtime/mutant.rs", "#![allow(warnings)]"),
    ("chimera-pmem/src/arch/x86_64.rs", "#[allow(unused_unsafe,"),
    ("chimera/src/sync/under_loom/atomic.rs", "#[allow(dead_code,"),
];

/// Of an `expect` whose lint says nothing the compiler tells; of an `allow` nobody does.
#[test]
fn lints_are_silenced_where_they_speak() {
    let mut wrong = String::new();
    for source in sources().iter().filter(|source| !source.is_in(HERE)) {
        let is_src = source.path.iter().nth(1).is_some_and(|part| part == "src");
        for (number, line) in source.code().filter(|_| is_src) {
            let is_known = |(path, attribute): &(&str, &str)| {
                source.is_in(path) && line.trim().starts_with(attribute)
            };
            if line.contains(concat!("all", "ow(")) && !SILENCED.iter().any(is_known) {
                let _ = writeln!(wrong, "{}:{number}: {}", source.path.display(), line.trim());
            }
        }
    }
    assert_none(&wrong, "a lint is silenced by `expect`, with its reason");
}

/// Lines of code that the teaching engine may have: docs/ENGINES.md promises it.
const TEACHING_LINES_MAX: usize = 330;

#[test]
fn the_teaching_engine_is_short() {
    let teaching = |source: &&Source| source.is_in("chimera/src/engine/teaching");
    let lines: usize = sources().iter().filter(teaching).map(|source| source.code().count()).sum();
    assert!((100..=TEACHING_LINES_MAX).contains(&lines), "the teaching engine has {lines} lines");
}

#[test]
fn nothing_is_left_to_do() {
    // In two parts, so that this file does not have them.
    let words = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X:")];
    let macros = [concat!("to", "do!("), concat!("unimple", "mented!(")];
    let mut wrong = String::new();
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            if words.iter().chain(&macros).any(|word| line.contains(word)) {
                let _ = writeln!(wrong, "{}:{}: {line}", source.path.display(), number + 1);
            }
        }
    }
    assert_none(&wrong, "unfinished code");
}

#[test]
fn unsafe_code_is_in_three_crates() {
    let words = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait"];
    // RocksDB is C++, and takes pointers; LMDB maps files.
    let allowed = ["chimera-pmem", "chimera-placement", "chimera-peers"];
    let others =
        |source: &Source| !allowed.iter().any(|name| source.is_in(name)) && !source.is_in(HERE);
    forbid("only chimera-pmem and what meets RocksDB have unsafe code", &words, others);
    for entry in fs::read_dir(crates()).expect("the directory of all crates") {
        let path = entry.expect("an entry").path();
        for root in ["src/lib.rs", "src/main.rs"] {
            let Ok(text) = fs::read_to_string(path.join(root)) else { continue };
            let forbids = text.contains("#![forbid(unsafe_code)]");
            assert!(
                forbids || allowed.iter().any(|name| path.ends_with(name)),
                "{}/{root} does not forbid unsafe code",
                path.display()
            );
        }
    }
}

#[test]
fn instructions_are_in_one_room() {
    let words = ["_mm_", "asm!(", "core::arch", "std::arch"];
    let others = |source: &Source| !source.is_in("chimera-pmem/src/arch") && !source.is_test();
    forbid("only chimera-pmem/src/arch has instructions of processors", &words, others);
}

#[test]
fn the_store_asks_its_environment() {
    let words = [
        "std::fs",
        "std::net",
        "std::process",
        "std::thread::spawn",
        "std::thread::sleep",
        "std::thread::scope",
        "use std::thread",
        "thread::Builder",
        "Instant",
        "SystemTime",
        "File::open",
    ];
    let store = |source: &Source| source.is_in("chimera/src") && !source.is_test();
    forbid("files, threads and time come from the environment", &words, store);
}

#[test]
fn modules_begin_with_prose() {
    let mut wrong = String::new();
    for source in sources() {
        let is_part = source.is_test() && source.is_in("chimera-pmem")
            || source.path.file_name().is_some_and(|name| name == "tests.rs");
        let is_src = source.path.iter().nth(1).is_some_and(|part| part == "src");
        if is_src && !source.is_test() && !is_part && !source.text.starts_with("//!") {
            let _ = writeln!(wrong, "{}", source.path.display());
        }
    }
    assert_none(&wrong, "modules begin with prose");
}
