//! [`Arena`]: a growing table in DRAM whose elements never move.
//!
//! # Thread safety
//! [`Arena::get`] takes no lock and may run beside [`Arena::ensure`] on any thread.
//!
//! # Invariants
//! 1. Chunk 0 holds `first` elements, chunk `k` holds `first << (k - 1)`: chunk `k` begins at the
//!    element whose number is its size.
//! 2. A pointer in the directory is null or points to a whole chunk of zeroed or since-initialised
//!    elements; once set it never changes before the arena is dropped.
//! 3. Chunks are set in order, under `growth`.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::fmt;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::mm::{self, Advice, MapFlags, ProtFlags};
use zerocopy::FromZeros;

#[cfg(test)]
mod tests;

/// Chunks from this size on are mapped, and aligned to it: one huge page.
const HUGE_PAGE: usize = 2 << 20;
/// Length of the directory. With one element in chunk 0 it reaches 2^47 elements.
const CHUNKS: usize = 48;

/// A table of `T` that grows by doubling chunks and never moves an element.
///
/// Elements start as zeros and are changed through their own interior mutability (atomics, locks).
///
/// # Cost
/// [`get`](Self::get) is one load beside the element's own, and a few instructions. An arena that
/// was never grown owns no memory beyond its directory of 48 pointers.
pub struct Arena<T> {
    directory: [AtomicPtr<T>; CHUNKS],
    /// log2 of the number of elements in chunk 0.
    first_shift: u32,
    huge_pages: bool,
    /// The largest count that was asked for; all of it is present.
    count: AtomicU64,
    /// Held while chunks are added.
    growth: Mutex<()>,
}

impl<T: FromZeros + Send + Sync> Arena<T> {
    /// An empty arena whose first chunk will hold `first` elements, a power of two. `huge_pages`
    /// asks the system for 2 MiB pages behind chunks of that size and more.
    ///
    /// # Panics
    /// When `first` is not a power of two.
    pub fn new(first: usize, huge_pages: bool) -> Self {
        const {
            assert!(size_of::<T>() > 0, "an element occupies memory");
            assert!(!std::mem::needs_drop::<T>(), "elements are not dropped");
            assert!(align_of::<T>() <= 4096, "mapped chunks are aligned to pages");
        }
        assert!(first.is_power_of_two(), "the first chunk holds a power of two of elements");
        Self {
            directory: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
            first_shift: first.ilog2(),
            huge_pages,
            count: AtomicU64::new(0),
            growth: Mutex::new(()),
        }
    }

    /// The element with number `index`: present for every index below [`count`](Self::count), and
    /// perhaps for some above it whose chunk is there already.
    #[inline(always)]
    pub fn get(&self, index: u64) -> Option<&T> {
        let chunk = self.chunk_of(index);
        // Acquire: pairs with the store in `ensure`, so the chunk's zeros are seen.
        let start = self.directory.get(chunk)?.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: `index` belongs to this chunk, so it is below the chunk's end (invariant 1).
        let element = unsafe { start.add((index - self.start_of(chunk)) as usize) };
        // SAFETY: the element is initialised, because zeros are valid (`FromZeros`), and lives as
        // long as `self` (invariant 2). Only shared references are ever given out.
        Some(unsafe { &*element })
    }

    /// Makes the elements with numbers below `count` present, zeroed where they are new.
    ///
    /// # Errors
    /// `OutOfMemory` when there is no memory, or `count` is beyond what the directory can hold. What
    /// was present stays.
    ///
    /// # Cost
    /// One load when nothing is missing. Chunks below 2 MiB come from the heap, larger ones from the
    /// system, untouched.
    pub fn ensure(&self, count: u64) -> io::Result<()> {
        if count <= self.count() {
            return Ok(());
        }
        let last = self.chunk_of(count - 1);
        if last >= CHUNKS {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // Nothing is left half-done by a panic: the guarded data is the directory.
        let _growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in 0..=last {
            let entry = &self.directory[chunk];
            if entry.load(Ordering::Relaxed).is_null() {
                let start = self.kind_of(chunk)?.allocate(self.huge_pages)?;
                entry.store(start.as_ptr().cast(), Ordering::Release);
            }
        }
        self.count.fetch_max(count, Ordering::Release);
        Ok(())
    }

    /// How many elements were asked for so far: every index below is present.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Bytes of all chunks, touched or not.
    pub fn bytes_reserved(&self) -> u64 {
        self.chunks_present().map(|kind| kind.size() as u64).sum()
    }

    /// Bytes of memory the arena keeps, supposing that elements below [`count`](Self::count) were
    /// touched and no others: chunks from the heap count whole, mapped ones up to that element.
    pub fn bytes_resident_estimate(&self) -> u64 {
        let count = self.count();
        let unit = if self.huge_pages { HUGE_PAGE as u64 } else { 4096 };
        let bytes = |(chunk, kind): (usize, Kind)| match kind {
            Kind::Heap(layout) => layout.size() as u64,
            Kind::Mapped(size) => {
                let used = count.saturating_sub(self.start_of(chunk));
                let used = used.saturating_mul(size_of::<T>() as u64);
                used.min(size as u64).next_multiple_of(unit).min(size as u64)
            }
        };
        self.chunks_present().enumerate().map(bytes).sum()
    }

    /// The chunk of element `index`: 0 below `first`, then one more for each doubling.
    #[inline(always)]
    fn chunk_of(&self, index: u64) -> usize {
        (u64::BITS - (index >> self.first_shift).leading_zeros()) as usize
    }
}

impl<T> Arena<T> {
    /// The first element of chunk `chunk`: 0, `first`, 2 `first`, 4 `first` ...
    #[inline(always)]
    fn start_of(&self, chunk: usize) -> u64 {
        ((1u64 << chunk) >> 1) << self.first_shift
    }

