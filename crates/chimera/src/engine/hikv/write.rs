//! [`Writer`]: items and their entries, written and removed. docs/DURABILITY.md has what a crash in each step leaves.
//!
//! # Rules
//! 1. The caller holds the key's lock, and has looked for the key's item.
//! 2. An item is durable before an entry leads to it. Its room is free only when no entry leads to it, durably.
//! 3. Whoever finds the pool full while free space is rebuilt makes the steps that are left, and tries again.

use chimera_pmem::{Extent, Operation, Pmem};

use super::items::Items;
use super::rebuild::Rebuild;
use crate::engine::KeyChange;
use crate::pool::runs::Run;
use crate::records::item_heap::Item;
use crate::types::error::{Error, Result};

/// Whether the room of an item was freed.
enum Freed {
    NotYet,
    /// With the run that it was the last one of.
    Done(Option<Run>),
}

/// Writes items, and removes them.
pub(super) struct Writer<P: Pmem> {
    items: Items<P>,
    rebuild: Rebuild,
}

impl<P: Pmem> Writer<P> {
    pub(super) fn new(items: Items<P>, rebuild: Rebuild) -> Self {
        Self { items, rebuild }
    }

    #[inline(always)]
    pub(super) fn items(&self) -> &Items<P> {
        &self.items
    }

    pub(super) fn rebuild(&self) -> &Rebuild {
        &self.rebuild
    }

    /// As [`write_item`](Self::write_item), with room wherever there is some: nothing fresh, which the index may need for
    /// the entry, if that can be helped.
    ///
    /// # Cost
    /// As [`Rebuild::make_all_steps`], and a look at each run of items.
    #[cold]
    pub(super) fn write_where_there_is_room(
        &self,
        number: u32,
        hash: u64,
        (key, value): (&[u8], &[u8]),
        old: Option<Item>,
        tell: impl Fn(KeyChange),
    ) -> Result<()> {
        let heap = self.items.heap();
        self.rebuild.make_all_steps(&self.items);
        heap.give_back_empty();
        let room = match heap.allocate_anywhere(key.len(), value.len()) {
            Some(room) => room,
            None => self.room_for(number, key.len(), value.len())?,
        };
        self.write_item(number, hash, (key, value), room, old, tell)
    }

    /// Writes an item into its room, and makes the entry of its key lead to it. Tells what happens to the entry.
    #[inline(always)]
    pub(super) fn write_item(
        &self,
        number: u32,
        hash: u64,
        (key, value): (&[u8], &[u8]),
        room: Extent,
        old: Option<Item>,
        tell: impl Fn(KeyChange),
    ) -> Result<()> {
        let heap = self.items.heap();
        let version = old.map_or(0, |old| heap.version(&old)) + 1;
        heap.write(room, hash, version, key, value);
        let Some(old) = old else {
            tell(KeyChange::Inserted);
            return self.enter(number, hash, room).inspect_err(|_| {
                tell(KeyChange::Removed);
                self.free(number, room);
            });
        };
        let (old_room, mut freed) = (heap.extent(&old), Freed::NotYet);
        let is_changed = self.items.index().swap(hash, old.at, room, || {
            freed = self.free_beside_walk(old_room);
        });
        if !is_changed {
            self.free(number, room);
            return Err(lost_entry(&old));
        }
        tell(KeyChange::Replaced);
        self.end_free(number, old_room, freed);
        Ok(())
    }

    /// Room for an item.
    pub(super) fn room_for(
        &self,
        number: u32,
        key_bytes: usize,
        value_bytes: usize,
    ) -> Result<Extent> {
        let heap = self.items.heap();
        if let Some(room) = heap.allocate(key_bytes, value_bytes) {
            return Ok(room);
        }
        if self.rebuild.is_pending() {
            self.rebuild.make_first_steps(&self.items);
        }
        // Also where the walk has ended since.
        if let Some(room) = heap.allocate(key_bytes, value_bytes) {
            return Ok(room);
        }
        let is_sparing = self.rebuild.is_pending();
        self.with_space(number, || heap.grow(key_bytes, value_bytes, is_sparing))
    }

    /// Does `work`, which takes space of the pool. If the pool is full and it was not known what is free, it does so again
    /// when it is.
    #[cold]
    fn with_space<T>(&self, number: u32, work: impl Fn() -> Result<T>) -> Result<T> {
        let was_rebuilding = self.rebuild.is_pending();
        let work = || {
            let _booked = self.items.core().book(Operation::BlockHandOut, number);
            work()
        };
        match work() {
            Err(Error::PoolFull { .. }) if was_rebuilding => {
                self.rebuild.make_all_steps(&self.items);
                work()
            }
            done => done,
        }
    }

    /// Makes the entry of a new key.
    ///
    /// # Errors
    /// When the index cannot grow; there is no entry.
    fn enter(&self, number: u32, hash: u64, room: Extent) -> Result<()> {
        let (index, heap) = (self.items.index(), self.items.heap());
        while !index.insert(hash, room) {
            self.with_space(number, || match index.make_room(hash) {
                // A run that is kept for items may be what the index needs.
                Err(Error::PoolFull { .. }) if heap.give_back_empty() => Ok(()),
                made => made,
            })?;
        }
        Ok(())
    }

    /// Frees the room of an item that nothing leads to, and gives back the run that it was the last one of.
    fn free(&self, number: u32, room: Extent) {
        self.end_free(number, room, Freed::NotYet);
    }

    /// While free space is rebuilt: frees the room of an item whose entry has just changed, under the lock of the entry's
    /// segment. Otherwise the walk might end between the two, and the room be somebody else's when it is freed.
    #[inline(always)]
    fn free_beside_walk(&self, room: Extent) -> Freed {
        if self.rebuild.is_pending() {
            Freed::Done(self.items.heap().free(room))
        } else {
            Freed::NotYet
        }
    }

    /// Frees the room of an item that nothing leads to, unless that was done [before](Self::free_beside_walk).
    #[inline(always)]
    fn end_free(&self, number: u32, room: Extent, freed: Freed) {
        let heap = self.items.heap();
        let run = match freed {
            Freed::Done(run) => run,
            Freed::NotYet => heap.free(room),
        };
        let Some(run) = run else { return };
        let _booked = self.items.core().book(Operation::BlockHandOut, number);
        heap.give_back(run);
    }

    /// Removes the entry that leads to an item, and frees the item's room.
    #[inline(always)]
    pub(super) fn remove_item(&self, number: u32, hash: u64, old: &Item) -> Result<()> {
        let (room, mut freed) = (self.items.heap().extent(old), Freed::NotYet);
        let then = || freed = self.free_beside_walk(room);
        if !self.items.index().remove(hash, old.at, then) {
            return Err(lost_entry(old));
        }
        self.end_free(number, room, freed);
        Ok(())
    }
}

/// The entry of a key was changed while the key was locked: by nobody.
#[cold]
fn lost_entry(old: &Item) -> Error {
    Error::corrupted("the entry of the index that led to a record has changed", old.at)
}
