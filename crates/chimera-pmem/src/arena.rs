//! [`Arena`]: a growing table in DRAM whose elements never move.
//!
//! The first elements lie on the heap, so that a small table costs no system call. All others lie in
//! one range of addresses that is reserved when the table outgrows the heap. It grows in place, and is
//! made usable piece by piece, each doubling it. So finding an element takes a comparison and an addition.
//!
//! # Thread safety
//! [`Arena::get`] takes no lock and may run beside [`Arena::ensure`] on any thread.
//!
//! # Invariants
//! 1. Elements below `present` lie in memory that is usable and was zeroed: those below `first` from
//!    `head` on, the others from where element 0 would lie if `rest` led there.
//! 2. Both pointers are null or final. They are set before a `present` that needs them.
//! 3. `present` never sinks; all three change under `growth`.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{self, Advice, MprotectFlags};
use zerocopy::FromZeros;

use crate::mapping::{Addresses, refused};

#[cfg(test)]
mod tests;

/// Bytes of a huge page: the reserved range is aligned to it, and [`HUGE_FROM`] to it.
const HUGE_PAGE: usize = 2 << 20;
/// Bytes to reserve at first: address space, not memory.
const RESERVED: u64 = 64 << 20;
/// Huge pages are for what lies behind so many bytes: in a small table most of one would be wasted.
const HUGE_FROM: usize = 4 << 20;
/// Bytes of a small page.
const PAGE: usize = 4096;
/// Bytes to make usable at least.
const STEP_MIN: usize = 16 << 10;

/// A table of `T` that grows and never moves an element.
///
/// Elements start as zeros and are changed through their own interior mutability (atomics, locks).
///
/// # Cost
/// [`get`](Self::get) is two loads of the arena's own, which stay in the cache, and a few
/// instructions. An arena that was never grown owns no memory.
pub struct Arena<T> {
    present: AtomicU64,
    head: AtomicPtr<T>,
    /// Where element 0 would lie in the reserved range.
    rest: AtomicPtr<T>,
    /// Elements on the heap.
    first: u64,
    huge_pages: bool,
    /// The largest count that was asked for; all of it is present.
    count: AtomicU64,
    growth: Mutex<Range>,
}

/// An element that is made of atomic words and nothing else.
pub trait AtomicWords {
    /// All of its words, in order.
    fn words(&self) -> &[AtomicU64];
}

/// A range of reserved addresses.
#[derive(Debug, Default)]
struct Range {
    addresses: Option<Addresses>,
    /// Bytes from its start that are usable.
    usable: usize,
}

impl<T: FromZeros + Send + Sync> Arena<T> {
    /// An empty arena whose first `first` elements will lie on the heap. `huge_pages` asks the system
    /// for 2 MiB pages behind the first 4 MiB.
    ///
    /// # Panics
    /// When `first` is 0.
    pub fn new(first: usize, huge_pages: bool) -> Self {
        const {
            assert!(size_of::<T>() > 0, "an element occupies memory");
            assert!(!std::mem::needs_drop::<T>(), "elements are not dropped");
            assert!(align_of::<T>() <= 4096, "the reserved range is aligned to pages");
        }
        assert!(first > 0, "there is a first element");
        Self {
            present: AtomicU64::new(0),
            head: AtomicPtr::new(ptr::null_mut()),
            rest: AtomicPtr::new(ptr::null_mut()),
            first: first as u64,
            huge_pages,
            count: AtomicU64::new(0),
            growth: Mutex::default(),
        }
    }

    /// The element with number `index`: present for every index below [`count`](Self::count), and
    /// perhaps for some above it.
    #[inline(always)]
    pub fn get(&self, index: u64) -> Option<&T> {
        // Acquire: pairs with the store in `ensure`, so the pointers and the zeros are seen.
        if index >= self.present.load(Ordering::Acquire) {
            return None;
        }
        let base = if index < self.first { self.of_head() } else { &self.rest };
        let element = base.load(Ordering::Relaxed).wrapping_add(index as usize);
        // SAFETY: the element is in usable memory (invariant 1), initialised, because zeros are valid
        // (`FromZeros`), and lives as long as `self`. Only shared references are ever given out.
        Some(unsafe { &*element })
    }

