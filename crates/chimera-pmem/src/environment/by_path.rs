//! [`ByPath`]: a directory of files among which no directory is renamed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Directory, File, FileProvider, OpenMode};

/// A directory that is found by its path each time: for files among which no directory is ever renamed.
#[derive(Debug)]
pub(super) struct ByPath {
    files: Arc<dyn FileProvider>,
    path: PathBuf,
}

impl ByPath {
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub(super) fn open(files: Arc<dyn FileProvider>, path: &Path) -> io::Result<Self> {
        match files.is_directory(path)? {
            Some(true) => Ok(Self { files, path: path.to_owned() }),
            Some(false) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Directory for ByPath {
    fn open(&self, name: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.files.open(&self.path.join(name), mode)
    }

    fn list(&self) -> io::Result<Vec<PathBuf>> {
        self.files.list(&self.path)
    }

    fn has(&self, name: &Path) -> io::Result<bool> {
        Ok(self.files.is_directory(&self.path.join(name))?.is_some())
    }

    /// Files that have no identity are known by their names alone.
    fn has_file(&self, name: &Path, file: &dyn File) -> io::Result<bool> {
        if !self.has(name)? {
            return Ok(false);
        }
        let Some(identity) = file.identity()? else { return Ok(true) };
        match self.open(name, OpenMode::Read) {
            Ok(found) => Ok(found.identity()? == Some(identity)),
            // Something else than a file has its name.
            Err(_) => Ok(false),
        }
    }

    fn is_removed(&self) -> io::Result<bool> {
        Ok(self.files.is_directory(&self.path)? != Some(true))
    }

    fn remove(&self, name: &Path) -> io::Result<()> {
        self.files.remove(&self.path.join(name))
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.replace(&self.path.join(from), &self.path.join(to))
    }

    fn sync(&self) -> io::Result<()> {
        self.files.sync_directory(&self.path)
    }
}
