//! [`RecordHeader`]: checksums and version of a record.

use chimera_pmem::{Pmem, Site};

use super::checksum::{Summed, key_checksum, value_checksum};

/// Bytes of a header on media: checksums of key and value, version.
pub(crate) const RECORD_HEADER_BYTES: u32 = 16;

/// The highest version a record can have: more than any number of puts reaches.
pub(crate) const VERSION_MAX: u64 = 1 << 62;

/// What precedes the key of a checked record. `record_at` is always the offset of the record in the pool: a
/// record is sound only where it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) key_checksum: u32,
    pub(crate) value_checksum: u32,
    pub(crate) version: u64,
}

/// The part of a record that does not match its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The key or the version.
    Key,
    Value,
}

impl RecordHeader {
    /// The header of a record that is about to be written.
    #[inline(always)]
    pub(crate) fn new(record_at: u64, key_hash: u64, version: u64, value_checksum: u32) -> Self {
        let key_checksum = key_checksum(record_at, version, key_hash);
        Self { key_checksum, value_checksum, version }
    }

    #[inline(always)]
    pub(crate) fn from_words(first: u64, version: u64) -> Self {
        Self { key_checksum: first as u32, value_checksum: (first >> 32) as u32, version }
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
        pmem.store_u64(at + 8, self.version, site);
    }

    /// Whether the record at `record_at` is as it was written: the one judgement of soundness. The key, by its
    /// hash, and the version are always judged; the value where one is given, because the checksum of a
    /// value that was updated in place does not apply.
    ///
    /// # Errors
    /// The first part that does not match.
    ///
    /// # Cost
    /// Two multiplications, and one more where a value is given.
    #[inline(always)]
    pub(crate) fn verify(
        &self,
        record_at: u64,
        key_hash: u64,
        value: Option<Summed<'_>>,
    ) -> Result<(), Mismatch> {
        if self.version > VERSION_MAX
            || key_checksum(record_at, self.version, key_hash) != self.key_checksum
        {
            return Err(Mismatch::Key);
        }
        match value {
            Some(value) if value_checksum(record_at, value) != self.value_checksum => {
                Err(Mismatch::Value)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 4096;
    const HASH: u64 = 0x1234_5678_9abc_def0;

    fn header() -> RecordHeader {
        RecordHeader::new(AT, HASH, 7, value_checksum(AT, Summed::of(b"value")))
    }

    #[test]
    fn what_was_written_is_sound_and_nothing_else() {
        assert_eq!(header().verify(AT, HASH, None), Ok(()));
        assert_eq!(header().verify(AT, HASH, Some(Summed::of(b"value"))), Ok(()));
        assert_eq!(header().verify(AT, HASH, Some(Summed::of(b"Value"))), Err(Mismatch::Value));
        assert_eq!(header().verify(AT, HASH ^ 1, None), Err(Mismatch::Key));
        assert_eq!(header().verify(AT + 8, HASH, None), Err(Mismatch::Key), "another place");
        let later = RecordHeader { version: 8, ..header() };
        assert_eq!(later.verify(AT, HASH, None), Err(Mismatch::Key));
    }

    #[test]
    fn a_version_that_no_session_gives_is_damage() {
        let highest = RecordHeader::new(AT, HASH, VERSION_MAX, 0);
        assert_eq!(highest.verify(AT, HASH, None), Ok(()));
        let beyond = RecordHeader::new(AT, HASH, VERSION_MAX + 1, 0);
        assert_eq!(beyond.verify(AT, HASH, None), Err(Mismatch::Key));
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        for bit in 0..128 {
            let RecordHeader { key_checksum, value_checksum, version } = header();
            let first = u64::from(key_checksum) | u64::from(value_checksum) << 32;
            let mut words = [first, version];
            words[bit / 64] ^= 1 << (bit % 64);
            let flipped = RecordHeader::from_words(words[0], words[1]);
            assert!(flipped.verify(AT, HASH, Some(Summed::of(b"value"))).is_err(), "bit {bit}");
        }
    }
}
