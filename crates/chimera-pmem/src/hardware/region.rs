//! [`Region`]: a mapped part of a file, and what is done to whole regions.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::punched::Punched;
use crate::environment::File;
use crate::mapping::{Reservation, Sharing, Source};
use crate::{Extent, Medium};

/// A part of a file mapped into the reservation.
#[derive(Debug)]
pub(super) struct Region {
    at: u64,
    length: u64,
    file: Arc<dyn File>,
    file_offset: u64,
    medium: Medium,
    is_private: bool,
}

impl Region {
    /// Maps `length` bytes of `file` from `file_offset` at `at`; privately when a journal keeps what is
    /// stored. What is private and has no descriptor is zeros, for the caller to fill.
    pub(super) fn map(
        reservation: &Reservation,
        at: u64,
        file: &Arc<dyn File>,
        file_offset: u64,
        length: u64,
        is_private: bool,
    ) -> io::Result<Self> {
        let page = file.mapping_alignment().max(rustix::param::page_size() as u64);
        if length == 0 || [length, file_offset, at].iter().any(|part| !part.is_multiple_of(page)) {
            let message = format!(
                "{length} bytes at {file_offset}, mapped at {at}, are not whole pages of {page} bytes"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let end = file_offset.checked_add(length).ok_or(io::ErrorKind::InvalidInput)?;
        if end > file.length()? {
            // An access behind the end of a file would be a SIGBUS.
            let message = format!("the file ends before byte {end}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let medium = file.medium()?;
        let source = match (file.descriptor(), medium) {
            (Some(descriptor), _) => Source::File {
                file: descriptor,
                offset: file_offset,
                sharing: match medium {
                    _ if is_private => Sharing::Private,
                    Medium::FsDax => Sharing::Synchronous,
                    _ => Sharing::Shared,
                },
                read_only: file.is_read_only(),
            },
            (None, Medium::Anonymous) => Source::Anonymous,
            (None, _) if is_private => Source::Anonymous,
            (None, _) => {
                let message = format!("a file on {medium} media cannot be mapped");
                return Err(io::Error::new(io::ErrorKind::Unsupported, message));
            }
        };
        let (start, size) = (usize::try_from(at), usize::try_from(length));
        let (Ok(start), Ok(size)) = (start, size) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        reservation.map(start, size, source)?;
        Ok(Self { at, length, file: Arc::clone(file), file_offset, medium, is_private })
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.file.is_read_only()
    }

    /// The part of `range` that lies in this region.
    fn overlap(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let start = range.start.max(self.at);
        let end = range.end.min(self.at + self.length);
        (start < end).then_some(start..end)
    }
}

impl Region {
    /// Where it lies, and its length.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.at, self.length)
    }

    /// What it lies on.
    pub(super) fn medium(&self) -> Medium {
        self.medium
    }
}

/// The medium that keeps least of what is stored.
pub(super) fn weakest_medium(regions: &[Region]) -> Medium {
    let strength = |medium: &Medium| match medium {
        Medium::Anonymous => 0,
        Medium::Tmpfs => 1,
        Medium::File => 2,
        Medium::FsDax | Medium::DevDax | Medium::Simulated => 3,
    };
    let media = regions.iter().map(|region| region.medium);
    media.min_by_key(strength).unwrap_or(Medium::Anonymous)
}

/// Faults in the pages of `range`, for writing where that is allowed and makes no copies. `touch` is called with the offset
/// of each such page on kernels that cannot do it at once.
pub(super) fn populate(
    regions: &[Region],
    reservation: &Reservation,
    range: Range<u64>,
    touch: impl Fn(u64),
) -> io::Result<()> {
    let page = rustix::param::page_size() as u64;
    // Regions are whole pages, so rounding outwards stays inside what is mapped.
    let range = range.start / page * page..range.end.next_multiple_of(page);
    for region in regions {
        let Some(part) = region.overlap(&range) else { continue };
        let length = (part.end - part.start) as usize;
        let only_read = region.is_read_only() || region.is_private;
        match reservation.populate(part.start as usize, length, only_read) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                if !only_read {
                    part.step_by(page as usize).for_each(&touch);
                }
            }
            done => done?,
        }
    }
    Ok(())
}

/// Gives back the storage of the whole pages of `range`; a no-op where the file system cannot. Whether all of it was given
/// back.
pub(super) fn punch(
    regions: &[Region],
    reservation: &Reservation,
    punched: &Punched,
    range: Extent,
) -> io::Result<bool> {
    let page = rustix::param::page_size() as u64;
    let range = range.offset().next_multiple_of(page)..range.end() / page * page;
    let mut is_punched = true;
    for region in regions {
        let Some(part) = region.overlap(&range) else { continue };
        let length = part.end - part.start;
        let discard = || reservation.discard(part.start as usize, length as usize);
        let punch = || region.file.punch(part.start - region.at + region.file_offset, length);
        let done = if region.is_private {
            // The pages discarded come back from the file.
            punch().and_then(|()| discard())
        } else if region.file.descriptor().is_some() {
            punch()
        } else {
            discard()
        };
        if region.is_private || region.medium.is_persistent_memory() {
            // Also where it failed: a part may have gone. Not before: a sync could come between.
            punched.add(&region.file);
        }
        match done {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => is_punched = false,
            done => done?,
        }
    }
    Ok(is_punched)
}

/// The files whose data the page cache still holds, each once.
pub(super) fn files_to_sync(regions: &[Region]) -> Vec<Arc<dyn File>> {
    let mut files: Vec<Arc<dyn File>> = Vec::new();
    for region in regions {
        let cached = region.medium == Medium::File && !region.is_read_only();
        if cached && !files.iter().any(|file| Arc::ptr_eq(file, &region.file)) {
            files.push(Arc::clone(&region.file));
        }
    }
    files
}
