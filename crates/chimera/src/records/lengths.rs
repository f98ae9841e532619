//! [`Entry`] and [`Lengths`]: the word in front of a record that says its lengths, or of a chunk, and where the
//! parts of such a record lie.
//!
//! ```text
//! record   [live: 1 bit | key length: 15 | value length: 16 | check: 32]
//!          [check of place, version word, key: 4 | check of place, value: 4] [version word: 8] key value
//! ```
//! The check is that of the word's place, so a word that was copied from elsewhere leads nowhere.
//!
//! The version word is the version and, above it, which word of the value is updated in place.
//!
//! Keys and values are padded to 8 bytes each, so that every field of a value keeps its alignment.

use crate::pool::checked_word;

/// From the start of a record to its header, and to its key.
pub(crate) const HEADER_AT: u64 = 8;
pub(crate) const KEY_AT: u64 = 24;

/// Longest key that the word can say.
pub(crate) const KEY_BYTES_MAX: u32 = (1 << 15) - 1;
/// Longest value that lies beside its key.
pub(crate) const BESIDE_BYTES_MAX: u32 = 0xfff0;

/// Bytes of the descriptor that lies beside the key of a record whose value is spilled.
pub(crate) const DESCRIPTOR_BYTES: usize = 24;

/// In place of the length of a value: the value is spilled to chunks, and beside the key lies their descriptor.
const SPILLED: u32 = 0xffff;
const LIVE: u32 = 1;

/// From the start of a record to what lies beside its key.
#[inline(always)]
pub(crate) fn beside_at(key_bytes: usize) -> u64 {
    KEY_AT + key_bytes.next_multiple_of(8) as u64
}

/// Bytes of a record.
#[inline(always)]
pub(crate) fn span(key_bytes: usize, beside_bytes: usize) -> u64 {
    beside_at(key_bytes) + beside_bytes.next_multiple_of(8) as u64
}

/// What the word says. 32 bits as published, from the lowest: whether the record is live, 15 bits for the
/// length of the key, 16 for the value; with their check above. Zero says that nothing follows, and no word of a
/// place is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing follows.
    End,
    Record {
        is_live: bool,
        lengths: Lengths,
    },
    /// A part of a value that is spilled.
    Chunk {
        bytes: u32,
    },
}

/// The lengths of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) key_bytes: u32,
    /// What lies beside the key: the value, or the descriptor of its chunks.
    pub(crate) beside_bytes: u32,
    /// The value lies in chunks.
    pub(crate) is_spilled: bool,
}

impl Lengths {
    /// Bytes of the record.
    #[inline(always)]
    pub(crate) fn span(self) -> u64 {
        span(self.key_bytes as usize, self.beside_bytes as usize)
    }

    /// From the start of the record to what lies beside its key.
    #[inline(always)]
    pub(crate) fn beside_at(self) -> u64 {
        beside_at(self.key_bytes as usize)
    }
}

impl Entry {
    /// What a word at offset `at` of the pool says, unless it is damaged.
    #[inline(always)]
    pub(crate) fn decode(word: u64, at: u64) -> Option<Self> {
        if word == 0 {
            return Some(Self::End);
        }
        let low = checked_word::decode_at(word, at)?;
        let (is_live, key_bytes, field) = (low & LIVE != 0, low >> 1 & KEY_BYTES_MAX, low >> 16);
        let is_spilled = field == SPILLED;
        let beside_bytes = if is_spilled { DESCRIPTOR_BYTES as u32 } else { field };
        if beside_bytes > BESIDE_BYTES_MAX {
            return None;
        }
        if key_bytes == 0 {
            return (is_live && !is_spilled && field > 0).then_some(Self::Chunk { bytes: field });
        }
        let lengths = Lengths { key_bytes, beside_bytes, is_spilled };
        Some(Self::Record { is_live, lengths })
    }

    /// What the lower half of a word says, whatever its check.
    pub(crate) fn decode_unchecked(word: u64) -> Option<Self> {
        if word as u32 == 0 {
            return Some(Self::End);
        }
        Self::decode(checked_word::encode_at(word as u32, 0), 0)
    }

    /// The word at offset `at` of the pool of a live record with the value beside its key.
    #[inline(always)]
    pub(crate) fn record(at: u64, key_bytes: usize, value_bytes: usize) -> u64 {
        let number = LIVE | (key_bytes as u32) << 1 | (value_bytes as u32) << 16;
        checked_word::encode_at(number, at)
    }

    /// The word at offset `at` of a live record with a spilled value.
    pub(crate) fn record_of_chunks(at: u64, key_bytes: usize) -> u64 {
        Self::record(at, key_bytes, SPILLED as usize)
    }

    /// The word at offset `at` of a chunk.
    pub(crate) fn chunk(at: u64, bytes: usize) -> u64 {
        Self::record(at, 0, bytes)
    }

    /// The word at offset `at` of the same record when it is retired.
    #[inline(always)]
    pub(crate) fn retired(word: u64, at: u64) -> u64 {
        checked_word::encode_at(word as u32 & !LIVE, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the words are.
    const AT: u64 = 8192 + 8;

    #[test]
    fn lengths_come_back() {
        for key_bytes in [1, 16, 4096, KEY_BYTES_MAX] {
            for beside_bytes in [0, 1, 24, 200, BESIDE_BYTES_MAX] {
                let word = Entry::record(AT, key_bytes as usize, beside_bytes as usize);
                let lengths = Lengths { key_bytes, beside_bytes, is_spilled: false };
                let is = |is_live| Some(Entry::Record { is_live, lengths });
                assert_eq!(Entry::decode(word, AT), is(true));
                assert_eq!(Entry::decode(word, AT + 8), None);
                assert_eq!(Entry::decode(Entry::retired(word, AT), AT), is(false));
            }
            let word = Entry::record_of_chunks(AT, key_bytes as usize);
            let lengths = Lengths { key_bytes, beside_bytes: 24, is_spilled: true };
            let is = |is_live| Some(Entry::Record { is_live, lengths });
            assert_eq!(Entry::decode(word, AT), is(true));
            assert_eq!(Entry::decode(Entry::retired(word, AT), AT), is(false));
        }
    }

    #[test]
    fn only_zero_is_the_end() {
        assert_eq!(Entry::decode(0, AT), Some(Entry::End));
        let empty = Entry::record(AT, 1, 0);
        assert!(!matches!(Entry::decode(empty, AT), Some(Entry::End)));
        assert!(!matches!(Entry::decode(Entry::retired(empty, AT), AT), Some(Entry::End)));
        assert_eq!(Entry::decode(checked_word::encode_at(0, AT), AT), None);
    }

    #[test]
    fn what_nobody_wrote_is_refused() {
        // An empty chunk, one that was retired, one that is spilled; a value longer than any that lies
        // beside its key.
        assert_eq!(Entry::decode(Entry::chunk(AT, 8), AT), Some(Entry::Chunk { bytes: 8 }));
        for low in [LIVE, 8 << 16, LIVE | SPILLED << 16, LIVE | 1 << 1 | 0xfff8 << 16] {
            assert_eq!(Entry::decode(checked_word::encode_at(low, AT), AT), None, "{low:#x}");
        }
        for bit in 0..64 {
            let flipped = Entry::record(AT, 16, 200) ^ 1 << bit;
            assert_eq!(Entry::decode(flipped, AT), None, "bit {bit}");
        }
    }
}
