//! [`RealFile`]: an open file of the operating system.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};

use super::device::DaxDevice;
use super::limits::check_file_length;
use super::{File, OpenMode, Origin};
use crate::Medium;

/// File-system types whose files are memory, by `statfs`: tmpfs, ramfs, hugetlbfs.
const MEMORY_FILE_SYSTEMS: [u64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// An open regular file or DAX device.
#[derive(Debug)]
pub(super) struct RealFile {
    descriptor: OwnedFd,
    read_only: bool,
    device: Option<DaxDevice>,
    /// Held while the length changes, so that a failed `allocate` can take its growth back.
    growth: Mutex<()>,
    is_locked: AtomicBool,
    origin: Origin,
}

impl Drop for RealFile {
    fn drop(&mut self) {
        // Closing is not enough: a child between fork and exec has the same open file, and its lock. And a child that
        // lives on must not unlock what its parent holds.
        if *self.is_locked.get_mut()
            && self.origin.is_here()
            && let Err(error) = rustix::fs::flock(&self.descriptor, FlockOperation::Unlock)
        {
            log::warn!("a lock ends only with all processes that inherited it: {error}");
        }
    }
}

impl RealFile {
    /// Opens a file; a relative `path` begins at `directory`.
    pub(super) fn open_at(directory: impl AsFd, path: &Path, mode: OpenMode) -> io::Result<Self> {
        let directory = directory.as_fd();
        let access = match mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::ReadWrite => OFlags::RDWR,
            OpenMode::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        if mode != OpenMode::CreateNew {
            // Before it is opened: some devices do something at that.
            kind_of(&rustix::fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)?)?;
        }
        // NOFOLLOW, NONBLOCK: what was put there since is not followed, and does not hang. They mean
        // nothing for regular files and DAX devices.
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let descriptor =
            retry(|| rustix::fs::openat(directory, path, flags, Mode::RUSR | Mode::WUSR))?;
        let device = kind_of(&rustix::fs::fstat(&descriptor)?)?;
        let read_only = mode == OpenMode::Read;
        if let Some(device) = device.as_ref().filter(|_| !read_only) {
            device.check_writable()?;
        }
        Ok(Self {
            descriptor,
            read_only,
            device,
            growth: Mutex::new(()),
            is_locked: AtomicBool::new(false),
            origin: Origin::current(),
        })
    }

    /// The growth of an ordinary file by writing zeros behind its end, where the file system cannot
    /// reserve space. What the range covers of the file as it is stays as it is.
    fn append_zeros(&self, from: u64, end: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let mut at = from;
        while at < end {
            let length = (end - at).min(ZEROS.len() as u64);
            self.write_at(at, &ZEROS[..length as usize])?;
            at += length;
        }
        Ok(())
    }
}

