//! [`Records`]: the log, and what its records say of slots of the index. It knows no table.
//!
//! What is appended [to make room](appenders) is here as well.

mod appenders;
mod reserve_appenders;

use chimera_pmem::Pmem;

use crate::engine::Core;
use crate::index::Probe;
use crate::index::probing_table::{Found, Slot};
use crate::records::storage_log::{Record, StorageLog};
use crate::types::error::{Error, Result};
use reserve_appenders::ReserveAppenders;

/// What is said of a record that is damaged.
pub(super) const DAMAGED_RECORD: &str = "a record of the log is damaged";

/// The log, and what every engine is built on.
pub(super) struct Records<P: Pmem> {
    core: Core<P>,
    log: StorageLog<P>,
    appenders: ReserveAppenders,
    /// Bytes of a run of the log.
    run_bytes: u64,
    /// What is damaged is passed over.
    salvages: bool,
}

/// The record of an entry. Both must say whether the key was deleted. A record of an earlier moment, which lay there before, is
/// right by its own check.
///
/// # Errors
/// `Corrupted` when they do not agree.
#[inline(always)]
fn agreeing(record: Option<Record>, found: Found) -> Result<Option<Record>> {
    match record {
        Some(record) if record.is_tombstone() != found.is_tombstone => {
            Err(Error::corrupted("a record of the log is another one than was meant", found.offset))
        }
        record => Ok(record),
    }
}

impl<P: Pmem> Records<P> {
    pub(super) fn new(
        core: Core<P>,
        log: StorageLog<P>,
        log_run_blocks: u32,
        salvages: bool,
    ) -> Self {
        let run_bytes = u64::from(log_run_blocks) * core.pool.map.block_bytes;
        Self { appenders: ReserveAppenders::new(&log), core, log, run_bytes, salvages }
    }

    #[inline(always)]
    pub(super) fn core(&self) -> &Core<P> {
        &self.core
    }

    #[inline(always)]
    pub(super) fn log(&self) -> &StorageLog<P> {
        &self.log
    }

    /// Whether what is damaged is passed over.
    #[inline(always)]
    pub(super) fn salvages(&self) -> bool {
        self.salvages
    }

    pub(super) fn run_bytes(&self) -> u64 {
        self.run_bytes
    }

    // ---- lookups -------------------------------------------------------------------------------

    /// What a get makes of an entry of its key's hash: whether the key is there. Reads the value.
    #[inline(always)]
    pub(super) fn probe_value(
        &self,
        found: Found,
        (hash, key): (u64, &[u8]),
        value: &mut Vec<u8>,
        sum: bool,
    ) -> Probe<Result<bool>> {
        let read = self.log.read(found.offset, (hash, key), value, sum);
        match read.and_then(|record| agreeing(record, found)) {
            Ok(Some(_)) => Probe::Found(Ok(!found.is_tombstone)),
            Ok(None) => Probe::NotThis,
            // A key whose value is damaged is absent, where damage is passed over: what it had before is not its value.
            Err(_) if self.salvages && self.is_of(found, hash, key) => Probe::Found(Ok(false)),
            Err(error) => self.judge(Err(error)),
        }
    }

    /// What a writer makes of an entry of its key's hash.
    #[inline(always)]
    pub(super) fn probe_key(&self, found: Found, hash: u64, key: &[u8]) -> Probe<Result<Found>> {
        let record = self.log.find(found.offset, hash, key);
        match record.and_then(|record| agreeing(record, found)) {
            Ok(Some(_)) => Probe::Found(Ok(found)),
            Ok(None) => Probe::NotThis,
            Err(error) => self.judge(Err(error)),
        }
    }

    #[cold]
    fn is_of(&self, found: Found, hash: u64, key: &[u8]) -> bool {
        matches!(self.log.find(found.offset, hash, key), Ok(Some(_)))
    }

    /// What a lookup makes of damage.
    #[cold]
    fn judge<T>(&self, outcome: Result<T>) -> Probe<Result<T>> {
        if self.salvages { Probe::NotThis } else { Probe::Found(outcome) }
    }

    /// Reads and verifies the value of a record that the caller knows to be the right one.
    pub(super) fn read_found(&self, found: Found, hash: u64, value: &mut Vec<u8>) -> Result<()> {
        let damaged = || Error::corrupted(DAMAGED_RECORD, found.offset);
        let record = agreeing(self.log.decode(found.offset), found)?.ok_or_else(damaged)?;
        let summed = self.log.read_summed(&record, value);
        if self.log.is_sound(&record, hash, Some(summed)) { Ok(()) } else { Err(damaged()) }
    }

