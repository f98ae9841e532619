//! [`Values`]: values that tell whether they are right.

use super::random::mix;
use super::sizes::Sizes;

/// Bytes of different starts into the fill.
const FILL_STARTS_BYTES: usize = 4096;
/// Normally distributed values have at least so many bytes, to tell their size.
const NORMAL_BYTES_MIN: usize = 16;

/// Makes and checks values. Any value can be checked knowing the record's number alone, whichever
/// write it came from, because the write's version is in the value:
///
/// ```text
/// 16 bytes and more  [version: 8][counter: 8][fill of number and version]
/// 8 to 15 bytes      [counter: 8][fill of number]
/// 1 to 7 bytes       [version: 1][fill of number and version]
/// ```
/// The upper half of the counter is a tag of number and version; the lower half starts at zero (at
/// the version, where there is no other place for it) and is what updates in place add to. The fill
/// is a piece of a random text, where in the text follows from number and version.
#[derive(Clone, Debug)]
pub struct Values {
    sizes: Sizes,
    text: Vec<u8>,
}

impl Values {
    /// Values of `value_bytes` bytes.
    pub fn new(value_bytes: usize, seed: u64) -> Self {
        Self::with_sizes(Sizes::Fixed(value_bytes), seed)
    }

    /// Values whose sizes are distributed normally around `value_bytes`, from 16 bytes on; each
    /// version of a value has a size of its own.
    pub fn normal(value_bytes: usize, seed: u64) -> Self {
        Self::with_sizes(Sizes::normal(value_bytes, NORMAL_BYTES_MIN), seed)
    }

    fn with_sizes(sizes: Sizes, seed: u64) -> Self {
        let words = (FILL_STARTS_BYTES + sizes.max()).div_ceil(8) as u64;
        let text = (0..words).flat_map(|word| mix(mix(seed) ^ word).to_le_bytes()).collect();
        Self { sizes, text }
    }

    /// How long values are.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Where in a value the word is that updates in place add to; `None` in values below 8 bytes.
    pub fn counter_at(&self) -> Option<usize> {
        match self.sizes {
            Sizes::Fixed(0..8) => None,
            Sizes::Fixed(8..16) => Some(0),
            _ => Some(8),
        }
    }

    /// Bytes of the value of a record whose number and version come down to `mark`.
    #[inline(always)]
    fn bytes_of(&self, mark: u64) -> usize {
        self.sizes.of(mark >> 24)
    }

    /// Makes `value` the value of record `number` at `version`.
    #[inline(always)]
    pub fn write(&self, number: u64, version: u64, value: &mut Vec<u8>) {
        let bytes = self.bytes_of(mark(number, version));
        if value.len() != bytes {
            value.resize(bytes, 0);
        }
        match bytes {
            0 => {}
            1..8 => {
                let version = version & 0xff;
                value[0] = version as u8;
                value[1..].copy_from_slice(self.fill(mark(number, version), bytes - 1));
            }
            8..16 => {
                // Half of the range, so that a counter never overflows into the tag.
                let counter = tag(mark(number, 0)) << 32 | version & 0x7fff_ffff;
                value[..8].copy_from_slice(&counter.to_le_bytes());
                value[8..].copy_from_slice(self.fill(mark(number, 0), bytes - 8));
            }
            _ => {
                let mark = mark(number, version);
                value[..8].copy_from_slice(&version.to_le_bytes());
                value[8..16].copy_from_slice(&(tag(mark) << 32).to_le_bytes());
                value[16..].copy_from_slice(self.fill(mark, bytes - 16));
            }
        }
    }

    /// Whether `value` is a value that was written for record `number`, perhaps updated in place
    /// since.
    pub fn is_right(&self, number: u64, value: &[u8]) -> bool {
        match value.len() {
            0..16 if !matches!(self.sizes, Sizes::Fixed(bytes) if bytes == value.len()) => false,
            0 => true,
            1..8 => *self.fill(mark(number, u64::from(value[0])), value.len() - 1) == value[1..],
            8..16 => {
                let mark = mark(number, 0);
                word(value, 0) >> 32 == tag(mark) && value[8..] == *self.fill(mark, value.len() - 8)
            }
            bytes => {
                let mark = mark(number, word(value, 0));
                bytes == self.bytes_of(mark)
                    && word(value, 8) >> 32 == tag(mark)
                    && value[16..] == *self.fill(mark, bytes - 16)
            }
        }
    }

