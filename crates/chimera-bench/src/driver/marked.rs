//! Directories that a benchmark made: how they are told from those of others, and what is removed from them.
//!
//! A benchmark puts a file, the marker, into every directory before anything else, and removes it after
//! everything else. Nothing is ever removed from a directory without a marker; and from one that has it
//! only what benchmarks make.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_pmem::environment::{File, OpenMode};
use chimera_pmem::{Environment, RealEnvironment};

use crate::error::{BenchError, Result};

/// The marker.
const MARKER: &str = "made-by-chimera-bench";
/// What the marker says.
const MARKER_TEXT: &[u8] =
    b"Made by `chimera bench`, which may remove what is in this directory.\n";
/// The region that floors are measured on.
pub(super) const FLOOR: &str = "floor";
/// A tree that is no store of the library.
pub(super) const TREE: &str = "tree";
/// A file to look at the medium with.
pub(super) const PROBE: &str = "probe";

/// Whether a benchmark made a directory.
pub(super) fn is_marked(directory: &Path) -> bool {
    fs::symlink_metadata(directory.join(MARKER)).is_ok_and(|marker| marker.is_file())
}

/// Marks a directory. The marker is locked for as long as the file is held, so that two benchmarks never
/// use one directory.
///
/// # Errors
/// [`BenchError::InUse`] when another benchmark holds the marker; when there is no room.
pub(super) fn mark(directory: &Path) -> Result<Arc<dyn File>> {
    let (path, environment) = (directory.join(MARKER), RealEnvironment::new());
    let file = match environment.open(&path, OpenMode::CreateNew) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            environment.open(&path, OpenMode::ReadWrite)
        }
        other => other,
    }
    .map_err(BenchError::io("create", &path))?;
    lock(&file, directory)?;
    file.write_at(0, MARKER_TEXT).map_err(BenchError::io("write", &path))?;
    Ok(file)
}

/// Takes the lock of a file in `directory` for as long as the file is held.
fn lock(file: &Arc<dyn File>, directory: &Path) -> Result<()> {
    if file.try_lock(true).map_err(BenchError::io("lock a file in", directory))? {
        Ok(())
    } else {
        Err(BenchError::InUse { path: directory.to_owned() })
    }
}

/// What is in a directory.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Directories in it that are marked.
    pub(super) marked: Vec<PathBuf>,
    /// Files of a store.
    of_store: Vec<PathBuf>,
    /// Files that benchmarks make beside one, but for the marker.
    beside: Vec<PathBuf>,
    /// What no benchmark makes.
    foreign: Option<PathBuf>,
}

impl Contents {
    /// What is in a directory.
    pub(super) fn of(directory: &Path) -> Result<Self> {
        let mut contents = Self::default();
        for entry in fs::read_dir(directory).map_err(BenchError::io("list", directory))? {
            let entry = entry.map_err(BenchError::io("list", directory))?;
            let kind = entry.file_type().map_err(BenchError::io("look at", directory))?;
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            if kind.is_dir() && is_marked(&path) {
                contents.marked.push(path);
            } else if kind.is_file() && is_of_a_store(&name) {
                contents.of_store.push(path);
            } else if kind.is_file() && (name == FLOOR || name == PROBE) {
                contents.beside.push(path);
            } else if name != MARKER {
                contents.foreign = Some(path);
            }
        }
        Ok(contents)
    }

    /// Whether there is nothing but a marker, perhaps.
    pub(super) fn is_empty(&self) -> bool {
        self.marked.is_empty()
            && self.of_store.is_empty()
            && self.beside.is_empty()
            && self.foreign.is_none()
    }

    /// Something that no benchmark makes, here or in a directory that is marked.
    pub(super) fn foreign(&self) -> Result<Option<PathBuf>> {
        if let Some(path) = &self.foreign {
            return Ok(Some(path.clone()));
        }
        for directory in &self.marked {
            let inside = Self::of(directory)?;
            // Nothing that benchmarks make lies deeper.
            if let Some(path) = inside.foreign.or_else(|| inside.marked.first().cloned()) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

/// Whether a store has a file of this name.
fn is_of_a_store(name: &str) -> bool {
    let is_alone =
        matches!(name, "superblock" | "lock" | "journal" | "metrics" | "metrics.new" | TREE);
    is_alone || name.starts_with("segment-")
}

/// Locks a store that is to be removed, so that no process has it open meanwhile.
///
/// # Errors
/// [`BenchError::InUse`] when one has.
pub(super) fn lock_store(store: &Path) -> Result<Option<Arc<dyn File>>> {
    let path = store.join("lock");
    match RealEnvironment::new().open(&path, OpenMode::ReadWrite) {
        Ok(file) => lock(&file, store).map(|()| Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(BenchError::io("open", &path)(error)),
    }
}

/// Removes the files of a store from a marked directory.
pub(super) fn remove_store(directory: &Path) -> Result<()> {
    if is_marked(directory) { remove(Contents::of(directory)?.of_store) } else { Ok(()) }
}

/// Removes from a marked directory all files that benchmarks make, but for the marker.
pub(super) fn remove_files(directory: &Path) -> Result<()> {
    remove_store(directory)?;
    if is_marked(directory) { remove(Contents::of(directory)?.beside) } else { Ok(()) }
}

fn remove(files: Vec<PathBuf>) -> Result<()> {
    let remove = |path: PathBuf| fs::remove_file(&path).map_err(BenchError::io("remove", &path));
    files.into_iter().try_for_each(remove)
}

/// Removes the marker: nothing is removed from the directory any more.
pub(super) fn unmark(directory: &Path) -> Result<()> {
    let path = directory.join(MARKER);
    fs::remove_file(&path).map_err(BenchError::io("remove", &path))
}

/// Removes a marked directory, if there is nothing in it but what benchmarks make.
pub(super) fn remove_directory(directory: &Path) -> Result<()> {
    if !is_marked(directory) {
        return Ok(());
    }
    remove_files(directory)?;
    unmark(directory)?;
    fs::remove_dir(directory).map_err(BenchError::io("remove", directory))
}
