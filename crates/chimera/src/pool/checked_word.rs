//! Words that tell whether they were damaged: a number of 32 bits and a check of 32 bits, stored and
//! swapped as one.

/// Odd, with well-mixed bits: the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The word of a number; 0 for 0, so that fresh memory is valid.
#[inline(always)]
pub(crate) fn encode(number: u32) -> u64 {
    u64::from(number) | u64::from(number).wrapping_mul(FACTOR) >> 32 << 32
}

/// The number of a word, unless the word is damaged.
#[inline(always)]
pub(crate) fn decode(word: u64) -> Option<u32> {
    let number = word as u32;
    (encode(number) == word).then_some(number)
}

/// Odd, with well-mixed bits, and no multiple of [`FACTOR`].
const PLACE_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// The word of a number at byte `at` of the pool; never 0, so that storage which lost its bytes is damaged, and
/// different at different places, so that words which were exchanged are.
#[inline(always)]
pub(crate) fn encode_at(number: u32, at: u64) -> u64 {
    encode(number) ^ (at.wrapping_mul(PLACE_FACTOR) >> 32 | 1) << 32
}

/// The number of a word at byte `at` of the pool, unless the word is damaged.
#[inline(always)]
pub(crate) fn decode_at(word: u64, at: u64) -> Option<u32> {
    let number = word as u32;
    (encode_at(number, at) == word).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_place_is_never_zero_and_right_nowhere_else() {
        for number in [0, 1, 77, u32::MAX] {
            for at in (0..1 << 20).step_by(8).chain([1 << 40]) {
                let word = encode_at(number, at);
                assert_ne!(word, 0, "{number} at {at}");
                assert_eq!(decode_at(word, at), Some(number));
                assert_eq!(decode_at(word, at + 8), None);
                assert_eq!(decode_at(0, at), None);
            }
        }
    }

    /// The checks of these have ones wherever that of a place could have some.
    #[test]
    fn exchanged_words_are_noticed_whatever_the_number() {
        for number in [2_971_215_073, 1_836_311_903, 701_408_733] {
            assert!((encode(number) >> 32).count_ones() >= 31);
            for at in (0..1 << 16).step_by(8) {
                for other in [at ^ 8, at + 4096, at + (24 << 10)] {
                    let word = encode_at(number, at);
                    assert_eq!(decode_at(word, other), None, "{number} from {at} at {other}");
                }
            }
        }
    }

    /// What these places are mixed to is zero, or one, in the bits that a check has.
    #[test]
    fn no_place_takes_lost_storage_for_a_number() {
        for at in [0, 69_502_380_992, 19_808_775_080, 36_373_310_384] {
            assert_eq!(decode_at(0, at), None, "{at}");
            assert_eq!(decode_at(encode_at(0, at), at), Some(0));
        }
    }

    #[test]
    fn one_or_two_flipped_bits_of_the_word_of_a_place_are_noticed() {
        let (number, at) = (123_456_789, 4096);
        for first in 0..64 {
            for second in 0..=first {
                let flipped =
                    encode_at(number, at) ^ 1 << first ^ u64::from(first != second) << second;
                assert_eq!(decode_at(flipped, at), None, "bits {first}, {second}");
            }
        }
    }

    #[test]
    fn zero_is_zero() {
        assert_eq!(encode(0), 0);
        assert_eq!(decode(0), Some(0));
    }

    #[test]
    fn one_or_two_flipped_bits_are_noticed() {
        for number in [0, 1, 2, 0x1ffff, 0x5555_5555, 0x8000_0000, u32::MAX, 123_456_789] {
            let word = encode(number);
            assert_eq!(decode(word), Some(number));
            for first in 0..64 {
                assert_eq!(decode(word ^ 1 << first), None, "{number}: bit {first}");
                for second in 0..first {
                    let flipped = word ^ 1 << first ^ 1 << second;
                    assert_eq!(decode(flipped), None, "{number}: bits {first}, {second}");
                }
            }
        }
    }
}
