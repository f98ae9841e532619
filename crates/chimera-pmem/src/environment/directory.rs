//! [`Directory`]: an open directory, whatever becomes of its name.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{File, OpenMode};

/// An open directory. Names are those of entries of this directory, without a separator.
///
/// A directory that is renamed stays this one: nothing is ever looked for or made in another directory that has
/// its name now.
pub trait Directory: Send + Sync + fmt::Debug {
    /// Opens a file in it.
    ///
    /// # Errors
    /// As the operating system says; `NotFound` for a new file in a directory that was removed.
    fn open(&self, name: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// The names in it, sorted.
    ///
    /// # Errors
    /// As the operating system says.
    fn list(&self) -> io::Result<Vec<PathBuf>>;
    /// Whether it has an entry of this name, of whatever kind.
    ///
    /// # Errors
    /// As the operating system says.
    fn has(&self, name: &Path) -> io::Result<bool>;
    /// Whether `name` is the name of the open file `file`: `false` when that was removed, renamed or replaced.
    ///
    /// # Errors
    /// As the operating system says.
    fn has_file(&self, name: &Path, file: &dyn File) -> io::Result<bool>;
    /// Whether the directory itself was removed.
    ///
    /// # Errors
    /// As the operating system says.
    fn is_removed(&self) -> io::Result<bool>;
    /// Removes a file.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove(&self, name: &Path) -> io::Result<()>;
    /// Gives the file `from` the name `to`; whatever file had that name is gone. An `open` of `to` meanwhile
    /// gives either file, whole. A store's content does not depend on it.
    ///
    /// # Errors
    /// As the operating system says; `Unsupported` where files cannot be renamed.
    fn replace(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes creations and removals in it survive a power loss (fsync of the directory).
    ///
    /// # Errors
    /// As the device says.
    fn sync(&self) -> io::Result<()>;
}

/// What tells a file from all others, for as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// The file system.
    pub device: u64,
    /// The number of the file there.
    pub inode: u64,
}
