//! Which file of a crate uses which: read from its `use` declarations and the paths in its code.
//!
//! Only what is written out is seen: not a method that is called, nor a field of an inferred type. A name
//! that a module only passes on, by a `use` of its own, leads to the file that defines it. Test code is
//! left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, sources};
use crate::tokens::{Import, Read, read};

/// A module's path from the root of its crate.
type Module = Vec<String>;

/// The files that one file uses, each with the names it is used by.
pub(crate) type Uses = BTreeMap<String, BTreeSet<String>>;

/// The modules of a crate.
pub(crate) struct Crate {
    /// Each with its file, from the directory `src`.
    modules: BTreeMap<Module, (String, Read)>,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Module(Module),
    /// Something that a module defines.
    Item(Module),
}

/// Longest chain of names that pass each other on.
const CHAIN_MAX: u32 = 12;

impl Crate {
    /// Reads the crate of this name.
    pub(crate) fn read(name: &str) -> Self {
        let root = format!("{name}/src/");
        let all: Vec<_> = sources().into_iter().filter(|source| !source.is_test()).collect();
        let file = |source: &Source| {
            source.path.to_str().and_then(|path| path.strip_prefix(&root)).map(str::to_owned)
        };
        let files = all.iter().filter_map(|source| Some((file(source)?, &*source.text)));
        let found = Self::of(files);
        assert!(found.modules.len() > 10, "only {} modules in {name}", found.modules.len());
        found
    }

    /// The crate that consists of these files.
    pub(crate) fn of<'a>(files: impl IntoIterator<Item = (String, &'a str)>) -> Self {
        let files: Vec<_> = files.into_iter().collect();
        let has_library = files.iter().any(|(file, _)| file == "lib.rs");
        let mut modules = BTreeMap::new();
        for (file, text) in files {
            // Beside a library the program is a crate of its own, in one file.
            if file == "main.rs" && has_library {
                continue;
            }
            let mut module: Module =
                file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                module.pop();
            }
            modules.insert(module, (file, read(text)));
        }
        Self { modules }
    }

    /// For every file the files that it uses.
    pub(crate) fn imports(&self) -> BTreeMap<&str, Uses> {
        self.modules
            .iter()
            .map(|(module, (file, read))| (&**file, self.uses(module, read)))
            .collect()
    }

    fn uses(&self, module: &Module, read: &Read) -> Uses {
        let mut uses = Uses::new();
        let mut note = |used: Module, path: &[String]| {
            if let Some((file, _)) = self.modules.get(&used).filter(|_| used != *module) {
                uses.entry(file.clone()).or_default().insert(path.join("::"));
            }
        };
        for import in &read.imports {
            match self.resolve(module, &import.path, CHAIN_MAX) {
                // A folder passes on what its parts define.
                Some(Target::Item(used) | Target::Module(used))
                    if import.is_passed_on && used.starts_with(module) => {}
                // A folder by itself is a way to what lies in it.
                Some(Target::Module(used)) if import.name != "*" && self.has_children(&used) => {}
                Some(Target::Item(used) | Target::Module(used)) => note(used, &import.path),
                None => {}
            }
        }
        for path in &read.paths {
            if let Some(Target::Item(used)) = self.resolve(module, path, CHAIN_MAX) {
                note(used, path);
            }
        }
        uses
    }

    fn has_children(&self, module: &Module) -> bool {
        let is_inside = |other: &&Module| other.len() > module.len() && other.starts_with(module);
        self.modules.keys().any(|other| is_inside(&other))
    }

    fn child(&self, module: &Module, name: &str) -> Option<Module> {
        let child: Module =
            module.iter().map(String::as_str).chain([name]).map(str::to_owned).collect();
        self.modules.contains_key(&child).then_some(child)
    }

    /// What a path in a module leads to; none where it leaves the crate.
    fn resolve(&self, from: &Module, path: &[String], chain: u32) -> Option<Target> {
        let chain = chain.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Target::Module(Module::new()),
            "self" => Target::Module(from.clone()),
            "super" => Target::Module(from[..from.len().checked_sub(1)?].to_vec()),
            name => match self.child(from, name) {
                Some(child) => Target::Module(child),
                None => self.passed_on(from, name, chain)?,
            },
        };
        self.follow(start, rest, chain)
    }

    /// Where a path leads from a module on.
    fn follow(&self, start: Target, path: &[String], chain: u32) -> Option<Target> {
        let mut at = start;
        for name in path {
            // What follows an item is a part of it.
            let Target::Module(module) = &at else { return Some(at) };
            at = match name.as_str() {
                "self" => continue,
                "super" => Target::Module(module[..module.len().checked_sub(1)?].to_vec()),
                name => match self.child(module, name) {
                    Some(child) => Target::Module(child),
                    None => self
                        .passed_on(module, name, chain)
                        .unwrap_or_else(|| Target::Item(module.clone())),
                },
            };
        }
        Some(at)
    }

    /// What a name means that a module has from a `use`.
    fn passed_on(&self, module: &Module, name: &str, chain: u32) -> Option<Target> {
        let (_, read) = self.modules.get(module)?;
        let named = |import: &&Import| import.name == name;
        let import = read.imports.iter().find(named)?;
        // The module's own child of the same name is not meant: it would be found before.
        self.resolve(module, &import.path, chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)], file: &str) -> Vec<String> {
        let files = files.iter().map(|(file, text)| ((*file).to_owned(), *text));
        Crate::of(files).imports()[file].keys().cloned().collect()
    }

    #[test]
    fn names_lead_to_the_files_that_define_them() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::deep::Deep;"),
            ("a.rs", "use crate::Deep; use std::fmt; use crate::b::{self, Near, inner::*};"),
            ("b/mod.rs", "mod deep; mod near; mod inner; pub(crate) use near::Near; struct Own;"),
            ("b/deep.rs", "use super::Own; fn f() { super::near::g(); inner() }"),
            ("b/near.rs", "// use crate::a::A;\nconst TEXT: &str = \"crate::a::A\";"),
            (
                "b/inner.rs",
                "#[cfg(test)]\nmod tests { use crate::a::A; }\nuse super::deep as other;\nfn f() -> other::Deep {}",
            ),
        ];
        assert_eq!(uses(&files, "a.rs"), ["b/deep.rs", "b/inner.rs", "b/near.rs"]);
        assert_eq!(uses(&files, "b/deep.rs"), ["b/mod.rs", "b/near.rs"]);
        assert!(uses(&files, "b/near.rs").is_empty());
        assert_eq!(uses(&files, "b/inner.rs"), ["b/deep.rs"]);
        assert!(uses(&files, "lib.rs").is_empty(), "what is passed on is not used");
        assert!(uses(&files, "b/mod.rs").is_empty());
        let passing_on = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "pub use crate::b::B; use crate::c::*;"),
            ("b.rs", "pub(crate) struct B;"),
            ("c/mod.rs", "mod d;"),
            ("c/d.rs", ""),
        ];
        assert_eq!(uses(&passing_on, "a.rs"), ["b.rs", "c/mod.rs"], "what others define");
    }
}
