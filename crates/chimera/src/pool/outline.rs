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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::small::new_pool;
    use crate::pool::superblock::COPY_STRIDE;

    fn outline(copies: [bool; 2], other: Option<usize>) -> Result<Option<(u64, u64)>> {
        let mut superblock = new_pool(8192, 256).superblock;
        (superblock.segments, superblock.sequence) = (3, 8);
        let mut bytes = [0; StoreOutline::BYTES];
        for (copy, is_there) in copies.into_iter().enumerate() {
            superblock.sequence = 8 + copy as u64;
            for (number, word) in superblock.encode().into_iter().enumerate() {
                let at = copy * COPY_STRIDE as usize + 8 * number;
                bytes[at..at + 8].copy_from_slice(&if is_there { word } else { 0 }.to_le_bytes());
            }
        }
        if let Some(at) = other {
            bytes[at] ^= 1;
        }
        Ok(StoreOutline::of(&bytes)?.map(|outline| (outline.segments, outline.segment_bytes)))
    }

    #[test]
    fn either_copy_of_a_superblock_says_what_a_store_is() {
        for copies in [[true, true], [true, false], [false, true]] {
            assert_eq!(outline(copies, None).unwrap(), Some((3, 8192)), "{copies:?}");
        }
        // The checksum of one of them, and of the only one.
        assert_eq!(outline([true, true], Some(120)).unwrap(), Some((3, 8192)));
        assert!(outline([true, false], Some(120)).is_err());
    }

    #[test]
    fn what_is_no_superblock_says_nothing() {
        assert_eq!(outline([false, false], None).unwrap(), None);
        assert_eq!(outline([false, false], Some(77)).unwrap(), None, "no magic number");
        // A creation that was interrupted has the magic number, and nothing else is there.
        let mut bytes = [0; StoreOutline::BYTES];
        let words = new_pool(8192, 256).superblock.encode();
        bytes[..8].copy_from_slice(&words[0].to_le_bytes());
        assert_eq!(StoreOutline::of(&bytes).unwrap(), None);
    }
}
