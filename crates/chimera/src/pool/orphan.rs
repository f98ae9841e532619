//! What an interrupted growth or closing of a pool leaves in the place of its next segment.
//!
//! Whoever holds the pool's lock replaces such a file, and no other. It is one of these:
//!
//! - **A segment that was in force once, or was about to be**: it has the header of this pool and place. Closing
//!   removes segments only after the superblock does not name them any more.
//! - **A segment that was never finished**: it is not longer than a segment, and has nothing but zeros in front of
//!   where a header is. Each word of the header is the right one or zero. Blocks of a segment are used only after
//!   the superblock names it, which is after its header is durable.
//!
//! Anything else was made by somebody else: a file of another kind, or a segment of another pool.

use std::io;
use std::ops::Range;

use chimera_pmem::environment::File;
use zerocopy::IntoBytes;

use super::blocks::SEGMENT_HEADER_BYTES;
use super::segment;

/// Bytes to read at a time.
const CHUNK_BYTES: u64 = 64 << 10;

/// Whether `file` is what an interrupted step of pool `pool_id` left in the place of segment `index` of
/// `segment_bytes`, which is not in force.
///
/// # Errors
/// When it cannot be read.
///
/// # Cost
/// Reads the header; the whole file where that is not whole, which takes holes and zeros alone.
pub(super) fn is_ours(
    file: &dyn File,
    pool_id: u64,
    index: u64,
    segment_bytes: u64,
) -> io::Result<bool> {
    let length = file.length()?;
    if length > segment_bytes {
        return Ok(false);
    }
    if length < segment_bytes {
        return is_zero(file, 0..length);
    }
    let right = segment::encode(pool_id, index);
    let header_at = segment_bytes - SEGMENT_HEADER_BYTES;
    let mut found = [0_u64; segment::WORDS];
    file.read_at(header_at, found.as_mut_bytes())?;
    if found == right {
        return Ok(true);
    }
    let is_part = found.iter().zip(&right).all(|(found, right)| *found == 0 || found == right);
    let header_end = header_at + size_of_val(&found) as u64;
    Ok(is_part && is_zero(file, 0..header_at)? && is_zero(file, header_end..length)?)
}

/// Whether the bytes of a part of a file are all zero.
fn is_zero(file: &dyn File, part: Range<u64>) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK_BYTES.min(part.end - part.start) as usize];
    for at in part.clone().step_by(CHUNK_BYTES as usize) {
        let chunk = &mut chunk[..CHUNK_BYTES.min(part.end - at) as usize];
        file.read_at(at, chunk)?;
        if chunk.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use chimera_pmem::environment::{FileProvider, MemoryFiles, OpenMode};

    use super::*;

    const SEGMENT_BYTES: u64 = 200 << 10;
    const HEADER_AT: usize = (SEGMENT_BYTES - SEGMENT_HEADER_BYTES) as usize;
    const POOL: u64 = 0x1234;

    fn file(bytes: &[u8]) -> Arc<dyn File> {
        let file = MemoryFiles::new().open(Path::new("file"), OpenMode::CreateNew).unwrap();
        file.write_at(0, bytes).unwrap();
        file
    }

    /// A whole segment, with this in the first byte.
    fn segment(pool_id: u64, index: u64, first: u8) -> Vec<u8> {
        let mut bytes = vec![0; SEGMENT_BYTES as usize];
        bytes[0] = first;
        let header = segment::encode(pool_id, index);
        bytes[HEADER_AT..HEADER_AT + 8 * segment::WORDS].copy_from_slice(header.as_bytes());
        bytes
    }

    fn is_orphan(bytes: &[u8]) -> bool {
        is_ours(&*file(bytes), POOL, 3, SEGMENT_BYTES).unwrap()
    }

    #[test]
    fn what_an_interrupted_step_leaves_is_an_orphan() {
        assert!(is_orphan(&[]));
        for length in [1, 4096, SEGMENT_BYTES - 1, SEGMENT_BYTES] {
            assert!(is_orphan(&vec![0; length as usize]), "{length} zeros");
        }
        // Once in force, with blocks in use; never in force.
        assert!(is_orphan(&segment(POOL, 3, 7)));
        assert!(is_orphan(&segment(POOL, 3, 0)));
        for word in 0..segment::WORDS {
            let mut bytes = segment(POOL, 3, 0);
            let at = HEADER_AT + 8 * word;
            bytes[at..at + 8].fill(0);
            assert!(is_orphan(&bytes), "word {word} of the header is missing");
        }
    }

    #[test]
    fn whatever_else_is_there_is_somebodys() {
        assert!(!is_orphan(b"text"));
        let last = SEGMENT_BYTES as usize - 1;
        for at in [0, 70_000, HEADER_AT - 1, HEADER_AT, HEADER_AT + 8 * segment::WORDS, last] {
            let mut bytes = vec![0; SEGMENT_BYTES as usize];
            bytes[at] = 1;
            assert!(!is_orphan(&bytes), "a byte at {at}");
            bytes.truncate(at + 1);
            assert!(!is_orphan(&bytes), "a byte at {at}, the last one");
        }
        for (pool_id, index) in [(POOL + 1, 3), (POOL, 2)] {
            assert!(!is_orphan(&segment(pool_id, index, 0)), "segment {index} of {pool_id}");
        }
        // A header that is not whole shows nothing of data.
        let mut torn = segment(POOL, 3, 7);
        torn[HEADER_AT..HEADER_AT + 8].fill(0);
        assert!(!is_orphan(&torn));
        let mut longer = segment(POOL, 3, 0);
        longer.push(0);
        assert!(!is_orphan(&longer));
    }
}
