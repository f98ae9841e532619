//! Creating and opening a pool.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use chimera_pmem::environment::{AnonymousFile, File, OpenMode};
use chimera_pmem::journal::Damage;
use chimera_pmem::{Environment, Fenced, Medium, Pmem};

use super::ahead::Ahead;
use super::copies::{find_superblock, is_blank, magic_at, read_words};
use super::device::Device;
use super::files::{PoolFiles, cannot_map, lock_superblock};
use super::growth::{AllocationLimits, Growth};
use super::journal::JournalFile;
use super::leftovers::Leftovers;
use super::segment::{self, Section};
use super::storage::{self, Mapped};
use super::superblock::{CLOSING_AT, FILE_BYTES};
use super::{
    BlockMap, CLOSED_WORDS, Closing, JOURNAL_MARK_AT, LossLog, Pool, PoolGeometry, PoolOptions,
    Reserve, Superblock, USED_BLOCKS_AT, checked_word, copy_of, sites, steps, store_new,
    store_used,
};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::types::error::{Error, Result};
use crate::types::totals::Totals;

/// What opening found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The pool is new.
    pub(crate) created: bool,
    /// It had been closed in order.
    pub(crate) clean: bool,
    /// What is lost of its journal, where that was to be ignored.
    pub(crate) journal_loss: Option<Damage>,
}

impl<P: Pmem> Pool<P> {
    /// Opens the pool at `path`, or creates the one that `new` gives.
    ///
    /// # Errors
    /// Every way in which files can be missing, foreign, damaged, locked or too large.
    pub(crate) fn open(
        pmem: P,
        environment: Arc<dyn Environment>,
        path: &Path,
        options: &PoolOptions,
        new: impl FnOnce() -> Result<NewPool>,
    ) -> Result<(Self, Opened)> {
        let files = match options.anonymous_bytes {
            Some(_) => PoolFiles::none(environment.clone()),
            None => PoolFiles::lock(environment.clone(), path, options.create, options.read_only)?,
        };
        let mut journal = JournalFile::find(&files, options)?;
        journal.replay(&pmem, &files, options.read_only)?;
        let new = || Ok(new()?.fitted(&files));
        let (superblock, created) = map_superblock(&pmem, &files, options, &mut journal, new)?;
        if options.incomplete && !created {
            return Err(Error::AlreadyExists { path: path.to_owned() });
        }
        options.effective_durability(pmem.medium())?;
        let map = block_map(&files, &superblock.geometry).map_err(|what| {
            if created {
                Error::InvalidOptions(what)
            } else {
                Error::corrupted(format!("the superblock's sizes are not valid: {what}"), 32)
            }
        })?;
        if created {
            store_created(&pmem, &superblock, path)?;
        }
        // Not before the superblock is there: a mark would be in the way of making a pool anew.
        JournalFile::keep_mark(&pmem, &files)?;
        let clean = superblock.closing == Closing::Clean;
        let closed_words = superblock.closed_words();
        let closed_totals = superblock.closed_totals();
        let missing = missing(&superblock, created, pmem.medium(), &*environment, options)?;
        journal.refuse_loss(&superblock, &files, options)?;
        if pmem.journal().is_none() && !options.read_only {
            journal.release_mark(&files)?;
        }
        let blocks = superblock.segments.saturating_mul(map.blocks_per_segment);
        let used = used_blocks(&pmem, blocks)?;
        let leftovers = Leftovers::find(&files, options, journal.was_open, used);
        let segments = map_segments(&pmem, &files, &map, &superblock, leftovers, options)?;
        storage::ensure_at_open(&pmem, &files, &map, &segments, used)?;
        let parts = Parts {
            files,
            superblock,
            map,
            segments,
            used,
            was_clean: clean,
            closed_words,
            closed_totals,
            has_lost_journal: journal.loss().is_some(),
            has_leftovers: leftovers.is_some(),
        };
        let pool = Self::assemble(pmem, environment, options, parts);
        if let Some(what) = missing {
            let copy = copy_of(&pool.pmem, &pool.superblock());
            pool.note_loss(copy.offset() + CLOSING_AT, what);
        }
        let journal_loss = journal.loss().cloned();
        if let Some(loss) = &journal_loss {
            pool.note_loss(JOURNAL_MARK_AT[0], &loss.what);
        }
        Ok((pool, Opened { created, clean, journal_loss }))
    }

