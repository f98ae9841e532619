//! A tree of the repository's last commit, in which the mutants are written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::git::git;
use crate::room::Room;

/// The run-time module, as it is written into the crate that is mutated.
const MODULE: &str = include_str!("../runtime/mutant.rs");

/// A work tree.
pub(crate) struct Tree {
    path: PathBuf,
    commit: String,
    version: String,
}

impl Tree {
    /// Where the tree of the repository at `root` is, and of what commit it is to be.
    pub(crate) fn new(root: &Path, directory: &Path, room: &Room) -> io::Result<Self> {
        let commit = git(root, &["rev-parse", "HEAD"])?;
        // Other parts of the repository make no difference.
        let homes = [room.home, room.narrow.home, room.wide.home];
        let parts: BTreeSet<_> = homes.iter().map(|home| format!("HEAD:{home}")).collect();
        let parts = std::iter::once("rev-parse").chain(parts.iter().map(|part| &**part));
        let version = git(root, &parts.collect::<Vec<_>>())?.replace('\n', " ");
        Ok(Self { path: directory.join("tree"), commit, version })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The commit that it is of.
    pub(crate) fn commit(&self) -> &str {
        &self.commit
    }

    /// What the mutants are mutants of: the same whatever else a commit changes.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Makes the tree what the commit is, with the run-time module in the crate of the room.
    pub(crate) fn make(&self, root: &Path, room: &Room) -> io::Result<()> {
        if self.path.join(".git").exists() {
            git(&self.path, &["reset", "--quiet", "--hard"])?;
            git(&self.path, &["checkout", "--quiet", "--detach", &self.commit])?;
        } else {
            git(root, &["worktree", "prune"])?;
            let path = self.path.to_string_lossy();
            git(root, &["worktree", "add", "--quiet", "--detach", &path, &self.commit])?;
        }
        let root = room.crate_root(&self.path);
        let text = fs::read_to_string(&root)?;
        // At the end, so that all lines stay what they are.
        fs::write(&root, format!("{text}mod mutant;\n"))?;
        fs::write(root.with_file_name("mutant.rs"), MODULE)
    }

    /// Writes a file of the tree, unless it is so already: what is not touched is not built again.
    pub(crate) fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let path = self.path.join(path);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            Ok(())
        } else {
            fs::write(path, text)
        }
    }
}
