//! The records of all keys of a hash, as they are at one moment, and what of them is damaged.

use chimera_pmem::Pmem;

use super::Chameleon;
use super::read::agreeing;
use crate::index::Probe;
use crate::index::probing_table::Found;
use crate::types::error::{Error, Result};

/// What is said of a record that is damaged.
pub(super) const DAMAGED_RECORD: &str = "a record of the log is damaged";

impl<P: Pmem> Chameleon<P> {
    /// The records of all keys of a hash, as they are at one moment. `damaged` is told of records that are damaged. `buffer`
    /// becomes a part of the first record.
    pub(super) fn read_alike(
        &self,
        buffer: &mut Vec<u8>,
        hash: u64,
        mut damaged: impl FnMut(u64),
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let number = self.index.number_of(hash);
        let _writing = self.lock_to_look(number);
        let mut newest: Vec<(Vec<u8>, Found)> = Vec::new();
        let _: Probe<()> = self.index.probe(number, hash, |found| {
            let mut key = Vec::new();
            let record = self.log.decode(found.offset).filter(|record| {
                self.log.read_key(record, &mut key);
                self.core.hash.of(&key) == hash && self.log.is_sound(record, hash, None)
            });
            if record.is_none() {
                // Without a bypass index slots are found that others of their hash have superseded. Their records may be gone.
                if newest.is_empty() || self.index.has_bypass() {
                    damaged(found.offset);
                }
            } else if newest.iter().all(|(other, _)| *other != key) {
                newest.push((key, found));
            }
            Probe::NotThis
        })?;
        let mut records = Vec::new();
        for (key, found) in newest {
            let mut value = std::mem::take(buffer);
            match self.read_found(found, hash, &mut value) {
                // As a get does it: all of a tombstone is verified.
                Ok(()) if found.is_tombstone => *buffer = value,
                Ok(()) => records.push((key, value)),
                Err(_) => damaged(found.offset),
            }
        }
        Ok(records)
    }

    /// Reads and verifies the value of a record that the caller knows to be the right one.
    pub(super) fn read_found(&self, found: Found, hash: u64, value: &mut Vec<u8>) -> Result<()> {
        let damaged = || Error::corrupted("a record of the log is damaged", found.offset);
        let record = agreeing(self.log.decode(found.offset), found)?.ok_or_else(damaged)?;
        let summed = self.log.read_summed(&record, value);
        if self.log.is_sound(&record, hash, Some(summed)) { Ok(()) } else { Err(damaged()) }
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

    /// Whether a key of this hash that was looked for in vain is there: never. What damage has left out of a salvaged store
    /// is noted.
    #[inline]
    pub(super) fn is_missing(&self, hash: u64) -> bool {
        if self.salvages {
            self.note_lost(hash);
        }
        false
    }

    /// Notes which records of this hash a salvaged store leaves out.
    #[cold]
    fn note_lost(&self, hash: u64) {
        let note = |at| self.core.pool.note_loss(at, DAMAGED_RECORD);
        if let Err(error) = self.read_alike(&mut Vec::new(), hash, note) {
            self.core.pool.note_lost(&error, 0);
        }
    }
}
