//! Creating and opening a pool.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use chimera_pmem::environment::{AnonymousFile, File};
use chimera_pmem::{Environment, Pmem};

use super::files::PoolFiles;
use super::growth::Growth;
use super::storage::Mapped;
use super::superblock::{COPY_STRIDE, FILE_BYTES, MAGIC, WORDS};
use super::{
    BlockMap, Closing, Pool, Superblock, USED_BLOCKS_AT, checked_word, segment, storage,
    store_superblock,
};
use crate::types::error::{Error, Result};
use crate::types::options::Options;

/// Most bytes to allocate and touch at a time, so that nobody waits long for the growth lock.
const GROWTH_STEP_BYTES: u64 = 4 << 20;

/// What opening found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The pool is new.
    pub(crate) created: bool,
    /// It had been closed in order.
    pub(crate) clean: bool,
}

impl<P: Pmem> Pool<P> {
    /// Opens the pool at `path`, or creates it with the superblock that `new` gives.
    ///
    /// # Errors
    /// Every way in which files can be missing, foreign, damaged, locked or too large.
    pub(crate) fn open(
        pmem: P,
        environment: Arc<dyn Environment>,
        path: &Path,
        options: &Options,
        new: impl FnOnce() -> Result<Superblock>,
    ) -> Result<(Self, Opened)> {
        let files = match options.anonymous_bytes {
            Some(_) => PoolFiles::none(environment.clone()),
            None => PoolFiles::lock(environment.clone(), path, options.create, options.read_only)?,
        };
        let (superblock, created) = match map_superblock(&pmem, &files, options)? {
            Some(superblock) => (superblock, false),
            None => (new()?, true),
        };
        options.effective_durability(pmem.medium())?;
        let geometry = &superblock.geometry;
        let map = geometry.validate().and_then(|()| {
            BlockMap::new(FILE_BYTES, geometry).ok_or_else(|| {
                format!("a segment of {} bytes has no room for a block", geometry.segment_bytes)
            })
        });
        let map = map.map_err(|what| {
            if created {
                Error::InvalidOptions(what)
            } else {
                Error::corrupted(format!("the superblock's sizes are not valid: {what}"), 32)
            }
        })?;
        if created {
            store_superblock(&pmem, &superblock);
        }
        let clean = superblock.closing == Closing::Clean;
        power_lost(&superblock, &pmem, &*environment, options)?;
        let segments = map_segments(&pmem, &files, &map, &superblock, options)?;
        let ready = segments.len() as u64 * map.blocks_per_segment;
        let used = used_blocks(&pmem, ready)?;
        storage::ensure_used(&pmem, &files, &map, &segments, used)?;
        let ahead_blocks = options.populate_ahead_bytes / map.block_bytes;
        let step_blocks = ahead_blocks.min(GROWTH_STEP_BYTES / map.block_bytes).max(1);
        let blocks_max = options
            .capacity_bytes
            .or(options.anonymous_bytes)
            .map_or(BlockMap::BLOCKS_MAX, |bytes| bytes / map.block_bytes)
            .min(BlockMap::BLOCKS_MAX);
        let pool = Self {
            pmem,
            environment,
            map,
            read_only: options.read_only,
            files,
            superblock: Mutex::new(superblock),
            growth: Mutex::new(Growth { segments, blocks_max, step_blocks }),
            hand_out: Mutex::new(()),
            ahead_blocks,
            background: OnceLock::new(),
            // Storage beyond the used blocks may or may not be allocated: doing it again is free.
            ready: AtomicU64::new(used),
            used: AtomicU64::new(used),
        };
        Ok((pool, Opened { created, clean }))
    }

    /// Marks the pool as not closed in order, before the first change and after the last reason to
    /// refuse it that has nothing to do with its records. One that was not closed in order keeps its
    /// boot id, and so the mark of a power loss, until [`mark_recovered`](Self::mark_recovered).
    pub(crate) fn mark_open(&self) {
        if !self.read_only {
            let boot_id = self.environment.boot_id();
            self.change_superblock(|superblock| {
                if superblock.closing == Closing::Clean {
                    superblock.boot_id = boot_id;
                }
                superblock.closing = Closing::Open;
            });
        }
    }

    /// Ties the pool to this start of the machine: its records are in order.
    pub(crate) fn mark_recovered(&self) {
        let boot_id = self.environment.boot_id();
        if !self.read_only && self.superblock().boot_id != boot_id {
            self.change_superblock(|superblock| superblock.boot_id = boot_id);
        }
    }
}

