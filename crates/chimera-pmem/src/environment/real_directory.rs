//! [`RealDirectory`]: an open directory of the operating system.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::directory::{Directory, FileIdentity};
use super::real_file::RealFile;
use super::{File, OpenMode};

/// A directory, by a descriptor of it.
#[derive(Debug)]
pub(super) struct RealDirectory {
    descriptor: OwnedFd,
}

impl RealDirectory {
    /// Follows symbolic links.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { descriptor: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// What is known of an entry, links not followed; `None` where there is none.
    fn look_at(&self, name: &Path) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => Ok(Some(status)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Directory for RealDirectory {
    fn open(&self, name: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile::open_at(&self.descriptor, name, mode)?))
    }

    fn list(&self) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(PathBuf::from(OsStr::from_bytes(name)));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn has(&self, name: &Path) -> io::Result<bool> {
        Ok(self.look_at(name)?.is_some())
    }

    fn has_file(&self, name: &Path, file: &dyn File) -> io::Result<bool> {
        let found = self.look_at(name)?.as_ref().map(identity_of);
        Ok(found.is_some() && found == file.identity()?)
    }

    fn is_removed(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstat(&self.descriptor)?.st_nlink == 0)
    }

    fn remove(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.descriptor)?)
    }
}

/// The identity of the file that a status is of.
pub(super) fn identity_of(status: &Stat) -> FileIdentity {
    FileIdentity { device: status.st_dev, inode: status.st_ino }
}
