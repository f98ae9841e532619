//! Puts, updates and deletes. docs/DURABILITY.md has what a crash in each step leaves.

use chimera_pmem::{Extent, Operation, Pmem};

use super::Hikv;
use super::read::Unsound;
use crate::engine::KeyChange;
use crate::engine::shared::client::{SharedClient, Written};
use crate::pool::runs::Run;
use crate::records::item_heap::Item;
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

/// Whether the room of an item was freed.
enum Freed {
    NotYet,
    /// With the run that it was the last one of.
    Done(Option<Run>),
}

impl<P: Pmem> Hikv<P> {
    /// Stores `value` under `key`; tells whether the key is new.
    pub(super) fn put_value(
        &self,
        client: &mut SharedClient,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        self.limits.check_key(key)?;
        self.limits.check_value(value)?;
        self.core.poison.check()?;
        let booked = self.core.book(Operation::Insert, client.number);
        let hash = self.core.hash.of(key);
        self.index.prefetch(hash);
        let _key = self.keys.lock(hash, &self.core.poison)?;
        let old = self.find_locked(hash, key)?;
        if old.is_some() {
            booked.is(Operation::Overwrite);
        }
        self.write(client.number, hash, key, value, old)?;
        Ok(old.is_none())
    }

    /// Writes an item of `key`, whose lock the caller holds, in place of the old one, if there is one.
    ///
    /// # Durability
    /// The new item is durable on return, and the old one is durably gone.
    ///
    /// # Cost
    /// The lines of the item and 1 more, 2 fences. With a log also the lines of its record, and 1 fence more.
    fn write(
        &self,
        number: u32,
        hash: u64,
        key: &[u8],
        value: &[u8],
        old: Option<Item>,
    ) -> Result<()> {
        let room = self.room_for(number, key.len(), value.len())?;
        let logged = self.log_change(hash, key, Some(value));
        let tell = |change| self.core.changes.tell(key, change);
        let mut written = self.write_item(number, hash, (key, value), room, old, tell);
        if matches!(written, Err(Error::PoolFull { .. })) {
            written = self.write_where_there_is_room(number, hash, (key, value), old, tell);
        }
        if let (Err(_), Some(logged)) = (&written, logged) {
            logged.withdraw();
        }
        written
    }

    /// As [`write_item`](Self::write_item), with room wherever there is some: nothing fresh, which the index may need for
    /// the entry, if that can be helped.
    ///
    /// # Cost
    /// As [`rebuild_all`](Self::rebuild_all), and a look at each run of items.
    #[cold]
    pub(super) fn write_where_there_is_room(
        &self,
        number: u32,
        hash: u64,
        (key, value): (&[u8], &[u8]),
        old: Option<Item>,
        tell: impl Fn(KeyChange),
    ) -> Result<()> {
        self.rebuild_all();
        self.heap.give_back_empty();
        let room = match self.heap.allocate_anywhere(key.len(), value.len()) {
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
        let version = old.map_or(0, |old| self.heap.version(&old)) + 1;
        self.heap.write(room, hash, version, key, value);
        let Some(old) = old else {
            tell(KeyChange::Inserted);
            return self.enter(number, hash, room).inspect_err(|_| {
                tell(KeyChange::Removed);
                self.free(number, room);
            });
        };
        let (old_room, mut freed) = (self.heap.extent(&old), Freed::NotYet);
        let is_changed = self.index.swap(hash, old.at, room, || {
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
        if let Some(room) = self.heap.allocate(key_bytes, value_bytes) {
            return Ok(room);
        }
        if self.rebuild.is_pending() {
            self.rebuild_first();
        }
        // Also where the walk has ended since.
        if let Some(room) = self.heap.allocate(key_bytes, value_bytes) {
            return Ok(room);
        }
        let is_sparing = self.rebuild.is_pending();
        self.with_space(number, || self.heap.grow(key_bytes, value_bytes, is_sparing))
    }

    /// Does `work`, which takes space of the pool. If the pool is full and it was not known what is free, it does so again
    /// when it is.
    #[cold]
    fn with_space<T>(&self, number: u32, work: impl Fn() -> Result<T>) -> Result<T> {
        let was_rebuilding = self.rebuild.is_pending();
        let work = || {
            let _booked = self.core.book(Operation::BlockHandOut, number);
            work()
        };
        match work() {
            Err(Error::PoolFull { .. }) if was_rebuilding => {
                self.rebuild_all();
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
        while !self.index.insert(hash, room) {
            self.with_space(number, || match self.index.make_room(hash) {
                // A run that is kept for items may be what the index needs.
                Err(Error::PoolFull { .. }) if self.heap.give_back_empty() => Ok(()),
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
        if self.rebuild.is_pending() { Freed::Done(self.heap.free(room)) } else { Freed::NotYet }
    }

    /// Frees the room of an item that nothing leads to, unless that was done [before](Self::free_beside_walk).
    #[inline(always)]
    fn end_free(&self, number: u32, room: Extent, freed: Freed) {
        let run = match freed {
            Freed::Done(run) => run,
            Freed::NotYet => self.heap.free(room),
        };
        let Some(run) = run else { return };
        let _booked = self.core.book(Operation::BlockHandOut, number);
        self.heap.give_back(run);
    }

    /// See [`Engine::replace`](crate::engine::Engine::replace).
    pub(super) fn replace_value(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<Swap> {
        let _booked = self.core.book(Operation::Update, client.number);
        self.index.prefetch(hash);
        let _key = self.keys.lock(hash, &self.core.poison)?;
        let Some(old) = self.find_locked(hash, key)? else { return Ok(Swap::Missing) };
        self.read_item(&old, hash, &mut client.value, true).map_err(Unsound::into_error)?;
        if client.value != expected {
            return Ok(Swap::Different);
        }
        client.written = if new == expected { Written::Nothing } else { Written::Anew };
        if new != expected {
            self.write(client.number, hash, key, new, Some(old))?;
        }
        Ok(Swap::Swapped)
    }

    /// Removes `key`; tells whether it was there.
    pub(super) fn remove(&self, client: &mut SharedClient, key: &[u8]) -> Result<bool> {
        self.limits.check_key(key)?;
        let _booked = self.core.book(Operation::Delete, client.number);
        let hash = self.core.hash.of(key);
        self.index.prefetch(hash);
        let _key = self.keys.lock(hash, &self.core.poison)?;
        let Some(old) = self.find_locked(hash, key)? else { return Ok(false) };
        let logged = self.log_change(hash, key, None);
        let removed = self.remove_item(client.number, hash, &old);
        match (&removed, logged) {
            (Err(_), Some(logged)) => logged.withdraw(),
            (Err(_), None) => {}
            (Ok(()), _logged) => self.core.changes.tell(key, KeyChange::Removed),
        }
        removed.map(|()| true)
    }

    /// Removes the entry that leads to an item, and frees the item's room.
    #[inline(always)]
    pub(super) fn remove_item(&self, number: u32, hash: u64, old: &Item) -> Result<()> {
        let (room, mut freed) = (self.heap.extent(old), Freed::NotYet);
        if !self.index.remove(hash, old.at, || freed = self.free_beside_walk(room)) {
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
