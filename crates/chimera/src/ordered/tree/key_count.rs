//! [`KeyCount`]: how many keys there are, counted without a word that all writers share.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Words, which writers at different leaves seldom share.
const WORDS: usize = 16;

/// A word on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

/// How many keys there are.
#[derive(Debug, Default)]
pub(super) struct KeyCount([Line; WORDS]);

impl KeyCount {
    /// Counts keys that have come, or gone, at a leaf.
    #[inline(always)]
    pub(super) fn add(&self, leaf: u32, keys: i64) {
        self.0[leaf as usize % WORDS].0.fetch_add(keys.cast_unsigned(), Ordering::Relaxed);
    }

    /// The sum; while others count, roughly.
    pub(super) fn get(&self) -> u64 {
        let words = self.0.iter().map(|line| line.0.load(Ordering::Relaxed));
        words.fold(0, u64::wrapping_add).cast_signed().max(0).cast_unsigned()
    }
}
