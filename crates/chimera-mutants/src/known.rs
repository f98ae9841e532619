//! What is known of older source, and what of it stays in force.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use crate::build::Tree;
use crate::cli::Options;
use crate::git::git;
use crate::matrix::Matrix;
use crate::outcome::{self, Outcome};

/// A directory of outcomes, and the source that they are to be of.
pub(crate) struct Known<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) root: &'a Path,
    pub(crate) tree: &'a Tree,
    pub(crate) matrix: &'a Matrix,
}

impl Known<'_> {
    /// Leaves in the directory what holds for the source as it is. Outcomes are for one version of the source and of its
    /// tests. `--fresh` forgets older ones, `--again` keeps what tests noticed in files that are as they were.
    pub(crate) fn bring_up_to_date(&self, options: &Options) -> io::Result<()> {
        let read = |name| fs::read_to_string(self.directory.join(name)).unwrap_or_default();
        let is_current = read("version") == self.tree.version();
        let outcomes = self.directory.join("outcomes.jsonl");
        if options.again {
            self.keep_noticed(options.wide, &read("commit"), &outcomes)?;
        } else if !is_current && !options.fresh && outcomes.exists() {
            let of = self.directory.display();
            return Err(io::Error::other(format!(
                "{of} is of other source than the last commit: --again tries survivors and files that have changed, \
                 --fresh begins anew"
            )));
        }
        if !is_current {
            if !options.again {
                self.remove(&["outcomes.jsonl"]);
            }
            self.remove(&["build.json", "narrow.json", "wide.json"]);
        }
        fs::write(self.directory.join("commit"), self.tree.commit())?;
        fs::write(self.directory.join("version"), self.tree.version())
    }

    fn remove(&self, names: &[&str]) {
        for name in names {
            let _ = fs::remove_file(self.directory.join(name));
        }
    }

    /// Forgets survivors, and all outcomes of files that are not what they were in the older commit. Where whole stores are
    /// asked, survivors stay survivors, to be tried again.
    fn keep_noticed(&self, is_wide: bool, commit: &str, path: &Path) -> io::Result<()> {
        let numbers: BTreeMap<String, u32> =
            (1..=self.matrix.count).map(|number| (self.matrix.name(number), number)).collect();
        let mut is_same = BTreeMap::new();
        for file in &self.matrix.files {
            let older = git(self.root, &["show", &format!("{commit}:{}", file.path)]);
            is_same.insert(&*file.path, older.is_ok_and(|older| older + "\n" == file.text));
        }
        let mut kept = String::new();
        for outcome in outcome::read(path)?.into_values() {
            let Outcome { file, line, column, what, .. } = &outcome;
            let stays =
                is_same.get(&**file) == Some(&true) && (is_wide || !outcome.fate.survives());
            let number = numbers.get(&format!("{file}:{line}:{column} {what}"));
            if let Some(&id) = number.filter(|_| stays) {
                kept += &(serde_json::to_string(&Outcome {
                    id,
                    wide: outcome.wide && !is_wide,
                    ..outcome
                })? + "\n");
            }
        }
        // A run that is cut off here has either the one or the other.
        let new = path.with_extension("new");
        fs::write(&new, kept)?;
        fs::rename(new, path)
    }
}
