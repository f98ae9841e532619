//! [`Arena`] for models: a table of the few elements that a model needs.

use std::fmt;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Elements there can be.
const ELEMENTS_MAX: usize = 64;

/// Stands for [`chimera_pmem::Arena`], whose elements are made of zeros and cannot be `loom`'s. It has
/// none of the orders of the real one: an element may be used only by who has learned in another way
/// that it was made, or `loom` says so.
pub(crate) struct Arena<T> {
    count: AtomicU64,
    elements: Box<[OnceLock<T>]>,
}

/// Stands for a slice of elements, all of which were made.
#[derive(Debug)]
pub(crate) struct ArenaRange<'a, T>(&'a [OnceLock<T>]);

impl<T> Clone for ArenaRange<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ArenaRange<'_, T> {}

impl<'a, T> ArenaRange<'a, T> {
    /// As the method of slices.
    pub(crate) fn get(self, index: usize) -> Option<&'a T> {
        self.0.get(index)?.get()
    }
}

impl<T: Default> Arena<T> {
    /// An empty arena.
    pub(crate) fn new(_first: usize, _huge_pages: bool) -> Self {
        let elements = (0..ELEMENTS_MAX).map(|_| OnceLock::new()).collect();
        Self { count: AtomicU64::new(0), elements }
    }

    /// As the real one.
    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        self.elements.get(index as usize)?.get()
    }

    /// As the real one.
    pub(crate) fn range(&self, start: u64, count: u64) -> Option<ArenaRange<'_, T>> {
        let elements = self.elements.get(start as usize..(start + count) as usize)?;
        elements.iter().all(|element| element.get().is_some()).then_some(ArenaRange(elements))
    }

    /// As the real one.
    pub(crate) fn ensure(&self, count: u64) -> io::Result<()> {
        let elements = self.elements.get(..count as usize).ok_or(io::ErrorKind::OutOfMemory)?;
        for element in elements {
            element.get_or_init(T::default);
        }
        self.count.fetch_max(count, Ordering::Relaxed);
        Ok(())
    }

    /// As the real one of elements on the heap.
    pub(crate) fn give_back(&self, _start: u64, _count: u64) -> bool {
        false
    }

    /// As the real one.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// As the real one.
    pub(crate) fn bytes_resident_estimate(&self) -> u64 {
        self.count() * size_of::<T>() as u64
    }
}

impl<T> fmt::Debug for Arena<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("count", &self.count).finish_non_exhaustive()
    }
}
