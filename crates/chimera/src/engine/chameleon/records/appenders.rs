//! Who appends to the log to make room: tombstones of sessions that find no run, and records that are
//! [collected](super::super::collector). Their runs may be of the pool's [reserve](crate::pool::Reserve).

use chimera_pmem::Pmem;

use super::Records;
use crate::records::storage_log::{Appended, Appender, NewRecord};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::error::Result;

impl<P: Pmem> Records<P> {
    fn lock_appender<'a>(&self, appender: &'a Mutex<Appender>) -> MutexGuard<'a, Appender> {
        lock_relaxing(appender, &**self.core.environment())
    }

    /// Leaves both runs for others.
    pub(crate) fn leave_runs(&self) {
        self.leave(&self.appenders.tombstones);
        self.leave(&self.appenders.copies);
    }

    /// Leaves runs that have hardly any room, so that they can be freed.
    pub(crate) fn leave_full_runs(&self) {
        for appender in [&self.appenders.tombstones, &self.appenders.copies] {
            if self.lock_appender(appender).room() < self.run_bytes / 4 {
                self.leave(appender);
            }
        }
    }

    /// Leaves the run that records were collected to for others.
    pub(crate) fn leave_copies(&self) {
        self.leave(&self.appenders.copies);
    }

    fn leave(&self, appender: &Mutex<Appender>) {
        let mut appender = self.lock_appender(appender);
        self.log.end(&mut appender);
    }

    /// Appends a tombstone where the session that `appender` is of has no room.
    ///
    /// # Errors
    /// `PoolFull` when the reserve is used up.
    #[cold]
    pub(crate) fn append_tombstone(
        &self,
        appender: &mut Appender,
        record: &NewRecord<'_>,
    ) -> Result<Appended> {
        // A session's records are durable in their order, and damage that looks like an end takes the last ones alone.
        self.log.certify(appender);
        let mut reserved = self.lock_appender(&self.appenders.tombstones);
        let appended = self.log.append(&mut reserved, record)?;
        // What the session appends elsewhere comes after it.
        self.log.certify(&mut reserved);
        Ok(appended)
    }

    /// Appends a record that is collected.
    pub(crate) fn append_copy(&self, record: &NewRecord<'_>) -> Result<Appended> {
        self.log.append(&mut self.lock_appender(&self.appenders.copies), record)
    }

    /// Makes what was collected certain, so that the records it came from may go.
    pub(crate) fn certify_copies(&self) {
        self.log.certify(&mut self.lock_appender(&self.appenders.copies));
    }

    /// Bytes of the runs that were taken for records that are collected, since this was asked last.
    pub(crate) fn taken_for_copies(&self) -> u64 {
        self.lock_appender(&self.appenders.copies).take_taken_bytes()
    }

    /// Makes sure that so many bytes of records can be collected, if there is a run for them. Whether they can.
    pub(crate) fn hold_room_for_copies(&self, bytes: u64) -> bool {
        let mut copies = self.lock_appender(&self.appenders.copies);
        if copies.room() < bytes {
            // Others fill it up.
            self.log.end(&mut copies);
        }
        self.log.hold(&mut copies, bytes).is_ok()
    }
}
