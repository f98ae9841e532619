//! [`Altered`]: a file in front of another one, of which a test changes single operations.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;

use super::*;

/// A [`File`] that does what `inner` does, but for what is written otherwise.
pub(super) trait Altered: Debug + Send + Sync {
    fn inner(&self) -> &dyn File;
    fn on_allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner().allocate(offset, length)
    }
    fn on_set_length(&self, length: u64) -> io::Result<()> {
        self.inner().set_length(length)
    }
    fn on_write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner().write_at(offset, bytes)
    }
    fn on_punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner().punch(offset, length)
    }
    fn on_sync(&self) -> io::Result<()> {
        self.inner().sync()
    }
    fn on_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner().descriptor()
    }
}

impl<T: Altered> File for T {
    fn length(&self) -> io::Result<u64> {
        self.inner().length()
    }
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.on_allocate(offset, length)
    }
    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.on_punch(offset, length)
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner().read_at(offset, into)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.on_write_at(offset, bytes)
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.on_set_length(length)
    }
    fn sync(&self) -> io::Result<()> {
        self.on_sync()
    }
    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.inner().try_lock(exclusive)
    }
    fn medium(&self) -> io::Result<Medium> {
        self.inner().medium()
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.on_descriptor()
    }
    fn is_read_only(&self) -> bool {
        self.inner().is_read_only()
    }
}