/// Maps the superblock's file and reads it: `None` when the pool is yet to be made.
fn map_superblock<P: Pmem>(
    pmem: &P,
    files: &PoolFiles,
    options: &Options,
) -> Result<Option<Superblock>> {
    let path = files.superblock_path();
    let map =
        |file: &Arc<dyn File>| pmem.map(0, file, 0, FILE_BYTES).map_err(Error::io("map", &path));
    if options.anonymous_bytes.is_some() {
        let file: Arc<dyn File> = Arc::new(AnonymousFile::new(FILE_BYTES));
        map(&file)?;
        return Ok(None);
    }
    let exists = files.environment.is_directory(&path).map_err(Error::io("look at", &path))?;
    let has_segments = files.has_segments()?;
    if exists.is_none() && has_segments {
        let reason = "its file `superblock` is missing: put it back".to_owned();
        return Err(Error::NotAStore { path: files.path.clone(), reason });
    }
    // A file without a byte: creation was interrupted before it had its size.
    if exists.is_none() || !has_segments && files.is_empty(&path)? {
        if !options.create || options.read_only {
            return Err(Error::NotFound { path: files.path.clone() });
        }
        map(&files.create_sized(&path, 0, FILE_BYTES)?)?;
        return Ok(None);
    }
    let file = files.open_sized(&path, FILE_BYTES, options.read_only)?;
    map(&file)?;
    storage::ensure(pmem, &Mapped { file: &file, path: &path, at: 0 }, 0..FILE_BYTES)?;
    let copies = [read_copy(pmem, 0), read_copy(pmem, COPY_STRIDE)];
    if is_half_created(pmem, &copies) && !has_segments {
        // Creation was interrupted before the superblock was whole: start again.
        if !options.create || options.read_only {
            return Err(Error::NotFound { path: files.path.clone() });
        }
        return Ok(None);
    }
    newest(copies).map(Some)
}

/// Whether the superblock is one that was being made: nothing but an incomplete first copy. A store
/// that was ever open has a second one.
fn is_half_created<P: Pmem>(pmem: &P, copies: &[Result<Superblock>; 2]) -> bool {
    let is_zero = |word: u64| pmem.load_u64(8 * word) == 0;
    matches!(copies[0], Err(Error::Corrupted { .. }))
        && (is_zero(0) || pmem.load_u64(0) == MAGIC)
        && (WORDS as u64..FILE_BYTES / 8).all(is_zero)
}

fn read_copy<P: Pmem>(pmem: &P, at: u64) -> Result<Superblock> {
    let mut words = [0; WORDS];
    for (index, word) in words.iter_mut().enumerate() {
        *word = pmem.load_u64(at + 8 * index as u64);
    }
    Superblock::decode(&words, at)
}

/// The valid copy with the higher sequence number.
fn newest(copies: [Result<Superblock>; 2]) -> Result<Superblock> {
    match copies {
        [Ok(first), Ok(second)] if first.is_newer_than(&second) => Ok(first),
        [Ok(_), Ok(second)] => Ok(second),
        [Err(newer @ Error::NewerFormat { .. }), _]
        | [_, Err(newer @ Error::NewerFormat { .. })] => Err(newer),
        // The first update of a new pool writes the second copy: one alone is in order.
        [Ok(only), Err(_)] | [Err(_), Ok(only)] => Ok(only),
        [Err(error), Err(_)] => Err(error),
    }
}

/// Refuses a store that the machine went down under, where that can have torn it.
fn power_lost<P: Pmem>(
    superblock: &Superblock,
    pmem: &P,
    environment: &dyn Environment,
    options: &Options,
) -> Result<()> {
    let medium = pmem.medium();
    let lost = superblock.closing == Closing::Open
        && superblock.boot_id != 0
        && superblock.boot_id != environment.boot_id();
    if lost && !medium.is_persistent_memory() && !options.salvage {
        return Err(Error::PowerLost { medium: medium.to_string() });
    }
    Ok(())
}

fn map_segments<P: Pmem>(
    pmem: &P,
    files: &PoolFiles,
    map: &BlockMap,
    superblock: &Superblock,
    options: &Options,
) -> Result<Vec<Arc<dyn File>>> {
    let mut segments = Vec::new();
    for index in 0..superblock.segments {
        let path = files.segment_path(index);
        let file = files.open_sized(&path, map.segment_bytes, options.read_only)?;
        let at = map.base + index * map.segment_bytes;
        pmem.map(at, &file, 0, map.segment_bytes).map_err(Error::io("map", &path))?;
        let mapped = Mapped { file: &file, path: &path, at };
        storage::ensure(pmem, &mapped, map.header_in_segment()..map.segment_bytes)?;
        let header = at + map.header_in_segment();
        let mut words = [0; segment::WORDS];
        for (number, word) in words.iter_mut().enumerate() {
            *word = pmem.load_u64(header + 8 * number as u64);
        }
        segment::check(&words, superblock.pool_id, index, header)?;
        segments.push(file);
    }
    Ok(segments)
}

/// Blocks in use: what the word says, or an error when the word is damaged.
fn used_blocks<P: Pmem>(pmem: &P, blocks: u64) -> Result<u64> {
    match checked_word::decode(pmem.load_u64(USED_BLOCKS_AT)).map(u64::from) {
        Some(used) if used <= blocks => Ok(used),
        _ => Err(Error::corrupted("the number of used blocks is not valid", USED_BLOCKS_AT)),
    }
}