    // ---- comparing slots -----------------------------------------------------------------------

    /// Whether the records of two slots of one hash are of one key. Where one of them is damaged they are not: then both
    /// slots stay, so that the damage is found.
    pub(super) fn is_same_key(&self, newer: Slot, older: Slot) -> bool {
        let (mut key, hash) = (Vec::new(), newer.hash);
        let Some(record) = newer.found().and_then(|found| self.log.decode(found.offset)) else {
            return false;
        };
        self.log.read_key(&record, &mut key);
        older
            .found()
            .is_some_and(|found| matches!(self.log.find(found.offset, hash, &key), Ok(Some(_))))
    }

    /// Whether an older slot of the same hash as a newer one was superseded: its record is of the same key, or not there
    /// any more. Records that are superseded by one in the levels above the last one may be gone. Their room may be written
    /// again at any time, so the older record is read once: what it is, and then whether it is of the same key, would be
    /// asked of two records.
    pub(super) fn is_superseded(&self, newer: Slot, older: Slot) -> bool {
        let (Some(older_found), Some(newer_found)) = (older.found(), newer.found()) else {
            return older.found().is_none();
        };
        let Some(key) = self.key_of_whole(older_found, older.hash) else { return true };
        matches!(self.log.find(newer_found.offset, newer.hash, &key), Ok(Some(_)))
    }

    /// Checks that a tombstone is not damaged, unless damage is passed over: nobody knows what a damaged one has deleted, and
    /// without it that would be there again.
    ///
    /// # Errors
    /// `Corrupted`.
    #[cold]
    pub(super) fn check_tombstone(&self, slot: Slot) -> Result<()> {
        let Some(found) = slot.found().filter(|found| found.is_tombstone && !self.salvages) else {
            return Ok(());
        };
        let damaged = || Error::corrupted(DAMAGED_RECORD, found.offset);
        if self.is_whole(found, slot.hash) { Ok(()) } else { Err(damaged()) }
    }

    /// Whether the records of slots are there, and sound but for their values.
    #[cold]
    pub(super) fn are_whole(&self, slots: [Slot; 2]) -> bool {
        let is_whole =
            |slot: Slot| slot.found().is_some_and(|found| self.is_whole(found, slot.hash));
        slots.into_iter().all(is_whole)
    }

    /// Whether the record of an entry is there, and sound but for its value.
    pub(super) fn is_whole(&self, found: Found, hash: u64) -> bool {
        self.key_of_whole(found, hash).is_some()
    }

    /// The key of the record of an entry, if that is there, and sound but for its value.
    pub(super) fn key_of_whole(&self, found: Found, hash: u64) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        let record = self.log.decode(found.offset)?;
        self.log.read_key(&record, &mut key);
        let is_whole = self.core.hash.of(&key) == hash && self.log.is_sound(&record, hash, None);
        is_whole.then_some(key)
    }

    // ---- what the log is told ------------------------------------------------------------------

    /// No table that is read refers to this slot's record any more, and whatever superseded it is durable.
    pub(super) fn drop_slot(&self, slot: Slot) {
        if let Some(found) = slot.found() {
            self.log.dropped(found.offset, found.bytes);
        }
    }

    /// The record of this slot is in a table, or nothing needs it to be.
    pub(super) fn tell_flushed(&self, slot: Slot) {
        if let Some(found) = slot.found() {
            self.log.flushed(found.offset);
        }
    }

    /// Whether no table had a slot of the bypass index, as its record says.
    pub(super) fn is_unflushed(&self, slot: Slot, flushed_version: u64) -> bool {
        let record = slot.found().and_then(|found| self.log.decode(found.offset));
        record.is_some_and(|record| record.version() > flushed_version)
    }

    /// Notes damage that a salvaged store leaves out.
    ///
    /// # Errors
    /// `Corrupted`, unless the store salvages.
    pub(super) fn pass_over(&self, what: &'static str, at: u64) -> Result<()> {
        if !self.salvages {
            return Err(Error::corrupted(what, at));
        }
        self.core.pool.note_loss(at, what);
        Ok(())
    }
}
