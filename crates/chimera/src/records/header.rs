//! [`RecordHeader`]: checksums and version of a record, and the word of its value that has no checksum.

use chimera_pmem::{Pmem, Site};

use super::checksum::{Summed, key_checksum};
use super::unchecked_word::UncheckedWord;

/// Bytes of a header on media: checksums of key and value, the word with the version.
pub(crate) const RECORD_HEADER_BYTES: u32 = 16;

/// Bits of the version in its word; above them is the [`UncheckedWord`].
const VERSION_BITS: u32 = u64::BITS - UncheckedWord::BITS;

/// The highest version a record can have. Versions rise by one from a put to a later one, so they count puts that
/// were made one after the other: two million a second reach this in 18 years.
pub(crate) const VERSION_MAX: u64 = 1 << (VERSION_BITS - 1);

/// What precedes the key of a checked record. `record_at` is always the offset of the record in the pool: a
/// record is sound only where it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) key_checksum: u32,
    pub(crate) value_checksum: u32,
    version_word: u64,
}

/// The part of a record that does not match its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The key, the version, or which word of the value is unchecked.
    Key,
    Value,
}

impl RecordHeader {
    /// The header of a record that is about to be written. `value_checksum` leaves out the word `unchecked`.
    #[inline(always)]
    pub(crate) fn new(
        record_at: u64,
        key_hash: u64,
        version: u64,
        unchecked: UncheckedWord,
        value_checksum: u32,
    ) -> Self {
        let version_word = version | unchecked.encode() << VERSION_BITS;
        let key_checksum = key_checksum(record_at, version_word, key_hash);
        Self { key_checksum, value_checksum, version_word }
    }

    #[inline(always)]
    pub(crate) fn from_words(first: u64, version_word: u64) -> Self {
        Self { key_checksum: first as u32, value_checksum: (first >> 32) as u32, version_word }
    }

    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        self.version_word & ((1 << VERSION_BITS) - 1)
    }

    /// The word of the value that its checksum leaves out.
    #[inline(always)]
    pub(crate) fn unchecked(&self) -> UncheckedWord {
        UncheckedWord::decode(self.version_word >> VERSION_BITS)
    }

    /// The header at offset `at` of the pool.
    #[inline(always)]
    pub(crate) fn load<P: Pmem>(pmem: &P, at: u64) -> Self {
        Self::from_words(pmem.load_u64(at), pmem.load_u64(at + 8))
    }

    /// Stores the header at offset `at` of the pool.
    ///
    /// # Durability
    /// None: the caller flushes it with the record.
    #[inline(always)]
    pub(crate) fn store<P: Pmem>(&self, pmem: &P, at: u64, site: Site) {
        let first = u64::from(self.key_checksum) | u64::from(self.value_checksum) << 32;
        pmem.store_u64(at, first, site);
        pmem.store_u64(at + 8, self.version_word, site);
    }

    /// Whether the record at `record_at` is as it was written: the one judgement of soundness. The key, by its
    /// hash, and the version are always judged; the value where one is given, but for the word that the header says
    /// is unchecked.
    ///
    /// # Errors
    /// The first part that does not match.
    ///
    /// # Cost
    /// Two multiplications, one more where a value is given, and two more where its header names a word.
    #[inline(always)]
    pub(crate) fn verify(
        &self,
        record_at: u64,
        key_hash: u64,
        value: Option<Summed<'_>>,
    ) -> Result<(), Mismatch> {
        if self.version() > VERSION_MAX
            || key_checksum(record_at, self.version_word, key_hash) != self.key_checksum
        {
            return Err(Mismatch::Key);
        }
        match value.map(|value| self.unchecked().checksum(record_at, value)) {
            Some(checksum) if checksum != Some(self.value_checksum) => Err(Mismatch::Value),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 4096;
    const HASH: u64 = 0x1234_5678_9abc_def0;

    const VALUE: &[u8] = b"a value of more than two words";

    fn header(unchecked: UncheckedWord) -> RecordHeader {
        let checksum = unchecked.checksum(AT, Summed::of(VALUE)).expect("a word of the value");
        RecordHeader::new(AT, HASH, 7, unchecked, checksum)
    }

    #[test]
    fn what_was_written_is_sound_and_nothing_else() {
        let header = header(UncheckedWord::NONE);
        let other = [b"A", &VALUE[1..]].concat();
        assert_eq!(header.verify(AT, HASH, None), Ok(()));
        assert_eq!(header.verify(AT, HASH, Some(Summed::of(VALUE))), Ok(()));
        assert_eq!(header.verify(AT, HASH, Some(Summed::of(&other))), Err(Mismatch::Value));
        assert_eq!(header.verify(AT, HASH ^ 1, None), Err(Mismatch::Key));
        assert_eq!(header.verify(AT + 8, HASH, None), Err(Mismatch::Key), "another place");
        let later = RecordHeader { version_word: 8, ..header };
        assert_eq!(later.verify(AT, HASH, None), Err(Mismatch::Key));
    }

    #[test]
    fn a_value_is_sound_whatever_its_unchecked_word_holds() {
        for at in [0, 8, 16] {
            let header = header(UncheckedWord::at(at));
            assert_eq!((header.version(), header.unchecked().is_at(at)), (7, true));
            for byte in 0..VALUE.len() {
                let mut value = VALUE.to_vec();
                value[byte] ^= 0x10;
                let is_sound = header.verify(AT, HASH, Some(Summed::of(&value))).is_ok();
                assert_eq!(is_sound, (at..at + 8).contains(&byte), "byte {byte}, word at {at}");
            }
        }
    }

    #[test]
    fn an_unchecked_word_that_the_value_has_not_is_damage() {
        let header = header(UncheckedWord::at(16));
        for length in 0..24 {
            let found = header.verify(AT, HASH, Some(Summed::of(&VALUE[..length])));
            assert_eq!(found, Err(Mismatch::Value), "{length} bytes");
        }
    }

    #[test]
    fn a_version_that_no_session_gives_is_damage() {
        let of = |version| RecordHeader::new(AT, HASH, version, UncheckedWord::at(8), 0);
        let highest = of(VERSION_MAX);
        assert_eq!((highest.version(), highest.verify(AT, HASH, None)), (VERSION_MAX, Ok(())));
        assert_eq!(of(VERSION_MAX + 1).verify(AT, HASH, None), Err(Mismatch::Key));
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        for unchecked in [UncheckedWord::NONE, UncheckedWord::at(8)] {
            for bit in 0..128 {
                let RecordHeader { key_checksum, value_checksum, version_word } = header(unchecked);
                let first = u64::from(key_checksum) | u64::from(value_checksum) << 32;
                let mut words = [first, version_word];
                words[bit / 64] ^= 1 << (bit % 64);
                let flipped = RecordHeader::from_words(words[0], words[1]);
                assert!(flipped.verify(AT, HASH, Some(Summed::of(VALUE))).is_err(), "bit {bit}");
            }
        }
    }
}
