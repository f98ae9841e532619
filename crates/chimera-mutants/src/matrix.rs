//! All mutants of a room, with their numbers and names.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::find;
use crate::git::git;
use crate::room::Room;
use crate::site::{Mutant, Site};

/// A file of the room.
pub(crate) struct File {
    /// In the repository.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A site, where it is and how its mutants are numbered.
pub(crate) struct Numbered {
    pub(crate) site: Site,
    /// Which of the files.
    pub(crate) file: usize,
    /// The number of its first mutant, from 1.
    pub(crate) first: u32,
}

/// The mutants of a room.
pub(crate) struct Matrix {
    pub(crate) files: Vec<File>,
    pub(crate) sites: Vec<Numbered>,
    pub(crate) count: u32,
}

/// Numbers that the run-time module has room for.
const COUNT_MAX: u32 = 1 << 16;

impl Matrix {
    /// Reads the files of a room as they are in the last commit of the repository at `root`.
    pub(crate) fn read(room: &Room, root: &Path) -> io::Result<Self> {
        let source = format!("{}/{}", room.home, room.source);
        let listed = git(root, &["ls-tree", "-r", "--name-only", "HEAD", &source])?;
        let mut read = Vec::new();
        let mut gated = BTreeSet::new();
        for path in listed.lines().filter(|path| is_source(path)) {
            let text = git(root, &["show", &format!("HEAD:{path}")])? + "\n";
            let found =
                find::find(&text).map_err(|error| io::Error::other(format!("{path}: {error}")))?;
            let path = Path::new(path);
            // A module may have one file in models and another one besides.
            let is_only = |name: &&String| !found.modules.contains(name);
            let only = found.gated_modules.iter().filter(is_only);
            gated.extend(only.map(|name| children(path).join(name)));
            read.push((path, text, found));
        }
        let mut matrix = Self { files: Vec::new(), sites: Vec::new(), count: 0 };
        for (path, text, found) in read {
            let is_gated =
                |module: &PathBuf| path.starts_with(module) || path == module.with_extension("rs");
            if !gated.iter().any(is_gated) {
                matrix.push(File { path: path.display().to_string(), text }, found.sites);
            }
        }
        if matrix.count >= COUNT_MAX {
            return Err(io::Error::other(format!("{} mutants are too many", matrix.count)));
        }
        Ok(matrix)
    }

    fn push(&mut self, file: File, sites: Vec<Site>) {
        for site in sites {
            let first = self.count + 1;
            self.count += site.mutants.len() as u32;
            self.sites.push(Numbered { site, file: self.files.len(), first });
        }
        self.files.push(file);
    }

    /// The site of a mutant, and the mutant.
    pub(crate) fn mutant(&self, number: u32) -> (&Numbered, &Mutant) {
        let at = self.sites.partition_point(|numbered| numbered.first <= number) - 1;
        let numbered = &self.sites[at];
        (numbered, &numbered.site.mutants[(number - numbered.first) as usize])
    }

    /// What a mutant is called. The name does not depend on the mutants of other lines.
    pub(crate) fn name(&self, number: u32) -> String {
        let (numbered, mutant) = self.mutant(number);
        let file = &self.files[numbered.file].path;
        format!("{file}:{}:{} {}", mutant.line, mutant.column, mutant.what)
    }

    /// The lines of a mutant as they would be written by hand.
    pub(crate) fn shown(&self, number: u32) -> String {
        let (numbered, mutant) = self.mutant(number);
        let text = &self.files[numbered.file].text;
        let (range, new) = &mutant.shown;
        let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[range.end..].find('\n').map_or(text.len(), |at| range.end + at);
        let marked = |sign: &str, lines: &str| -> String {
            let signed: Vec<_> = lines.lines().map(|line| format!("{sign} {line}")).collect();
            signed.join("\n") + "\n"
        };
        let after = format!("{}{new}{}", &text[start..range.start], &text[range.end..end]);
        marked("-", &text[start..end]) + &marked("+", &after)
    }
}

/// The directory of a file's modules.
fn children(path: &Path) -> PathBuf {
    let is_root = path.file_name().is_some_and(|name| name == "mod.rs" || name == "lib.rs");
    if is_root { path.parent().unwrap_or(path).to_owned() } else { path.with_extension("") }
}

/// Whether a file is Rust, and not for tests or for models of concurrent code by its name.
fn is_source(path: &str) -> bool {
    let is_test = |part: &str| {
        let stem = part.strip_suffix(".rs").unwrap_or(part);
        matches!(stem, "tests" | "models") || stem.starts_with("under_loom")
    };
    Path::new(path).extension().is_some_and(|it| it == "rs") && !path.split('/').any(is_test)
}
