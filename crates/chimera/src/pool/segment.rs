//! What a segment lies on, and its header: one line, at the end of the segment's file.

use std::sync::Arc;

use chimera_pmem::environment::File;

use super::superblock;
use crate::types::error::{Error, Result};

/// First word: "CHIMSEG1" in ASCII, little-endian.
const MAGIC: u64 = u64::from_le_bytes(*b"CHIMSEG1");
/// Words of the header.
pub(super) const WORDS: usize = 8;

/// What a segment lies on: a file, or a part of a device.
pub(super) struct Section {
    pub(super) file: Arc<dyn File>,
    /// Where it begins, in bytes.
    pub(super) offset: u64,
}

/// The header of segment `index` of pool `pool_id`.
pub(super) fn encode(pool_id: u64, index: u64) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    words[0] = MAGIC;
    words[1] = pool_id;
    words[2] = index;
    words[WORDS - 1] = checksum(&words);
    words
}

fn checksum(words: &[u64; WORDS]) -> u64 {
    superblock::checksum(&words[..WORDS - 1], 0)
}

/// Checks a header found at byte `at` of the pool.
///
/// # Errors
/// `Corrupted` when it is not the header of this segment.
pub(super) fn check(words: &[u64; WORDS], pool_id: u64, index: u64, at: u64) -> Result<()> {
    if *words == encode(pool_id, index) {
        return Ok(());
    }
    let what = if words[WORDS - 1] != checksum(words) {
        format!("the header of segment {index} does not match its checksum")
    } else if words[1] != pool_id {
        format!("segment {index} belongs to another pool")
    } else if words[2] != index {
        format!("segment {index} holds segment {}", words[2])
    } else {
        format!("the header of segment {index} has words that no such header has")
    };
    Err(Error::corrupted(what, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        let words = encode(5, 3);
        check(&words, 5, 3, 0).unwrap();
        for bit in 0..WORDS * 64 {
            let mut damaged = words;
            damaged[bit / 64] ^= 1 << (bit % 64);
            assert!(check(&damaged, 5, 3, 0).is_err(), "bit {bit}");
        }
    }

    fn text(words: &[u64; WORDS]) -> String {
        let error = check(words, 5, 3, 8192).unwrap_err();
        assert!(matches!(error, Error::Corrupted { at: 8192, .. }), "{error}");
        error.to_string()
    }

    #[test]
    fn a_damaged_header_is_never_taken_for_that_of_another_segment() {
        for bit in 0..WORDS * 64 {
            let mut damaged = encode(5, 3);
            damaged[bit / 64] ^= 1 << (bit % 64);
            assert!(text(&damaged).contains("does not match its checksum"), "bit {bit}");
        }
        assert!(text(&[0; WORDS]).contains("does not match its checksum"));
    }

    #[test]
    fn a_header_that_no_program_wrote_is_refused_though_its_checksum_is_right() {
        for (number, word) in [(0, 0), (0, MAGIC + 1), (3, 1), (4, 1), (5, 1), (6, u64::MAX)] {
            let mut forged = encode(5, 3);
            forged[number] = word;
            forged[WORDS - 1] = checksum(&forged);
            let text = text(&forged);
            assert!(text.contains("the header of segment 3 has words"), "word {number}: {text}");
        }
    }

    #[test]
    fn a_segment_of_another_pool_or_place_is_named() {
        let text = |result: Result<()>| result.unwrap_err().to_string();
        assert!(text(check(&encode(6, 3), 5, 3, 0)).contains("another pool"));
        assert!(text(check(&encode(5, 2), 5, 3, 0)).contains("holds segment 2"));
    }
}
