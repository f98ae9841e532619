//! Checksums of records. Each depends on where the record lies, so that a copy at another offset is
//! not sound.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Checksum of a record's key, by its hash, and of the word with its version; `record_at` is the record's offset.
#[inline]
pub(crate) fn key_checksum(record_at: u64, version_word: u64, key_hash: u64) -> u32 {
    let mixed = u128::from(key_hash ^ seed(record_at)) * u128::from(MULTIPLIER);
    let folded = (mixed as u64 ^ (mixed >> 64) as u64).wrapping_add(version_word);
    let mixed = u128::from(folded ^ key_hash.rotate_left(32)) * u128::from(MULTIPLIER);
    (mixed >> 64) as u32 ^ mixed as u32
}

/// Checksum of a record's value; `record_at` is the record's offset.
#[inline]
pub(crate) fn value_checksum(record_at: u64, value: &[u8]) -> u32 {
    xxh3_64_with_seed(value, seed(record_at)) as u32
}

/// [`value_checksum`] of the value with its aligned word number `word` zero, whatever the word holds. The value
/// has that word.
///
/// # Cost
/// That of the checksum; no copy of the value.
pub(crate) fn value_checksum_without(record_at: u64, value: &[u8], word: usize) -> u32 {
    let (before, rest) = value.split_at(8 * word);
    let mut sum = Xxh3::with_seed(seed(record_at));
    sum.update(before);
    sum.update(&[0; 8]);
    sum.update(&rest[8..]);
    sum.digest() as u32
}

/// What a checksum starts from: different for any two records.
#[inline(always)]
fn seed(record_at: u64) -> u64 {
    record_at.wrapping_mul(MULTIPLIER)
}

/// Odd, with well-mixed bits.
const MULTIPLIER: u64 = 0x9fb2_1c65_1e98_df25;

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 4096;

    #[test]
    fn without_a_word_is_the_checksum_of_the_value_with_that_word_zero() {
        for length in [8, 9, 16, 24, 136, 200, 203, 240, 248, 1000, 5000] {
            let value: Vec<u8> = (0..length).map(|at| (at * 31 + 7) as u8).collect();
            for word in 0..length / 8 {
                let mut zeroed = value.clone();
                zeroed[8 * word..8 * word + 8].fill(0);
                let without = value_checksum_without(AT, &value, word);
                assert_eq!(without, value_checksum(AT, &zeroed), "word {word} of {length} bytes");
            }
        }
    }

    #[test]
    fn every_flipped_bit_beside_the_word_is_noticed_and_none_in_it() {
        let mut value = [0x5a; 43];
        for word in 0..5 {
            let sum = value_checksum_without(AT, &value, word);
            for bit in 0..8 * value.len() {
                value[bit / 8] ^= 1 << (bit % 8);
                let is_alike = value_checksum_without(AT, &value, word) == sum;
                assert_eq!(is_alike, bit / 64 == word, "bit {bit} beside word {word}");
                value[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
