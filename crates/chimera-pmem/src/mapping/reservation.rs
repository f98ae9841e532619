//! [`Reservation`]: address space reserved once, mapped piece by piece, given back at the end.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use crate::bus_error::pools::Addresses;

/// Reservations below this are not halved any more: a pool would hardly have room.
const SMALLEST_FALLBACK: usize = 1 << 30;
/// Reservations from here on are aligned for the largest pages.
const LARGE: usize = 64 << 30;
/// Alignment of the base: the largest page of any medium, so that large pages can be used.
const ALIGN_LARGE: usize = 1 << 30;
/// The same for small reservations, where 1 GiB of slack would be out of proportion.
const ALIGN_SMALL: usize = 2 << 20;

/// A range of addresses nothing else in the process is mapped into.
#[derive(Debug)]
pub(crate) struct Reservation {
    /// What mmap returned, and how much of it.
    start: *mut c_void,
    length: usize,
    /// `start` rounded up, and what is left from there.
    base: *mut AtomicU64,
    usable: usize,
    /// For the explanation of a SIGBUS.
    _addresses: Addresses,
}

// SAFETY: the pointers are an address range the value owns; it holds no thread-bound state, and all
// access through them is by the kernel (mapping) or by atomics (its owner's).
unsafe impl Send for Reservation {}
// SAFETY: as above; `&self` methods only call the kernel, which synchronises mappings.
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
    /// Reserves `bytes`, or the largest half, quarter ... of it the system grants.
    pub(crate) fn new(bytes: u64) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let mut wanted = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| bytes.max(1).checked_next_multiple_of(page))
            .ok_or(io::ErrorKind::InvalidInput)?;
        loop {
            match Self::reserve(wanted) {
                Err(_) if wanted / 2 >= SMALLEST_FALLBACK => {
                    wanted = (wanted / 2).next_multiple_of(page);
                }
                Err(error) => {
                    let what = format!(
                        "{error}; raise the limit of the process's address space (RLIMIT_AS, `ulimit -v`)"
                    );
                    return Err(io::Error::new(error.kind(), what));
                }
                done => return done,
            }
        }
    }

    fn reserve(wanted: usize) -> io::Result<Self> {
        let align = if wanted >= LARGE { ALIGN_LARGE } else { ALIGN_SMALL };
        let length = wanted.checked_add(align).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let start = unsafe {
            mm::mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let skip = start.addr().next_multiple_of(align) - start.addr();
        // `skip < align`, so the base is inside and `wanted` bytes follow it.
        let base = start.wrapping_byte_add(skip).cast::<AtomicU64>();
        let addresses = Addresses::new(base.addr(), wanted);
        Ok(Self { start, length, base, usable: wanted, _addresses: addresses })
    }

    /// The address of offset 0; a multiple of 2 MiB, and of 1 GiB in large reservations.
    #[inline(always)]
    pub(crate) fn base(&self) -> *mut AtomicU64 {
        self.base
    }

    /// Bytes that can be mapped from `base`.
    pub(crate) fn usable(&self) -> usize {
        self.usable
    }

    /// Maps `source` at `at`, which nothing has been mapped at before. All of `at`, `length` and the
    /// file offset are multiples of the page size.
    pub(crate) fn map(&self, at: usize, length: usize, source: Source<'_>) -> io::Result<()> {
        let end = at.checked_add(length).filter(|&end| end <= self.usable);
        if end.is_none() || length == 0 {
            let message = format!(
                "the {} bytes of address space that were to be had when the pool was opened are used up",
                self.usable
            );
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, message));
        }
        // A fixed mapping that fails may leave a hole in the reservation. So try the same mapping
        // at another address first: what can fail for the file's sake fails there.
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let trial = unsafe { map_source(std::ptr::null_mut(), length, source, MapFlags::empty()) }?;
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
            return Err(error.into());
        }
        Ok(())
    }

    /// Asks for huge pages behind a mapped range; `false` when the system refuses.
    pub(crate) fn advise_huge(&self, at: usize, length: usize) -> bool {
        self.advise(at, length, Advice::LinuxHugepage).is_ok()
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

    /// Gives back the pages of a range of private memory. It reads as its file afterwards, and as zeros where it has none.
    pub(crate) fn discard(&self, at: usize, length: usize) -> io::Result<()> {
        Ok(self.advise(at, length, Advice::LinuxDontNeed)?)
    }

    fn advise(&self, at: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        assert!(at.checked_add(length).is_some_and(|end| end <= self.usable));
        let address = self.base.wrapping_byte_add(at).cast::<c_void>();
        // SAFETY: the range lies inside the reservation. The advice used here never unmaps; it
        // changes contents, if at all, to those of the file or to zeros, which is a store like any other.
        unsafe { mm::madvise(address, length, advice) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `reserve`, is owned by this value, and nothing points into
        // it: its owner gives out values only.
        if let Err(error) = unsafe { mm::munmap(self.start, self.length) } {
            log::error!("cannot give back reserved address space: {error}");
        }
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
