//! Puts, updates and deletes. docs/DURABILITY.md has what a crash in each step leaves.

use chimera_pmem::{Operation, Pmem};

use super::shard::{Locked, Writing};
use super::space::Spend;
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
pub(super) struct Old {
    /// The newest entry, be it a tombstone.
    pub(super) entry: Option<Found>,
}

impl Old {
    fn is_live(&self) -> bool {
        self.entry.is_some_and(|found| !found.is_tombstone)
    }
}

/// A key and its hash.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) hash: u64,
    pub(super) bytes: &'a [u8],
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
        if self.blind_puts {
            self.index.memtable(self.index.number_of(key.hash)).prefetch(key.hash);
        } else {
            self.index.prefetch(key.hash);
        }
        let is_new = self.or_with_room(client, |client: &mut ChameleonClient| {
            let shard = self.index.number_of(key.hash);
            let mut writing = self.lock_with_room(client.shared.number, shard, Spend::Growth)?;
            let old = if self.blind_puts {
                self.find_recent(shard, key)?
            } else {
                self.find_locked(shard, key)?
            };
            if old.is_live() {
                booked.is(Operation::Overwrite);
            }
            self.write(client, shard, &mut writing, key, Some(value), old)?;
            Ok(!old.is_live())
        })?;
        self.bound_replay(client);
        Ok(is_new)
    }

    /// Removes `key`; tells whether it was there.
    pub(super) fn remove(&self, client: &mut ChameleonClient, key: &[u8]) -> Result<bool> {
        self.limits.check_key(key)?;
        self.core.poison.check()?;
        let _booked = self.core.book(Operation::Delete, client.shared.number);
        let key = Key { hash: self.core.hash.of(key), bytes: key };
        let was_there = self.or_with_room(client, |client| {
            let shard = self.index.number_of(key.hash);
            let mut writing = self.lock_with_room(client.shared.number, shard, Spend::Ballast)?;
            let old = self.find_locked(shard, key)?;
            if old.is_live() {
                self.write(client, shard, &mut writing, key, None, old)?;
            }
            Ok(old.is_live())
        })?;
        self.bound_replay(client);
        Ok(was_there)
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
        let swap = self.or_with_room(client, |client| {
            let shard = self.index.number_of(hash);
            let mut writing = self.lock_with_room(client.shared.number, shard, Spend::Growth)?;
            let old = self.find_locked(shard, key)?;
            let Some(found) = old.entry.filter(|_| old.is_live()) else { return Ok(Swap::Missing) };
            self.read_found(found, hash, &mut client.shared.value)?;
            if client.shared.value != expected {
                return Ok(Swap::Different);
            }
            client.shared.written = if new == expected { Written::Nothing } else { Written::Anew };
            if new != expected {
                self.write(client, shard, &mut writing, key, Some(new), old)?;
            }
            Ok(Swap::Swapped)
        })?;
        self.bound_replay(client);
        Ok(swap)
    }

    /// Does `work`. Where the pool is full, room is made, and `work` is done again.
    #[inline(always)]
    fn or_with_room<T>(
        &self,
        client: &mut ChameleonClient,
        mut work: impl FnMut(&mut ChameleonClient) -> Result<T>,
    ) -> Result<T> {
        match work(client) {
            Err(Error::PoolFull { .. }) => self.with_room(client, &mut work),
            done => done,
        }
    }

    #[cold]
    fn with_room<T>(
        &self,
        client: &mut ChameleonClient,
        work: &mut impl FnMut(&mut ChameleonClient) -> Result<T>,
    ) -> Result<T> {
        loop {
            let freed = self.log.freed();
            match work(client) {
                Err(Error::PoolFull { .. }) if self.gain_room(freed)? => {}
                done => return done,
            }
        }
    }

    /// Locks a shard whose MemTable has room for one entry more. `spend` says what making room may take.
    #[inline]
    pub(super) fn lock_with_room(
        &self,
        number: u32,
        shard: u32,
        spend: Spend,
    ) -> Result<Locked<'_, Writing>> {
        loop {
            let environment = &**self.core.environment();
            let writing = self.index.shard(shard).lock(&self.core.poison, environment)?;
            if !self.is_short(shard, &writing, spend) {
                return Ok(writing);
            }
            drop(writing);
            self.make_room(number, shard, spend)?;
        }
    }

    /// Whether the MemTable of a shard takes no entry for such a purpose.
    #[inline(always)]
    pub(super) fn is_short(&self, shard: u32, writing: &Writing, spend: Spend) -> bool {
        self.index.memtable(shard).is_full(writing.entries_max)
            || writing.is_closed && spend == Spend::Growth
    }

    /// Looks for the newest entry of `key`, whose shard the caller has locked.
    ///
    /// # Errors
    /// `KeyCollisions` when too many other keys have its hash.
    #[inline]
    pub(super) fn find_locked(&self, shard: u32, key: Key<'_>) -> Result<Old> {
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

    /// Looks for an entry of `key`, whose shard the caller has locked, in the MemTable alone: there each key has one entry.
    fn find_recent(&self, shard: u32, key: Key<'_>) -> Result<Old> {
        let memtable = self.index.memtable(shard);
        match memtable.probe(key.hash, |found| self.probe_key(found, key.hash, key.bytes)) {
            Probe::Found(found) => Ok(Old { entry: Some(found?) }),
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
        let appended = match self.log.append(&mut client.appender, &record) {
            Err(Error::PoolFull { .. }) if value.is_none() => {
                self.append_tombstone(&mut client.appender, &record)?
            }
            appended => appended?,
        };
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
