//! Reading a record of the log.

use chimera_pmem::Pmem;

use super::{LockedLog, end_word, steps};
use crate::records::checksum::Summed;
use crate::records::header::RecordHeader;
use crate::records::lengths::{Entry, HEADER_AT, KEY_AT, Lengths};
use crate::types::error::{Error, Result};

/// A live record of the log.
pub(crate) struct LogRecord {
    /// Where it lies.
    pub(crate) at: u64,
    /// The hash of its key.
    pub(crate) hash: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) version: u64,
}

impl<P: Pmem> LockedLog<P> {
    /// Reads the value of the record at `at` into `value`, and verifies the record, its value only if `sum`. `false`
    /// when it is not a live one of `key`.
    ///
    /// # Errors
    /// `Corrupted` when the record is damaged.
    pub(crate) fn read(&self, at: u64, key: &[u8], value: &mut Vec<u8>, sum: bool) -> Result<bool> {
        let (_, log) = self.runs.range(..=at).next_back().expect("the run of a record");
        match self.entry(at, log.end)? {
            Some((true, lengths)) => Ok(self.read_record(at, lengths, value, sum)?.key == key),
            _ => Ok(false),
        }
    }

    /// The version of the record at `at`, which was verified.
    pub(crate) fn version(&self, at: u64) -> u64 {
        RecordHeader::load(&self.pool.pmem, at + HEADER_AT).version()
    }

    /// Whether the record at `at`, which ends at `end` at the latest, is live, and its lengths. `None` where the log
    /// ends.
    pub(super) fn entry(&self, at: u64, end: u64) -> Result<Option<(bool, Lengths)>> {
        let word = self.pool.pmem.load_u64(at);
        if word == end_word(at) {
            return Ok(None);
        }
        match Entry::decode(word, at) {
            Some(Entry::Record { is_live, lengths })
                if at + lengths.span() <= end && !lengths.is_spilled =>
            {
                Ok(Some((is_live, lengths)))
            }
            _ => Err(Error::corrupted("the lengths of a record are damaged", at)),
        }
    }

    /// Reads the record at `at`, its value into `value`, and verifies it, the value only if `sum`.
    pub(super) fn read_record(
        &self,
        at: u64,
        lengths: Lengths,
        value: &mut Vec<u8>,
        sum: bool,
    ) -> Result<LogRecord> {
        let (pool, mut key) = (&self.pool, vec![0; lengths.key_bytes as usize]);
        pool.pmem.read(pool.extent(at + KEY_AT, key.len() as u64), &mut key);
        value.resize(lengths.beside_bytes as usize, 0);
        pool.pmem.read(pool.extent(at + lengths.beside_at(), value.len() as u64), value);
        let (hash, header) = (self.hash.of(&key), RecordHeader::load(&pool.pmem, at + HEADER_AT));
        let summed = sum.then(|| Summed::of(value));
        if header.verify(at, hash, summed).is_err() && !pool.pmem.skips(steps::READ_CHECK) {
            return Err(Error::corrupted("a record does not match its checksum", at));
        }
        Ok(LogRecord { at, hash, key, version: header.version() })
    }
}
