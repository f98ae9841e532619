//! The words in front of a record, and where its parts lie.
//!
//! ```text
//! record   [value length: 31 bits | key length: 13 | tombstone: 1 | use: lower 19]
//!          [check of place, first word, version word, key: 4 | check of place, value: 4]
//!          [version: 51 bits | use: upper 13]
//!          key value
//! ```
//! Keys and values are padded to 8 bytes each. The *use* is the lower half of the sequence number that the run had
//! when the record was written. What an earlier use of the same bytes left has another one.

use crate::records::checksum::{Summed, key_checksum, value_checksum};
use crate::records::header::VERSION_MAX;

/// From the start of a record to its key.
pub(super) const KEY_AT: u64 = 24;

/// Longest key, in bytes.
pub(super) const KEY_BYTES_MAX: usize = 4096;
/// Longest value, in bytes.
pub(super) const VALUE_BYTES_MAX: usize = 1 << 30;

const VALUE_BITS: u32 = 31;
const KEY_BITS: u32 = 13;
const TOMBSTONE_SHIFT: u32 = VALUE_BITS + KEY_BITS;
const USE_SHIFT: u32 = TOMBSTONE_SHIFT + 1;
/// Bits of the use in the first word.
const USE_LOW_BITS: u32 = u64::BITS - USE_SHIFT;
const VERSION_BITS: u32 = u64::BITS - (u32::BITS - USE_LOW_BITS);

/// Odd, without long rows of equal bits.
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// From the start of a record to its value.
#[inline(always)]
pub(super) fn value_at(key_bytes: usize) -> u64 {
    KEY_AT + key_bytes.next_multiple_of(8) as u64
}

/// Bytes of a record.
#[inline(always)]
pub(super) fn span(key_bytes: usize, value_bytes: usize) -> u64 {
    value_at(key_bytes) + value_bytes.next_multiple_of(8) as u64
}

/// What the words in front of a record say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
    pub(super) is_tombstone: bool,
    pub(super) version: u64,
    /// The use of the run that it was written in.
    pub(super) use_number: u32,
    checksums: u64,
}

impl Head {
    /// The head of a record at `at`, of a key with this hash; without a value it is a tombstone. Its words are
    /// [`words`](Self::words).
    #[inline(always)]
    pub(super) fn new(
        at: u64,
        use_number: u32,
        version: u64,
        (key_hash, key_bytes): (u64, usize),
        value: Option<Summed<'_>>,
    ) -> Self {
        let is_tombstone = value.is_none();
        let value = value.unwrap_or(Summed { bytes: &[], sum: 0 });
        let version = version.min(VERSION_MAX);
        let value_bytes = value.bytes.len();
        let mut head =
            Self { key_bytes, value_bytes, is_tombstone, version, use_number, checksums: 0 };
        let key_checksum = head.key_checksum(at, key_hash);
        head.checksums = u64::from(key_checksum) | u64::from(value_checksum(at, value)) << 32;
        head
    }

    /// As it is on media.
    #[inline(always)]
    pub(super) fn words(&self) -> [u64; 3] {
        [self.first_word(), self.checksums, self.version_word()]
    }

    /// What words on media say, unless nobody wrote such lengths.
    #[inline(always)]
    pub(super) fn decode([first, checksums, version_word]: [u64; 3]) -> Option<Self> {
        let value_bytes = (first & ((1 << VALUE_BITS) - 1)) as usize;
        let key_bytes = (first >> VALUE_BITS & ((1 << KEY_BITS) - 1)) as usize;
        let is_tombstone = first >> TOMBSTONE_SHIFT & 1 != 0;
        let low = (first >> USE_SHIFT) as u32;
        let use_number = low | ((version_word >> VERSION_BITS) as u32) << USE_LOW_BITS;
        let version = version_word & ((1 << VERSION_BITS) - 1);
        let is_possible = (1..=KEY_BYTES_MAX).contains(&key_bytes)
            && value_bytes <= if is_tombstone { 0 } else { VALUE_BYTES_MAX }
            && version <= VERSION_MAX;
        let head = Self { key_bytes, value_bytes, is_tombstone, version, use_number, checksums };
        is_possible.then_some(head)
    }

    /// Bytes of the record.
    #[inline(always)]
    pub(super) fn span(&self) -> u64 {
        span(self.key_bytes, self.value_bytes)
    }

