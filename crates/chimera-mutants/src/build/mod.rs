//! One build with all mutants that compile.

mod cargo;
mod tree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

pub(crate) use self::cargo::Binary;
use self::cargo::{Cargo, Failure};
pub(crate) use self::tree::Tree;
use crate::matrix::Matrix;
use crate::room::{Asked, Room};
use crate::splice::{Placed, Spliced};

/// What is known of a build. Kept, so that a run that goes on need not build again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// What the tree is made of.
    version: String,
    /// How many mutants were found.
    count: u32,
    /// The form of each site in force. Behind the last one: it does not compile.
    forms: Vec<usize>,
    pub(crate) narrow: Vec<Binary>,
    pub(crate) wide: Vec<Binary>,
}

impl State {
    /// Whether a mutant compiles.
    pub(crate) fn is_viable(&self, matrix: &Matrix, number: u32) -> bool {
        let at = matrix.sites.partition_point(|numbered| numbered.first <= number) - 1;
        let numbered = &matrix.sites[at];
        let form = numbered.site.forms.get(self.forms[at]);
        form.is_some_and(|form| number - numbered.first < form.mutants)
    }

    fn read(path: &Path, version: &str, matrix: &Matrix) -> Self {
        let known = fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok());
        let fits = |state: &Self| {
            state.version == version
                && state.count == matrix.count
                && state.forms.len() == matrix.sites.len()
        };
        known.filter(fits).unwrap_or_else(|| Self {
            version: version.to_owned(),
            count: matrix.count,
            forms: vec![0; matrix.sites.len()],
            ..Self::default()
        })
    }
}

/// Makes the builds of a room.
pub(crate) struct Builder<'a> {
    pub(crate) room: &'a Room,
    pub(crate) matrix: &'a Matrix,
    pub(crate) tree: &'a Tree,
    /// Where what is known is kept.
    pub(crate) directory: &'a Path,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
    /// Names of the binaries of tests that are asked; none for all.
    pub(crate) targets: &'a [String],
    /// Told what happens.
    pub(crate) note: &'a dyn Fn(&str),
}

/// Rounds after which something else than mutants is wrong.
const ROUNDS_MAX: usize = 60;

impl Builder<'_> {
    fn path(&self) -> PathBuf {
        self.directory.join("build.json")
    }

    /// What is known already.
    pub(crate) fn known(&self) -> State {
        State::read(&self.path(), self.tree.version(), self.matrix)
    }

    /// Builds tests with all mutants. Those that do not compile are left out.
    pub(crate) fn build(&self, state: &mut State, is_wide: bool) -> io::Result<()> {
        let tests = if is_wide { self.room.wide } else { self.room.narrow };
        let tests = tests.asked(self.targets);
        let cargo = Cargo { tree: self.tree.path(), target: &self.target };
        for round in 1..=ROUNDS_MAX {
            let files = self.write(state)?;
            let failures = match build_or_blame(&cargo, &tests)? {
                Ok(binaries) => {
                    *(if is_wide { &mut state.wide } else { &mut state.narrow }) = binaries;
                    return fs::write(self.path(), serde_json::to_string(state)?);
                }
                Err(failures) => failures,
            };
            let blamed = self.blame(state, &files, &failures);
            (self.note)(&format!(
                "round {round}: {} errors, {} places written otherwise or left out",
                failures.len(),
                blamed.len()
            ));
            if blamed.is_empty() {
                let texts: Vec<_> = failures.iter().map(|failure| &*failure.rendered).collect();
                return Err(io::Error::other(texts.join("\n")));
            }
            for site in blamed {
                state.forms[site] += 1;
            }
        }
        Err(io::Error::other("some mutants still do not compile"))
    }

    /// Writes all files with the forms in force.
    fn write(&self, state: &State) -> io::Result<Vec<Spliced>> {
        let mut spliced = Vec::new();
        for (at, file) in self.matrix.files.iter().enumerate() {
            let numbered = self.matrix.sites.iter().enumerate();
            let placed: Vec<_> = numbered
                .filter(|(id, numbered)| {
                    numbered.file == at && state.forms[*id] < numbered.site.forms.len()
                })
                .map(|(id, numbered)| Placed {
                    site: &numbered.site,
                    form: state.forms[id],
                    first: numbered.first,
                    id,
                })
                .collect();
            let new = Spliced::new(&file.text, &placed);
            self.tree.write(&file.path, &new.text)?;
            spliced.push(new);
        }
        Ok(spliced)
    }

    /// The sites that errors come from.
    fn blame(&self, state: &State, files: &[Spliced], failures: &[Failure]) -> BTreeSet<usize> {
        let mut blamed = BTreeSet::new();
        for failure in failures {
            let near = |find: &dyn Fn(usize, &std::ops::Range<usize>) -> Vec<usize>| {
                failure.spans.iter().find_map(|span| {
                    let is_file = |file: &crate::matrix::File| file.path == span.file;
                    let file = self.matrix.files.iter().position(is_file)?;
                    let found = find(file, &span.range);
                    (!found.is_empty()).then_some(found)
                })
            };
            let inserted = |file: usize, range: &_| Vec::from_iter(files[file].site_at(range));
            let innermost =
                |file: usize, range: &_| self.innermost(state, file, &files[file].original(range));
            let function =
                |file: usize, range: &_| self.function(state, file, &files[file].original(range));
            let found = near(&inserted).or_else(|| near(&innermost)).or_else(|| near(&function));
            blamed.extend(found.unwrap_or_default());
        }
        blamed
    }

    /// The smallest site in force that holds a range.
    fn innermost(&self, state: &State, file: usize, range: &std::ops::Range<usize>) -> Vec<usize> {
        let holding = self.matrix.sites.iter().enumerate().filter(|(id, numbered)| {
            let site = &numbered.site;
            numbered.file == file
                && !site.is_insertion
                && state.forms[*id] < site.forms.len()
                && site.range.start <= range.start
                && range.end <= site.range.end
        });
        let smallest = holding.min_by_key(|(_, numbered)| numbered.site.range.len());
        Vec::from_iter(smallest.map(|(id, _)| id))
    }

    /// All sites in force of the function that holds a range.
    fn function(&self, state: &State, file: usize, range: &std::ops::Range<usize>) -> Vec<usize> {
        let sites = self.matrix.sites.iter().enumerate().filter(|(id, numbered)| {
            let site = &numbered.site;
            numbered.file == file
                && state.forms[*id] < site.forms.len()
                && site.function.start <= range.start
                && range.end <= site.function.end
        });
        sites.map(|(id, _)| id).collect()
    }
}

/// Checks, which is quick, and builds if nothing is wrong.
fn build_or_blame(
    cargo: &Cargo<'_>,
    tests: &Asked<'_>,
) -> io::Result<Result<Vec<Binary>, Vec<Failure>>> {
    match cargo.check(tests)? {
        Ok(()) => cargo.build(tests),
        Err(failures) => Ok(Err(failures)),
    }
}
