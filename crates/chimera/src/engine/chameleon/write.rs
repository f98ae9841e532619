//! Puts, updates and deletes. The order of steps is argued in docs/DURABILITY.md.

use chimera_pmem::{Operation, Pmem};

use super::shard::{Locked, Writing};
use super::{ALIKE_MAX, Chameleon, ChameleonClient};
use crate::engine::KeyChange;
use crate::engine::shared::client::Written;
use crate::index::Probe;
use crate::index::probing_table::{Found, Slot};
use crate::records::storage_log::NewRecord;
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

/// What a writer found of its key, in a shard that it has locked.
#[derive(Clone, Copy, Debug, Default)]
struct Old {
    /// The newest entry, be it a tombstone.
    entry: Option<Found>,
}

impl Old {
    fn is_live(&self) -> bool {
        self.entry.is_some_and(|found| !found.is_tombstone)
    }
}

/// A key and its hash.
#[derive(Clone, Copy)]
struct Key<'a> {
    hash: u64,
    bytes: &'a [u8],
}

impl<P: Pmem> Chameleon<P> {
    /// Stores `value` under `key`; tells whether the key is new.
    pub(super) fn put_value(
        &self,
        client: &mut ChameleonClient,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        self.limits.check_key(key)?;
        self.limits.check_value(value)?;
        self.core.poison.check()?;
        let booked = self.core.book(Operation::Insert, client.shared.number);
        let key = Key { hash: self.core.hash.of(key), bytes: key };
        let shard = self.index.number_of(key.hash);
        let mut writing = self.lock_with_room(client, shard)?;
        let old = self.find_locked(shard, key)?;
        if old.is_live() {
            booked.is(Operation::Overwrite);
        }
        self.write(client, shard, &mut writing, key, Some(value), old)?;
        drop(writing);
        self.bound_replay(client);
        Ok(!old.is_live())
    }

    /// Removes `key`; tells whether it was there.
    pub(super) fn remove(&self, client: &mut ChameleonClient, key: &[u8]) -> Result<bool> {
        self.limits.check_key(key)?;
        self.core.poison.check()?;
        let _booked = self.core.book(Operation::Delete, client.shared.number);
        let key = Key { hash: self.core.hash.of(key), bytes: key };
        let shard = self.index.number_of(key.hash);
        let mut writing = self.lock_with_room(client, shard)?;
        let old = self.find_locked(shard, key)?;
        if old.is_live() {
            self.write(client, shard, &mut writing, key, None, old)?;
            drop(writing);
            self.bound_replay(client);
        }
        Ok(old.is_live())
    }

    /// See [`Engine::replace`](crate::engine::Engine::replace).
    pub(super) fn replace_value(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<Swap> {
        let _booked = self.core.book(Operation::Update, client.shared.number);
        let key = Key { hash, bytes: key };
        let shard = self.index.number_of(hash);
        let mut writing = self.lock_with_room(client, shard)?;
        let old = self.find_locked(shard, key)?;
        let Some(found) = old.entry.filter(|_| old.is_live()) else { return Ok(Swap::Missing) };
        self.read_found(found, hash, &mut client.shared.value)?;
        if client.shared.value != expected {
            return Ok(Swap::Different);
        }
        client.shared.written = if new == expected { Written::Nothing } else { Written::Anew };
        if new != expected {
            self.write(client, shard, &mut writing, key, Some(new), old)?;
            drop(writing);
            self.bound_replay(client);
        }
        Ok(Swap::Swapped)
    }

    /// Locks a shard whose MemTable has room for one entry more.
    #[inline]
    fn lock_with_room(&self, client: &ChameleonClient, shard: u32) -> Result<Locked<'_, Writing>> {
        loop {
            let environment = &**self.core.environment();
            let writing = self.index.shard(shard).lock(&self.core.poison, environment)?;
            if !self.index.memtable(shard).is_full(writing.entries_max) {
                return Ok(writing);
            }
            drop(writing);
            self.make_room(client.shared.number, shard)?;
        }
    }

    /// Looks for the newest entry of `key`, whose shard the caller has locked.
    ///
    /// # Errors
    /// `KeyCollisions` when too many other keys have its hash.
    #[inline]
    fn find_locked(&self, shard: u32, key: Key<'_>) -> Result<Old> {
        let mut alike = 0;
        let probed = self.index.probe(shard, key.hash, |found| {
            let answer = self.probe_key(found, key.hash, key.bytes);
            alike += u32::from(matches!(answer, Probe::NotThis));
            answer
        })?;
        match probed {
            Probe::Found(found) => Ok(Old { entry: Some(found?) }),
            Probe::NotThis if alike > ALIKE_MAX => Err(Error::KeyCollisions),
            Probe::NotThis => Ok(Old::default()),
            Probe::Retry => unreachable!("nothing changes in a shard that is locked"),
        }
    }

    /// Appends a record of `key`, whose shard the caller has locked, and makes the MemTable lead to it.
    ///
    /// # Durability
    /// Without batches the record is durable on return, and found whenever the store is opened again.
    ///
    /// # Cost
    /// The lines of the record, 1 fence.
    #[inline]
    fn write(
        &self,
        client: &mut ChameleonClient,
        shard: u32,
        writing: &mut Locked<'_, Writing>,
        key: Key<'_>,
        value: Option<&[u8]>,
        old: Old,
    ) -> Result<()> {
        let version = writing.version + 1;
        let record = NewRecord { hash: key.hash, version, key: key.bytes, value };
        let appended = self.log.append(&mut client.appender, &record)?;
        writing.version = version;
        let new = Slot::new(key.hash, appended.at, appended.bytes, value.is_none());
        let change = match (old.is_live(), value) {
            (false, _) => KeyChange::Inserted,
            (true, Some(_)) => KeyChange::Replaced,
            (true, None) => KeyChange::Removed,
        };
        if change == KeyChange::Inserted {
            self.core.changes.tell(key.bytes, change);
            writing.records += 1;
        }
        self.enter(shard, new, old.entry);
        if change != KeyChange::Inserted {
            self.core.changes.tell(key.bytes, change);
            let removed = u64::from(change == KeyChange::Removed);
            writing.records = writing.records.saturating_sub(removed);
        }
        Ok(())
    }

    /// Makes the MemTable lead to a new record of a key, of which `old` was the newest entry. There is room for it.
    #[inline]
    pub(super) fn enter(&self, shard: u32, new: Slot, old: Option<Found>) {
        let memtable = self.index.memtable(shard);
        if let Some(old) = old
            && memtable.replace(new.hash, old.location, new.location)
        {
            // No table will ever lead to it.
            self.log.flushed(old.offset);
            self.log.dropped(old.offset, old.bytes);
            return;
        }
        memtable.insert(new, u32::MAX).expect("the MemTable has room");
    }
}
