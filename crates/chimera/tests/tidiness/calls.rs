//! No circles of calls between the files of an engine, and no type with too many methods.
//!
//! Imports do not show a circle of methods of one type that lie in several files: each file imports the type alone. So
//! calls are followed: `file a` calls `file b` when it calls a method that is defined in `b` alone. A method is told by the
//! type that it is called on, where that is a type of the folder, and else, on `self`, by its name. The `mod.rs` of a folder
//! is a file like the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::assert_none;
use crate::circles::circles;
use crate::methods::{Call, Methods, Receiver, methods};
use crate::source::{Source, sources};

/// The room that this is about.
const ROOM: &str = "chimera/src/engine";

/// Its folders, each with files that call one another.
const FOLDERS: [&str; 6] = ["viper", "hikv", "chameleon", "log_hash", "teaching", "shared"];

/// Folders with circles, until they are mended. This list only shrinks.
const KNOWN_CIRCLES: [&str; 0] = [];

/// Most methods of a type, in all its `impl`s together.
const METHODS_MAX: usize = 40;

/// Types with more, by their folders, until they are mended. This list only shrinks.
const KNOWN_LARGE: [(&str, &str); 0] = [];

/// The files of a folder.
struct Folder<'a> {
    files: BTreeMap<&'a str, Methods>,
}

impl<'a> Folder<'a> {
    fn of(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files = files.into_iter().map(|(file, text)| (file, methods(text))).collect();
        Self { files }
    }

    fn types(&self) -> BTreeSet<&str> {
        self.files.values().flat_map(|file| &file.types).map(String::as_str).collect()
    }

    /// For each name those types of the folder that something of this name is declared to have.
    fn named(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let (types, mut named) = (self.types(), BTreeMap::<_, BTreeSet<_>>::new());
        for (name, kind) in self.files.values().flat_map(|file| &file.named) {
            if types.contains(kind.as_str()) {
                named.entry(name.as_str()).or_default().insert(kind.as_str());
            }
        }
        named
    }

    /// The file that alone defines a method, of these types, or of any.
    fn defining(&self, of: Option<&BTreeSet<&str>>, method: &str) -> Option<&'a str> {
        let defines = |file: &Methods| {
            let mut types = file.defined.iter();
            types.any(|(name, defined)| {
                of.is_none_or(|of| of.contains(name.as_str()))
                    && defined.iter().any(|it| it == method)
            })
        };
        let mut files = self.files.iter().filter(|(_, file)| defines(file)).map(|(file, _)| *file);
        files.next().filter(|_| files.next().is_none())
    }

    /// For each file those that it calls, with the methods.
    fn calls(&self) -> BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<&str>>> {
        let named = self.named();
        let defining = |Call { on, method }: &Call| match on {
            Receiver::This(this) => self
                .defining(Some(&BTreeSet::from([this.as_str()])), method)
                .or_else(|| self.defining(None, method)),
            Receiver::Named(name) => self.defining(Some(named.get(name.as_str())?), method),
        };
        let mut calls = BTreeMap::<_, BTreeMap<_, BTreeSet<_>>>::new();
        for (file, read) in &self.files {
            let others = calls.entry(*file).or_default();
            for call in &read.called {
                if let Some(other) = defining(call).filter(|other| other != file) {
                    others.entry(other).or_default().insert(call.method.as_str());
                }
            }
        }
        calls
    }

    /// One line for each call in a circle.
    fn circles(&self) -> Vec<String> {
        let calls = self.calls();
        let edges = calls.iter().map(|(file, others)| (*file, others.keys().copied().collect()));
        let mut lines = Vec::new();
        for circle in circles(&edges.collect()) {
            for file in &circle {
                for (other, methods) in calls[file].iter().filter(|(it, _)| circle.contains(*it)) {
                    lines.push(format!("{file} calls {methods:?} of {other}"));
                }
            }
        }
        lines
    }
}

