//! The pool's journal: a file beside the others that makes a plain file system power-safe.
//!
//! # Protocol
//! - **Open**: what the journal holds is written to the pool's files, these are synced, then the journal
//!   is emptied. Read-only, it is shown over the files' content in memory instead.
//! - With `Immediate` or `Group` durability on a plain file system the journal is then used, or made:
//!   durable, with its name, before anything is mapped.
//! - Otherwise it is removed, but only after the superblock says durably that the pool is open without
//!   one ([`Closing::Open`](super::Closing)).
//! - **Close**: everything is written back to the pool's files, and the journal marked as closed.
//! - While a journal is in use the superblock's file says so in a [`Mark`], which the journal's own file cannot undo: a
//!   journal that is missing, blank, another one or of an earlier moment is damage.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use chimera_pmem::environment::{File, OpenMode};
use chimera_pmem::journal::{
    Contents, Damage, Journal, Lines, Mark, MarkState, NewLines, OtherVersion, SyncPolicy,
    first_capacity,
};
use chimera_pmem::{Medium, Pmem};
use zerocopy::IntoBytes;

use super::copies::{find_superblock, read_words};
use super::files::{JOURNAL, PoolFiles, full_or_io};
use super::superblock::FILE_BYTES;
use super::{BlockMap, Closing, JOURNAL_MARK_AT, Pool, PoolOptions, Superblock};
use crate::types::durability::Durability;
use crate::types::error::{Error, Result};

impl PoolFiles {
    fn journal_path(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }
}

/// What was found in place of a journal.
#[derive(Default)]
pub(super) struct JournalFile {
    /// The file, if there is one.
    file: Option<Arc<dyn File>>,
    /// What is in it; none when it never came into use, or when damage is to be ignored.
    contents: Option<Contents>,
    /// The pool it belonged to when it was found.
    pool_id: Option<u64>,
    /// What the pool says of the journal that was in use last.
    kept: Option<MarkState>,
    /// What is lost of it, where that is to be ignored.
    loss: Option<Damage>,
    /// The pool says that changes were lost.
    is_kept_as_lost: bool,
    /// What is lost is to be ignored.
    salvages: bool,
    /// It was in use and was not closed, as far as is known: durable before its first entry, and until the next one is in use.
    pub(super) was_open: bool,
}

