//! Storage behind what is in use.
//!
//! A store that was copied with holes has files of the right length without storage behind every part.
//! A store to such a part makes the file system find room, and is a SIGBUS when there is none; on tmpfs
//! even a load is. So room is asked for when a store is opened, and its lack is an error there. Blocks
//! beyond the used ones get their storage when they are made ready. With a journal only a checkpoint needs storage: there it is
//! asked for once the runs are found, and those that are free have none.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use chimera_pmem::environment::File;
use chimera_pmem::{Medium, Pmem};

use super::files::{PoolFiles, full_or_io};
use super::segment::Section;
use super::{BlockMap, Pool};
use crate::sync::atomic::Ordering;
use crate::sync::lock_relaxing;
use crate::types::error::{Error, Result};

/// Pages of the operating system, in bytes.
pub(crate) const SYSTEM_PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests;

/// A file of the pool, where it is mapped.
pub(super) struct Mapped<'a> {
    pub(super) file: &'a Arc<dyn File>,
    pub(super) path: &'a Path,
    /// Offset in the pool.
    pub(super) at: u64,
}

/// Makes sure that there is storage behind a part of a file. Where the file is only read, this matters
/// on tmpfs alone.
///
/// # Errors
/// `PoolFull` when there is no room.
///
/// # Cost
/// One system call. Nothing is written where there is storage already; what is only read on tmpfs is
/// touched.
pub(super) fn ensure<P: Pmem>(pmem: &P, mapped: &Mapped<'_>, part: Range<u64>) -> Result<()> {
    let length = part.end - part.start;
    let done = if !mapped.file.is_read_only() {
        mapped.file.allocate(part.start, length)
    } else if pmem.medium() == Medium::Tmpfs {
        pmem.populate(mapped.at + part.start, length)
    } else {
        Ok(())
    };
    done.map_err(|source| no_storage(source, mapped.path))
}

impl<P: Pmem> Pool<P> {
    /// With a journal, and open for writing: makes sure that there is storage behind every used block, unless finding runs has
    /// done so.
    ///
    /// # Errors
    /// `PoolFull` when there is no room.
    pub(crate) fn ask_for_storage(&self) -> Result<()> {
        let is_asked = self.has_asked_for_storage.load(Ordering::Acquire);
        if !self.is_journaled || self.read_only || is_asked {
            return Ok(());
        }
        let growth = lock_relaxing(&self.growth, &*self.environment);
        ensure_used(&self.pmem, &self.files, &self.map, &growth.segments, self.used_blocks())
    }

    /// Asks for storage of blocks of a segment.
    pub(super) fn allocate(&self, blocks: &Range<u64>) -> io::Result<()> {
        let growth = lock_relaxing(&self.growth, &*self.environment);
        let (section, at, length) = self.locate(&growth.segments, blocks);
        section.file.allocate(at, length)
    }

    /// The file of blocks of a segment, where they lie in it, and how many bytes.
    pub(super) fn locate<'a>(
        &self,
        segments: &'a [Section],
        blocks: &Range<u64>,
    ) -> (&'a Section, u64, u64) {
        let segment = blocks.start / self.map.blocks_per_segment;
        let section = &segments[segment as usize];
        let in_file =
            self.map.block_at(blocks.start) - (self.map.base + segment * self.map.segment_bytes);
        (section, section.offset + in_file, (blocks.end - blocks.start) * self.map.block_bytes)
    }

    /// Whether no storage is given back: there are no files, or all of it was asked for.
    pub(super) fn keeps_all_storage(&self) -> bool {
        self.files.device.is_some() || self.files.is_without_files() || self.keeps_storage
    }
}

/// [`ensure_used`] for whoever opens a pool, but for a writer with a journal: nothing but a checkpoint needs storage there, and
/// it is [asked for](Pool::ask_for_storage) later.
pub(super) fn ensure_at_open<P: Pmem>(
    pmem: &P,
    files: &PoolFiles,
    map: &BlockMap,
    segments: &[Section],
    used_blocks: u64,
) -> Result<()> {
    let is_later =
        pmem.journal().is_some() && segments.iter().all(|section| !section.file.is_read_only());
    if is_later { Ok(()) } else { ensure_used(pmem, files, map, segments, used_blocks) }
}

/// Makes sure that there is storage behind every used block.
///
/// # Errors
/// As [`ensure`].
fn ensure_used<P: Pmem>(
    pmem: &P,
    files: &PoolFiles,
    map: &BlockMap,
    segments: &[Section],
    used_blocks: u64,
) -> Result<()> {
    if files.device.is_some() {
        // All of a device is storage.
        return Ok(());
    }
    let mut left = used_blocks;
    for (index, Section { file, .. }) in (0..).zip(segments) {
        let blocks = left.min(map.blocks_per_segment);
        if blocks == 0 {
            break;
        }
        let path = files.segment_path(index);
        let mapped = Mapped { file, path: &path, at: map.base + index * map.segment_bytes };
        ensure(pmem, &mapped, 0..map.block_in_segment(blocks))?;
        left -= blocks;
    }
    Ok(())
}

pub(super) fn no_storage(source: io::Error, path: &Path) -> Error {
    match full_or_io(source, "allocate space in", path) {
        Error::PoolFull { reason } => Error::PoolFull {
            reason: format!(
                "{reason}, of which a part has no storage yet, as in a copy made with holes"
            ),
        },
        other => other,
    }
}
