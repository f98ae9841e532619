//! Rules about the code itself, checked from the code itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of all crates.
fn crates() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("crates/chimera has a parent").to_owned()
}

/// A source file.
struct Source {
    /// From the directory of all crates.
    path: PathBuf,
    text: String,
}

impl Source {
    /// Whether the file lies in this directory.
    fn is_in(&self, directory: &str) -> bool {
        self.path.starts_with(directory)
    }

    /// Whether the file is a test or a part of one.
    fn is_test(&self) -> bool {
        let name = |part: &str| self.path.iter().any(|component| component == part);
        name("tests") || name("tests.rs") || name("benches") || name("examples")
    }

    /// Lines of code outside of test modules and comments, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        let lines = self.text[..end].lines().enumerate();
        lines
            .map(|(number, line)| (number + 1, line.split("//").next().unwrap_or_default()))
            .filter(|(_, line)| !line.trim().is_empty())
    }
}

fn collect(directory: &Path, into: &mut Vec<Source>) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("text");
            let path = path.strip_prefix(crates()).expect("inside").to_owned();
            into.push(Source { path, text });
        }
    }
}

/// All source files of all crates.
fn sources() -> Vec<Source> {
    let mut all = Vec::new();
    for entry in fs::read_dir(crates()).expect("the directory of all crates") {
        for part in ["src", "tests", "benches", "examples"] {
            let directory = entry.as_ref().expect("an entry").path().join(part);
            if directory.is_dir() {
                collect(&directory, &mut all);
            }
        }
    }
    assert!(all.len() > 50, "only {} source files found", all.len());
    all
}

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

/// The crates of the workspace that a crate names in one kind of its dependencies.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).expect("a manifest");
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            // Whatever is only for tests may point anywhere.
            inside = section.ends_with("dependencies]") && !section.starts_with("dev-");
        } else if inside && line.starts_with("chimera") {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            found.insert(line[..end].to_owned());
        }
    }
    found
}

#[test]
fn crates_depend_one_way() {
    let allowed = BTreeMap::from([
        ("chimera-pmem", vec![]),
        ("chimera", vec!["chimera-pmem"]),
        ("chimera-bench", vec!["chimera", "chimera-pmem"]),
        ("chimera-crashlab", vec!["chimera", "chimera-pmem"]),
        ("chimera-cli", vec!["chimera", "chimera-bench", "chimera-pmem"]),
    ]);
    let mut wrong = String::new();
    for entry in fs::read_dir(crates()).expect("the directory of all crates") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let Some(allowed) = allowed.get(&*name) else {
            let _ = writeln!(wrong, "{name} has no place in the order of crates yet");
            continue;
        };
        for dependency in dependencies(&name) {
            if !allowed.contains(&&*dependency) {
                let _ = writeln!(wrong, "{name} depends on {dependency}");
            }
        }
    }
    assert_none(&wrong, "crates depend on those below them only");
    assert_eq!(dependencies("chimera").len(), 1, "the manifests are not understood");
}

/// The rooms of the store and which others each may use.
const ROOMS: [(&str, &[&str]); 9] = [
    ("types", &[]),
    ("sync", &[]),
    ("metrics", &["types", "sync"]),
    ("pool", &["types", "sync"]),
    ("index", &["pool", "types", "sync"]),
    ("records", &["pool", "types", "sync"]),
    ("engine", &["index", "records", "pool", "types", "sync"]),
    ("db", &["engine", "index", "records", "pool", "metrics", "types", "sync"]),
    ("transfer", &["db", "engine", "pool", "types"]),
];

/// Which room a name at the root of the crate comes from.
fn names_at_the_root() -> BTreeMap<String, String> {
    let root = fs::read_to_string(crates().join("chimera/src/lib.rs")).expect("the root");
    let mut rooms = BTreeMap::new();
    for statement in root.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let room = statement.split("::").next().unwrap_or_default();
        let names = statement.rsplit("::").next().unwrap_or_default();
        for name in names.split([',', '{', '}']).map(str::trim).filter(|name| !name.is_empty()) {
            rooms.insert(name.to_owned(), room.to_owned());
        }
    }
    assert_eq!(rooms.get("Options").map(String::as_str), Some("types"));
    rooms
}

/// The names that follow `crate::` in some code: `crate::a`, `crate::{a, b::c}`.
fn names_after_crate(code: &str) -> Vec<String> {
    let identifier = |text: &str| {
        let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            names.push(identifier(rest));
            continue;
        };
        let group = group.split("};").next().unwrap_or_default();
        let mut depth = 0;
        let mut start = true;
        for (at, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                letter if start && !letter.is_whitespace() => {
                    names.push(identifier(&group[at..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    names
}

#[test]
fn names_after_crate_are_found() {
    let code = "use crate::a::B; use crate::{c, d::{E, f}, G}; crate::h::i()";
    assert_eq!(names_after_crate(code), ["a", "c", "d", "G", "h"]);
}

#[test]
fn rooms_use_those_below_them_only() {
    let at_the_root = names_at_the_root();
    let mut wrong = String::new();
    let mut edges = 0;
    for source in sources().iter().filter(|source| source.is_in("chimera/src")) {
        let Some(room) = source.path.iter().nth(2).and_then(|room| room.to_str()) else { continue };
        let Some((_, below)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            assert!(room == "lib.rs", "room `{room}` has no place in the order of rooms yet");
            continue;
        };
        if source.is_test() {
            continue;
        }
        let code: String = source.code().flat_map(|(_, line)| [line, "\n"]).collect();
        for name in names_after_crate(&code) {
            let target = at_the_root.get(&name).unwrap_or(&name);
            edges += usize::from(target != room);
            if target != room && !below.contains(&&**target) {
                let path = source.path.display();
                let _ = writeln!(wrong, "{path}: `{room}` uses `crate::{name}` of `{target}`");
            }
        }
    }
    assert_none(&wrong, "rooms use those below them only");
    assert!(edges > 50, "only {edges} uses of other rooms found");
}

#[test]
fn unsafe_code_is_in_one_crate() {
    let words = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait"];
    let elsewhere =
        |source: &Source| !source.is_in("chimera-pmem") && !source.path.ends_with("tidiness.rs");
    forbid("only chimera-pmem has unsafe code", &words, elsewhere);
    for entry in fs::read_dir(crates()).expect("the directory of all crates") {
        let path = entry.expect("an entry").path();
        for root in ["src/lib.rs", "src/main.rs"] {
            let Ok(text) = fs::read_to_string(path.join(root)) else { continue };
            let forbids = text.contains("#![forbid(unsafe_code)]");
            assert!(
                forbids || path.ends_with("chimera-pmem"),
                "{}/{root} does not forbid unsafe code",
                path.display()
            );
        }
    }
}

#[test]
fn instructions_are_in_one_room() {
    let words = ["_mm_", "asm!(", "core::arch", "std::arch"];
    let elsewhere = |source: &Source| {
        !source.is_in("chimera-pmem/src/arch")
            && !source.is_test()
            && !source.path.ends_with("tidiness.rs")
    };
    forbid("only chimera-pmem/src/arch has instructions of processors", &words, elsewhere);
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