impl JournalFile {
    /// Looks for a journal and reads it.
    ///
    /// # Errors
    /// `Corrupted` when it is damaged, unless the options say to salvage; `OlderFormat`, `NewerFormat`.
    pub(super) fn find(files: &PoolFiles, options: &PoolOptions) -> Result<Self> {
        let mut found = Self { salvages: options.salvage, ..Self::default() };
        if options.anonymous_bytes.is_some() || files.device.is_some() {
            return Ok(found);
        }
        match read_mark(files)? {
            Some((_, Err(error))) => {
                let at = JOURNAL_MARK_AT[0];
                found.lose(options, damage_of_all("the file `superblock`", &error), at)?;
            }
            Some((mark, Ok(kept))) => {
                found.kept = kept;
                found.was_open = matches!(kept, Some(MarkState::Used { .. }));
                if mark.is_lost() {
                    found.is_kept_as_lost = true;
                    let what = "changes of the file `journal` were lost, and no opening with salvage has ended since";
                    found.lose(options, loss_of(what), JOURNAL_MARK_AT[0])?;
                }
            }
            None => {}
        }
        let path = files.journal_path();
        let mode = if options.read_only { OpenMode::Read } else { OpenMode::ReadWrite };
        let file = match files.open(&path, mode) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            other => other.map_err(Error::io("open", &path))?,
        };
        match read_contents(&*file, files, found.salvages) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                found.lose(options, damage_of_all("the file `journal`", &error), 0)?;
            }
            Err(error) => {
                return Err(
                    other_version(&error).unwrap_or_else(|| Error::io("read", &path)(error))
                );
            }
            Ok(contents) => found.contents = contents,
        }
        found.file = Some(file);
        found.was_open = found.loss.is_some()
            || found.contents.as_ref().is_none_or(|contents| !contents.is_closed());
        found.pool_id = found.contents.as_ref().map(Contents::pool_id);
        found.judge(options)?;
        Ok(found)
    }

    /// Whether what was found is all that should be there.
    fn judge(&mut self, options: &PoolOptions) -> Result<()> {
        let Some(contents) = &mut self.contents else { return Ok(()) };
        let mut loss = contents.damage().cloned();
        if let Err(other) = self.kept.map_or(Ok(()), |kept| contents.compare(kept)) {
            loss = Some(loss.unwrap_or(other));
        }
        loss.map_or(Ok(()), |mut loss| {
            loss.what = format!("the file `journal`: {}", loss.what);
            self.lose(options, loss, 0)
        })
    }

    /// Something is damaged, as byte `at` of the pool shows: an error, or noted where that is to be ignored.
    fn lose(&mut self, options: &PoolOptions, loss: Damage, at: u64) -> Result<()> {
        if !options.salvage {
            return Err(Error::corrupted(loss.what, at));
        }
        let Damage { what, entries, bytes, .. } = &loss;
        log::warn!("{what}; of its changes {entries} or more are lost, in {bytes} bytes or more");
        self.loss.get_or_insert(loss);
        self.was_open = true;
        Ok(())
    }

    /// What is lost of the journal, where that was to be ignored.
    pub(super) fn loss(&self) -> Option<&Damage> {
        self.loss.as_ref()
    }

    /// Writes what the journal holds back to the files, or, for reading only, shows it over them.
    ///
    /// # Errors
    /// `Corrupted` when it does not belong to this pool; when a file is missing or cannot be written.
    pub(super) fn replay<P: Pmem>(
        &mut self,
        pmem: &P,
        files: &PoolFiles,
        read_only: bool,
    ) -> Result<()> {
        if !read_only {
            self.keep_loss(files)?;
        }
        let (Some(file), Some(contents)) = (&self.file, &self.contents) else { return Ok(()) };
        if contents.lines().is_empty() && contents.new_lines().is_empty() {
            return Ok(());
        }
        let targets = Targets::find(files, contents, read_only)?;
        let path = files.journal_path();
        if read_only {
            // Read again, because what is shown is given away.
            let contents = read_contents(&**file, files, self.salvages);
            let contents = contents.map_err(Error::io("read", &path))?;
            let lines = contents.map(Contents::into_lines).unwrap_or_default();
            return pmem.overlay(lines).map_err(Error::io("read", &path));
        }
        // In this order: nothing is written over what the journal has before that is durable, and nothing that it names ahead of
        // an entry that a power loss could still take.
        targets.write_new(contents).map_err(Error::io("write back", &path))?;
        contents.make_durable(&**file).map_err(Error::io("sync", &path))?;
        targets.write(contents.lines()).map_err(Error::io("write back", &path))?;
        let emptied = contents.empty(&**file, files.environment.boot_id(), contents.capacity());
        emptied.map_err(Error::io("empty", &path))
    }

    /// Whether a store on this file is to have a journal.
    ///
    /// # Errors
    /// When the durability asked for cannot be had.
    pub(super) fn is_wanted(file: &dyn File, options: &PoolOptions) -> Result<bool> {
        if options.read_only {
            return Ok(false);
        }
        let medium = file.medium().map_err(|source| Error::Io {
            action: "find the medium of",
            path: PathBuf::from("superblock"),
            source,
        })?;
        Ok(policy(options.effective_durability(medium)?, medium).is_some())
    }

    /// Uses the journal that was found, or makes one, for everything mapped from now on.
    ///
    /// # Errors
    /// `PoolFull` when there is no room for it; what the files say.
    pub(super) fn take_into_use<P: Pmem>(
        &mut self,
        pmem: &P,
        files: &PoolFiles,
        options: &PoolOptions,
        pool_id: u64,
    ) -> Result<()> {
        self.keep_loss(files)?;
        let path = files.journal_path();
        let capacity_max = options.journal_bytes.unwrap_or(PoolOptions::JOURNAL_BYTES_DEFAULT);
        let is_usable = |contents: &Contents| contents.pool_id() == pool_id;
        let file = match (self.file.take(), self.contents.take().filter(is_usable)) {
            (Some(file), Some(contents)) => {
                let boot_id = files.environment.boot_id();
                let emptied = contents.empty(&*file, boot_id, first_capacity(capacity_max));
                emptied.map_err(Error::io("empty", &path))?;
                file
            }
            (old, _) => {
                if old.is_some() {
                    self.release_mark(files)?;
                    files.remove(&path).map_err(Error::io("remove", &path))?;
                }
                make_journal(files, pool_id, first_capacity(capacity_max))?
            }
        };
        files.hold(&path, &file);
        let policy = policy(options.effective_durability(Medium::File)?, Medium::File);
        let policy = policy.unwrap_or(SyncPolicy::Immediate);
        let journal = Journal::open(file, capacity_max, policy, files.environment.clone())
            .map_err(Error::io("open", &path))?;
        journal.checkpoint_every(options.checkpoint_interval);
        if let Some(bytes) = options.direct_bytes_min {
            journal.write_new_from(bytes);
        }
        if !options.takes_places {
            journal.take_no_places();
        }
        // Until the store is open and knows what its index takes.
        let half = || options.memory_budget(&*files.environment).map(|bytes| bytes / 2);
        if let Some(bytes) = options.page_limit.or_else(half) {
            journal.limit_pages(bytes);
        }
        pmem.use_journal(journal).map_err(Error::io("use", &path))
    }

    /// Says in the superblock's file that the journal of `pmem` is in use, if it has one.
    ///
    /// # Errors
    /// What the file says.
    ///
    /// # Durability
    /// Durable on return, and before anything that is appended from now on.
    pub(super) fn keep_mark<P: Pmem>(pmem: &P, files: &PoolFiles) -> Result<()> {
        let Some(journal) = pmem.journal() else { return Ok(()) };
        let path = files.superblock_path();
        let file = files.open_sized(&path, FILE_BYTES, false)?;
        let kept = Mark::read(file.clone(), JOURNAL_MARK_AT);
        let kept = kept.and_then(|(mark, _)| journal.keep_mark(mark)).and_then(|()| file.sync());
        kept.map_err(Error::io("write", &path))
    }

    /// Says in the superblock's file, durably, that the journal had lost changes, if it had: before what is left of it is
    /// emptied, removed or replaced. The pool is not opened without salvage until
    /// [`end_journal_loss`](Pool::end_journal_loss).
    ///
    /// # Errors
    /// What the file says.
    fn keep_loss(&mut self, files: &PoolFiles) -> Result<()> {
        if self.loss.is_none() || self.is_kept_as_lost {
            return Ok(());
        }
        // Where the mark itself is damaged, the journal that is there may be what was in use.
        let found = self.contents.as_ref().map(Contents::as_kept);
        let kept = self.kept.or(found).unwrap_or(MarkState::Unused);
        write_mark(files, kept, Some(true))?;
        self.is_kept_as_lost = true;
        Ok(())
    }

    /// Says in the superblock's file, durably, that no journal is in use any more: before the journal goes. What it
    /// held lies in the data files.
    ///
    /// # Errors
    /// What the file says.
    pub(super) fn release_mark(&mut self, files: &PoolFiles) -> Result<()> {
        self.keep_loss(files)?;
        if !matches!(self.kept, Some(MarkState::Used { .. })) {
            return Ok(());
        }
        self.kept = Some(MarkState::Unused);
        write_mark(files, MarkState::Unused, None)
    }

    /// Whether nothing ever said which journal is in use. It is said before the superblock says that one is.
    fn is_unmarked(&mut self, files: &PoolFiles) -> Result<bool> {
        if self.kept.is_none() {
            // A superblock that a power loss tore apart had to be written again first.
            if let Some((_, Ok(kept))) = read_mark(files)? {
                self.kept = kept;
            }
        }
        Ok(self.kept.is_none())
    }

    /// Refuses a store that needs a journal which is not there, or has nothing in it.
    ///
    /// # Errors
    /// `NotAStore`, unless the options say to salvage.
    pub(super) fn refuse_loss(
        &mut self,
        superblock: &Superblock,
        files: &PoolFiles,
        options: &PoolOptions,
    ) -> Result<()> {
        let is_journaled = superblock.closing == Closing::OpenJournaled;
        if is_journaled && self.file.is_some() && self.loss.is_none() && self.is_unmarked(files)? {
            let what = "the file `superblock`: what says which journal is in use is missing";
            return self.lose(options, loss_of(what), JOURNAL_MARK_AT[0]);
        }
        let is_marked = matches!(self.kept, Some(MarkState::Used { .. }));
        let is_needed = is_journaled || is_marked;
        if !is_needed || self.pool_id == Some(superblock.pool_id) || self.loss.is_some() {
            return Ok(());
        }
        let what = match self.file {
            Some(_) => "its file `journal` is blank",
            None => "its file `journal` is missing",
        };
        if options.salvage {
            return self.lose(options, loss_of(what), 0);
        }
        let reason = format!(
            "{what}, which holds the newest changes: put it back, or open with salvage to read what is left"
        );
        Err(Error::NotAStore { path: files.path.clone(), reason })
    }
}

