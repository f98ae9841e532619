//! [`Entry`]: the word in front of everything in a log.

use crate::pool::checked_word;

/// Longest key that the word can say.
pub(super) const KEY_BYTES_MAX: u32 = (1 << 15) - 1;
/// Longest value that lies beside its key.
pub(super) const VALUE_BYTES_MAX: u32 = 0xfff0;

const SET: u32 = 1;

/// What the word in front says. 32 bits as published, from the lowest: whether the record counts, 15 bits
/// for the length of the key, 16 for the value; with their check above. Zero ends the log: a record that
/// is deleted keeps its lengths, and one with an empty value has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nothing: the log ends here.
    End,
    /// A record.
    Record { is_set: bool, key_bytes: u32, value_bytes: u32 },
}

impl Entry {
    /// What a word says, unless it is damaged.
    #[inline(always)]
    pub(super) fn decode(word: u64) -> Option<Self> {
        let low = checked_word::decode(word)?;
        if low == 0 {
            return Some(Self::End);
        }
        let (is_set, key_bytes, value_bytes) =
            (low & SET != 0, low >> 1 & KEY_BYTES_MAX, low >> 16);
        (key_bytes > 0 && value_bytes <= VALUE_BYTES_MAX).then_some(Self::Record {
            is_set,
            key_bytes,
            value_bytes,
        })
    }

    /// The word of a record that counts.
    #[inline(always)]
    pub(super) fn record(key_bytes: usize, value_bytes: usize) -> u64 {
        checked_word::encode(SET | (key_bytes as u32) << 1 | (value_bytes as u32) << 16)
    }

    /// The word of the same record when it does not count any more.
    #[inline(always)]
    pub(super) fn retired(word: u64) -> u64 {
        checked_word::encode(word as u32 & !SET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back() {
        for key_bytes in [1, 16, 4096, KEY_BYTES_MAX] {
            for value_bytes in [0, 1, 200, VALUE_BYTES_MAX] {
                let word = Entry::record(key_bytes as usize, value_bytes as usize);
                let is = |is_set| Some(Entry::Record { is_set, key_bytes, value_bytes });
                assert_eq!(Entry::decode(word), is(true));
                assert_eq!(Entry::decode(Entry::retired(word)), is(false));
            }
        }
    }

    #[test]
    fn only_zero_is_the_end() {
        assert_eq!(Entry::decode(0), Some(Entry::End));
        let empty = Entry::record(1, 0);
        assert!(!matches!(Entry::decode(empty), Some(Entry::End)));
        assert!(!matches!(Entry::decode(Entry::retired(empty)), Some(Entry::End)));
    }

    #[test]
    fn what_nobody_wrote_is_refused() {
        // No key, or a value longer than any that lies beside its key.
        assert_eq!(Entry::decode(checked_word::encode(SET | 5 << 16)), None);
        assert_eq!(Entry::decode(checked_word::encode(SET | 1 << 1 | 0xffff << 16)), None);
        for bit in 0..64 {
            assert_eq!(Entry::decode(Entry::record(16, 200) ^ 1 << bit), None, "bit {bit}");
        }
    }
}
