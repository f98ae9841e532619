//! The source files of all crates.

use std::fs;
use std::path::{Path, PathBuf};

/// The directory of all crates.
pub(crate) fn crates() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("crates/chimera has a parent").to_owned()
}

/// A source file.
pub(crate) struct Source {
    /// From the directory of all crates.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl Source {
    /// Whether the file lies in this directory.
    pub(crate) fn is_in(&self, directory: &str) -> bool {
        self.path.starts_with(directory)
    }

    /// Whether the file is a test or a part of one.
    pub(crate) fn is_test(&self) -> bool {
        let name = |part: &str| self.path.iter().any(|component| component == part);
        name("tests") || name("tests.rs") || name("benches") || name("examples")
    }

    /// Lines of code outside of test modules and comments, with their numbers.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
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
pub(crate) fn sources() -> Vec<Source> {
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
