//! Random numbers, and the mixing of words.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// A source of random numbers for one thread.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    generator: Xoshiro256PlusPlus,
}

impl Random {
    /// A source that depends on `seed` and on `stream`: sources of different streams have nothing to
    /// do with each other.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let seed = mix(mix(seed).wrapping_add(stream));
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Any number.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number below `bound`.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        reduce(self.next(), bound)
    }

    /// A fraction from 0 to below 1.
    #[inline(always)]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Maps a random word to a number below `bound`, without dividing.
#[inline(always)]
pub(crate) fn reduce(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

/// Mixes a word (the finaliser of SplitMix64). A bijection.
#[inline(always)]
pub(crate) fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// A permutation of `0..length` without locality: neighbours come out far apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    length: u64,
    step: u64,
    next: u64,
}

impl Permutation {
    /// A permutation that starts anywhere, as `random` says.
    pub(crate) fn new(length: u64, random: &mut Random) -> Self {
        // A step near the golden section that shares no factor with the length.
        let mut step = ((length as f64 * 0.618_033_988_749_895) as u64).max(1);
        while gcd(step, length) > 1 {
            step += 1;
        }
        Self { length, step, next: random.below(length.max(1)) }
    }

    /// The next number; all of them once before any comes again.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        let number = self.next;
        self.next += self.step;
        if self.next >= self.length {
            self.next -= self.length;
        }
        number
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_gives_each_number_once() {
        for length in [1, 2, 3, 10, 997, 1000, 4096] {
            let mut permutation = Permutation::new(length, &mut Random::new(1, length));
            let mut seen: Vec<_> = (0..length).map(|_| permutation.next()).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..length), "length {length}");
        }
    }

    #[test]
    fn streams_differ_and_repeat() {
        let take = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.next(), random.next()]
        };
        assert_eq!(take(1, 2), take(1, 2));
        assert_ne!(take(1, 2), take(1, 3));
        assert_ne!(take(1, 2), take(2, 2));
    }

    #[test]
    fn numbers_below_a_bound_are_spread_evenly() {
        let mut random = Random::new(7, 7);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.fraction())));
    }
}
