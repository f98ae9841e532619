//! The MemTable of a shard goes to its bypass index.
//!
//! # What the log is told
//! - That a record is in a table: when a table that has it, or the MemTable, is in force. Records that were superseded
//!   before are told of then and there.
//! - That nothing refers to a record any more: if a table had it, when a table is in force that has what superseded it.
//!   Until then a restart finds the slot in that table and looks at the record.

use chimera_pmem::Pmem;

use super::Index;
use crate::engine::chameleon::shard::Work;
use crate::index::Resolve;
use crate::index::persistent::shard_manifest::ShardTables;
use crate::index::probing_table::{Slot, Upserted};

/// Slots of a bypass index that are being loaded while others are looked at.
pub(crate) const LOADED_AHEAD: usize = 12;

impl<P: Pmem> Index<P> {
    /// Enters the MemTable of a shard, which the caller has locked, into its bypass index, which has room. A probe comes to a
    /// newer entry of a key before it comes to an older one, also where damage hides that both are of one key: else what the
    /// key had before would be its value.
    pub(crate) fn absorb(&self, shard: u32, work: &mut Work) {
        let bypass = self.shards.bypass(shard);
        let with_room = "the bypass index has room";
        let memtable = self.shards.memtable(shard);
        // What comes later is being loaded: the bypass index is far larger than any cache, and its misses overlap so.
        let mut later = memtable.iter();
        later.by_ref().take(LOADED_AHEAD).for_each(|slot| bypass.prefetch(slot.hash));
        for new in memtable.iter() {
            if let Some(slot) = later.next() {
                bypass.prefetch(slot.hash);
            }
            let mut unclear = None;
            let upserted = bypass.upsert(new, u32::MAX, |old| {
                let old = Slot { hash: new.hash, location: old.location };
                if self.records.is_same_key(new, old) {
                    Resolve::KeepNew
                } else if self.records.are_whole([new, old]) {
                    Resolve::OtherKey
                } else {
                    unclear = Some(old);
                    Resolve::KeepOld
                }
            });
            if let Upserted::Replaced(location) = upserted.expect(with_room) {
                self.superseded(work, Slot { hash: new.hash, location });
            }
            if let Some(old) = unclear {
                // In this order: it is there all the time.
                bypass.insert(old, u32::MAX).expect(with_room);
                bypass.replace(new.hash, old.location, new.location);
            }
        }
    }

    /// The bypass index, whose shard the caller has locked, has a newer entry than this one, which it had.
    fn superseded(&self, work: &mut Work, old: Slot) {
        let flushed_version = work.current.tables.flushed_version;
        if work.ahead.is_some() && self.records.is_unflushed(old, flushed_version) {
            // No table will ever refer to it.
            self.records.tell_flushed(old);
            self.records.drop_slot(old);
        } else {
            work.superseded.push(old);
        }
    }

    /// Tells the log that tables are in force which have all that the bypass index has. `before` were in force before.
    pub(crate) fn tell_of_bypass(&self, shard: u32, work: &mut Work, before: &ShardTables) {
        if work.ahead.take().is_some() {
            // Where no upper level had a table the bypass index had nothing from there.
            let is_all = before.levels.iter().all(|level| level.tables == 0);
            for slot in self.shards.bypass(shard).iter() {
                if is_all || self.records.is_unflushed(slot, before.flushed_version) {
                    self.records.tell_flushed(slot);
                }
            }
        }
        work.superseded.drain(..).for_each(|slot| self.records.drop_slot(slot));
    }
}