    /// `count` elements from `start` on. `None` unless all are present, and either all of them or none lie on the
    /// heap.
    #[inline(always)]
    pub fn range(&self, start: u64, count: u64) -> Option<&[T]> {
        let end = start.checked_add(count)?;
        // Acquire: as in `get`.
        if end > self.present.load(Ordering::Acquire) {
            return None;
        }
        if start < self.first && end > self.first {
            return None;
        }
        let base = if start < self.first { self.of_head() } else { &self.rest };
        let elements = base.load(Ordering::Relaxed).wrapping_add(start as usize);
        // SAFETY: as in `get`; neighbours on the heap, or in the reserved range, are neighbours in memory.
        Some(unsafe { std::slice::from_raw_parts(elements, count as usize) })
    }

    /// For a branch that a large table hardly ever takes.
    #[inline(always)]
    fn of_head(&self) -> &AtomicPtr<T> {
        cold_path();
        &self.head
    }

    /// Makes the elements with numbers below `count` present, zeroed where they are new.
    ///
    /// # Errors
    /// `OutOfMemory` when there is no memory, or not enough address space was to be had. What was
    /// present stays.
    ///
    /// # Cost
    /// One load when nothing is missing. Memory that was never touched is not taken.
    pub fn ensure(&self, count: u64) -> io::Result<()> {
        if count <= self.count() {
            return Ok(());
        }
        let mut range = self.growth();
        if self.head.load(Ordering::Relaxed).is_null() {
            self.head.store(allocate(Self::head_layout(self.first)?)?, Ordering::Release);
            self.present.store(self.first, Ordering::Release);
        }
        if count > self.present.load(Ordering::Relaxed) {
            self.extend(&mut range, count - self.first)?;
        }
        self.count.fetch_max(count, Ordering::Release);
        Ok(())
    }

    /// Makes `elements` usable behind those on the heap.
    fn extend(&self, range: &mut Range, elements: u64) -> io::Result<()> {
        let bytes =
            usize::try_from(elements).ok().and_then(|count| count.checked_mul(size_of::<T>()));
        let bytes = bytes.and_then(usize::checked_next_power_of_two);
        let bytes = bytes.ok_or(io::ErrorKind::OutOfMemory)?.max(STEP_MIN);
        let addresses = match &mut range.addresses {
            Some(addresses) => addresses,
            none => none.insert(Addresses::reserve(RESERVED)?),
        };
        let rest = addresses.base().cast::<T>().wrapping_sub(self.first as usize);
        self.rest.store(rest, Ordering::Release);
        range.make_usable(bytes, self.huge_pages)?;
        let present = self.first + (range.usable / size_of::<T>()) as u64;
        self.present.store(present, Ordering::Release);
        Ok(())
    }

    /// How many elements were asked for so far: every index below is present.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Bytes of all usable memory, touched or not.
    pub fn bytes_reserved(&self) -> u64 {
        self.head_bytes() + self.growth().usable as u64
    }

    /// Bytes of memory the arena keeps, supposing that elements below [`count`](Self::count) were
    /// touched and no others.
    pub fn bytes_resident_estimate(&self) -> u64 {
        let usable = self.growth().usable as u64;
        let touched = self.count().saturating_sub(self.first) * size_of::<T>() as u64;
        let is_huge = self.huge_pages && touched > HUGE_FROM as u64;
        let unit = if is_huge { HUGE_PAGE as u64 } else { 4096 };
        self.head_bytes() + touched.next_multiple_of(unit).min(usable)
    }
}

