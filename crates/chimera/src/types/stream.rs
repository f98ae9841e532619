//! What a stream says of itself, and what was done with one.

use std::fmt;

use super::losses::Losses;

/// What kind of records a store or a stream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct StreamKind {
    /// Bytes of every key; 0 where records have any size.
    pub key_bytes: u32,
    /// Bytes of every value; 0 where records have any size.
    pub value_bytes: u32,
}

impl StreamKind {
    /// Whether all records have the same sizes.
    pub fn is_fixed(&self) -> bool {
        self.key_bytes > 0
    }
}

impl fmt::Display for StreamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_fixed() {
            write!(f, "{} + {} bytes", self.key_bytes, self.value_bytes)
        } else {
            f.write_str("any size")
        }
    }
}

/// What an export wrote.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExportReport {
    /// Records in the stream, with those that were there before the export was resumed.
    pub records: u64,
    /// Of these, those that this call wrote.
    pub records_written: u64,
    /// Frames of records in the stream.
    pub frames: u64,
    /// Bytes of the stream.
    pub bytes: u64,
    /// What damage has kept out of the store, and so out of the stream, of which it says nothing (salvage only).
    pub losses: Losses,
}

/// What an import did.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ImportReport {
    /// Records stored.
    pub records: u64,
    /// Of these, those whose key was there before; their value was replaced.
    pub replaced: u64,
    /// Records passed over, because they come before the position to go on from.
    pub skipped: u64,
    /// Frames of records read.
    pub frames: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// What a backup wrote.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BackupReport {
    /// Records in the new store.
    pub records: u64,
    /// Persistent memory, or storage, that the new store has in use, in bytes.
    pub bytes: u64,
    /// What damage has kept out of the store, and so out of the new one, of which that says nothing (salvage only).
    pub losses: Losses,
}
