//! The words that an access reaches: checked against a watermark, and, where there is a journal, kept from being given back
//! while they are stored to.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Hardware;
use crate::mapping::words;
use crate::{Pmem, arch};

/// Bytes from which on what goes to a file that is mapped is written rather than stored.
pub(super) const BY_FILE_BYTES_MIN: u64 = 16 << 10;

impl Hardware {
    /// The words that hold `length` bytes at `at`, for loading.
    #[inline(always)]
    pub(super) fn words(&self, at: u64, length: u64) -> &[AtomicU64] {
        if !is_below(&self.mapped_words, at, length) {
            self.refuse(at, length);
        }
        // SAFETY: they lie below that watermark.
        unsafe { self.words_at(at, length) }
    }

    /// Calls `store` with the words that hold `length` bytes at `at`, for storing. It does not panic.
    #[inline(always)]
    pub(super) fn store_words<T>(
        &self,
        at: u64,
        length: u64,
        store: impl FnOnce(&[AtomicU64]) -> T,
    ) -> T {
        let is_direct = is_below(&self.writable_words, at, length);
        if !is_direct {
            self.begin_store(at, length);
        }
        // SAFETY: all of it lies below `writable_words`, or below `journaled_words`, as `begin_store` has seen.
        let done = store(unsafe { self.words_at(at, length) });
        if !is_direct {
            self.end_store(at, length);
        }
        done
    }

    /// Copies `bytes` to the words at `at`; returns their sum.
    #[inline(always)]
    pub(super) fn copy_words_sum(&self, at: u64, bytes: &[u8]) -> u64 {
        let length = bytes.len() as u64;
        let is_direct = is_below(&self.writable_words, at, length);
        if !is_direct {
            if length >= BY_FILE_BYTES_MIN {
                self.copy_long(at, bytes);
                return crate::sum(bytes);
            }
            self.begin_store(at, length);
        }
        // SAFETY: all of it lies below `writable_words`, or below `journaled_words`, as `begin_store` has seen.
        let words = unsafe { self.words_at(at, length) };
        // Not by `store_words`: the compiler would make a function of what it is given.
        let sum = words::copy_sum(words, bytes, self.has_copy_sum);
        if !is_direct {
            self.end_store(at, length);
        }
        sum
    }

    /// Copies many bytes to the words at `at`: what goes to a file that is mapped is written to it, which costs less than a page
    /// fault for each of its pages.
    #[cold]
    #[inline(never)]
    pub(super) fn copy_long(&self, at: u64, bytes: &[u8]) {
        let length = bytes.len() as u64;
        self.store_words(at, length, |words| {
            let Some(journal) = self.journal.get() else { return words::copy(words, bytes) };
            self.pages.for_parts(at, length, |part, is_shared| {
                let (start, end) = ((part.start - at) as usize, (part.end - at) as usize);
                let bytes = &bytes[start..end];
                // What is left of the last word becomes zero, as elsewhere.
                let whole = bytes.len() / 8 * 8;
                let is_written = is_shared
                    && whole as u64 >= BY_FILE_BYTES_MIN
                    && journal.try_write_taken(part.start, &bytes[..whole]).is_ok();
                // Where that has failed, storing it does, too, or the next sync.
                let written = if is_written { whole } else { 0 };
                let words = &words[(start + written) / 8..end.div_ceil(8)];
                words::copy(words, &bytes[written..]);
            });
        });
    }

    /// Begins a store where there is a journal: the pages are not given back before [`end_store`](Self::end_store).
    ///
    /// # Panics
    /// Where the range is not mapped writable.
    #[inline(always)]
    pub(super) fn begin_store(&self, at: u64, length: u64) {
        // SAFETY: `self` as a pointer.
        if unsafe { arch::call_aside(begin_store, std::ptr::from_ref(self).cast(), at, length) }
            == 0
        {
            self.refuse(at, length);
        }
    }