impl<T: FromZeros + Send + Sync + AtomicWords> Arena<T> {
    /// Makes `count` elements from `start` on zeros, and gives their memory back to the system until they are used again. Others
    /// may read and store to them meanwhile: each word is as it was, as it was stored, or zero. `false`, with nothing done, where
    /// they lie on the heap or not all are present.
    ///
    /// # Panics
    /// When [`words`](AtomicWords::words) are not all of an element.
    ///
    /// # Cost
    /// A system call, and a look at each element. Pages that they share with others stay.
    pub fn give_back(&self, start: u64, count: u64) -> bool {
        let Some(elements) = self.range(start, count).filter(|_| start >= self.first) else {
            return false;
        };
        for element in elements {
            let words = element.words();
            let is_all = words.as_ptr().cast::<T>() == ptr::from_ref(element)
                && size_of_val(words) == size_of::<T>();
            assert!(is_all, "an element is its words");
        }
        let all = elements.as_ptr_range();
        let from = all.start.addr().next_multiple_of(PAGE);
        let to = all.end.addr() / PAGE * PAGE;
        let is_given = from < to && {
            let at = all.start.wrapping_byte_add(from - all.start.addr());
            // SAFETY: the pages hold nothing but these elements, which are in the reserved range (invariant 1): private memory
            // that zeros take the place of. Every byte of them is part of an atomic word, as was just seen, so a change beside
            // readers is one of words that change anyway.
            let advised =
                unsafe { mm::madvise(at.cast_mut().cast(), to - from, Advice::LinuxDontNeed) };
            advised.is_ok()
        };
        let is_left = |element: &&T| {
            let at = ptr::from_ref(*element).addr();
            !is_given || at < from || at + size_of::<T>() > to
        };
        for word in elements.iter().filter(is_left).flat_map(AtomicWords::words) {
            word.store(0, Ordering::Release);
        }
        true
    }
}

impl<T> Arena<T> {
    fn growth(&self) -> MutexGuard<'_, Range> {
        // A panic leaves nothing half-done: what is not usable yet is not counted.
        self.growth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn head_layout(first: u64) -> io::Result<Layout> {
        Layout::array::<T>(first as usize).map_err(|_| io::ErrorKind::OutOfMemory.into())
    }

    fn head_bytes(&self) -> u64 {
        let is_there = !self.head.load(Ordering::Acquire).is_null();
        if is_there { self.first * size_of::<T>() as u64 } else { 0 }
    }
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        let head = *self.head.get_mut();
        if let (false, Ok(layout)) = (head.is_null(), Self::head_layout(self.first)) {
            // SAFETY: allocated with the same layout, and with `&mut self` no reference is left.
            unsafe { dealloc(head.cast(), layout) };
        }
    }
}

impl<T> fmt::Debug for Arena<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count.load(Ordering::Relaxed);
        f.debug_struct("Arena").field("count", &count).finish_non_exhaustive()
    }
}

/// Tells the compiler that a branch is hardly ever taken.
#[inline]
#[cold]
fn cold_path() {}

/// Zeroed memory from the heap.
fn allocate<T>(layout: Layout) -> io::Result<*mut T> {
    // SAFETY: elements have a size, and there is at least one.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(start.cast()) }
}

impl Range {
    /// Makes the first `bytes` usable; what was usable stays as it is.
    fn make_usable(&mut self, bytes: usize, huge_pages: bool) -> io::Result<()> {
        let Some(addresses) = self.addresses.as_mut().filter(|_| bytes > self.usable) else {
            return Ok(());
        };
        addresses.extend(bytes)?;
        let start = addresses.base().wrapping_byte_add(self.usable);
        let length = bytes - self.usable;
        if huge_pages && bytes > HUGE_FROM {
            let small = HUGE_FROM.saturating_sub(self.usable);
            let large = start.wrapping_byte_add(small);
            // SAFETY: the pages lie in the reserved range, and this advice changes no contents.
            let advised = unsafe { mm::madvise(large, length - small, Advice::LinuxHugepage) };
            if let Err(error) = advised {
                log::debug!("huge pages refused for a table in memory: {error}");
            }
        }
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the pages lie in the reserved range, and nothing refers to them yet.
        unsafe { mm::mprotect(start, length, flags) }.map_err(|error| refused(error, length))?;
        self.usable = bytes;
        Ok(())
    }
}
