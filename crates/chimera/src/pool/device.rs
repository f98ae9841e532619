//! [`Device`]: a pool on a DAX device, which can be locked and mapped and nothing else.
//!
//! The superblock lies at the start of the device, in an area of its own that is as long as the
//! device's alignment, at least 2 MiB; the segments follow one after the other. All of it is there
//! from the start: nothing is created, extended, read or synced, and never is the device's name opened
//! in a way that could make a file of it.
//!
//! # Invariants
//! 1. Areas and segments begin and end at multiples of the device's alignment.
//! 2. What the device held before means nothing, whatever it is: a segment is what its header says
//!    once the superblock says that it is in force, and fresh blocks are made zero before they are ready.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_pmem::environment::{File, OpenMode};
use chimera_pmem::{Environment, Medium};

use super::segment::Section;
use super::superblock;
use crate::types::error::{Error, Result};

/// Least length of the superblock's area: the usual alignment, so that one that is set smaller later
/// changes nothing.
const AREA_BYTES_MIN: u64 = 2 << 20;

/// A locked DAX device.
pub(super) struct Device {
    path: PathBuf,
    pub(super) file: Arc<dyn File>,
    /// In bytes.
    capacity: u64,
    alignment: u64,
}

impl Device {
    /// Opens and locks the device at `path`, which is there and not a directory.
    ///
    /// # Errors
    /// `NotAStore` when it is something else, `Locked`, or what the system says: also when the
    /// device's region is read-only and `read_only` is not asked for.
    pub(super) fn lock(
        environment: &dyn Environment,
        path: &Path,
        read_only: bool,
    ) -> Result<Self> {
        let mode = if read_only { OpenMode::Read } else { OpenMode::ReadWrite };
        let not_a_store =
            |reason: &str| Error::NotAStore { path: path.to_owned(), reason: reason.to_owned() };
        let file = match environment.open(path, mode) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(not_a_store("it is neither a directory nor a DAX device"));
            }
            other => other.map_err(Error::io("open", path))?,
        };
        if file.medium().map_err(Error::io("look at", path))? != Medium::DevDax {
            return Err(not_a_store("it is a file, not a directory"));
        }
        if !file.try_lock(!read_only).map_err(Error::io("lock", path))? {
            return Err(Error::Locked { holder: "another process".to_owned() });
        }
        let capacity = file.length().map_err(Error::io("measure", path))?;
        let alignment = file.mapping_alignment();
        let device = Self { path: path.to_owned(), file, capacity, alignment };
        if device.room() < alignment {
            return Err(not_a_store(&format!("its {capacity} bytes are too few for a store")));
        }
        Ok(device)
    }

    /// Length of the superblock's area.
    pub(super) fn superblock_bytes(&self) -> u64 {
        AREA_BYTES_MIN.max(self.alignment).max(superblock::FILE_BYTES)
    }

    /// Bytes for segments.
    fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.superblock_bytes())
    }

    /// Most segments of `segment_bytes` there is room for.
    pub(super) fn segments_max(&self, segment_bytes: u64) -> u64 {
        self.room().checked_div(segment_bytes).unwrap_or(0)
    }

    /// The largest length up to `most` with which equal segments fill the device.
    pub(super) fn segment_bytes_up_to(&self, most: u64) -> u64 {
        let segments = self.room().div_ceil(most.max(self.alignment));
        self.room() / segments.max(1) / self.alignment * self.alignment
    }

    /// Whether segments of `segment_bytes` can be mapped.
    pub(super) fn check_segment_bytes(&self, segment_bytes: u64) -> Result<(), String> {
        if segment_bytes.is_multiple_of(self.alignment) {
            return Ok(());
        }
        let alignment = self.alignment;
        Err(format!(
            "a segment must have a multiple of {alignment} bytes on this device, not {segment_bytes}"
        ))
    }

    /// Segment `index`, of `bytes` bytes.
    ///
    /// # Errors
    /// `NotAStore` when the device ends before it.
    pub(super) fn segment(&self, index: u64, bytes: u64) -> Result<Section> {
        if index >= self.segments_max(bytes) {
            let capacity = self.capacity;
            let reason = format!(
                "its segment {index} lies behind the end of the device, which has {capacity} bytes: \
                 was the device made smaller?"
            );
            return Err(Error::NotAStore { path: self.path.clone(), reason });
        }
        Ok(Section { file: self.file.clone(), offset: self.superblock_bytes() + index * bytes })
    }

    /// What to say about a device that holds something else than a store.
    pub(super) fn foreign(&self) -> Error {
        let bytes = superblock::FILE_BYTES;
        let reason = format!(
            "its first {bytes} bytes are neither zero nor a superblock: it holds something else; if \
             that is not needed any more, write zeros over these bytes first"
        );
        Error::NotAStore { path: self.path.clone(), reason }
    }
}
