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

#[cfg(test)]
mod tests {
    use super::*;

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