    /// The last bytes of a value.
    #[inline(always)]
    fn fill(&self, mark: u64, bytes: usize) -> &[u8] {
        let start = mark as usize % FILL_STARTS_BYTES / 8 * 8;
        &self.text[start..start + bytes]
    }
}

/// Folds a value into a word, every byte of it.
#[inline(always)]
pub(crate) fn fold(value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks::<8>();
    let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

/// What number and version of a value come down to.
#[inline(always)]
fn mark(number: u64, version: u64) -> u64 {
    mix(number ^ version.rotate_left(32))
}

#[inline(always)]
fn tag(mark: u64) -> u64 {
    mark >> 32
}

fn word(value: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&value[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(values: &Values, number: u64, version: u64) -> Vec<u8> {
        let mut value = Vec::new();
        values.write(number, version, &mut value);
        value
    }

    #[test]
    fn values_of_all_sizes_are_right_for_their_record_only() {
        for bytes in [4, 7, 8, 9, 15, 16, 17, 100, 200, 5000] {
            let values = Values::new(bytes, 3);
            for number in 0..200 {
                for version in [0, 1, 250, u64::MAX] {
                    let value = value(&values, number, version);
                    assert!(values.is_right(number, &value), "{bytes} bytes");
                    if bytes >= 8 {
                        assert!(!values.is_right(number + 1, &value), "{bytes} bytes");
                    }
                }
            }
        }
    }

    #[test]
    fn every_altered_byte_is_noticed_but_the_count() {
        for bytes in [8, 12, 16, 40, 200] {
            let values = Values::new(bytes, 3);
            let good = value(&values, 17, 5);
            let count_at = values.counter_at().expect("at least 8 bytes");
            for at in 0..bytes {
                let mut bad = good.clone();
                bad[at] ^= 0x10;
                let noticed = !values.is_right(17, &bad);
                assert_eq!(
                    noticed,
                    !(count_at..count_at + 4).contains(&at),
                    "byte {at} of {bytes}"
                );
            }
            assert!(!values.is_right(17, &good[1..]));
        }
    }

    #[test]
    fn values_of_different_lengths_are_right_for_their_record_and_version_only() {
        let values = Values::normal(200, 3);
        let mut bytes = std::collections::BTreeSet::new();
        for number in 0..200 {
            for version in [0, 1, 250, u64::MAX] {
                let value = value(&values, number, version);
                assert!(values.is_right(number, &value));
                assert!(!values.is_right(number + 1, &value));
                assert!(!values.is_right(number, &value[..value.len() - 1]));
                assert!(!values.is_right(number, &value[..8]) && !values.is_right(number, &[]));
                bytes.insert(value.len());
            }
        }
        assert!(bytes.len() > 50, "{bytes:?}");
    }

    #[test]
    fn updates_in_place_keep_a_value_right() {
        for bytes in [8, 16, 200] {
            let values = Values::new(bytes, 3);
            let mut value = value(&values, 1, 0x7fff_ffff);
            let at = values.counter_at().expect("at least 8 bytes");
            for _ in 0..1000 {
                let count = word(&value, at) + 1;
                value[at..at + 8].copy_from_slice(&count.to_le_bytes());
            }
            assert!(values.is_right(1, &value));
        }
    }

    #[test]
    fn versions_change_the_content() {
        let values = Values::new(200, 3);
        let (first, second) = (value(&values, 1, 1), value(&values, 1, 2));
        assert_ne!(first[16..], second[16..]);
        assert_ne!(fold(&first), fold(&second));
    }

    #[test]
    fn folding_reads_every_byte() {
        let mut bytes = vec![0; 21];
        for at in 0..bytes.len() {
            bytes[at] = 1;
            assert_ne!(fold(&bytes), 0, "byte {at}");
            bytes[at] = 0;
        }
    }
}