    /// Ends a store that [`begin_store`](Self::begin_store) began.
    #[inline(always)]
    pub(super) fn end_store(&self, at: u64, length: u64) {
        // SAFETY: `self` as a pointer.
        unsafe { arch::call_aside(end_store, std::ptr::from_ref(self).cast(), at, length) };
    }

    /// The words that hold `length` bytes at `at`, a multiple of 8.
    ///
    /// # Safety
    /// They lie below a watermark; to store to them, below one of those for storing.
    #[inline(always)]
    pub(super) unsafe fn words_at(&self, at: u64, length: u64) -> &[AtomicU64] {
        // SAFETY: the address is inside the reservation, because `at` is below the watermark.
        let start = unsafe { self.base.add(at.rotate_right(3) as usize) };
        // SAFETY: so many words from an aligned `start` are mapped readable (writable, for that
        // watermark) and stay so while `self` lives; all access to them is atomic.
        unsafe { std::slice::from_raw_parts(start, words::words_for(length) as usize) }
    }

    /// Faults in the page at `at` for writing and changes nothing.
    pub(super) fn touch(&self, at: u64) {
        self.store_words(at, 8, |words| {
            let word = &words[0];
            // Not `fetch_or(0)`: the compiler makes a load of it, which maps the shared zero page. When
            // the swap fails, another thread has stored to the page.
            let value = word.load(Ordering::Relaxed);
            let _ = word.compare_exchange(value, value, Ordering::Relaxed, Ordering::Relaxed);
        });
    }

    /// Panics with what was wrong about an access.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&self, at: u64, length: u64) -> ! {
        let mapped = self.mapped();
        assert!(at.is_multiple_of(8), "access at offset {at}, which is not a multiple of 8");
        assert!(
            at.checked_add(length).is_none_or(|end| end > mapped),
            "store of {length} bytes at offset {at} of a space mapped read-only"
        );
        panic!("access of {length} bytes at offset {at}, outside of the {mapped} bytes mapped");
    }
}

/// Whether `length` bytes at `at` lie below a watermark, and begin at a word.
#[inline(always)]
pub(super) fn is_below(watermark: &AtomicU64, at: u64, length: u64) -> bool {
    // Rotating moves the three low bits to the top: an offset that is not a multiple of 8
    // becomes a word number beyond every watermark, so one compare finds both mistakes.
    let end = at.rotate_right(3).saturating_add(words::words_for(length));
    // Acquire: a thread that sees the watermark also sees the mapping.
    end <= watermark.load(Ordering::Acquire)
}

/// As [`is_below`], of one word.
#[inline(always)]
pub(super) fn is_word_below(watermark: &AtomicU64, at: u64) -> bool {
    at.rotate_right(3) < watermark.load(Ordering::Acquire)
}

/// Begins a store to `length` bytes at `at` of a [`Hardware`] with a journal; 0 where they are not mapped writable. Their
/// pages are not given back before [`end_store`].
///
/// # Safety
/// `hardware` points to a [`Hardware`].
#[cold]
unsafe extern "C" fn begin_store(hardware: *const (), at: u64, length: u64) -> u64 {
    // SAFETY: as the caller promises.
    let hardware = unsafe { &*hardware.cast::<Hardware>() };
    if !is_below(&hardware.journaled_words, at, length) {
        return 0;
    }
    let Some(journal) = hardware.journal.get() else { return 0 };
    hardware.ask_for(at, length);
    hardware.pages.begin_store(at, length, |attempt| journal.relax(attempt));
    1
}

/// Ends a store that [`begin_store`] began.
///
/// # Safety
/// As there.
#[cold]
unsafe extern "C" fn end_store(hardware: *const (), at: u64, length: u64) -> u64 {
    // SAFETY: as the caller promises.
    let hardware = unsafe { &*hardware.cast::<Hardware>() };
    if let Some(journal) = hardware.journal.get() {
        hardware.pages.write_through(at, length, |at, bytes| journal.write_taken(at, bytes));
    }
    hardware.pages.end_store(at, length);
    0
}