/// Reads a journal, with what it names in the pool's files. With `salvage` what cannot be read there is not there.
fn read_contents(
    journal: &dyn File,
    files: &PoolFiles,
    salvage: bool,
) -> io::Result<Option<Contents>> {
    let opened: RefCell<Option<(u16, Arc<dyn File>)>> = RefCell::default();
    let read_data = |number: u16, offset: u64, into: &mut [u8]| {
        let mut opened = opened.borrow_mut();
        let file = match &*opened {
            Some((found, file)) if *found == number => file.clone(),
            _ => files.open(&data_path(files, number), OpenMode::Read)?,
        };
        *opened = Some((number, file.clone()));
        let read = file.read_at(offset, into);
        read.map_err(|error| if salvage { io::ErrorKind::NotFound.into() } else { error })
    };
    Contents::read(journal, files.environment.boot_id(), &read_data)
}

/// The data file that a journal has given this number.
fn data_path(files: &PoolFiles, number: u16) -> PathBuf {
    let segment = number.checked_sub(1);
    segment.map_or_else(|| files.superblock_path(), |index| files.segment_path(index.into()))
}

/// The mark in the superblock's file, and what it says; none where there is no store yet to be compared.
///
/// # Errors
/// `OlderFormat` and `NewerFormat`: nothing else in the directory can be judged then.
fn read_mark(files: &PoolFiles) -> Result<Option<(Mark, io::Result<Option<MarkState>>)>> {
    let path = files.superblock_path();
    let file = match files.open(&path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(Error::io("open", &path))?,
    };
    if file.length().map_err(Error::io("measure", &path))? != FILE_BYTES {
        // Whoever maps it says what is wrong.
        return Ok(None);
    }
    let words = read_words(&*file).map_err(Error::io("read", &path))?;
    match find_superblock(&|_| false, &|at| words[(at / 8) as usize], true) {
        Err(other @ (Error::OlderFormat { .. } | Error::NewerFormat { .. })) => Err(other),
        Err(_) | Ok(None) => Ok(None),
        Ok(Some(_)) => {
            Mark::read(file, JOURNAL_MARK_AT).map(Some).map_err(Error::io("read", &path))
        }
    }
}

