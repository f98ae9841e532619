//! Removing a pool, and nothing else.
//!
//! # Protocol
//! Under the lock of a writer, each step durable before the next:
//!
//! - **Directory**: segments, the first one first, the journal, and what else the caller names; the
//!   superblock; the lock. Without its first segment a pool that has any is refused by opening. The
//!   directory goes last, when it is empty.
//! - **Device**: both copies of the superblock but for their magic numbers; the rest of the superblock's area but for
//!   one magic number; that magic number. So opening after a crash finds the whole pool, damage, or nothing: while one
//!   copy is whole, the used-blocks words are as they were, and no pool with fewer blocks is ever found.
//!
//! As long as there is anything left, it is known as a pool: by a magic number, or by a lock that is alone or
//! names its last writer.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{io, iter};

use chimera_pmem::environment::{Directory, File, OpenMode};
use chimera_pmem::{Environment, Pmem};
use zerocopy::IntoBytes;

use super::copies::{is_blank, magic_at};
use super::device::Device;
use super::files::{
    JOURNAL, LOCK, LOCK_BYTES, SUPERBLOCK, is_segment, lock_in, lock_superblock_in, sync_entry_of,
    writer_of,
};
use super::sites;
use super::superblock::{COPY_STRIDE, FILE_BYTES, WORDS};
use crate::types::error::{Error, Result};

/// Removes the pool at `path`; in a directory also the files of a store that `others` names.
///
/// # Errors
/// `NotFound`, `NotAStore`, `Locked`, or what the system says; what is left can be removed by another call.
pub(crate) fn destroy<P: Pmem>(
    pmem: &P,
    environment: &dyn Environment,
    path: &Path,
    others: &[&str],
) -> Result<()> {
    match environment.is_directory(path).map_err(Error::io("look at", path))? {
        Some(true) => destroy_directory(environment, path, others),
        Some(false) => destroy_on_device(pmem, environment, path),
        None => Err(Error::NotFound { path: path.to_owned() }),
    }
}

fn destroy_directory(environment: &dyn Environment, path: &Path, others: &[&str]) -> Result<()> {
    let directory = environment.open_directory(path).map_err(Error::io("open", path))?;
    let lock = lock_in(&*directory, path, OpenMode::ReadWrite, false)?;
    let _superblock = lock_superblock_in(&*directory, path, OpenMode::ReadWrite)?;
    let mut names = directory.list().map_err(Error::io("list", path))?;
    check_directory(&*directory, path, &*lock, &names)?;
    let is_of_pool = |name: &Path| is_segment(name) || name == Path::new(JOURNAL);
    names.retain(|name| is_of_pool(name) || others.iter().any(|other| name == Path::new(other)));
    // The first segment first, since names are sorted: a pool that lacks one is not opened.
    names.sort_by_key(|name| !is_segment(name));
    for name in names {
        remove(&*directory, path, &name)?;
    }
    let sync = || directory.sync().map_err(Error::io("sync", path));
    sync()?;
    remove(&*directory, path, Path::new(SUPERBLOCK))?;
    sync()?;
    remove(&*directory, path, Path::new(LOCK))?;
    match environment.remove_directory(path) {
        Ok(()) => sync_entry_of(environment, path),
        Err(error) => {
            // It holds other files, or is a mount point, or its parent is not the user's.
            log::info!("the directory {} stays: {error}", path.display());
            sync()
        }
    }
}

/// Whether what is in a locked directory is a pool, or the rest of one.
fn check_directory(
    directory: &dyn Directory,
    path: &Path,
    lock: &dyn File,
    names: &[PathBuf],
) -> Result<()> {
    let not_a_store =
        |reason: &str| Err(Error::NotAStore { path: path.to_owned(), reason: reason.to_owned() });
    let superblock = path.join(SUPERBLOCK);
    let file = match directory.open(Path::new(SUPERBLOCK), OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_of_pool = |name: &PathBuf| is_segment(name) || name == Path::new(JOURNAL);
            if names.iter().any(is_of_pool) {
                return not_a_store("its file `superblock` is missing: put it back");
            }
            let length = lock.length().map_err(Error::io("measure", &path.join(LOCK)))?;
            let is_written = length == LOCK_BYTES as u64 && writer_of(lock).is_some();
            if names.len() == 1 || is_written {
                return Ok(());
            }
            return not_a_store("it has no file `superblock`");
        }
        other => other.map_err(Error::io("open", &superblock))?,
    };
    let length = file.length().map_err(Error::io("measure", &superblock))?;
    let mut words = vec![0; (FILE_BYTES / 8) as usize];
    let found = (length.min(FILE_BYTES) / 8) as usize;
    file.read_at(0, words[..found].as_mut_bytes()).map_err(Error::io("read", &superblock))?;
    match magic_at(&|at| words[(at / 8) as usize]) {
        Some(_) => Ok(()),
        None => not_a_store("no copy in its file `superblock` has the magic number"),
    }
}

/// Removes a file of `directory`, which was found at `path`, unless it is gone.
fn remove(directory: &dyn Directory, path: &Path, name: &Path) -> Result<()> {
    match directory.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(Error::io("remove", &path.join(name))),
    }
}

fn destroy_on_device<P: Pmem>(pmem: &P, environment: &dyn Environment, path: &Path) -> Result<()> {
    let device = Device::lock(environment, path, false)?;
    let length = device.superblock_bytes();
    pmem.map(0, &device.file, 0, length).map_err(Error::io("map", path))?;
    let word = |at| pmem.load_u64(at);
    let Some(last) = magic_at(&word) else {
        if is_blank(&word) {
            return Err(Error::NotFound { path: path.to_owned() });
        }
        return Err(device.foreign());
    };
    let copy_bytes = 8 * WORDS as u64;
    // But for the magic numbers, which begin the copies.
    let copies = [0, COPY_STRIDE].map(|at| at + 8..at + copy_bytes);
    clear(pmem, copies);
    clear(pmem, [0..last, last + 8..FILE_BYTES]);
    clear(pmem, iter::once(last..last + 8));
    Ok(())
}

/// Makes ranges of the superblock's area zero, durably.
fn clear<P: Pmem>(pmem: &P, ranges: impl IntoIterator<Item = Range<u64>>) {
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        let extent = pmem.check(range.start, range.end - range.start);
        let extent = extent.expect("the superblock is mapped");
        pmem.zero(extent, sites::SUPERBLOCK);
        pmem.flush(extent, sites::SUPERBLOCK);
    }
    pmem.fence(sites::SUPERBLOCK);
}

#[cfg(test)]
mod tests;