    /// The open pool, of what was found or made.
    fn assemble(
        pmem: P,
        environment: Arc<dyn Environment>,
        options: &PoolOptions,
        parts: Parts,
    ) -> Self {
        let Parts {
            files,
            superblock,
            map,
            segments,
            used,
            was_clean,
            closed_words,
            closed_totals,
            has_lost_journal,
            has_leftovers,
        } = parts;
        let blocks_max = options
            .capacity_bytes
            .or(options.anonymous_bytes)
            .map_or(BlockMap::BLOCKS_MAX, |bytes| bytes / map.block_bytes)
            .min(files.blocks_max(&map));
        let is_journaled = pmem.journal().is_some();
        let blocks_in_memory = super::growth::blocks_in_memory(&*environment, map.block_bytes);
        Self {
            pmem,
            environment,
            map,
            read_only: options.read_only,
            files,
            is_journaled,
            is_incomplete: AtomicBool::new(options.incomplete),
            superblock: Mutex::new(superblock),
            growth: Mutex::new(Growth { segments, blocks_max, filled: used }),
            hand_out: Mutex::new(AllocationLimits {
                blocks_max,
                held: 0,
                reserve: Reserve::default(),
                fresh_emptied: Fenced::default(),
            }),
            free_runs: Mutex::default(),
            batch_runs: Mutex::default(),
            ahead: Ahead::new(options, map.block_bytes),
            keeps_storage: options.populate_at_open,
            has_asked_for_storage: AtomicBool::new(false),
            keeps_least_ready: AtomicBool::new(false),
            blocks_in_memory,
            was_clean,
            has_changes: AtomicBool::new(false),
            closed_words,
            closed_totals,
            has_lost_journal,
            has_leftovers,
            losses: LossLog::default(),
            background: OnceLock::new(),
            // Storage beyond the used blocks may or may not be allocated: doing it again is free.
            ready: AtomicU64::new(used),
            used: AtomicU64::new(used),
        }
    }

    /// Marks the pool as not closed in order, before the first change and after the last reason to
    /// refuse it that has nothing to do with its records. One that was not closed in order keeps its
    /// boot id, and so the mark of a power loss, until [`mark_recovered`](Self::mark_recovered). Until then the totals of
    /// closing stay as well: an opening that fails or is interrupted must not end the comparison with them.
    ///
    /// # Errors
    /// When a plain file cannot be synced, or the journal of an earlier opening not removed.
    pub(crate) fn mark_open(&self) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        self.write_back_found();
        let boot_id = self.environment.boot_id();
        self.change_superblock(|superblock| {
            superblock.closed_words = [0; CLOSED_WORDS];
            if superblock.closing != Closing::Open {
                superblock.boot_id = boot_id;
                superblock.closing = self.open_state();
            }
        });
        // In both copies: one of them alone must not say any more that the pool is closed in order.
        self.change_superblock(|_| {});
        if !self.is_journaled {
            self.remove_leftovers_without_journal()?;
        }
        if !self.is_journaled && self.pmem.medium() == Medium::File {
            // Before anything else is written: the kernel keeps no order.
            self.sync()?;
        }
        self.remove_old_journal()
    }

    /// Every later opening keeps keys in their order. Not where the pool is open for reading only.
    ///
    /// # Durability
    /// As that of the next write.
    ///
    /// # Cost
    /// A change of the superblock, if it does not say so already.
    pub(crate) fn keep_order(&self) {
        if !self.read_only && !self.superblock().is_ordered {
            self.change_superblock(|superblock| superblock.is_ordered = true);
        }
    }

    /// Makes the superblock in force and the used-blocks words durable. A process that was killed may have
    /// stored them without a fence, and the other copy is about to be overwritten. From here on both words say what
    /// was found: one of them may be damaged, or not have been changed when a crash came.
    fn write_back_found(&self) {
        let used = self.used_blocks();
        let is_said = |at| number_at(&self.pmem, at) == Some(used);
        let is_said = USED_BLOCKS_AT.into_iter().all(is_said);
        if self.is_journaled && is_said {
            return;
        }
        self.pmem.flush(copy_of(&self.pmem, &self.superblock()), sites::FOUND);
        if is_said {
            for at in USED_BLOCKS_AT {
                self.pmem.flush(self.extent(at, 8), sites::FOUND);
            }
        } else {
            store_used(&self.pmem, used, sites::FOUND);
        }
        self.pmem.fence(sites::FOUND);
    }

    /// What the superblock says while the pool is open and in order.
    fn open_state(&self) -> Closing {
        match self.is_incomplete.load(Ordering::Acquire) {
            true => Closing::Incomplete,
            false if self.is_journaled => Closing::OpenJournaled,
            false => Closing::Open,
        }
    }

    /// Ties the pool to this start of the machine: its records are in order, and were compared with what it held when it
    /// was closed, if it was.
    ///
    /// # Errors
    /// When the mark of a journal that had lost changes cannot be written.
    ///
    /// # Durability
    /// Durable on return, but where the medium needs a sync. A crash before leaves the totals to be compared.
    ///
    /// # Cost
    /// Up to 2 changes of the superblock, of a pool that was closed in order; none where it says so already.
    pub(crate) fn mark_recovered(&self) -> Result<()> {
        let boot_id = self.environment.boot_id();
        let superblock = self.superblock();
        let has_totals = superblock.totals != Totals::default();
        let is_marked = superblock.boot_id == boot_id && superblock.closing == self.open_state();
        if !self.read_only && (!is_marked || has_totals) {
            let mark = |superblock: &mut Superblock| {
                superblock.boot_id = boot_id;
                superblock.closing = self.open_state();
                superblock.totals = Totals::default();
            };
            self.change_superblock(mark);
            if has_totals {
                // In both copies: records are about to change.
                self.change_superblock(mark);
            }
        }
        self.end_journal_loss()?;
        self.remove_leftovers_of_runs()?;
        if let Some(journal) = self.pmem.journal() {
            journal.forget();
        }
        Ok(())
    }
}

