//! [`RealFiles`]: files and directories of the operating system, by their paths.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::real_directory::RealDirectory;
use super::real_file::RealFile;
use super::{Directory, File, FileProvider, OpenMode};

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

impl FileProvider for RealFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile::open_at(rustix::fs::CWD, path, mode)?))
    }

    fn open_directory(&self, path: &Path) -> io::Result<Option<Arc<dyn Directory>>> {
        Ok(Some(Arc::new(RealDirectory::open(path)?)))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let names = fs::read_dir(path)?.map(|entry| Ok(PathBuf::from(entry?.file_name())));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(metadata.is_dir())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(rustix::fs::fsync(directory)?)
    }
}