/// Writes the mark in the superblock's file, durably; also whether changes were lost, where that is to be changed.
fn write_mark(files: &PoolFiles, kept: MarkState, is_lost: Option<bool>) -> Result<()> {
    let path = files.superblock_path();
    let file = files.open_sized(&path, FILE_BYTES, false)?;
    let mark = Mark::read(file.clone(), JOURNAL_MARK_AT);
    let kept = mark.and_then(|(mut mark, _)| {
        mark.set_lost(is_lost.unwrap_or(mark.is_lost()));
        mark.keep(kept)?;
        file.sync()
    });
    kept.map_err(Error::io("write", &path))
}

/// What is lost is not known.
fn loss_of(what: &str) -> Damage {
    Damage { what: what.to_owned(), at: 0, entries: 0, bytes: 0 }
}

/// Nothing of the journal can be read.
fn damage_of_all(file: &str, error: &io::Error) -> Damage {
    Damage { what: format!("{file}: {error}"), at: 0, entries: 0, bytes: 0 }
}

/// The error for a journal of another version, if it is that.
fn other_version(error: &io::Error) -> Option<Error> {
    let OtherVersion { found } = error.get_ref()?.downcast_ref()?;
    let (found, supported) = (*found as u32, OtherVersion::SUPPORTED as u32);
    Some(if found < supported {
        Error::OlderFormat { found, supported }
    } else {
        Error::NewerFormat { found, supported }
    })
}

