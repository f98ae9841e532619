//! [`UncheckedWord`]: the word of a value that the value's checksum leaves out.

use super::checksum::{Summed, value_checksum};

/// The aligned word of a value that the value's checksum leaves out, or none. It is updated in place, and
/// everything else stays verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UncheckedWord(u16);

impl UncheckedWord {
    /// All of the value is in its checksum.
    pub(crate) const NONE: Self = Self(0);

    /// Bits on media: enough for each word of a value that lies beside its key.
    pub(crate) const BITS: u32 = 13;

    /// The word with bytes `at..at + 8` of a value, where `at` is a multiple of 8. `NONE` where `BITS` cannot
    /// say it.
    #[inline]
    pub(crate) fn at(at: usize) -> Self {
        let encoded = at / 8 + 1;
        if encoded < 1 << Self::BITS { Self(encoded as u16) } else { Self::NONE }
    }

    /// Whether this is the word with bytes `at..at + 8`.
    #[inline]
    pub(crate) fn is_at(self, at: usize) -> bool {
        self != Self::NONE && self == Self::at(at)
    }

    /// As it is on media: the word's number in the value plus one, or zero.
    #[inline(always)]
    pub(crate) fn encode(self) -> u64 {
        self.0.into()
    }

    /// The word that [`encode`](Self::encode) made `encoded` of.
    #[inline(always)]
    pub(crate) fn decode(encoded: u64) -> Self {
        debug_assert!(encoded < 1 << Self::BITS, "as many bits as there are");
        Self(encoded as u16)
    }

    /// The checksum of a value, with this word left out. `None` where the value has no such word.
    #[inline(always)]
    pub(crate) fn checksum(self, record_at: u64, value: Summed<'_>) -> Option<u32> {
        let Some(number) = usize::from(self.0).checked_sub(1) else {
            return Some(value_checksum(record_at, value));
        };
        let is_inside = 8 * number + 8 <= value.bytes.len();
        is_inside.then(|| value_checksum(record_at, value.without(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::lengths::BESIDE_BYTES_MAX;

    #[test]
    fn each_word_beside_a_key_can_be_said_and_later_ones_cannot() {
        let last = BESIDE_BYTES_MAX as usize / 8 * 8 - 8;
        for at in (0..=last).step_by(8) {
            let word = UncheckedWord::at(at);
            assert_eq!(UncheckedWord::decode(word.encode()), word);
            assert!(word.is_at(at) && !word.is_at(at + 8) && !word.is_at(at.wrapping_sub(8)));
        }
        let encoded_max = (1_usize << UncheckedWord::BITS) - 1;
        assert_ne!(UncheckedWord::at(8 * (encoded_max - 1)), UncheckedWord::NONE);
        for at in [8 * encoded_max, 8 * (encoded_max + 1), 8 << 16, usize::MAX / 8 * 8] {
            assert_eq!(UncheckedWord::at(at), UncheckedWord::NONE, "{at}");
            assert!(!UncheckedWord::at(at).is_at(at), "{at}");
        }
    }

    #[test]
    fn a_value_without_the_word_has_no_checksum() {
        let word = UncheckedWord::at(16);
        assert!(word.checksum(64, Summed::of(&[1; 24])).is_some());
        assert_eq!(word.checksum(64, Summed::of(&[1; 23])), None);
        assert_eq!(word.checksum(64, Summed::of(&[])), None);
    }
}
