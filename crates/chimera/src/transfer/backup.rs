//! [`Db::backup`]: a new store with the records of an open one.
//!
//! # Why there is no second name
//! A backup is made in its place and not under another name first. It says in its superblock that it lacks
//! records, and opening it is refused for that reason, until everything is durable. The word that says
//! otherwise is one atomic update of the superblock, like any other. Renaming a directory would need a place
//! beside it, which a mount point and a DAX device do not have, and one more operation that every
//! environment has to do right through a power loss. This way the argument is that of the superblock.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use chimera_pmem::{Environment, Hardware, Pmem};

use crate::db::Db;
use crate::engine::Options;
use crate::types::durability::Durability;
use crate::types::error::{Error, Result};
use crate::types::progress::Progress;
use crate::types::stream::BackupReport;

/// How far ahead of use the new store takes storage.
const AHEAD_BYTES: u64 = 4 << 20;
/// Progress is reported once for so many records.
const PROGRESS_RECORDS: u64 = 256;

/// How a backup is made.
#[derive(Clone, Default)]
#[must_use]
pub struct BackupOptions {
    progress: Option<Progress>,
}

impl BackupOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Called now and then with (records copied, records of the store).
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl fmt::Debug for BackupOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupOptions").finish_non_exhaustive()
    }
}

impl Db {
    /// Makes a new store at `path`, where nothing is yet, of the same engine, sizes, layout and geometry,
    /// with the records of this one. Other sessions may go on. As with [`export`](Self::export), a key
    /// that is there from beginning to end is contained exactly once, with a value that it has meanwhile,
    /// whole; the backup is not of one moment.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`]; [`Error::Corrupted`] for a damaged record of this store, which one that was opened
    /// with salvage leaves out, as [`BackupReport::losses`] says; whatever keeps the new one from being made. The store at `path` then stays incomplete.
    ///
    /// # Durability
    /// On return the backup is as durable as its medium can. Until then, also after a power loss, opening it
    /// is [`Error::Incomplete`].
    ///
    /// # Cost
    /// Reads every record once and puts it once, in one thread; the index of the new store in DRAM.
    pub fn backup(&self, path: impl AsRef<Path>, options: &BackupOptions) -> Result<BackupReport> {
        self.refuse_forked()?;
        let path = path.as_ref();
        let pmem = Hardware::new(Options::new().huge_pages(false).hardware_options())
            .map_err(Error::io("reserve address space for", path))?;
        let environment = self.pool().environment.clone();
        self.backup_on(pmem, &environment, path, options)
    }
}

impl<P: Pmem> Db<P> {
    /// As [`backup`](Db::backup), on a given backend and environment.
    ///
    /// # Errors
    /// As [`backup`](Db::backup).
    #[doc(hidden)]
    pub fn backup_on<Q: Pmem>(
        &self,
        pmem: Q,
        environment: &Arc<dyn Environment>,
        path: impl AsRef<Path>,
        options: &BackupOptions,
    ) -> Result<BackupReport> {
        self.refuse_forked()?;
        let path = path.as_ref();
        refuse_what_is_there(&**environment, path)?;
        let copy = Db::open_on(pmem, environment, path, &self.options_of_a_copy())?;
        if self.pool().superblock().is_ordered {
            copy.pool().keep_order();
        }
        let records = self.copy_records(&copy, options)?;
        let bytes = copy.stats().pmem_bytes;
        copy.complete()?;
        Ok(BackupReport { records, bytes, losses: self.losses() })
    }

    /// A store like this one, that is made from nothing and durable only once it is complete.
    fn options_of_a_copy(&self) -> Options {
        let mut options = self
            .options_for_copy()
            .durability(Durability::Process)
            .huge_pages(false)
            .populate_ahead_bytes(AHEAD_BYTES)
            .reclaim_percent(0);
        options.pool.incomplete = true;
        options
    }

    fn copy_records<Q: Pmem>(&self, copy: &Db<Q>, options: &BackupOptions) -> Result<u64> {
        let mut session = copy.session();
        let (whole, mut copied, mut failure) = (self.len(), 0, None);
        let report = |copied: u64| {
            if let Some(progress) = &options.progress {
                progress(copied, whole.max(copied));
            }
        };
        self.list(0, |record| {
            failure = session.put(record.key, record.value).err();
            copied += 1;
            if copied % PROGRESS_RECORDS == 0 {
                report(copied);
            }
            failure.is_none()
        })?;
        report(copied);
        failure.map_or(Ok(copied), Err)
    }
}

/// Whether a directory that holds something is at `path`. A device is looked at when it is opened.
fn refuse_what_is_there(environment: &dyn Environment, path: &Path) -> Result<()> {
    if environment.is_directory(path).map_err(Error::io("look at", path))? != Some(true) {
        return Ok(());
    }
    match environment.list(path).map_err(Error::io("list", path))? {
        names if names.is_empty() => Ok(()),
        _ => Err(Error::AlreadyExists { path: path.to_owned() }),
    }
}
