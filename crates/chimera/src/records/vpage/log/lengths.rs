//! [`Entry`]: the word in front of everything in a log.

use crate::pool::checked_word;
use crate::records::vpage::DESCRIPTOR_BYTES;

/// Longest key that the word can say.
pub(super) const KEY_BYTES_MAX: u32 = (1 << 15) - 1;
/// Longest value that lies beside its key.
pub(super) const VALUE_BYTES_MAX: u32 = 0xfff0;

/// In place of the length of a value: it lies in chunks elsewhere, and their descriptor beside the key.
const ELSEWHERE: u32 = 0xffff;
const SET: u32 = 1;

/// What the word in front says. 32 bits as published, from the lowest: whether the record counts, 15 bits
/// for the length of the key, 16 for the value; with their check above. Zero ends the log: a record that
/// is deleted keeps its lengths, one with an empty value has a key, and a chunk has none but a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nothing: the log ends here.
    End,
    /// A record.
    Record { is_set: bool, lengths: Lengths },
    /// A part of a value whose record is elsewhere.
    Chunk { bytes: u32 },
}

/// The lengths of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) key_bytes: u32,
    /// What lies beside the key: the value, or the descriptor of its chunks.
    pub(super) beside_bytes: u32,
    /// The value lies elsewhere.
    pub(super) is_elsewhere: bool,
}

impl Entry {
    /// What a word says, unless it is damaged.
    #[inline(always)]
    pub(super) fn decode(word: u64) -> Option<Self> {
        let low = checked_word::decode(word)?;
        if low == 0 {
            return Some(Self::End);
        }
        let (is_set, key_bytes, field) = (low & SET != 0, low >> 1 & KEY_BYTES_MAX, low >> 16);
        let is_elsewhere = field == ELSEWHERE;
        let beside_bytes = if is_elsewhere { DESCRIPTOR_BYTES as u32 } else { field };
        if beside_bytes > VALUE_BYTES_MAX {
            return None;
        }
        if key_bytes == 0 {
            return (is_set && !is_elsewhere && field > 0).then_some(Self::Chunk { bytes: field });
        }
        let lengths = Lengths { key_bytes, beside_bytes, is_elsewhere };
        Some(Self::Record { is_set, lengths })
    }

    /// What the lower half of a word says, whatever its check.
    pub(super) fn decode_unchecked(word: u64) -> Option<Self> {
        Self::decode(checked_word::encode(word as u32))
    }

    /// The word of a record that counts, with the value beside its key.
    #[inline(always)]
    pub(super) fn record(key_bytes: usize, value_bytes: usize) -> u64 {
        checked_word::encode(SET | (key_bytes as u32) << 1 | (value_bytes as u32) << 16)
    }

    /// The word of a record that counts, with the value elsewhere.
    pub(super) fn record_of_chunks(key_bytes: usize) -> u64 {
        Self::record(key_bytes, ELSEWHERE as usize)
    }

    /// The word of a chunk.
    pub(super) fn chunk(bytes: usize) -> u64 {
        Self::record(0, bytes)
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
            for beside_bytes in [0, 1, 24, 200, VALUE_BYTES_MAX] {
                let word = Entry::record(key_bytes as usize, beside_bytes as usize);
                let lengths = Lengths { key_bytes, beside_bytes, is_elsewhere: false };
                let is = |is_set| Some(Entry::Record { is_set, lengths });
                assert_eq!(Entry::decode(word), is(true));
                assert_eq!(Entry::decode(Entry::retired(word)), is(false));
            }
            let word = Entry::record_of_chunks(key_bytes as usize);
            let lengths = Lengths { key_bytes, beside_bytes: 24, is_elsewhere: true };
            let is = |is_set| Some(Entry::Record { is_set, lengths });
            assert_eq!(Entry::decode(word), is(true));
            assert_eq!(Entry::decode(Entry::retired(word)), is(false));
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
        // An empty chunk, one that was retired, one that is elsewhere; a value longer than any that lies
        // beside its key.
        assert_eq!(Entry::decode(Entry::chunk(8)), Some(Entry::Chunk { bytes: 8 }));
        for low in [SET, 8 << 16, SET | ELSEWHERE << 16, SET | 1 << 1 | 0xfff8 << 16] {
            assert_eq!(Entry::decode(checked_word::encode(low)), None, "{low:#x}");
        }
        for bit in 0..64 {
            assert_eq!(Entry::decode(Entry::record(16, 200) ^ 1 << bit), None, "bit {bit}");
        }
    }
}
