//! [`Tree`]: names and lengths of files, and which of their changes a crash may lose.
//!
//! The contents of a store's files are the machine's memory: here are only the names and lengths.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

/// Number of a file, whatever its names.
pub(crate) type Inode = u32;

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Directory,
    File(Inode),
}

/// All files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) nodes: BTreeMap<Name, Node>,
    /// Lengths in bytes.
    pub(crate) lengths: BTreeMap<Inode, u64>,
}

impl Tree {
    /// A hash that equal trees share.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.nodes.hash(&mut hasher);
        self.lengths.hash(&mut hasher);
        hasher.finish()
    }
}

/// A path without its root, shared by all that speak of it.
pub(crate) type Name = Arc<Path>;

/// A change that a crash may lose until it is synced. Numbered, so that events stay small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    /// Change number so-and-so of the machine was made.
    Made(u32),
    /// The file was synced.
    FileSynced(Inode),
    /// The directory of change number so-and-so was synced; the number is of a `Sync` entry.
    DirectorySynced(u32),
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    CreateDirectory(Name),
    Create(Name, Inode),
    Remove(Name),
    Length(Inode, u64),
    /// Not a change: the directory that was synced.
    Sync(Name),
}

impl Change {
    /// Makes the change. One whose directory is not there is lost with it.
    pub(crate) fn apply(&self, tree: &mut Tree) {
        if !self.has_directory(tree) {
            return;
        }
        match self {
            Self::CreateDirectory(name) => {
                tree.nodes.insert(name.clone(), Node::Directory);
            }
            Self::Create(name, inode) => {
                tree.nodes.insert(name.clone(), Node::File(*inode));
                tree.lengths.entry(*inode).or_default();
            }
            Self::Remove(name) => {
                tree.nodes.remove(name);
            }
            Self::Length(inode, length) => {
                tree.lengths.insert(*inode, *length);
            }
            Self::Sync(_) => {}
        }
    }

    /// Whether the directory is there that a new name lies in.
    pub(crate) fn has_directory(&self, tree: &Tree) -> bool {
        match self {
            Self::CreateDirectory(name) | Self::Create(name, _) => match name.parent() {
                Some(parent) if parent != Path::new("") => tree.nodes.contains_key(parent),
                _ => true,
            },
            Self::Remove(_) | Self::Length(..) | Self::Sync(_) => true,
        }
    }

    /// Whether syncing directory `name` makes the change durable.
    pub(crate) fn is_entry_of(&self, name: &Path) -> bool {
        match self {
            Self::CreateDirectory(entry) | Self::Create(entry, _) | Self::Remove(entry) => {
                entry.parent() == Some(name)
            }
            Self::Length(..) | Self::Sync(_) => false,
        }
    }
}