/// The files of the room, each with the folder that it lies in, or none, and its name there.
fn room(sources: &[Source]) -> Vec<(&str, &str, &str)> {
    let files = sources.iter().filter(|source| !source.is_test());
    let inside = files.filter_map(|source| {
        let path = source.path.to_str()?.strip_prefix(ROOM)?.strip_prefix('/')?;
        let (folder, file) = path.split_once('/').unwrap_or(("", path));
        Some((folder, file, source.text.as_str()))
    });
    inside.collect()
}

/// The files of this folder.
fn folder<'a>(room: &[(&str, &'a str, &'a str)], name: &str) -> Folder<'a> {
    let files = room.iter().filter(|(folder, ..)| *folder == name);
    Folder::of(files.map(|(_, file, text)| (*file, *text)))
}

#[test]
fn files_of_an_engine_do_not_call_each_other_in_circles() {
    let sources = sources();
    let room = room(&sources);
    let (mut wrong, mut known) = (String::new(), BTreeSet::from(KNOWN_CIRCLES));
    for name in FOLDERS {
        let folder = folder(&room, name);
        assert!(folder.files.len() > 1, "only {} files in {name}", folder.files.len());
        let circles = folder.circles();
        if !circles.is_empty() && known.remove(name) {
            continue;
        }
        for line in circles {
            let _ = writeln!(wrong, "{name}: {line}");
        }
    }
    assert_none(&wrong, "files of an engine do not call each other in circles");
    assert!(known.is_empty(), "mended: {known:?} are to be removed from the list");
}

#[test]
fn types_have_few_methods() {
    let sources = sources();
    let room = room(&sources);
    let mut counts = BTreeMap::<(&str, String), usize>::new();
    let names: BTreeSet<_> = room.iter().map(|(folder, ..)| *folder).collect();
    for name in names {
        let folder = folder(&room, name);
        let types = folder.types();
        for (of, defined) in folder.files.values().flat_map(|file| &file.defined) {
            // Methods of a type that lies above the folder are counted there.
            let home = if types.contains(of.as_str()) { name } else { "" };
            *counts.entry((home, of.clone())).or_default() += defined.len();
        }
    }
    let total: usize = counts.values().sum();
    assert!(total > 300, "only {total} methods found");
    let (mut wrong, mut known) = (String::new(), BTreeSet::from(KNOWN_LARGE));
    for ((folder, name), count) in counts.iter().filter(|(_, count)| **count > METHODS_MAX) {
        if !known.remove(&(*folder, name.as_str())) {
            let _ = writeln!(wrong, "{ROOM}/{folder}: `{name}` has {count} methods");
        }
    }
    assert_none(&wrong, &format!("a type of the room has at most {METHODS_MAX} methods"));
    assert!(known.is_empty(), "mended: {known:?} are to be removed from the list");
}

#[test]
fn a_circle_of_calls_is_found() {
    let circles =
        |texts: &[(&'static str, &'static str)]| Folder::of(texts.iter().copied()).circles();
    let mut texts = [
        (
            "mod.rs",
            "mod a; mod b; struct Whole { part: Part } impl Whole { fn f(&self) { self.g() } }",
        ),
        ("a.rs", "impl Whole { fn g(&self) { self.part.h(); other.k() } }"),
        ("b.rs", "struct Part; impl Part { fn h(&self) {} fn f2(&self) {} }"),
        ("c.rs", "struct Aside; impl Aside { fn k(&self, whole: &Whole) { whole.g() } }"),
    ];
    assert!(circles(&texts).is_empty());
    // An engine that is passed to a part of it.
    texts[2].1 = "struct Part; impl Part { fn h(&self, engine: &mut Whole) { engine.f() } }";
    let expected = [
        "a.rs calls {\"h\"} of b.rs",
        "b.rs calls {\"f\"} of mod.rs",
        "mod.rs calls {\"g\"} of a.rs",
    ];
    assert_eq!(circles(&texts), expected);
    // Methods of one type in two files.
    texts[1].1 = "impl Whole { fn g(&self) { self.f() } }";
    texts[2].1 = "struct Part; impl Part { fn f(&self) {} }";
    assert_eq!(circles(&texts), ["a.rs calls {\"f\"} of mod.rs", "mod.rs calls {\"g\"} of a.rs"]);
}
