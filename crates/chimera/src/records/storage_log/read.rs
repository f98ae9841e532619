//! Reading records: without a lock. Who reads validates afterwards that no run was freed meanwhile.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::layout::{Head, KEY_AT, value_at};
use super::{StorageLog, steps};
use crate::records::checksum::Summed;
use crate::types::error::{Error, Result};

/// A record, by what the words in front of it say: they are possible, and the record lies in the pool. Nothing is
/// verified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    at: u64,
    head: Head,
}

impl Record {
    /// A put with this version, or a delete, made it.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        self.head.version
    }

    /// It says that its key was deleted.
    #[inline(always)]
    pub(crate) fn is_tombstone(&self) -> bool {
        self.head.is_tombstone
    }

    /// Its length.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.head.span()
    }
}

impl<P: Pmem> StorageLog<P> {
    /// Starts loading the first 64 bytes of a record: its head, and a key of usual length.
    #[inline]
    pub(crate) fn prefetch(&self, at: u64) {
        if let Some(head) = self.pool.pmem.check(at, CACHE_LINE) {
            self.pool.pmem.prefetch(head);
        }
    }

    /// The record at `at`. `None` when nobody wrote such a head, or the record would reach beyond the pool.
    ///
    /// # Cost
    /// The line of the head.
    #[inline]
    pub(crate) fn decode(&self, at: u64) -> Option<Record> {
        let pmem = &self.pool.pmem;
        pmem.check(at, KEY_AT)?;
        let head = Head::decode([0, 8, 16].map(|word| pmem.load_u64(at + word)))?;
        pmem.check(at, head.span())?;
        Some(Record { at, head })
    }

    /// Whether a record is one of `key`.
    #[inline]
    pub(crate) fn key_is(&self, record: &Record, key: &[u8]) -> bool {
        let stored = self.pool.extent(record.at + KEY_AT, key.len() as u64);
        record.head.key_bytes == key.len() && self.pool.pmem.compare(stored, key)
    }

    /// Reads the key of a record.
    pub(crate) fn read_key(&self, record: &Record, key: &mut Vec<u8>) {
        key.resize(record.head.key_bytes, 0);
        let from = self.pool.extent(record.at + KEY_AT, key.len() as u64);
        self.pool.pmem.read(from, key);
    }

    /// Reads the value of a record.
    #[inline]
    pub(crate) fn read_value(&self, record: &Record, value: &mut Vec<u8>) {
        value.resize(record.head.value_bytes, 0);
        self.pool.pmem.read(self.value_of(record), value);
    }

    /// As [`read_value`](Self::read_value), with the sum of what was read.
    #[inline]
    pub(crate) fn read_summed<'a>(&self, record: &Record, value: &'a mut Vec<u8>) -> Summed<'a> {
        value.resize(record.head.value_bytes, 0);
        let sum = self.pool.pmem.read_sum(self.value_of(record), 0, value);
        Summed { bytes: value, sum }
    }

    /// Whether a record is as it was written, for a key of this hash: all but its value always, the value where one is
    /// given.
    #[inline]
    pub(crate) fn is_sound(&self, record: &Record, hash: u64, value: Option<Summed<'_>>) -> bool {
        let Record { at, head } = *record;
        head.is_sound(at, hash) && value.is_none_or(|value| head.has_value(at, value))
            || self.pool.pmem.skips(steps::READ_CHECK)
    }

    /// The record at `at`, verified, if it is one of `key`, which has this hash: all but its value.
    ///
    /// # Errors
    /// `Corrupted` when the record is damaged, or its run was [freed](Self::freed).
    ///
    /// # Cost
    /// The lines of head and key.
    #[inline]
    pub(crate) fn find(&self, at: u64, hash: u64, key: &[u8]) -> Result<Option<Record>> {
        let record = self.decode(at).ok_or_else(|| damaged(at))?;
        if !self.key_is(&record, key) {
            return self.check_other(&record, hash).map(|()| None);
        }
        if self.is_sound(&record, hash, None) { Ok(Some(record)) } else { Err(damaged(at)) }
    }

    /// Reads the value of the record at `at` into `value`, if it is one of `key`, which has this hash; verifies the value
    /// only if `sum`. A tombstone's is empty.
    ///
    /// # Errors
    /// `Corrupted` when the record is damaged, or its run was [freed](Self::freed).
    ///
    /// # Cost
    /// The lines of the record.
    #[inline]
    pub(crate) fn read(
        &self,
        at: u64,
        (hash, key): (u64, &[u8]),
        value: &mut Vec<u8>,
        sum: bool,
    ) -> Result<Option<Record>> {
        let Some(record) = self.find(at, hash, key)? else { return Ok(None) };
        if !sum {
            self.read_value(&record, value);
            return Ok(Some(record));
        }
        let summed = self.read_summed(&record, value);
        if self.is_sound(&record, hash, Some(summed)) { Ok(Some(record)) } else { Err(damaged(at)) }
    }

    /// Checks that a record of another key has the same hash, and is not one whose key is damaged. Where damage looked like
    /// the end of a run, later records may lie where an entry leads to a record that is gone.
    #[cold]
    fn check_other(&self, record: &Record, hash: u64) -> Result<()> {
        let mut key = Vec::new();
        self.read_key(record, &mut key);
        let is_meant = self.hash.of(&key) == hash || self.pool.pmem.skips(steps::READ_CHECK);
        let is_sound = is_meant && self.is_sound(record, hash, None);
        if is_sound { Ok(()) } else { Err(damaged(record.at)) }
    }

    fn value_of(&self, record: &Record) -> chimera_pmem::Extent {
        let Head { key_bytes, value_bytes, .. } = record.head;
        self.pool.extent(record.at + value_at(key_bytes), value_bytes as u64)
    }
}

#[cold]
pub(super) fn damaged(at: u64) -> Error {
    Error::corrupted("a record of the log is damaged", at)
}