/// Stores the superblock of a new pool.
fn store_created<P: Pmem>(pmem: &P, superblock: &Superblock, path: &Path) -> Result<()> {
    store_new(pmem, superblock);
    // A segment beside a superblock that is blank would be taken for damage.
    let written_back = pmem.journal().map_or(Ok(()), |journal| journal.checkpoint());
    written_back.map_err(Error::io("create", path))
}

/// What an open pool is made of.
struct Parts {
    files: PoolFiles,
    superblock: Superblock,
    map: BlockMap,
    segments: Vec<Section>,
    /// Blocks in use.
    used: u64,
    was_clean: bool,
    closed_words: [u64; CLOSED_WORDS],
    closed_totals: Option<Totals>,
    has_lost_journal: bool,
    has_leftovers: bool,
}

/// Where blocks lie in a pool of these sizes; what is wrong with them, where there can be no such pool.
fn block_map(files: &PoolFiles, geometry: &PoolGeometry) -> Result<BlockMap, String> {
    geometry.validate()?;
    if let Some(device) = &files.device {
        device.check_segment_bytes(geometry.segment_bytes)?;
    }
    BlockMap::new(files.superblock_bytes(), geometry).ok_or_else(|| {
        format!("a segment of {} bytes has no room for a block", geometry.segment_bytes)
    })
}

/// What a new pool is to be.
pub(crate) struct NewPool {
    pub(crate) superblock: Superblock,
    /// The length of segments was asked for: it is not fitted to the device.
    pub(crate) is_segment_fixed: bool,
}

impl NewPool {
    fn fitted(self, files: &PoolFiles) -> Superblock {
        let mut superblock = self.superblock;
        if let Some(device) = files.device.as_ref().filter(|_| !self.is_segment_fixed) {
            let segment_bytes = &mut superblock.geometry.segment_bytes;
            *segment_bytes = device.segment_bytes_up_to(*segment_bytes);
        }
        superblock
    }
}

