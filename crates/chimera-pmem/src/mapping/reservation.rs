//! [`Reservation`]: reserved addresses that are mapped piece by piece, and given back at the end.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use super::addresses::Addresses;
use super::limits;
use crate::bus_error::pools;

/// A range of addresses nothing else in the process is mapped into. It grows when more is to be mapped.
#[derive(Debug)]
pub(crate) struct Reservation {
    /// Of `addresses`, which never changes it.
    base: *mut AtomicU64,
    /// Bytes of `addresses`; changed under its lock.
    usable: AtomicUsize,
    addresses: Mutex<Addresses>,
    /// For the explanation of a SIGBUS.
    pool: pools::Addresses,
}

// SAFETY: the pointer is that of an address range the value owns; it holds no thread-bound state, and all
// access through it is by the kernel (mapping) or by atomics (its owner's).
unsafe impl Send for Reservation {}
// SAFETY: as above; `&self` methods only call the kernel, which synchronises mappings, or lock.
unsafe impl Sync for Reservation {}

/// What to put into a piece of the reservation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// Private zeroed memory.
    Anonymous,
    /// A part of a file.
    File { file: BorrowedFd<'a>, offset: u64, sharing: Sharing, read_only: bool },
}

/// What becomes of stores to a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// The kernel writes them back when it likes.
    Shared,
    /// Flushed lines are durable.
    Synchronous,
    /// They stay in memory. Writable however the file was opened.
    Private,
}

impl Reservation {
    /// Reserves `bytes`, or the largest half, quarter ... of it the system grants, where it can grow.
    pub(crate) fn new(bytes: u64) -> io::Result<Self> {
        Ok(Self::of(Addresses::reserve(bytes)?))
    }

    /// Reserves `bytes` and no less, to stay as it is.
    pub(crate) fn exactly(bytes: u64) -> io::Result<Self> {
        Ok(Self::of(Addresses::exactly(bytes)?))
    }

    fn of(addresses: Addresses) -> Self {
        let base = addresses.base().cast();
        let usable = addresses.length();
        let pool = pools::Addresses::new(addresses.base().addr(), usable);
        Self { base, usable: AtomicUsize::new(usable), addresses: Mutex::new(addresses), pool }
    }

    /// The address of offset 0; a multiple of 2 MiB, and of 1 GiB in large reservations and
    /// where it can grow.
    #[inline(always)]
    pub(crate) fn base(&self) -> *mut AtomicU64 {
        self.base
    }

    /// Bytes that are reserved from `base` on.
    pub(crate) fn usable(&self) -> usize {
        self.usable.load(Ordering::Acquire)
    }

    /// Reserves at least `length` bytes from `base` on.
    fn extend(&self, length: usize) -> io::Result<()> {
        // A panic leaves nothing half-done.
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.extend(length)?;
        self.pool.set_length(addresses.length());
        self.usable.store(addresses.length(), Ordering::Release);
        Ok(())
    }

    /// Maps `source` at `at`, which nothing has been mapped at before; reserves more first where that is needed. All of
    /// `at`, `length` and the file offset are multiples of the page size.
    pub(crate) fn map(&self, at: usize, length: usize, source: Source<'_>) -> io::Result<()> {
        let end = at.checked_add(length).filter(|_| length > 0);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        if end > self.usable() {
            self.extend(end)?;
        }
        // A fixed mapping that fails may leave a hole in the reservation. So try the same mapping
        // at another address first: what can fail for the file's sake fails there.
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let trial = unsafe { map_source(std::ptr::null_mut(), length, source, MapFlags::empty()) };
        let trial = trial.map_err(|error| limits::refused(error, length))?;
        // SAFETY: mapped a moment ago with this length, and nothing points into it.
        unsafe { mm::munmap(trial, length) }?;

        let address = self.base.wrapping_byte_add(at).cast::<c_void>();
        // SAFETY: `at .. at + length` lies inside the reservation, and nothing is mapped there yet,
        // so no live memory is replaced.
        let mapped = unsafe { map_source(address, length, source, MapFlags::FIXED) };
        if let Err(error) = mapped {
            // SAFETY: as above; this closes the hole the failure may have left.
            let closed = unsafe {
                mm::mmap_anonymous(
                    address,
                    length,
                    ProtFlags::empty(),
                    MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
                )
            };
            if closed.is_err() {
                log::error!("cannot close a hole of {length} bytes in the reserved address space");
            }
            return Err(limits::refused(error, length));
        }
        Ok(())
    }