    /// Whether the record at `at` is as it was written, for a key of this hash, all but its value.
    #[inline(always)]
    pub(super) fn is_sound(&self, at: u64, key_hash: u64) -> bool {
        self.key_checksum(at, key_hash) == self.checksums as u32
    }

    /// Whether the value of the record at `at` is as it was written, where the head is sound.
    #[inline(always)]
    pub(super) fn has_value(&self, at: u64, value: Summed<'_>) -> bool {
        value_checksum(at, value) == (self.checksums >> 32) as u32
    }

    fn first_word(&self) -> u64 {
        self.value_bytes as u64
            | (self.key_bytes as u64) << VALUE_BITS
            | u64::from(self.is_tombstone) << TOMBSTONE_SHIFT
            | u64::from(self.use_number) << USE_SHIFT
    }

    fn version_word(&self) -> u64 {
        self.version | u64::from(self.use_number >> USE_LOW_BITS) << VERSION_BITS
    }

    fn key_checksum(&self, at: u64, key_hash: u64) -> u32 {
        let words = self.version_word().wrapping_add(self.first_word().wrapping_mul(FACTOR));
        key_checksum(at, words, key_hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 4096;
    const HASH: u64 = 0x1234_5678_9abc_def0;
    const USE: u32 = 0xfedc_ba98;
    const VALUE: &[u8] = b"a value of more than two words";

    fn head(key_bytes: usize, value: Option<&[u8]>) -> Head {
        Head::new(AT, USE, 77, (HASH, key_bytes), value.map(Summed::of))
    }

    #[test]
    fn what_was_written_comes_back() {
        for key_bytes in [1, 8, 16, KEY_BYTES_MAX] {
            for value in [None, Some(&b""[..]), Some(VALUE), Some(&[7; 7000])] {
                let head = head(key_bytes, value);
                assert_eq!(Head::decode(head.words()), Some(head));
                assert_eq!((head.key_bytes, head.use_number, head.version), (key_bytes, USE, 77));
                assert_eq!(head.value_bytes, value.map_or(0, <[u8]>::len));
                assert_eq!(head.is_tombstone, value.is_none());
                assert!(head.is_sound(AT, HASH));
                assert!(head.has_value(AT, Summed::of(value.unwrap_or(&[]))));
            }
        }
        assert_eq!(head(16, Some(&[1; 200])).span(), 24 + 16 + 200);
        let longest = Head { value_bytes: VALUE_BYTES_MAX, ..head(KEY_BYTES_MAX, Some(&[])) };
        let longest = Head { use_number: u32::MAX, version: VERSION_MAX, ..longest };
        assert_eq!(Head::decode(longest.words()), Some(longest));
    }

    #[test]
    fn another_place_key_or_value_is_noticed() {
        let head = head(16, Some(VALUE));
        assert!(!head.is_sound(AT + 8, HASH) && !head.is_sound(AT, HASH ^ 1));
        assert!(!head.has_value(AT + 8, Summed::of(VALUE)));
        for byte in 0..VALUE.len() {
            let mut value = VALUE.to_vec();
            value[byte] ^= 0x10;
            assert!(!head.has_value(AT, Summed::of(&value)), "byte {byte}");
        }
    }

    #[test]
    fn every_flipped_bit_of_the_head_is_noticed() {
        for value in [None, Some(&b""[..]), Some(VALUE), Some(&[7; 7000])] {
            for bit in 0..192 {
                let mut words = head(13, value).words();
                words[bit / 64] ^= 1 << (bit % 64);
                let is_sound = Head::decode(words).is_some_and(|head| {
                    let value = Summed::of(value.unwrap_or(&[]));
                    head.is_sound(AT, HASH) && head.has_value(AT, value)
                });
                assert!(!is_sound, "bit {bit}");
            }
        }
    }

    #[test]
    fn what_nobody_writes_is_refused() {
        let sound = head(8, Some(&[]));
        for wrong in [
            Head { key_bytes: 0, ..sound },
            Head { key_bytes: KEY_BYTES_MAX + 1, ..sound },
            Head { value_bytes: VALUE_BYTES_MAX + 1, ..sound },
            Head { value_bytes: 1, is_tombstone: true, ..sound },
            Head { version: VERSION_MAX + 1, ..sound },
        ] {
            assert_eq!(Head::decode(wrong.words()), None, "{wrong:?}");
        }
        assert_eq!(Head::decode([0; 3]), None);
    }
}
