//! [`Region`]: a file on persistent memory, mapped as volatile memory.
//!
//! # Rules
//! - The file is in use by one process at a time: it is locked for as long as it is mapped.
//! - Its storage is reserved before it is mapped, so no access can fail later.
//! - Nothing in it outlives the process. Nothing is flushed, and the file is removed at the end. A process that is killed leaves
//!   the file, and the next one takes it over.
//! - A child that was forked has the mapping, and neither the file nor its lock: when it ends, both stay its parent's.
//!
//! Absent on purpose: any knowledge of what lies where.

use std::ffi::c_void;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use crate::error::{Error, Result};

/// Name of the file in its directory.
pub const FILE_NAME: &str = "chimera-placement.volatile";
/// Alignment of the mapping's length: the page size of a huge page.
const HUGE_PAGE: u64 = 2 << 20;
/// The least bytes of a region.
pub const REGION_BYTES_MIN: u64 = 4 << 20;
/// Times that a file is opened anew because another process removed it meanwhile.
const ATTEMPTS: usize = 16;

/// Where persistent memory comes from.
#[derive(Clone, Debug)]
pub struct RegionOptions {
    /// Directory of the file: on a DAX mount, or anywhere to try things out.
    pub directory: PathBuf,
    /// Bytes of the file, rounded up to 2 MiB; all of them are reserved at once. At least 4 MiB.
    pub bytes: u64,
    /// Whether a directory that is not on a DAX file system is an error. Default false.
    pub require_dax: bool,
}

/// Mapped persistent memory. Its bytes are never read or written here.
#[derive(Debug)]
pub struct Region {
    base: NonNull<c_void>,
    length: usize,
    path: PathBuf,
    is_dax: bool,
    /// Holds the lock.
    file: File,
    /// The process that made it.
    process: u32,
}

// SAFETY: the pointer is an address range that the value owns until it is dropped, and no state is bound to a thread.
unsafe impl Send for Region {}
// SAFETY: as above; `&self` methods read plain fields that never change.
unsafe impl Sync for Region {}