/// When a journal is synced, if there is to be one.
fn policy(durability: Durability, medium: Medium) -> Option<SyncPolicy> {
    match (medium, durability) {
        (Medium::File, Durability::Immediate) => Some(SyncPolicy::Immediate),
        (Medium::File, Durability::Group { max_delay }) => Some(SyncPolicy::Group { max_delay }),
        _ => None,
    }
}

/// Makes a journal, durably.
fn make_journal(files: &PoolFiles, pool_id: u64, bytes: u64) -> Result<Arc<dyn File>> {
    let path = files.journal_path();
    let made = files.open(&path, OpenMode::CreateNew);
    let file = made.map_err(|source| full_or_io(source, "create", &path))?;
    let id = files.environment.random_u64().max(1);
    let boot_id = files.environment.boot_id();
    if let Err(source) = Journal::format(&*file, pool_id, id, bytes, boot_id) {
        let error = full_or_io(source, "allocate space in", &path);
        if let Err(error) = files.remove(&path) {
            log::warn!("cannot remove {}: {error}", path.display());
        }
        return Err(error);
    }
    files.sync_directory()?;
    Ok(file)
}

/// Whether a superblock, if it is one at all, is that of this pool.
fn is_same(found: &Result<Option<Superblock>>, pool_id: u64) -> bool {
    !matches!(found, Ok(Some(superblock)) if superblock.pool_id != pool_id)
}

/// The files of a pool that is not open yet.
struct Targets {
    superblock: Arc<dyn File>,
    segments: Vec<Arc<dyn File>>,
    segment_bytes: u64,
}

impl Targets {
    /// The files that the lines of a journal belong to, by the superblock as the journal leaves it.
    fn find(files: &PoolFiles, contents: &Contents, read_only: bool) -> Result<Self> {
        let path = files.superblock_path();
        let file = files.open_sized(&path, FILE_BYTES, read_only)?;
        let mut words = read_words(&*file).map_err(Error::io("read", &path))?;
        // What a creation has left that was interrupted is nobody's.
        let may_be_half_made = !files.has_segments()?;
        let before = find_superblock(&|_| false, &|at| words[(at / 8) as usize], may_be_half_made);
        contents.lines().put_over(0..FILE_BYTES, words.as_mut_bytes());
        let foreign = |what: &str| Error::corrupted(format!("the file `journal` {what}"), 0);
        let superblock = find_superblock(&|_| false, &|at| words[(at / 8) as usize], false)?
            .filter(|superblock| superblock.pool_id == contents.pool_id())
            .filter(|_| is_same(&before, contents.pool_id()))
            .ok_or_else(|| foreign("belongs to another pool"))?;
        let geometry = &superblock.geometry;
        let map = geometry.validate().ok().and_then(|()| BlockMap::new(FILE_BYTES, geometry));
        let map = map.ok_or_else(|| foreign("leaves a superblock whose sizes are not valid"))?;
        // Lines of one segment more can be there: a new one is written before it is in force.
        let mut segments = Vec::new();
        let of_new_lines = contents.new_lines().iter().map(|lines| lines.file).max();
        let of_new_lines = of_new_lines.map_or(0, usize::from);
        while segments.len() < of_new_lines
            || FILE_BYTES + segments.len() as u64 * map.segment_bytes < contents.lines().end()
        {
            let index = segments.len() as u64;
            if index > superblock.segments {
                return Err(foreign("names bytes beyond the end of the pool"));
            }
            let path = files.segment_path(index);
            segments.push(files.open_sized(&path, map.segment_bytes, read_only)?);
        }
        Ok(Self { superblock: file, segments, segment_bytes: map.segment_bytes })
    }

