//! [`Keys`]: from record numbers to keys.

use super::random::mix;
use super::sizes::Sizes;

/// Turns the number of a record into its key, by a bijection that depends on a seed: no two records
/// have the same key, and records with neighbouring numbers have unrelated keys.
///
/// The first 8 bytes of a key are the mixed number; further words are mixed from the first one. Keys
/// below 8 bytes hold as many records as their bits can tell apart.
#[derive(Clone, Debug)]
pub struct Keys {
    sizes: Sizes,
    mask: u64,
    half: u32,
    seed: u64,
}

/// Normally distributed keys have at least so many bytes, to differ.
const NORMAL_BYTES_MIN: usize = 8;
/// Odd, so that multiplying is a bijection of words of any width.
const FACTORS: [u64; 2] = [0xd6e8_feb8_6659_fd93, 0x9e37_79b9_7f4a_7c15];

impl Keys {
    /// Keys of `key_bytes` bytes, at least 1.
    pub fn new(key_bytes: usize, seed: u64) -> Self {
        let bits = 8 * key_bytes.clamp(1, 8) as u32;
        let mask = u64::MAX >> (64 - bits);
        Self { sizes: Sizes::Fixed(key_bytes), mask, half: bits / 2, seed: mix(seed) & mask }
    }

    /// Keys whose sizes are distributed normally around `key_bytes`, from 8 bytes on.
    pub fn normal(key_bytes: usize, seed: u64) -> Self {
        let sizes = Sizes::normal(key_bytes, NORMAL_BYTES_MIN);
        Self { sizes, ..Self::new(NORMAL_BYTES_MIN, seed) }
    }

    /// How long keys are.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The largest record number that has a key of its own.
    pub fn number_max(&self) -> u64 {
        self.mask
    }

    /// The mixed number of a record: the first word of its key.
    #[inline(always)]
    pub fn word(&self, number: u64) -> u64 {
        let mut word = number ^ self.seed;
        for factor in FACTORS {
            word = word.wrapping_mul(factor) & self.mask;
            word ^= word >> self.half;
        }
        word
    }

    /// Makes `key` the key of a record.
    #[inline(always)]
    pub fn write(&self, number: u64, key: &mut Vec<u8>) {
        let first = self.word(number);
        let bytes = self.sizes.of(first >> self.half);
        if key.len() != bytes {
            key.resize(bytes, 0);
        }
        if let Ok(key) = <&mut [u8; 16]>::try_from(&mut key[..]) {
            key[..8].copy_from_slice(&first.to_le_bytes());
            key[8..].copy_from_slice(&mix(first).to_le_bytes());
            return;
        }
        let mut word = first;
        for chunk in key.chunks_mut(8) {
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
            word = mix(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn key(keys: &Keys, number: u64) -> Vec<u8> {
        let mut key = Vec::new();
        keys.write(number, &mut key);
        key
    }

    #[test]
    fn one_and_two_byte_keys_are_permutations() {
        for (bytes, count) in [(1, 1 << 8), (2, 1 << 16)] {
            let keys = Keys::new(bytes, 42);
            assert_eq!(keys.number_max(), count - 1);
            let all: HashSet<_> = (0..count).map(|number| key(&keys, number)).collect();
            assert_eq!(all.len() as u64, count);
        }
    }

    #[test]
    fn keys_of_all_lengths_differ_and_fill_their_bytes() {
        for bytes in [3, 5, 8, 12, 16, 17, 32, 100] {
            let keys = Keys::new(bytes, 7);
            let all: HashSet<_> = (0..20_000).map(|number| key(&keys, number)).collect();
            assert_eq!(all.len(), 20_000, "{bytes} bytes");
            for at in 0..bytes {
                let first = all.iter().next().expect("not empty")[at];
                assert!(all.iter().any(|key| key[at] != first), "byte {at} of {bytes} is constant");
            }
        }
    }

    #[test]
    fn sixteen_bytes_are_two_words_as_in_other_lengths() {
        let (short, long) = (Keys::new(16, 9), Keys::new(24, 9));
        assert_eq!(key(&short, 5), key(&long, 5)[..16]);
        assert_eq!(key(&short, 5)[..8], short.word(5).to_le_bytes());
    }

    #[test]
    fn keys_of_different_lengths_differ_even_when_cut() {
        let keys = Keys::normal(16, 7);
        let all: Vec<_> = (0..20_000).map(|number| key(&keys, number)).collect();
        let firsts: HashSet<_> = all.iter().map(|key| &key[..8]).collect();
        assert_eq!(firsts.len(), 20_000);
        let mean = all.iter().map(Vec::len).sum::<usize>() as f64 / 20_000.0;
        assert!((15.5..16.5).contains(&mean), "{mean}");
        assert!(all.iter().any(|key| key.len() < 12) && all.iter().any(|key| key.len() > 20));
    }

    #[test]
    fn equal_ranges_have_equally_many_keys() {
        for bytes in [2, 5, 8, 16, 24] {
            let keys = Keys::new(bytes, 7);
            let mut counts = [0_i32; 4];
            for number in 0..40_000 {
                counts[usize::from(key(&keys, number)[0] >> 6)] += 1;
            }
            assert!(counts.iter().all(|count| (count - 10_000).abs() < 500), "{bytes}: {counts:?}");
        }
    }

    #[test]
    fn the_seed_matters() {
        assert_ne!(Keys::new(16, 1).word(0), Keys::new(16, 2).word(0));
    }
}
