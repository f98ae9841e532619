//! The state of one page of a private mapping: a word that writers and whoever gives the page back agree by.
//!
//! ```text
//! bit 0       GIVING: the page is being given back, and no writer may begin
//!     1       PRIVATE: the page has stores of its own, so the kernel keeps a copy of it
//!     2       SHARED: what is stored to the page is stored to its file
//!     3..31   writers in the middle of a store, and those that are about to find GIVING set
//! ```
//!
//! # Protocol
//! A writer adds itself, and goes away again and waits if it finds GIVING; else it sets PRIVATE, stores, and subtracts
//! itself. Whoever gives the page back sets GIVING in a word in which there is no writer, looks at the page, gives it back or
//! not, and clears GIVING. A writer that added itself before is seen there; one that adds itself later sees GIVING. So
//! nobody stores while a page is looked at and given back, and what was stored before is seen.
//!
//! A page that becomes SHARED is held in the same way, and so is one that is no longer SHARED; for that those who are in the
//! middle of a store are waited for. Whoever does that holds several pages, in ascending order, as writers begin theirs. So
//! none of them waits for a page while the other waits for an earlier one.

use super::atomic::{AtomicU32, Ordering};

#[cfg(all(test, not(loom)))]
mod tests;

const GIVING: u32 = 1;
const PRIVATE: u32 = 1 << 1;
const SHARED: u32 = 1 << 2;
const WRITER: u32 = 1 << 3;

/// Begins a store, which [`end`] ends. `wait` lets others run. Whether it is the first one to a page that was clean.
#[inline]
pub(crate) fn begin(state: &AtomicU32, mut wait: impl FnMut()) -> bool {
    loop {
        // Acquire: what was given back was so before.
        let before = state.fetch_add(WRITER, Ordering::Acquire);
        if before & GIVING == 0 {
            let is_clean = before & (PRIVATE | SHARED) == 0;
            return is_clean && state.fetch_or(PRIVATE, Ordering::Relaxed) & PRIVATE == 0;
        }
        state.fetch_sub(WRITER, Ordering::Relaxed);
        wait();
    }
}

/// Ends a store.
#[inline]
pub(crate) fn end(state: &AtomicU32) {
    // Release: whoever holds the page next sees what was stored.
    state.fetch_sub(WRITER, Ordering::Release);
}

/// Whether a page has stores of its own, and nobody is at it.
#[inline]
pub(crate) fn is_idle(state: &AtomicU32) -> bool {
    state.load(Ordering::Relaxed) == PRIVATE
}

/// Keeps writers out of a page that has stores of its own, until [`keep`] or [`give`]; `false` when somebody is at it.
pub(crate) fn try_hold(state: &AtomicU32) -> bool {
    // Acquire: of every writer that was there. All changes of the word are read-modify-writes.
    state.compare_exchange(PRIVATE, PRIVATE | GIVING, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

/// As [`try_hold`], of a clean page.
pub(crate) fn try_hold_clean(state: &AtomicU32) -> bool {
    state.compare_exchange(0, GIVING, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

/// Lets writers in again: the page is as it was.
pub(crate) fn keep(state: &AtomicU32) {
    state.fetch_and(!GIVING, Ordering::Release);
}

/// Lets writers in again: the page is clean.
pub(crate) fn give(state: &AtomicU32) {
    state.fetch_and(!(GIVING | PRIVATE), Ordering::Release);
}

/// Whether a page has no stores of its own, and nobody is at it.
pub(crate) fn is_clean(state: &AtomicU32) -> bool {
    state.load(Ordering::Relaxed) == 0
}

/// Lets writers into a clean page that was held: what they store goes to its file.
pub(crate) fn share(state: &AtomicU32) {
    state.fetch_or(SHARED, Ordering::Relaxed);
    state.fetch_and(!GIVING, Ordering::Release);
}

/// Whether what is stored to the page goes to its file.
#[inline]
pub(crate) fn is_shared(state: &AtomicU32) -> bool {
    state.load(Ordering::Relaxed) & SHARED > 0
}

/// Keeps writers out of a page that is shared until [`unshare`], and waits for those who are in the middle of a store.
pub(crate) fn hold_shared(state: &AtomicU32, mut wait: impl FnMut()) {
    // Acquire: of what they stored. All changes of the word are read-modify-writes.
    while state.fetch_or(GIVING, Ordering::Acquire) >= WRITER {
        wait();
    }
}

/// Lets writers into a page that was held: the page is clean, and what they store stays in memory.
pub(crate) fn unshare(state: &AtomicU32) {
    state.fetch_and(!(GIVING | SHARED), Ordering::Release);
}
