//! [`Random`]: random numbers of one thread.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// A source of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    generator: Xoshiro256PlusPlus,
}

impl Random {
    /// A source that depends on `seed` and on `stream`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let seed = mixed(mixed(seed).wrapping_add(stream));
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.generator.next_u64() as u8
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.generator.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A fraction from 0 to below 1.
    pub fn fraction(&mut self) -> f64 {
        (self.generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Mixes a word (the finaliser of SplitMix64). A bijection.
pub(super) fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
