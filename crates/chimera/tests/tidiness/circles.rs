//! No circles between files.
//!
//! A file may use what the files above it define, the `mod.rs` of its own folder and those around that
//! and the root: these hold what their parts share, and types whose methods the parts are. In the room of engines a parent
//! is a file like the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::assert_none;
use crate::imports::Crate;

/// Files that use each other, until they are mended: one list for each circle. This list only shrinks.
const KNOWN: [(&str, &[&str]); 0] = [];

/// Names that lead to each other.
pub(crate) fn circles<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<BTreeSet<&'a str>> {
    let reachable = |start: &'a str| {
        let mut found = BTreeSet::new();
        let mut left = vec![start];
        while let Some(at) = left.pop() {
            let next = edges.get(at).into_iter().flatten();
            left.extend(next.filter(|next| found.insert(**next)));
        }
        found
    };
    let from: BTreeMap<_, _> = edges.keys().map(|name| (*name, reachable(name))).collect();
    let mut circles = BTreeSet::new();
    for (name, reached) in &from {
        let circle: BTreeSet<_> = reached
            .iter()
            .filter(|other| from.get(**other).is_some_and(|back| back.contains(name)))
            .copied()
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// The room whose parents are files like the others.
const ROOM: &str = "engine/";

/// Whether `above` is the file of a folder, or of the crate, that `file` lies in, and may be used by it.
fn is_above(above: &str, file: &str) -> bool {
    let folder = match above {
        "lib.rs" | "main.rs" => return true,
        _ => above.strip_suffix("mod.rs").unwrap_or_else(|| above.trim_end_matches(".rs")),
    };
    if folder.starts_with(ROOM) {
        return false;
    }
    file != above
        && file
            .strip_prefix(folder)
            .is_some_and(|rest| folder.ends_with('/') || rest.starts_with('/'))
}

/// For each file those that it uses, but for those above it.
fn edges(files: &Crate) -> BTreeMap<String, BTreeSet<String>> {
    let mut edges = BTreeMap::new();
    for (file, uses) in files.imports() {
        let used = uses.into_keys().filter(|used| !is_above(used, file)).collect();
        edges.insert(file.to_owned(), used);
    }
    edges
}

#[test]
fn files_do_not_use_each_other_in_circles() {
    let mut wrong = String::new();
    let mut known: BTreeSet<_> = KNOWN.into();
    for name in [
        "chimera-pmem",
        "chimera",
        "chimera-primitives",
        "chimera-bench",
        "chimera-crashlab",
        "chimera-cli",
        "chimera-mutants",
        "chimera-placement",
        "chimera-peers",
    ] {
        let owned = edges(&Crate::read(name));
        let edges: BTreeMap<&str, BTreeSet<&str>> = owned
            .iter()
            .map(|(file, used)| (&**file, used.iter().map(|used| &**used).collect()))
            .collect();
        let count: usize = edges.values().map(BTreeSet::len).sum();
        assert!(count > edges.len(), "only {count} uses of files found in {name}");
        for circle in circles(&edges) {
            let is_known = |(of, files): &&(&str, &[&str])| {
                *of == name && circle.iter().all(|file| files.contains(file))
            };
            if let Some(found) = KNOWN.iter().find(is_known) {
                known.remove(found);
                continue;
            }
            for file in &circle {
                let used: Vec<_> = edges[file].intersection(&circle).collect();
                let _ = writeln!(wrong, "{name}: {file} uses {used:?}");
            }
        }
    }
    assert_none(&wrong, "files do not use each other in circles");
    assert!(known.is_empty(), "mended: {known:?} are to be removed from the list");
}

#[test]
fn a_circle_is_found_and_a_folder_with_its_parts_is_none() {
    let crate_of = |files: &[(&'static str, &'static str)]| {
        Crate::of(files.iter().map(|(file, text)| ((*file).to_owned(), *text)))
    };
    let find = |files: &[(&'static str, &'static str)]| {
        let owned = edges(&crate_of(files));
        let edges =
            owned.iter().map(|(file, used)| (&**file, used.iter().map(|used| &**used).collect()));
        circles(&edges.collect())
            .iter()
            .map(|circle| circle.iter().map(|file| (*file).to_owned()).collect())
            .collect::<Vec<Vec<_>>>()
    };
    let parts = [
        ("lib.rs", "mod a; mod b; struct Root; fn f() { a::part::g() }"),
        ("a/mod.rs", "mod part; use part::Part; struct Whole(Part);"),
        ("a/part.rs", "use super::Whole; use crate::Root; use crate::b::B;"),
        ("b.rs", "struct B;"),
    ];
    assert!(find(&parts).is_empty());
    let mut circle = parts;
    circle[3].1 = "use crate::a; struct B; fn f() -> a::Whole {}";
    assert_eq!(find(&circle), [["a/mod.rs", "a/part.rs", "b.rs"]]);
    let parent = [
        ("lib.rs", "mod engine;"),
        ("engine/mod.rs", "mod part; use part::Part; struct Whole(Part);"),
        ("engine/part.rs", "use super::Whole; struct Part;"),
    ];
    assert_eq!(find(&parent), [["engine/mod.rs", "engine/part.rs"]]);
}