/// Maps the superblock's file, with a journal where there is to be one; the superblock, and whether the
/// pool is yet to be made with it.
fn map_superblock<P: Pmem>(
    pmem: &P,
    files: &PoolFiles,
    options: &PoolOptions,
    journal: &mut JournalFile,
    new: impl FnOnce() -> Result<Superblock>,
) -> Result<(Superblock, bool)> {
    if let Some(device) = &files.device {
        return map_superblock_of_device(pmem, files, device, options, new);
    }
    let path = files.superblock_path();
    let map = |file: &Arc<dyn File>| pmem.map(0, file, 0, FILE_BYTES).map_err(cannot_map(&path));
    if options.anonymous_bytes.is_some() {
        let file: Arc<dyn File> = Arc::new(AnonymousFile::new(FILE_BYTES));
        map(&file)?;
        return Ok((new()?, true));
    }
    let exists = files.exists(&path)?;
    let has_segments = files.has_segments()?;
    if !exists && has_segments {
        let reason = "its file `superblock` is missing: put it back".to_owned();
        return Err(Error::NotAStore { path: files.path.clone(), reason });
    }
    // A file without a byte: creation was interrupted before it had its size.
    if !exists || !has_segments && files.is_empty(&path)? {
        if !options.create || options.read_only {
            return Err(Error::NotFound { path: files.path.clone() });
        }
        let superblock = new()?;
        let file = make_superblock_file(files, &path, exists)?;
        if JournalFile::is_wanted(&*file, options)? {
            journal.take_into_use(pmem, files, options, superblock.pool_id)?;
        }
        map(&file)?;
        return Ok((superblock, true));
    }
    let file = files.open_sized(&path, FILE_BYTES, options.read_only)?;
    files.hold(&path, &file);
    let ensure = || {
        let mapped = Mapped { file: &file, path: &path, at: 0 };
        storage::ensure(pmem, &mapped, 0..FILE_BYTES)
    };
    let find = |word: &dyn Fn(u64) -> u64| {
        let found = find_superblock(&|step| pmem.skips(step), word, !has_segments)?;
        let (superblock, created) = found_or_new(found, files, options, new)?;
        if created {
            // The process that made the file may have been killed before it synced it.
            files.sync_created(&path, &*file)?;
            files.sync_parents()?;
        }
        Ok((superblock, created))
    };
    if !JournalFile::is_wanted(&*file, options)? {
        map(&file)?;
        ensure()?;
        return find(&|at| pmem.load_u64(at));
    }
    // A journal is made for a known pool, and before anything is mapped.
    let bytes = read_words(&*file).map_err(Error::io("read", &path))?;
    let (superblock, created) = find(&|at| bytes[(at / 8) as usize])?;
    power_lost(&superblock, Medium::File, &*files.environment, options)?;
    journal.refuse_loss(&superblock, files, options)?;
    journal.take_into_use(pmem, files, options, superblock.pool_id)?;
    file.sync().map_err(Error::io("sync", &path))?;
    map(&file)?;
    ensure()?;
    Ok((superblock, created))
}

/// Makes the file of the superblock, in place of one without a byte where one `exists`, and all that leads to it
/// durable.
fn make_superblock_file(files: &PoolFiles, path: &Path, exists: bool) -> Result<Arc<dyn File>> {
    if exists {
        files.remove_orphan(path, |file| Ok(file.length()? == 0))?;
    }
    let file = files.create_sized(path, 0, FILE_BYTES)?;
    lock_superblock(&*file, path, OpenMode::ReadWrite)?;
    files.hold(path, &file);
    files.sync_parents()?;
    Ok(file)
}

/// As [`map_superblock`], on a device: one that is all zeros, or was left so by an interrupted
/// creation, is free for a new pool.
fn map_superblock_of_device<P: Pmem>(
    pmem: &P,
    files: &PoolFiles,
    device: &Device,
    options: &PoolOptions,
    new: impl FnOnce() -> Result<Superblock>,
) -> Result<(Superblock, bool)> {
    let length = device.superblock_bytes();
    pmem.map(0, &device.file, 0, length).map_err(Error::io("map", &files.path))?;
    let (skips, word) = (|step| pmem.skips(step), |at| pmem.load_u64(at));
    if magic_at(&word).is_none() && !is_blank(&word) {
        return Err(device.foreign());
    }
    found_or_new(find_superblock(&skips, &word, true)?, files, options, new)
}

/// The superblock that was found, or the one of a new pool, and whether it is new. Nothing to be found
/// means that creation was interrupted before the superblock was whole.
fn found_or_new(
    found: Option<Superblock>,
    files: &PoolFiles,
    options: &PoolOptions,
    new: impl FnOnce() -> Result<Superblock>,
) -> Result<(Superblock, bool)> {
    match found {
        Some(Superblock { closing: Closing::Incomplete, .. })
            if !(options.salvage && options.read_only) =>
        {
            Err(Error::Incomplete { path: files.path.clone() })
        }
        Some(superblock) => Ok((superblock, false)),
        None if !options.create || options.read_only => {
            Err(Error::NotFound { path: files.path.clone() })
        }
        None => Ok((new()?, true)),
    }
}

