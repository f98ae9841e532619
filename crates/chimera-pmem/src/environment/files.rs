//! [`FileProvider`]: where an environment's files come from.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Directory, File, OpenMode};

/// The file operations of an [`Environment`](super::Environment), to be exchanged as one.
///
/// The methods promise what those of the environment, or of its directories, with the same names do.
#[expect(clippy::missing_errors_doc, reason = "the contract is that of `Environment`")]
pub trait FileProvider: Send + Sync + fmt::Debug + 'static {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Opens a directory so that it is followed when it is renamed; `None` where directories are not renamed, and
    /// its path does as well.
    fn open_directory(&self, path: &Path) -> io::Result<Option<Arc<dyn Directory>>> {
        let _ = path;
        Ok(None)
    }
    /// Creates a directory (mode 0700) and its parents where missing.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether something is at `path`: `None` nothing, `Some(true)` a directory.
    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>>;
    /// The path from the root to what is at `path`, without symbolic links; as it was given unless said otherwise.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory. Not supported unless said otherwise.
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Gives the file `from` the name `to`. Not supported unless said otherwise.
    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Makes creations and removals in a directory survive a power loss.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}
