//! What a power loss may leave behind the used blocks.
//!
//! What is stored to new blocks can reach their file at once (see [`new_blocks`](super::new_blocks)). A power loss takes back that
//! they are used, and leaves what was stored: also whole records, with numbers and places that the next records get. So it is
//! removed at opening, before any block is handed out. Then new blocks have zeros, or what was there when they were given back.
//!
//! So it is in every pool whose journal was not closed, also where its process was killed: that one may have been about to do so.
//! What the superblock says does not matter: that the pool is open may be an entry that was lost.

use std::io;

use chimera_pmem::environment::File;
use zerocopy::IntoBytes;

use super::files::PoolFiles;
use super::segment::{self, Section};
use super::{BlockMap, PoolOptions};
use crate::types::error::{Error, Result};

/// Bytes that are looked at together where a file system makes no holes.
const PART_BYTES: u64 = 64 << 10;

/// What lies behind the used blocks of a pool whose journal was not closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leftovers {
    used_blocks: u64,
    /// Storage stays where it is: all of it was asked for.
    keeps_storage: bool,
}

impl Leftovers {
    /// Those of a pool that is opened for writing, if there can be some.
    pub(super) fn find(
        files: &PoolFiles,
        options: &PoolOptions,
        was_journal_open: bool,
        used_blocks: u64,
    ) -> Option<Self> {
        let are_there = was_journal_open && !options.read_only && files.device.is_none();
        are_there.then_some(Self { used_blocks, keeps_storage: options.populate_at_open })
    }

    /// Makes zeros of them, once all segments are known to be those of this pool.
    ///
    /// # Errors
    /// `Corrupted` where a segment is not, with nothing changed. What a file says.
    ///
    /// # Durability
    /// When the files are synced next, which has to be before a block is handed out.
    ///
    /// # Cost
    /// Two system calls for each segment. Where the file system makes no holes, or storage is kept, all of it is read, and written
    /// where it is not zeros.
    pub(super) fn remove(
        self,
        files: &PoolFiles,
        map: &BlockMap,
        pool_id: u64,
        segments: &[Section],
    ) -> Result<()> {
        for (index, section) in (0..).zip(segments) {
            let (mut words, at) = ([0; segment::WORDS], map.header_in_segment());
            let read = section.file.read_at(at, words.as_mut_bytes());
            read.map_err(Error::io("read", &files.segment_path(index)))?;
            segment::check(&words, pool_id, index, map.base + index * map.segment_bytes + at)?;
        }
        for (index, section) in (0..).zip(segments) {
            let used = self.used_blocks.saturating_sub(index * map.blocks_per_segment);
            let start = map.block_in_segment(used.min(map.blocks_per_segment));
            let removed = self.clear(&*section.file, start, map.header_in_segment());
            removed.map_err(Error::io("clear unused space of", &files.segment_path(index)))?;
        }
        Ok(())
    }

    fn clear(self, file: &dyn File, start: u64, end: u64) -> io::Result<()> {
        let is_done = start >= end || !self.keeps_storage && file.punch(start, end - start).is_ok();
        if is_done { Ok(()) } else { write_zeros(file, start, end) }
    }
}

fn write_zeros(file: &dyn File, start: u64, end: u64) -> io::Result<()> {
    let (mut found, zeros) = (vec![0; PART_BYTES as usize], vec![0; PART_BYTES as usize]);
    for at in (start..end).step_by(PART_BYTES as usize) {
        let length = PART_BYTES.min(end - at) as usize;
        file.read_at(at, &mut found[..length])?;
        if found[..length] != zeros[..length] {
            file.write_at(at, &zeros[..length])?;
        }
    }
    Ok(())
}
