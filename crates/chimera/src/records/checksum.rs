//! Checksums of records. Each depends on where the record lies, so that a copy at another offset is
//! not sound.

use chimera_pmem::{sum, term};

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
pub(crate) fn value_checksum(record_at: u64, value: Summed<'_>) -> u32 {
    let mixed = value.sum.wrapping_add((value.bytes.len() as u64).wrapping_mul(LENGTH_FACTOR));
    let mixed = u128::from(mixed ^ seed(record_at)) * u128::from(MULTIPLIER);
    let folded = mixed as u64 ^ (mixed >> 64) as u64;
    folded as u32 ^ (folded >> 32) as u32
}

/// Bytes and their [sum]: taken while they were copied, so that they are gone through once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summed<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) sum: u64,
}

impl<'a> Summed<'a> {
    /// Of bytes that were not summed yet.
    #[inline]
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, sum: sum(bytes) }
    }

    /// As if the aligned word number `word`, which the bytes have, were zero.
    #[inline]
    pub(crate) fn without(self, word: usize) -> Self {
        let bytes = &self.bytes[8 * word..8 * word + 8];
        let found = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let number = word as u64;
        let sum = self.sum.wrapping_sub(term(found, number)).wrapping_add(term(0, number));
        Self { sum, ..self }
    }
}

/// What a checksum starts from: different for any two records.
#[inline(always)]
fn seed(record_at: u64) -> u64 {
    record_at.wrapping_mul(MULTIPLIER)
}

/// Odd, with well-mixed bits.
const MULTIPLIER: u64 = 0x9fb2_1c65_1e98_df25;
const LENGTH_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

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
                let without = value_checksum(AT, Summed::of(&value).without(word));
                let expected = value_checksum(AT, Summed::of(&zeroed));
                assert_eq!(without, expected, "word {word} of {length} bytes");
            }
        }
    }

    /// Computed from docs/FORMAT.md by other means.
    #[test]
    fn stores_of_this_format_have_these_checksums() {
        assert_eq!(key_checksum(4096, 7, 0x0123_4567_89ab_cdef), 0x4c29_6776);
        assert_eq!(
            key_checksum((1 << 40) | 256, 0xffff << 48 | 1, 0xfedc_ba98_7654_3210),
            0xcc43_ccf7
        );
        let checksum = |at, bytes, sum| value_checksum(at, Summed { bytes, sum });
        assert_eq!(checksum(4096, b"abc", 0x0123_4567_89ab_cdef), 0x28d2_2eb2);
        assert_eq!(checksum((1 << 40) | 256, b"abcde", 0xfedc_ba98_7654_3210), 0x218b_5ab6);
    }

    #[test]
    fn every_flipped_bit_beside_the_word_is_noticed_and_none_in_it() {
        let mut value = [0x5a; 43];
        let checksum = |value: &[u8], word| value_checksum(AT, Summed::of(value).without(word));
        for word in 0..5 {
            let before = checksum(&value, word);
            for bit in 0..8 * value.len() {
                value[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(checksum(&value, word) == before, bit / 64 == word, "bit {bit}");
                value[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