/// What a pool lacks as a whole that is opened all the same, because the options say to salvage.
///
/// # Errors
/// As [`power_lost`].
fn missing(
    superblock: &Superblock,
    created: bool,
    medium: Medium,
    environment: &dyn Environment,
    options: &PoolOptions,
) -> Result<Option<&'static str>> {
    if power_lost(superblock, medium, environment, options)? {
        return Ok(Some("the machine went down while the store was open: writes may be missing"));
    }
    let is_part = superblock.closing == Closing::Incomplete && !created;
    Ok(is_part
        .then_some("the store is a backup that was interrupted: it has a part of the records"))
}

/// Whether the machine went down under a store, where that can have torn it.
///
/// # Errors
/// `PowerLost` if so, unless the options say to salvage.
fn power_lost(
    superblock: &Superblock,
    medium: Medium,
    environment: &dyn Environment,
    options: &PoolOptions,
) -> Result<bool> {
    let lost = superblock.closing == Closing::Open
        && superblock.boot_id != 0
        && superblock.boot_id != environment.boot_id();
    let is_torn = lost && !medium.is_persistent_memory();
    if is_torn && !options.salvage {
        return Err(Error::PowerLost { medium: medium.to_string() });
    }
    Ok(is_torn)
}

fn map_segments<P: Pmem>(
    pmem: &P,
    files: &PoolFiles,
    map: &BlockMap,
    superblock: &Superblock,
    leftovers: Option<Leftovers>,
    options: &PoolOptions,
) -> Result<Vec<Section>> {
    let open = |index| files.open_segment(index, map.segment_bytes, options.read_only);
    let segments: Vec<_> = (0..superblock.segments).map(open).collect::<Result<_>>()?;
    if let Some(leftovers) = leftovers {
        leftovers.remove(files, map, superblock.pool_id, &segments)?;
    }
    for (index, section) in (0..).zip(&segments) {
        let at = map.base + index * map.segment_bytes;
        pmem.map(at, &section.file, section.offset, map.segment_bytes)
            .map_err(cannot_map(&files.segment_path(index)))?;
        if files.device.is_none() {
            let path = files.segment_path(index);
            let mapped = Mapped { file: &section.file, path: &path, at };
            storage::ensure(pmem, &mapped, map.header_in_segment()..map.segment_bytes)?;
        }
        let header = at + map.header_in_segment();
        let mut words = [0; segment::WORDS];
        for (number, word) in words.iter_mut().enumerate() {
            *word = pmem.load_u64(header + 8 * number as u64);
        }
        segment::check(&words, superblock.pool_id, index, header)?;
        let is_dax = pmem.medium() == Medium::FsDax;
        if pmem.journal().is_some() || leftovers.is_some() || is_dax && !options.read_only {
            // A process that wrote without a journal may have left the kernel work to do, and one that was killed holes.
            section.file.sync().map_err(Error::io("sync", &files.segment_path(index)))?;
        }
    }
    Ok(segments)
}

/// Blocks in use, of so many: what the higher one of the two words says. Either one alone is enough.
fn used_blocks<P: Pmem>(pmem: &P, blocks: u64) -> Result<u64> {
    if pmem.skips(steps::USED_BLOCKS_CHECK) {
        let unchecked = u64::from(pmem.load_u64(USED_BLOCKS_AT[0]) as u32);
        return Ok(if unchecked <= blocks { unchecked } else { 0 });
    }
    let numbers = USED_BLOCKS_AT.map(|at| {
        let number = number_at(pmem, at).filter(|&number| number <= blocks);
        if number.is_none() {
            log::warn!("damaged at byte {at} of the pool: the number of used blocks is not valid");
        }
        number
    });
    let [at, _] = USED_BLOCKS_AT;
    let higher = numbers.into_iter().flatten().max();
    higher.ok_or_else(|| Error::corrupted("the number of used blocks is not valid", at))
}

/// What one of the words says.
fn number_at<P: Pmem>(pmem: &P, at: u64) -> Option<u64> {
    checked_word::decode_at(pmem.load_u64(at), at).map(u64::from)
}
