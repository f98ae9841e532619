//! What a writer looks for in a shard that it has locked, and what it enters there.

use chimera_pmem::Pmem;

use super::Index;
use crate::engine::chameleon::records::DAMAGED_RECORD;
use crate::index::Probe;
use crate::index::probing_table::{Found, Slot};
use crate::pool::Held;
use crate::types::error::{Error, Result};

/// Most keys of one hash that are put.
const SAME_HASH_MAX: u32 = 15;

/// What a writer found of its key, in a shard that it has locked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Old {
    /// The newest entry, be it a tombstone.
    pub(crate) entry: Option<Found>,
}

impl Old {
    pub(crate) fn is_live(&self) -> bool {
        self.entry.is_some_and(|found| !found.is_tombstone)
    }
}

/// A key and its hash.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    pub(crate) hash: u64,
    pub(crate) bytes: &'a [u8],
}

impl<P: Pmem> Index<P> {
    /// Looks for the newest entry of `key`, whose shard the caller has locked.
    ///
    /// # Errors
    /// `KeyCollisions` when too many other keys have its hash.
    #[inline]
    pub(crate) fn find_locked(&self, shard: u32, key: Key<'_>) -> Result<Old> {
        let mut others = 0;
        let probed = self.shards.probe(shard, key.hash, |found| {
            let answer = self.records.probe_key(found, key.hash, key.bytes);
            others += u32::from(matches!(answer, Probe::NotThis));
            answer
        })?;
        match probed {
            Probe::Found(found) => Ok(Old { entry: Some(found?) }),
            Probe::NotThis if others > SAME_HASH_MAX => Err(Error::KeyCollisions),
            Probe::NotThis => Ok(Old::default()),
            Probe::Retry => unreachable!("nothing changes in a shard that is locked"),
        }
    }

    /// Looks for an entry of `key`, whose shard the caller has locked, in the MemTable alone: there each key has one entry.
    pub(crate) fn find_recent(&self, shard: u32, key: Key<'_>) -> Result<Old> {
        let memtable = self.shards.memtable(shard);
        match memtable.probe(key.hash, |found| self.records.probe_key(found, key.hash, key.bytes)) {
            Probe::Found(found) => Ok(Old { entry: Some(found?) }),
            Probe::NotThis => Ok(Old::default()),
            Probe::Retry => unreachable!("nothing changes in a shard that is locked"),
        }
    }

    /// What the index has of the key of a replayed write, which is to take its place. With salvage the write may be counted
    /// twice where that is damaged, because it looks like another key, or cannot be looked at.
    pub(crate) fn find_replaced(&self, shard: u32, slot: Slot) -> Result<Option<Found>> {
        let (records, mut damaged) = (&self.records, None);
        let probed = self.shards.probe(shard, slot.hash, |found| {
            if records.is_same_key(slot, Slot { hash: slot.hash, location: found.location }) {
                return Probe::Found(found);
            }
            if records.salvages() && damaged.is_none() && !records.is_whole(found, slot.hash) {
                damaged = Some(found.offset);
            }
            Probe::NotThis
        });
        match probed {
            Ok(Probe::Found(found)) => return Ok(Some(found)),
            Err(error) if !records.salvages() => return Err(error),
            Err(error) => self.core().pool.note_lost_of(Held::Twice, &error, 0),
            Ok(_) => {}
        }
        if let Some(at) = damaged {
            self.core().pool.note_loss_of(Held::Twice, at, DAMAGED_RECORD);
        }
        Ok(None)
    }

    /// Makes the MemTable refer to a new record of a key, of which `old` was the newest entry. There is room for it.
    #[inline]
    pub(crate) fn enter(&self, shard: u32, new: Slot, old: Option<Found>) {
        let memtable = self.shards.memtable(shard);
        if let Some(old) = old
            && memtable.replace(new.hash, old.location, new.location)
        {
            // No table will ever refer to it.
            self.log().flushed(old.offset);
            self.log().dropped(old.offset, old.bytes);
            return;
        }
        memtable.insert(new, u32::MAX).expect("the MemTable has room");
    }
}