    /// Writes lines once more that lie where they belong.
    ///
    /// # Durability
    /// Durable on return.
    fn write_new(&self, contents: &Contents) -> io::Result<()> {
        if contents.new_lines().is_empty() {
            return Ok(());
        }
        let mut content = Vec::new();
        for NewLines { file, offset, length } in contents.new_lines() {
            let segment = file.checked_sub(1).map(|index| &self.segments[usize::from(index)]);
            let file = segment.unwrap_or(&self.superblock);
            content.resize(*length as usize, 0);
            file.read_at(*offset, &mut content)?;
            file.write_at(*offset, &content)?;
        }
        self.sync()
    }

    /// Writes lines where they belong.
    ///
    /// # Durability
    /// Durable on return.
    fn write(&self, lines: &Lines) -> io::Result<()> {
        lines.for_each_run(|at, bytes| {
            let mut at = at;
            let mut bytes = bytes;
            while !bytes.is_empty() {
                let (file, offset, end) = self.place(at)?;
                let (head, rest) = bytes.split_at(bytes.len().min((end - offset) as usize));
                file.write_at(offset, head)?;
                at += head.len() as u64;
                bytes = rest;
            }
            Ok(())
        })?;
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        self.superblock.sync()?;
        self.segments.iter().try_for_each(|file| file.sync())
    }

    /// The file of an offset in the pool, where in it, and where it ends.
    fn place(&self, at: u64) -> io::Result<(&dyn File, u64, u64)> {
        let Some(inside) = at.checked_sub(FILE_BYTES) else {
            return Ok((&*self.superblock, at, FILE_BYTES));
        };
        let segment = self.segments.get((inside / self.segment_bytes) as usize);
        let segment = segment.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok((&**segment, inside % self.segment_bytes, self.segment_bytes))
    }
}

impl<P: Pmem> Pool<P> {
    /// Waits until an operation may be acknowledged.
    ///
    /// # Errors
    /// When the journal has failed.
    pub(crate) fn settle(&self, journal: &Journal) -> Result<()> {
        journal.settle().map_err(Error::io("make a write durable in", &self.files.path))
    }

    /// As [`settle`](Self::settle), for an operation that only read.
    pub(crate) fn settle_read(&self, journal: &Journal) -> Result<()> {
        journal.settle_read().map_err(Error::io("make durable what was read in", &self.files.path))
    }

    /// Writes everything back to the files and marks the journal as closed.
    pub(super) fn close_journal(&self) -> Result<()> {
        let Some(journal) = self.pmem.journal() else { return Ok(()) };
        journal.close().map_err(Error::io("empty the journal of", &self.files.path))
    }

    /// The pool was salvaged: says in the superblock's file which journal is in use, in place of that it had lost changes.
    ///
    /// # Errors
    /// What the file says.
    pub(super) fn end_journal_loss(&self) -> Result<()> {
        if self.read_only || !self.has_lost_journal {
            return Ok(());
        }
        match self.pmem.journal() {
            Some(journal) => {
                let path = self.files.superblock_path();
                journal.accept_loss().map_err(Error::io("write", &path))
            }
            None => write_mark(&self.files, MarkState::Unused, Some(false)),
        }
    }

    /// Removes the journal of an earlier opening, which is empty, when this one has none. The superblock
    /// says so durably.
    pub(super) fn remove_old_journal(&self) -> Result<()> {
        let path = self.files.journal_path();
        if self.is_journaled || self.files.is_without_files() || self.files.device.is_some() {
            return Ok(());
        }
        match self.files.remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io("remove", &path)(error)),
            Ok(()) => self.files.sync_directory(),
        }
    }
}
