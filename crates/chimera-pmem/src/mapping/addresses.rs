//! [`Addresses`]: a range of addresses that is reserved, and grows in place.

use std::ffi::c_void;
use std::io;
use std::ptr;

use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};

use super::limits;
use super::place::Place;

/// Less is not reserved at first.
const LEAST: usize = 2 << 20;
/// Ranges from here on are aligned for the largest pages wherever they are.
const LARGE: usize = 64 << 30;
/// Alignment of those.
const ALIGN_LARGE: usize = 1 << 30;
/// The same for small ranges, where 1 GiB of slack would be out of proportion.
const ALIGN_SMALL: usize = 2 << 20;
/// Places to try: another mapping may have the first ones.
const PLACES: usize = 8;

/// A range of addresses that nothing else in the process is mapped into. Nothing in it is accessible until its owner makes
/// it so.
///
/// # Invariants
/// `base .. base + length` is mapped by this value alone, and unmapped when it is dropped. `base` never changes, and
/// `length` only grows.
#[derive(Debug)]
pub(crate) struct Addresses {
    base: *mut c_void,
    length: usize,
    /// Where it may grow, if it has a place.
    _place: Option<Place>,
}

// SAFETY: an address range that the value owns; it holds no thread-bound state.
unsafe impl Send for Addresses {}

impl Addresses {
    /// Reserves `bytes`, or the largest half, quarter ... of it that the system grants, where it can grow. Less where the
    /// addresses of the process are limited.
    ///
    /// # Errors
    /// `OutOfMemory`; the message names the limit.
    pub(crate) fn reserve(bytes: u64) -> io::Result<Self> {
        let mut wanted = whole_pages(bytes.min(limits::ahead_max().max(LEAST) as u64))?;
        loop {
            match Self::reserve_at_place(wanted) {
                Err(_) if wanted / 2 >= LEAST => wanted = whole_pages(wanted as u64 / 2)?,
                Err(error) => return Err(limits::refused(error, wanted)),
                Ok(range) => return Ok(range),
            }
        }
    }

    /// Reserves `bytes` and no less, to stay as it is.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub(crate) fn exactly(bytes: u64) -> io::Result<Self> {
        let wanted = whole_pages(bytes)?;
        Self::reserve_anywhere(wanted).map_err(|error| limits::refused(error, wanted))
    }

    fn reserve_at_place(wanted: usize) -> Result<Self, Errno> {
        // They are given back at the end, so that each is tried once.
        let mut refused = Vec::new();
        while refused.len() < PLACES
            && let Some(place) = Place::take()
        {
            let base = ptr::without_provenance_mut(place.address());
            match reserve_at(base, wanted) {
                Ok(base) => return Ok(Self { base, length: wanted, _place: Some(place) }),
                Err(Errno::NOMEM) => return Err(Errno::NOMEM),
                Err(_) => refused.push(place),
            }
        }
        Self::reserve_anywhere(wanted)
    }

    fn reserve_anywhere(wanted: usize) -> Result<Self, Errno> {
        let align = if wanted >= LARGE { ALIGN_LARGE } else { ALIGN_SMALL };
        let length = wanted.checked_add(align).ok_or(Errno::NOMEM)?;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let start = unsafe {
            mm::mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), reserving())
        }?;
        // `skip < align`, so the base is inside and `wanted` bytes follow it.
        let skip = start.addr().next_multiple_of(align) - start.addr();
        let base = start.wrapping_byte_add(skip);
        unmap(start, skip);
        unmap(base.wrapping_byte_add(wanted), align - skip);
        Ok(Self { base, length: wanted, _place: None })
    }

    /// Makes it at least `length` bytes long: twice as long as it was, where that is granted and addresses are not limited.
    ///
    /// # Errors
    /// `OutOfMemory`; the message names the limit. The range is as before.
    pub(crate) fn extend(&mut self, length: usize) -> io::Result<()> {
        let Some(missing) = length.checked_sub(self.length).filter(|&bytes| bytes > 0) else {
            return Ok(());
        };
        let missing = whole_pages(missing as u64)?;
        let end = self.base.wrapping_byte_add(self.length);
        let ahead = whole_pages(self.length.min(limits::ahead_max()) as u64)?;
        let (added, done) = match reserve_at(end, missing.max(ahead)) {
            Ok(_) => (missing.max(ahead), Ok(end)),
            Err(_) => (missing, reserve_at(end, missing)),
        };
        match done {
            Ok(_) => {
                self.length += added;
                Ok(())
            }
            Err(Errno::EXIST) => {
                let message = format!(
                    "address space: the {missing} bytes behind the first {} are taken by something else in \
                     the process; open the store again, with the capacity that it will need",
                    self.length
                );
                Err(io::Error::new(io::ErrorKind::OutOfMemory, message))
            }
            Err(error) => Err(limits::refused(error, missing)),
        }
    }

    /// Its first address: a multiple of 2 MiB.
    pub(crate) fn base(&self) -> *mut c_void {
        self.base
    }

    /// Its length in bytes: whole pages.
    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        unmap(self.base, self.length);
    }
}

fn whole_pages(bytes: u64) -> io::Result<usize> {
    let whole = usize::try_from(bytes)
        .ok()
        .and_then(|bytes| bytes.max(1).checked_next_multiple_of(rustix::param::page_size()));
    whole.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn reserving() -> MapFlags {
    MapFlags::PRIVATE | MapFlags::NORESERVE
}

/// Reserves exactly these addresses; `EXIST` when something is there.
pub(super) fn reserve_at(start: *mut c_void, length: usize) -> Result<*mut c_void, Errno> {
    let flags = reserving() | MapFlags::FIXED_NOREPLACE;
    // SAFETY: with this flag the kernel replaces no mapping; kernels that do not know it (before 4.17) take the address for a
    // wish.
    let mapped = unsafe { mm::mmap_anonymous(start, length, ProtFlags::empty(), flags) }?;
    if mapped.addr() != start.addr() {
        unmap(mapped, length);
        return Err(Errno::EXIST);
    }
    Ok(mapped)
}

/// Gives back addresses that were reserved here, and that nothing refers to.
fn unmap(start: *mut c_void, length: usize) {
    if length == 0 {
        return;
    }
    // SAFETY: as said above: slack around an aligned range, or a range whose owner is dropped and gave out values only.
    if let Err(error) = unsafe { mm::munmap(start, length) } {
        log::error!("cannot give back {length} bytes of address space: {error}");
    }
}
