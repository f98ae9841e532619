//! Directions: of crates, of the rooms of the store, of the rooms of every other crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use crate::assert_none;
use crate::circles::circles;
use crate::imports::Crate;
use crate::source::crates;

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
        ("chimera-primitives", vec!["chimera-pmem"]),
        ("chimera-bench", vec!["chimera", "chimera-pmem", "chimera-primitives"]),
        ("chimera-crashlab", vec!["chimera", "chimera-pmem", "chimera-primitives"]),
        ("chimera-cli", vec!["chimera", "chimera-bench", "chimera-pmem"]),
        ("chimera-mutants", vec![]),
        ("chimera-placement", vec!["chimera-pmem"]),
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
const ROOMS: [(&str, &[&str]); 10] = [
    ("types", &[]),
    ("sync", &[]),
    ("metrics", &["types", "sync"]),
    ("pool", &["types", "sync"]),
    ("ordered", &["types", "sync"]),
    ("index", &["pool", "types", "sync"]),
    ("records", &["pool", "types", "sync"]),
    ("engine", &["ordered", "index", "records", "pool", "metrics", "types", "sync"]),
    ("db", &["engine", "ordered", "pool", "metrics", "types", "sync"]),
    ("transfer", &["db", "engine", "pool", "types"]),
];

/// Rooms that use others which they should not, until they are mended. This list only shrinks.
const KNOWN: [(&str, &str); 0] = [];

#[test]
fn rooms_use_those_below_them_only() {
    let store = Crate::read("chimera");
    let files = store.imports();
    let mut wrong = String::new();
    let mut known: BTreeSet<_> = KNOWN.into();
    let mut used = 0;
    for (file, uses) in &files {
        if is_root(file) {
            continue;
        }
        let room = top(file);
        let below = ROOMS.iter().find(|(name, _)| *name == room).map(|(_, below)| below);
        let below = below.unwrap_or_else(|| panic!("room `{room}` has no place in the order yet"));
        for (target, names) in uses.iter().filter(|(target, _)| !is_root(target)) {
            let other = top(target);
            if other == room {
                continue;
            }
            used += 1;
            let is_known = KNOWN.contains(&(room, other));
            known.remove(&(room, other));
            if !below.contains(&other) && !is_known {
                let _ = writeln!(wrong, "{file} uses {names:?} of {target}");
            }
        }
    }
    assert_none(&wrong, "rooms use those below them only");
    assert!(used > 50, "only {used} uses of other rooms found");
    assert!(known.is_empty(), "mended: {known:?} are to be removed from the list");
}

/// A room of any crate: a folder, or a file beside the root.
fn top(file: &str) -> &str {
    file.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// Whether a file is the root of its crate.
fn is_root(file: &str) -> bool {
    file == "lib.rs" || file == "main.rs"
}

/// Rooms of the other crates that use each other, until they are mended. This list only shrinks.
const KNOWN_CIRCLES: [(&str, &[&str]); 0] = [];

#[test]
fn rooms_of_other_crates_do_not_use_each_other_in_circles() {
    let mut wrong = String::new();
    let mut known: BTreeSet<_> = KNOWN_CIRCLES.into();
    for name in [
        "chimera-pmem",
        "chimera-primitives",
        "chimera-bench",
        "chimera-crashlab",
        "chimera-cli",
        "chimera-mutants",
        "chimera-placement",
    ] {
        let files = Crate::read(name);
        let mut rooms: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let imports = files.imports();
        for (file, uses) in &imports {
            let others = uses.keys().filter(|used| !is_root(used)).map(|used| top(used));
            rooms.entry(top(file)).or_default().extend(others);
        }
        for circle in circles(&rooms) {
            let is_known = |(of, rooms): &(&str, &[&str])| {
                *of == name && circle.iter().all(|room| rooms.contains(room))
            };
            match KNOWN_CIRCLES.into_iter().find(|known| is_known(known)) {
                Some(found) => drop(known.remove(&found)),
                None => drop(writeln!(wrong, "{name}: {circle:?}")),
            }
        }
    }
    assert_none(&wrong, "rooms do not use each other in circles");
    assert!(known.is_empty(), "mended: {known:?} are to be removed from the list");
}
