//! A stream of random numbers that threads may share.

use std::sync::atomic::{AtomicU64, Ordering};

/// SplitMix64 (Steele, Lea, Flood, OOPSLA'14): a counter and a mixing function, so that one atomic
/// addition is all that threads share.
#[derive(Debug)]
pub(super) struct SplitMix {
    state: AtomicU64,
}

impl SplitMix {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed) }
    }

    pub(super) fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        mix(self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }
}

/// The finaliser of SplitMix64: a bijection that spreads every bit.
pub(super) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