    /// Maps a part of a file, which is mapped there already, in another way: what is private there is lost. Whoever accesses
    /// the range meanwhile finds one mapping or the other.
    ///
    /// # Errors
    /// When the process has as many mappings as it may, or the file cannot be mapped so; nothing has changed.
    pub(crate) fn map_again(
        &self,
        at: usize,
        length: usize,
        file: BorrowedFd<'_>,
        offset: u64,
        sharing: Sharing,
    ) -> io::Result<()> {
        let is_inside = at.checked_add(length).is_some_and(|end| end <= self.usable());
        assert!(is_inside && length > 0, "{length} bytes at {at} are not mapped");
        let address = self.base.wrapping_byte_add(at).cast::<c_void>();
        let source = Source::File { file, offset, sharing, read_only: false };
        // As in `map`: what can fail for the file's sake fails at another address.
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let trial = unsafe { map_source(std::ptr::null_mut(), length, source, MapFlags::empty()) }?;
        // SAFETY: mapped a moment ago with this length, and nothing points into it.
        unsafe { mm::munmap(trial, length) }?;
        // SAFETY: the range lies inside the reservation. What it had is replaced by a mapping of the same length, which
        // can be accessed in the same ways; all access is by atomics, to which this is a store like any other.
        unsafe { map_source(address, length, source, MapFlags::FIXED) }?;
        Ok(())
    }

    /// Asks for huge pages behind a mapped range; `false` when the system refuses.
    pub(crate) fn advise_huge(&self, at: usize, length: usize) -> bool {
        self.advise(at, length, Advice::LinuxHugepage).is_ok()
    }

    /// Pages of a range are read alone from now on, not with those around them.
    pub(crate) fn advise_random(&self, at: usize, length: usize) -> io::Result<()> {
        Ok(self.advise(at, length, Advice::Random)?)
    }

    /// Takes [`advise_random`](Self::advise_random) back.
    pub(crate) fn advise_normal(&self, at: usize, length: usize) -> io::Result<()> {
        Ok(self.advise(at, length, Advice::Normal)?)
    }

    /// Starts reading the pages of a range that are missing.
    pub(crate) fn ask_for(&self, at: usize, length: usize) -> io::Result<()> {
        Ok(self.advise(at, length, Advice::WillNeed)?)
    }

    /// Faults in a mapped range for writing, contents unchanged, or for reading only; `InvalidInput`
    /// on kernels (before 5.14) that do not know how.
    pub(crate) fn populate(&self, at: usize, length: usize, read_only: bool) -> io::Result<()> {
        let advice = if read_only { Advice::LinuxPopulateRead } else { Advice::LinuxPopulateWrite };
        loop {
            match self.advise(at, length, advice) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                // A page that cannot be had would have been a SIGBUS: no room behind the mapping.
                Err(Errno::FAULT) => return Err(io::ErrorKind::StorageFull.into()),
                done => return Ok(done?),
            }
        }
    }

    /// Gives back the pages of a range. It reads as its file afterwards, and as zeros where it has none: of private memory,
    /// what was stored is lost.
    pub(crate) fn discard(&self, at: usize, length: usize) -> io::Result<()> {
        Ok(self.advise(at, length, Advice::LinuxDontNeed)?)
    }

    fn advise(&self, at: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        assert!(at.checked_add(length).is_some_and(|end| end <= self.usable()));
        let address = self.base.wrapping_byte_add(at).cast::<c_void>();
        // SAFETY: the range lies inside the reservation. The advice used here never unmaps; it
        // changes contents, if at all, to those of the file or to zeros, which is a store like any other.
        unsafe { mm::madvise(address, length, advice) }
    }
}

/// # Safety
/// With `FIXED`, `address .. address + length` must be free for replacement.
unsafe fn map_source(
    address: *mut c_void,
    length: usize,
    source: Source<'_>,
    extra: MapFlags,
) -> Result<*mut c_void, Errno> {
    let writable = ProtFlags::READ | ProtFlags::WRITE;
    match source {
        // SAFETY: passed on to the caller.
        Source::Anonymous => unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | extra;
            mm::mmap_anonymous(address, length, writable, flags)
        },
        Source::File { file, offset, sharing, read_only } => {
            let is_writable = !read_only || sharing == Sharing::Private;
            let protection = if is_writable { writable } else { ProtFlags::READ };
            let sharing = match sharing {
                Sharing::Shared => MapFlags::SHARED,
                Sharing::Synchronous => MapFlags::SHARED_VALIDATE | MapFlags::SYNC,
                Sharing::Private => MapFlags::PRIVATE | MapFlags::NORESERVE,
            };
            // SAFETY: passed on to the caller.
            unsafe { mm::mmap(address, length, protection, sharing | extra, file, offset) }
        }
    }
}