    /// How chunk `chunk` is allocated.
    fn kind_of(&self, chunk: usize) -> io::Result<Kind> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let doublings = chunk.saturating_sub(1) as u32;
        let shift = self.first_shift + doublings;
        let elements = 1usize.checked_shl(shift).ok_or_else(too_large)?;
        let layout = Layout::array::<T>(elements).map_err(|_| too_large())?;
        if layout.size() < HUGE_PAGE {
            return Ok(Kind::Heap(layout));
        }
        let size = layout.size().checked_next_multiple_of(HUGE_PAGE).ok_or_else(too_large)?;
        Ok(Kind::Mapped(size))
    }

    fn chunks_present(&self) -> impl Iterator<Item = Kind> {
        let present = |entry: &&AtomicPtr<T>| !entry.load(Ordering::Acquire).is_null();
        let chunks = self.directory.iter().take_while(present).count();
        (0..chunks).filter_map(|chunk| self.kind_of(chunk).ok())
    }
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        for chunk in 0..CHUNKS {
            let Some(start) = NonNull::new(*self.directory[chunk].get_mut()) else { break };
            if let Ok(kind) = self.kind_of(chunk) {
                // SAFETY: the chunk was allocated by the same kind (it depends on `first_shift` and
                // `chunk` only), and with `&mut self` no reference into it is left.
                unsafe { kind.free(start.cast()) };
            }
        }
    }
}

impl<T> fmt::Debug for Arena<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count.load(Ordering::Relaxed);
        f.debug_struct("Arena").field("count", &count).finish_non_exhaustive()
    }
}

/// Where a chunk comes from.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The allocator.
    Heap(Layout),
    /// The system: this many bytes, a multiple of [`HUGE_PAGE`].
    Mapped(usize),
}

impl Kind {
    fn size(self) -> usize {
        match self {
            Self::Heap(layout) => layout.size(),
            Self::Mapped(size) => size,
        }
    }

    /// Zeroed memory.
    fn allocate(self, huge_pages: bool) -> io::Result<NonNull<u8>> {
        match self {
            Self::Heap(layout) => {
                // SAFETY: elements have a size and a chunk holds at least one.
                let start = unsafe { alloc_zeroed(layout) };
                NonNull::new(start).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
            }
            Self::Mapped(size) => map_aligned(size, huge_pages),
        }
    }

    /// # Safety
    /// `start` came from `allocate` of an equal kind, and nothing refers to the memory any more.
    unsafe fn free(self, start: NonNull<u8>) {
        match self {
            // SAFETY: as the caller promises.
            Self::Heap(layout) => unsafe { dealloc(start.as_ptr(), layout) },
            Self::Mapped(size) => {
                // SAFETY: as the caller promises.
                if let Err(error) = unsafe { mm::munmap(start.as_ptr().cast(), size) } {
                    log::error!("cannot give back {size} bytes of memory: {error}");
                }
            }
        }
    }
}

/// Maps `size` zeroed bytes at a multiple of [`HUGE_PAGE`], touching none.
fn map_aligned(size: usize, huge_pages: bool) -> io::Result<NonNull<u8>> {
    let mapped = size.checked_add(HUGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
    let start = unsafe { mm::mmap_anonymous(ptr::null_mut(), mapped, protection, flags) }?;
    let skip = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
    let aligned = start.wrapping_byte_add(skip);
    give_back(start, skip);
    give_back(aligned.wrapping_byte_add(size), mapped - skip - size);
    if huge_pages {
        // SAFETY: the range was mapped above and this advice changes no contents.
        let advised = unsafe { mm::madvise(aligned, size, Advice::LinuxHugepage) };
        if let Err(error) = advised {
            log::debug!("huge pages refused for {size} bytes of memory: {error}");
        }
    }
    NonNull::new(aligned.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Unmaps a part of the slack around an aligned mapping.
fn give_back(start: *mut c_void, length: usize) {
    if length == 0 {
        return;
    }
    // SAFETY: only `map_aligned` calls this, with the parts of its own mapping that it does not use.
    if let Err(error) = unsafe { mm::munmap(start, length) } {
        log::debug!("cannot trim a mapping: {error}");
    }
}
