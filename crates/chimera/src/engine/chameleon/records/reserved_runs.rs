//! Two runs of the log that are reserved in a pool that is nearly full: one for tombstones, one for records that are
//! [collected](super::super::collector). Otherwise both are runs like those of sessions.

use chimera_pmem::Pmem;

use super::Records;
use crate::records::storage_log::{Appended, Appender, NewRecord, StorageLog};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::error::Result;

/// Who appends to runs that are reserved.
pub(super) struct ReservedRuns {
    tombstones: Mutex<Appender>,
    copies: Mutex<Appender>,
}

impl ReservedRuns {
    pub(super) fn new<P: Pmem>(log: &StorageLog<P>) -> Self {
        let [tombstones, copies] = [log.begin_keeper(), log.begin_keeper()].map(Mutex::new);
        Self { tombstones, copies }
    }
}

impl<P: Pmem> Records<P> {
    fn lock_reserved<'a>(&self, appender: &'a Mutex<Appender>) -> MutexGuard<'a, Appender> {
        lock_relaxing(appender, &**self.core.environment())
    }

    /// Takes both runs, unless they are there. Whether they are.
    pub(crate) fn reserve_runs(&self) -> bool {
        let appenders = [&self.reserved.tombstones, &self.reserved.copies];
        let are_reserved =
            appenders.map(|appender| self.log.hold(&mut self.lock_reserved(appender)).is_ok());
        are_reserved == [true, true]
    }

    /// Leaves both runs for others.
    pub(crate) fn leave_runs(&self) {
        self.leave(&self.reserved.tombstones);
        self.leave(&self.reserved.copies);
    }

    /// Leaves runs that have hardly any room, so that they can be freed.
    pub(crate) fn leave_full_runs(&self) {
        for appender in [&self.reserved.tombstones, &self.reserved.copies] {
            if self.lock_reserved(appender).room() < self.run_bytes / 4 {
                self.leave(appender);
            }
        }
    }

    /// Leaves the run that records were collected to for others.
    pub(crate) fn leave_copies(&self) {
        self.leave(&self.reserved.copies);
    }

    fn leave(&self, appender: &Mutex<Appender>) {
        let mut appender = self.lock_reserved(appender);
        self.log.end(&mut appender);
        *appender = self.log.begin_keeper();
    }

    /// Appends a tombstone where the session that `appender` is of has no room.
    ///
    /// # Errors
    /// `PoolFull` when what is reserved is used up.
    #[cold]
    pub(crate) fn append_tombstone(
        &self,
        appender: &mut Appender,
        record: &NewRecord<'_>,
    ) -> Result<Appended> {
        // A session's records are durable in their order, and damage that looks like an end takes the last ones alone.
        self.log.certify(appender);
        let mut reserved = self.lock_reserved(&self.reserved.tombstones);
        let appended = self.log.append(&mut reserved, record)?;
        // What the session appends elsewhere comes after it.
        self.log.certify(&mut reserved);
        Ok(appended)
    }

    /// Appends a record that is collected.
    pub(crate) fn append_copy(&self, record: &NewRecord<'_>) -> Result<Appended> {
        self.log.append(&mut self.lock_reserved(&self.reserved.copies), record)
    }

    /// Makes what was collected certain, so that the records it came from may go.
    pub(crate) fn certify_copies(&self) {
        self.log.certify(&mut self.lock_reserved(&self.reserved.copies));
    }

    /// Bytes of the runs that were taken for records that are collected, since this was asked last.
    pub(crate) fn taken_for_copies(&self) -> u64 {
        self.lock_reserved(&self.reserved.copies).take_taken_bytes()
    }

    /// Bytes of records that can be collected for certain.
    pub(crate) fn room_for_copies(&self) -> u64 {
        self.lock_reserved(&self.reserved.copies).room()
    }
}
