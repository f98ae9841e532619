//! [`StoreOutline`]: what a superblock says of a store that is not opened.

use super::copies::{find_superblock, is_blank, magic_at};
use super::superblock::FILE_BYTES;
use crate::types::error::Result;

/// What the superblock of a store says of it, as far as its checksums are right: for whoever looks at a store without
/// opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOutline {
    /// Segments.
    pub segments: u64,
    /// Size of each of them, in bytes.
    pub segment_bytes: u64,
}

impl StoreOutline {
    /// Bytes at the begin of a device, or of the file `superblock`, that say it.
    pub const BYTES: usize = FILE_BYTES as usize;

    /// Of these bytes; none where they are not those of a store, or of one whose creation was interrupted. Nothing that
    /// has no right checksum is taken for anything.
    ///
    /// # Errors
    /// [`Corrupted`](crate::Error::Corrupted) where neither copy of the superblock is right;
    /// [`NewerFormat`](crate::Error::NewerFormat).
    ///
    /// # Cost
    /// Two checksums of 4 KiB at most.
    pub fn of(bytes: &[u8; Self::BYTES]) -> Result<Option<Self>> {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: u64| u64::from_le_bytes(words[(at / 8) as usize]);
        if magic_at(&word).is_none() || is_blank(&word) {
            return Ok(None);
        }
        let found = find_superblock(&|_| false, &word, true)?;
        Ok(found.map(|superblock| Self {
            segments: superblock.segments,
            segment_bytes: superblock.geometry.segment_bytes,
        }))
    }
}
