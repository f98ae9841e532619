//! [`AnonymousFile`]: memory that looks like a file.

use std::io;
use std::os::fd::BorrowedFd;

use super::File;
use crate::Medium;

/// A file of fixed length with nothing behind it: mapped, it is private anonymous memory.
///
/// For benchmarks and tests that want DRAM without a file system. It can only be mapped; reading or
/// writing it by offset is `Unsupported`.
///
/// # Durability
/// None.
#[derive(Debug)]
pub struct AnonymousFile {
    length: u64,
}

impl AnonymousFile {
    /// A file of `length` bytes.
    pub fn new(length: u64) -> Self {
        Self { length }
    }
}

impl File for AnonymousFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        match offset.checked_add(length) {
            Some(end) if end <= self.length => Ok(()),
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn punch(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read_at(&self, _offset: u64, _into: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        if length == self.length { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self, _exclusive: bool) -> io::Result<bool> {
        Ok(true)
    }

    fn medium(&self) -> io::Result<Medium> {
        Ok(Medium::Anonymous)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_read_only(&self) -> bool {
        false
    }
}
