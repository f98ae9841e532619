//! What a stream says of itself, and how far one has come in it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// What kind of records a store or a stream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

/// A place in a stream: after how many frames, and the digest of these. As text, `FRAMES-DIGEST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    pub(crate) frames: u64,
    pub(crate) digest: u64,
}

impl StreamPosition {
    /// Frames before it.
    pub fn frames(&self) -> u64 {
        self.frames
    }
}

impl fmt::Display for StreamPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.frames, self.digest)
    }
}

impl FromStr for StreamPosition {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.split_once('-')
            .and_then(|(frames, digest)| {
                let frames = frames.parse().ok()?;
                let digest = u64::from_str_radix(digest, 16).ok()?;
                Some(Self { frames, digest })
            })
            .ok_or_else(|| format!("`{text}` is no position such as 12-0123456789abcdef"))
    }
}

impl Serialize for StreamPosition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What an export wrote.
#[derive(Clone, Debug, Serialize)]
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
}

/// What an import did.
#[derive(Clone, Debug, Default, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BackupReport {
    /// Records in the new store.
    pub records: u64,
    /// Persistent memory, or storage, that the new store has in use, in bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_from_its_text() {
        let position = StreamPosition { frames: 12, digest: 0xab };
        assert_eq!(position.to_string(), "12-00000000000000ab");
        assert_eq!("12-00000000000000ab".parse(), Ok(position));
        for wrong in ["", "12", "12-", "-ab", "x-ab", "12-xyz", "1-1-1"] {
            assert!(wrong.parse::<StreamPosition>().is_err(), "{wrong}");
        }
    }
}