impl File for RealFile {
    fn length(&self) -> io::Result<u64> {
        match &self.device {
            Some(device) => Ok(device.capacity()),
            None => Ok(rustix::fs::fstat(&self.descriptor)?.st_size as u64),
        }
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let end = offset.checked_add(length).ok_or(io::ErrorKind::InvalidInput)?;
        if let Some(device) = &self.device {
            let fits = end <= device.capacity();
            return if fits { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) };
        }
        if length == 0 {
            return Ok(());
        }
        let _growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.length()?;
        if end > before {
            check_file_length(end)?;
        }
        let flags = FallocateFlags::empty();
        let allocated =
            match retry(|| rustix::fs::fallocate(&self.descriptor, flags, offset, length)) {
                Err(Errno::OPNOTSUPP) => self.append_zeros(before.max(offset), end),
                done => done.map_err(io::Error::from),
            };
        if allocated.is_err() && self.length().is_ok_and(|now| now > before) {
            // Some file systems keep what they got before they ran out.
            rustix::fs::ftruncate(&self.descriptor, before)?;
        }
        allocated
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        if self.device.is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(retry(|| rustix::fs::fallocate(&self.descriptor, flags, offset, length))?)
    }

    fn read_at(&self, mut offset: u64, mut into: &mut [u8]) -> io::Result<()> {
        if let Some(device) = &self.device {
            return device.read_at(self.descriptor.as_fd(), offset, into);
        }
        while !into.is_empty() {
            let count = retry(|| rustix::io::pread(&self.descriptor, &mut *into, offset))?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            into = &mut into[count..];
            offset += count as u64;
        }
        Ok(())
    }

    fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        if let Some(device) = &self.device {
            return device.write_at(self.descriptor.as_fd(), offset, bytes);
        }
        if !bytes.is_empty() {
            // Also a write that does not make the file longer is refused beyond the limit.
            check_file_length(
                offset.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::InvalidInput)?,
            )?;
        }
        while !bytes.is_empty() {
            let count = retry(|| rustix::io::pwrite(&self.descriptor, bytes, offset))?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[count..];
            offset += count as u64;
        }
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        if self.device.is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let _growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        if length > self.length()? {
            check_file_length(length)?;
        }
        Ok(retry(|| rustix::fs::ftruncate(&self.descriptor, length))?)
    }

    fn sync(&self) -> io::Result<()> {
        if self.device.is_some() {
            return Ok(());
        }
        Ok(retry(|| rustix::fs::fdatasync(&self.descriptor))?)
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        let operation = if exclusive {
            FlockOperation::NonBlockingLockExclusive
        } else {
            FlockOperation::NonBlockingLockShared
        };
        match retry(|| rustix::fs::flock(&self.descriptor, operation)) {
            Ok(()) => {
                self.is_locked.store(true, Ordering::Relaxed);
                Ok(true)
            }
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn medium(&self) -> io::Result<Medium> {
        if self.device.is_some() {
            return Ok(Medium::DevDax);
        }
        let kind = rustix::fs::fstatfs(&self.descriptor)?.f_type as u64;
        // The field is signed on some machines: compare the 32 bits that are defined.
        if MEMORY_FILE_SYSTEMS.contains(&(kind & 0xffff_ffff)) {
            return Ok(Medium::Tmpfs);
        }
        let dax = maps_synchronously(self.descriptor.as_fd(), self.read_only);
        Ok(if dax { Medium::FsDax } else { Medium::File })
    }

    fn mapping_alignment(&self) -> u64 {
        self.device.as_ref().map_or(4096, DaxDevice::alignment)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor.as_fd())
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }
}

/// The DAX device that a path or a descriptor stands for, or none for a regular file.
///
/// # Errors
/// When it is anything else; the message says what.
fn kind_of(status: &Stat) -> io::Result<Option<DaxDevice>> {
    let found = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => return Ok(None),
        FileType::CharacterDevice => return DaxDevice::from_number(status.st_rdev).map(Some),
        FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
        // The kind is that of the error with which the system refuses links.
        FileType::Symlink => {
            let kind = io::Error::from(Errno::LOOP).kind();
            return Err(io::Error::new(kind, "a symbolic link, which is not followed"));
        }
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::BlockDevice => "a block device",
        FileType::Unknown => "something unknown",
    };
    let message = format!("{found}, neither a regular file nor a DAX device");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Whether the kernel grants a `MAP_SYNC` mapping, which it does only where flushed lines are
/// durable without its help.
fn maps_synchronously(file: BorrowedFd<'_>, read_only: bool) -> bool {
    let page = rustix::param::page_size();
    let protection = if read_only { ProtFlags::READ } else { ProtFlags::READ | ProtFlags::WRITE };
    let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
    // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing; it is not
    // accessed.
    let trial = unsafe { mm::mmap(std::ptr::null_mut(), page, protection, flags, file, 0) };
    let Ok(trial) = trial else { return false };
    // SAFETY: mapped a moment ago with this length, and nothing points into it.
    if let Err(error) = unsafe { mm::munmap(trial, page) } {
        log::error!("cannot unmap a trial mapping: {error}");
    }
    true
}

/// Repeats a system call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
