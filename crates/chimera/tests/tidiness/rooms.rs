//! Directions: of crates, of the rooms of the store, of the floors of its engines, of the rooms of every other crate.

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
        ("chimera-peers", vec!["chimera", "chimera-bench", "chimera-pmem"]),
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

/// The floors of the room of engines, the lowest first, and which others each may use. What `engine/mod.rs` passes on leads
/// to the floor that defines it.
const FLOORS: [(&str, &[&str]); 9] = [
    ("options", &[]),
    ("contract", &["options"]),
    ("shared", &["contract", "options"]),
    ("viper", &["shared", "contract", "options"]),
    ("hikv", &["shared", "contract", "options"]),
    ("chameleon", &["shared", "contract", "options"]),
    ("log_hash", &["shared", "contract", "options"]),
    ("teaching", &["shared", "contract", "options"]),
    (
        "table",
        &["viper", "hikv", "chameleon", "log_hash", "teaching", "shared", "contract", "options"],
    ),
];

/// The floor of a file of the room of engines; none for the room's own file, which all floors lie in.
fn floor(file: &str) -> Option<&str> {
    file.strip_prefix("engine/").map(top).filter(|floor| *floor != "mod")
}

/// One line for each use of a floor that is not below. How many uses there are of others.
fn uses_of_other_floors(files: &Crate) -> (String, usize) {
    let (mut wrong, mut used) = (String::new(), 0);
    for (file, uses) in &files.imports() {
        let Some(floor_of_file) = floor(file) else { continue };
        let below = FLOORS.iter().find(|(name, _)| *name == floor_of_file).map(|(_, below)| below);
        let below = below.unwrap_or_else(|| panic!("`{file}` is on no floor yet"));
        for (target, names) in uses.iter().filter(|(target, _)| target.starts_with("engine/")) {
            let is_below = match floor(target) {
                Some(other) if other == floor_of_file => continue,
                other => other.is_some_and(|other| below.contains(&other)),
            };
            used += 1;
            if !is_below {
                let _ = writeln!(wrong, "{file} uses {names:?} of {target}");
            }
        }
    }
    (wrong, used)
}

#[test]
fn floors_of_engines_use_those_below_them_only() {
    let (wrong, used) = uses_of_other_floors(&Crate::read("chimera"));
    assert_none(&wrong, "floors of engines use those below them only");
    assert!(used > 100, "only {used} uses of other floors found");
}

#[test]
fn an_arrow_upward_is_found() {
    let wrong = |engine: &'static str, options: &'static str| {
        let files = [
            ("lib.rs", "mod engine;"),
            (
                "engine/mod.rs",
                "mod options; mod table; mod viper; pub use options::O; pub use table::T; struct Own;",
            ),
            ("engine/options.rs", options),
            ("engine/table.rs", "use crate::engine::{O, viper::V}; struct T;"),
            ("engine/viper.rs", engine),
        ];
        uses_of_other_floors(&Crate::of(files.map(|(file, text)| (file.to_owned(), text)))).0
    };
    assert_eq!(wrong("use crate::engine::O; struct V;", "struct O;"), "");
    let upward = wrong("use crate::engine::{O, T}; struct V;", "use super::Own; struct O;");
    let expected = [
        "engine/options.rs uses {\"super::Own\"} of engine/mod.rs",
        "engine/viper.rs uses {\"crate::engine::T\"} of engine/table.rs",
    ];
    assert_eq!(upward.lines().collect::<Vec<_>>(), expected);
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
        "chimera-peers",
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