impl Region {
    /// Makes the file, locks it, reserves its storage and maps it.
    ///
    /// # Errors
    /// When the directory is missing, not writable, too small, not on a DAX file system and has to be, or its file is in use.
    pub fn open(options: &RegionOptions) -> Result<Self> {
        if options.bytes < REGION_BYTES_MIN {
            return Err(Error::TooSmall { wanted: options.bytes, least: REGION_BYTES_MIN });
        }
        check_directory(&options.directory)?;
        let path = options.directory.join(FILE_NAME);
        let file = lock_file(&options.directory, &path)?;
        match Self::map(options, &path, &file) {
            Ok((base, length, is_dax)) => {
                let region = Self { base, length, path, is_dax, file, process: std::process::id() };
                region.prepare_pages();
                Ok(region)
            }
            Err(error) => {
                // The file is ours: its lock is held.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Where the file is mapped, how long, and whether it is on a DAX file system.
    fn map(
        options: &RegionOptions,
        path: &Path,
        file: &File,
    ) -> Result<(NonNull<c_void>, usize, bool)> {
        let too_many =
            || Error::Option(format!("{} bytes are more than can be mapped", options.bytes));
        let bytes = options.bytes.checked_next_multiple_of(HUGE_PAGE);
        // Lengths of files are signed.
        let bytes = bytes.filter(|bytes| i64::try_from(*bytes).is_ok()).ok_or_else(too_many)?;
        let length = usize::try_from(bytes).map_err(|_| too_many())?;
        reserve(&options.directory, file, bytes)?;
        let synchronous = map_file(file, length, MapFlags::SHARED_VALIDATE | MapFlags::SYNC);
        let (mapped, is_dax) = match synchronous {
            Ok(base) => (Ok(base), true),
            Err(_) if options.require_dax => return Err(Error::NotDax(options.directory.clone())),
            Err(_) => (map_file(file, length, MapFlags::SHARED), false),
        };
        let base = mapped.map_err(|errno| system("mapping", path, errno))?;
        Ok((base, length, is_dax))
    }

    /// Asks for huge pages, and for all pages now rather than at their first use. Both are advice: a system without them goes on.
    fn prepare_pages(&self) {
        for advice in [Advice::LinuxHugepage, Advice::LinuxPopulateWrite] {
            // SAFETY: the range is the mapping that this value owns, and the advice changes no contents.
            let _ = unsafe { mm::madvise(self.base.as_ptr(), self.length, advice) };
        }
    }

    /// Where it begins.
    pub fn base(&self) -> NonNull<u8> {
        self.base.cast()
    }

    /// Bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file system is DAX, so that accesses go to the device itself.
    pub fn is_dax(&self) -> bool {
        self.is_dax
    }

    /// The offset of an address, if it is inside.
    pub fn offset_of(&self, address: *const u8) -> Option<usize> {
        let offset = (address as usize).checked_sub(self.base.as_ptr() as usize)?;
        (offset < self.length).then_some(offset)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let is_ours = self.process == std::process::id();
        if is_ours {
            // Removed while the lock is held: nobody else can have taken the file over.
            let _ = fs::remove_file(&self.path);
        }
        // SAFETY: the range was mapped by `map` and is given back once. Whoever holds addresses of it holds the region, too.
        let _ = unsafe { mm::munmap(self.base.as_ptr(), self.length) };
        if is_ours {
            // A child has the same open file: it would release its parent's lock.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

fn system(what: &'static str, path: &Path, errno: Errno) -> Error {
    Error::System { what, path: path.to_owned(), source: errno.into() }
}

fn check_directory(directory: &Path) -> Result<()> {
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::NotADirectory(directory.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::NoDirectory(directory.to_owned()))
        }
        Err(source) => Err(Error::NotWritable { path: directory.to_owned(), source }),
    }
}

/// Opens the file and takes its lock. A file that was removed between the two is opened anew.
fn lock_file(directory: &Path, path: &Path) -> Result<File> {
    for _ in 0..ATTEMPTS {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
        let opened = options.open(path);
        let file =
            opened.map_err(|source| Error::NotWritable { path: directory.to_owned(), source })?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Error::InUse(path.to_owned())),
            Err(errno) => return Err(system("locking", path, errno)),
        }
        let is_same = |here: &fs::Metadata, there: &fs::Metadata| {
            here.dev() == there.dev() && here.ino() == there.ino()
        };
        if let (Ok(here), Ok(there)) = (file.metadata(), fs::metadata(path))
            && is_same(&here, &there)
        {
            return Ok(file);
        }
    }
    Err(Error::InUse(path.to_owned()))
}

/// Reserves the storage of the whole file.
fn reserve(directory: &Path, file: &File, bytes: u64) -> Result<()> {
    let failed = |errno: Errno| match errno {
        Errno::NOSPC | Errno::FBIG | Errno::DQUOT => {
            Error::NoRoom { path: directory.to_owned(), wanted: bytes, free: free_bytes(directory) }
        }
        errno => system("reserving storage in", directory, errno),
    };
    // What a killed process left may be of any length.
    rustix::fs::ftruncate(file, bytes).map_err(failed)?;
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes).map_err(failed)
}

fn free_bytes(directory: &Path) -> u64 {
    rustix::fs::statvfs(directory).map_or(0, |status| status.f_bavail * status.f_frsize)
}

fn map_file(file: &File, length: usize, flags: MapFlags) -> rustix::io::Result<NonNull<c_void>> {
    // SAFETY: no address is asked for, so nothing that is mapped already is replaced. The storage of the whole range is
    // reserved, and the file is locked, so that no process of ours shortens it.
    let base = unsafe {
        mm::mmap(ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0)
    }?;
    NonNull::new(base).ok_or(Errno::NOMEM)
}
