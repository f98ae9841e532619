//! The records of all keys of a hash, as they are at one moment, and what of them is damaged.

use chimera_pmem::Pmem;

use super::LogHash;
use super::index::LogIndex;
use crate::index::Probe;
use crate::sync::until_some;
use crate::types::error::{Error, Result};

/// What is said of a record that is damaged.
pub(super) const DAMAGED_RECORD: &str = "a record of the log is damaged";

/// A key and its value.
type Pair = (Vec<u8>, Vec<u8>);

impl<P: Pmem, I: LogIndex<P>> LogHash<P, I> {
    /// The records of all keys of a hash, as they are at one moment. `damaged` is told of records that are damaged. `buffer`
    /// becomes a part of the first record.
    pub(super) fn read_same_hash(
        &self,
        buffer: &mut Vec<u8>,
        hash: u64,
        mut damaged: impl FnMut(u64),
    ) -> Result<Vec<Pair>> {
        let _key = self.keys.lock_to_look(hash, &self.core.poison);
        let mut records = Vec::new();
        for at in self.find_same_hash(hash)? {
            let (mut key, mut value) = (Vec::new(), std::mem::take(buffer));
            let record = self.log.decode(at);
            if let Some(record) = &record {
                self.log.read_key(record, &mut key);
            }
            let is_of_hash = record.is_some() && self.core.hash.of(&key) == hash;
            if is_of_hash && self.read_found(at, hash, &mut value).is_ok() {
                records.push((key, value));
            } else {
                damaged(at);
            }
        }
        Ok(records)
    }

    /// The positions of all records of this hash, whose keys the caller has locked.
    pub(super) fn find_same_hash(&self, hash: u64) -> Result<Vec<u64>> {
        let mut all = Vec::new();
        let outcome = until_some(&**self.core.environment(), || {
            all.clear();
            self.index.find_once(hash, &mut |at| {
                all.push(at);
                Probe::<()>::NotThis
            })
        });
        outcome.map(|_| all)
    }

    /// Reads and verifies the value of a record that the caller knows to be the right one.
    pub(super) fn read_found(&self, at: u64, hash: u64, value: &mut Vec<u8>) -> Result<()> {
        let damaged = || Error::corrupted(DAMAGED_RECORD, at);
        let record = self.log.decode(at).ok_or_else(damaged)?;
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
            note_lost(self, hash);
        }
        false
    }
}

/// Notes which records of this hash a salvaged store leaves out.
#[cold]
fn note_lost<P: Pmem, I: LogIndex<P>>(engine: &LogHash<P, I>, hash: u64) {
    let pool = &engine.core.pool;
    let note = |at| pool.note_loss(at, DAMAGED_RECORD);
    if let Err(error) = engine.read_same_hash(&mut Vec::new(), hash, note) {
        pool.note_lost(&error, 0);
    }
}
