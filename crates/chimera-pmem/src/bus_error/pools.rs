//! Which addresses belong to pools, for a signal handler to look up.
//!
//! A list that only grows, as long as there were ever pools at the same time; entries are used again.
//! It is read without a lock.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// An entry of the list. Never freed.
struct Entry {
    is_taken: AtomicBool,
    /// Both 0 while the entry is free.
    start: AtomicUsize,
    end: AtomicUsize,
    /// Does not change once the entry is in the list.
    next: AtomicPtr<Entry>,
}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

/// Addresses that belong to a pool until this is dropped.
pub(crate) struct Addresses(&'static Entry);

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Addresses").field(&self.0.start).field(&self.0.end).finish()
    }
}

impl Addresses {
    /// Addresses `start .. start + length`, which do not wrap around.
    pub(crate) fn new(start: usize, length: usize) -> Self {
        let free = entries().find(|entry| !entry.is_taken.swap(true, Ordering::AcqRel));
        let entry = free.unwrap_or_else(add);
        entry.end.store(start + length, Ordering::Relaxed);
        entry.start.store(start, Ordering::Release);
        Self(entry)
    }

    /// They have grown to `length` bytes.
    pub(crate) fn set_length(&self, length: usize) {
        let start = self.0.start.load(Ordering::Relaxed);
        self.0.end.store(start + length, Ordering::Relaxed);
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        self.0.end.store(0, Ordering::Relaxed);
        self.0.start.store(0, Ordering::Relaxed);
        self.0.is_taken.store(false, Ordering::Release);
    }
}

/// Whether an address belongs to a pool.
pub(super) fn contains(address: usize) -> bool {
    entries().any(|entry| {
        let start = entry.start.load(Ordering::Acquire);
        (start..entry.end.load(Ordering::Relaxed)).contains(&address)
    })
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    let entry_at = |pointer: *mut Entry| {
        // SAFETY: null, or an entry that was leaked and is only shared.
        unsafe { pointer.as_ref() }
    };
    std::iter::successors(entry_at(FIRST.load(Ordering::Acquire)), move |entry| {
        entry_at(entry.next.load(Ordering::Acquire))
    })
}

/// A new entry, taken.
fn add() -> &'static Entry {
    let entry: &'static Entry = Box::leak(Box::new(Entry {
        is_taken: AtomicBool::new(true),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        next: AtomicPtr::new(ptr::null_mut()),
    }));
    let new = ptr::from_ref(entry).cast_mut();
    let mut first = FIRST.load(Ordering::Acquire);
    loop {
        entry.next.store(first, Ordering::Relaxed);
        match FIRST.compare_exchange_weak(first, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return entry,
            Err(now) => first = now,
        }
    }
}
