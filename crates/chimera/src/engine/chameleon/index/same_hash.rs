//! The records of all keys of a hash, as they are at one moment, and what of them is damaged.

use chimera_pmem::Pmem;

use super::Index;
use crate::engine::chameleon::records::DAMAGED_RECORD;
use crate::index::Probe;
use crate::index::probing_table::Found;
use crate::types::error::Result;

impl<P: Pmem> Index<P> {
    /// The records of all keys of a hash, as they are at one moment. `damaged` is told of records that are damaged. `buffer`
    /// becomes a part of the first record.
    pub(crate) fn read_same_hash(
        &self,
        buffer: &mut Vec<u8>,
        hash: u64,
        mut damaged: impl FnMut(u64),
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let number = self.shards.number_of(hash);
        let _writing = self.lock_to_look(number);
        let mut newest: Vec<(Vec<u8>, Found)> = Vec::new();
        let _: Probe<()> = self.shards.probe(number, hash, |found| {
            match self.records.key_of_whole(found, hash) {
                // Without a bypass index slots are found that others of their hash have superseded. Their records may be gone.
                None if newest.is_empty() || self.shards.has_bypass() => damaged(found.offset),
                Some(key) if newest.iter().all(|(other, _)| *other != key) => {
                    newest.push((key, found));
                }
                None | Some(_) => {}
            }
            Probe::NotThis
        })?;
        let mut records = Vec::new();
        for (key, found) in newest {
            let mut value = std::mem::take(buffer);
            match self.records.read_found(found, hash, &mut value) {
                // As a get does it: all of a tombstone is verified.
                Ok(()) if found.is_tombstone => *buffer = value,
                Ok(()) => records.push((key, value)),
                Err(_) => damaged(found.offset),
            }
        }
        Ok(records)
    }

    /// Whether a key of this hash that was looked for in vain is there: never. What damage has left out of a salvaged store
    /// is noted.
    #[inline]
    pub(super) fn is_missing(&self, hash: u64) -> bool {
        if self.records.salvages() {
            self.note_lost(hash);
        }
        false
    }

    /// Notes which records of this hash a salvaged store leaves out.
    #[cold]
    fn note_lost(&self, hash: u64) {
        let pool = &self.core().pool;
        let note = |at| pool.note_loss(at, DAMAGED_RECORD);
        if let Err(error) = self.read_same_hash(&mut Vec::new(), hash, note) {
            pool.note_lost(&error, 0);
        }
    }
}
