//! [`RecordHeader`]: checksums and version of a record.

use super::{Place, key_checksum, value_checksum};

/// Bytes of a header on media, where there is one: checksums of key and value, version.
pub(crate) const RECORD_HEADER_BYTES: u32 = 16;

/// The highest version a record can have: more than any number of puts reaches.
pub(crate) const VERSION_MAX: u64 = 1 << 62;

/// What precedes a record in the checked layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) key_checksum: u32,
    pub(crate) value_checksum: u32,
    pub(crate) version: u64,
}

impl RecordHeader {
    pub(crate) fn from_words(first: u64, version: u64) -> Self {
        Self { key_checksum: first as u32, value_checksum: (first >> 32) as u32, version }
    }

    /// The header of a record.
    #[inline(always)]
    pub(crate) fn new(place: &Place, key_hash: u64, version: u64, value_checksum: u32) -> Self {
        let key_checksum = key_checksum(place.record_at, version, key_hash);
        Self { key_checksum, value_checksum, version }
    }

    /// The checksums, as they are on media.
    #[inline(always)]
    pub(crate) fn first_word(&self) -> u64 {
        u64::from(self.key_checksum) | u64::from(self.value_checksum) << 32
    }

    /// Whether a key, by its hash, and the version are what was written at this place.
    #[inline(always)]
    pub(crate) fn key_is_sound(&self, place: &Place, key_hash: u64) -> bool {
        self.version <= VERSION_MAX
            && key_checksum(place.record_at, self.version, key_hash) == self.key_checksum
    }

    /// Whether a value is what was written at this place.
    #[inline(always)]
    pub(crate) fn value_is_sound(&self, place: &Place, value: &[u8]) -> bool {
        value_checksum(place.record_at, value) == self.value_checksum
    }
}
