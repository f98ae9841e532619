//! Puts, updates and deletes. docs/DURABILITY.md has what a crash in each step leaves.

use chimera_pmem::{Operation, Pmem};

use super::index::{Key, Old};
use super::shard::{Locked, Writing};
use super::space::Need;
use super::store::{Chameleon, ChameleonClient};
use crate::engine::KeyChange;
use crate::engine::shared::writes::swap_read;
use crate::index::probing_table::Slot;
use crate::records::storage_log::NewRecord;
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

impl<P: Pmem> Chameleon<P> {
    /// Stores `value` under `key`; tells whether the key is new.
    pub(super) fn put_value(
        &self,
        client: &mut ChameleonClient,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let (core, index) = (self.index().core(), self.index());
        let booked = core.book(Operation::Insert, client.shared.number);
        let key = Key { hash: core.hash.of(key), bytes: key };
        let shards = index.shards();
        if self.blind_puts {
            shards.memtable(shards.number_of(key.hash)).prefetch(key.hash);
        } else {
            shards.prefetch(key.hash);
        }
        let is_new = self.or_with_room(client, |client| {
            let shard = shards.number_of(key.hash);
            let mut writing =
                self.flusher().lock_to_write(&client.shared, key.hash, shard, Need::Growth)?;
            let old = if self.blind_puts {
                index.find_recent(shard, key)?
            } else {
                index.find_locked(shard, key)?
            };
            if old.is_live() {
                booked.is(Operation::Overwrite);
            }
            self.write(client, shard, &mut writing, key, Some(value), old)?;
            Ok(!old.is_live())
        })?;
        self.flusher().bound_replay(&mut client.appender, client.shared.number);
        Ok(is_new)
    }

    /// Removes `key`, which has this hash; if its value has to be an expected one, only if it is.
    pub(super) fn remove(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<Swap> {
        let index = self.index();
        let _booked = index.core().book(Operation::Delete, client.shared.number);
        let key = Key { hash, bytes: key };
        let removed = self.or_with_room(client, |client| {
            let shard = index.shards().number_of(hash);
            let mut writing =
                self.flusher().lock_to_write(&client.shared, key.hash, shard, Need::Delete)?;
            let old = index.find_locked(shard, key)?;
            let Some(found) = old.entry.filter(|_| old.is_live()) else { return Ok(Swap::Missing) };
            if let Some(expected) = expected {
                index.records().read_found(found, hash, &mut client.shared.value)?;
                if client.shared.value != expected {
                    return Ok(Swap::Different);
                }
            }
            self.write(client, shard, &mut writing, key, None, old)?;
            Ok(Swap::Swapped)
        })?;
        self.flusher().bound_replay(&mut client.appender, client.shared.number);
        Ok(removed)
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
        let index = self.index();
        let _booked = self.index().core().book(Operation::Update, client.shared.number);
        let key = Key { hash, bytes: key };
        let swap = self.or_with_room(client, |client| {
            let shard = index.shards().number_of(hash);
            let mut writing =
                self.flusher().lock_to_write(&client.shared, key.hash, shard, Need::Growth)?;
            let old = index.find_locked(shard, key)?;
            let Some(found) = old.entry.filter(|_| old.is_live()) else { return Ok(Swap::Missing) };
            index.records().read_found(found, hash, &mut client.shared.value)?;
            swap_read(client, expected, new, |client| {
                self.write(client, shard, &mut writing, key, Some(new), old)
            })
        })?;
        self.flusher().bound_replay(&mut client.appender, client.shared.number);
        Ok(swap)
    }

    /// See [`Engine::insert`](crate::engine::Engine::insert).
    pub(super) fn insert_value(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let index = self.index();
        let _booked = index.core().book(Operation::Insert, client.shared.number);
        let key = Key { hash, bytes: key };
        let is_new = self.or_with_room(client, |client| {
            let shard = index.shards().number_of(hash);
            let mut writing =
                self.flusher().lock_to_write(&client.shared, key.hash, shard, Need::Growth)?;
            // All of the index, also where puts are blind.
            let old = index.find_locked(shard, key)?;
            if !old.is_live() {
                self.write(client, shard, &mut writing, key, Some(value), old)?;
            }
            Ok(!old.is_live())
        })?;
        self.flusher().bound_replay(&mut client.appender, client.shared.number);
        Ok(is_new)
    }

    /// Does `work`. Where the pool is full, room is made, and `work` is done again.
    #[inline(always)]
    fn or_with_room<T>(
        &self,
        client: &mut ChameleonClient,
        mut work: impl FnMut(&mut ChameleonClient) -> Result<T>,
    ) -> Result<T> {
        match work(client) {
            Err(Error::PoolFull { .. }) => with_room(self, client, &mut work),
            done => done,
        }
    }

    /// Appends a record of `key`, whose shard the caller has locked, and makes the MemTable refer to it.
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
        let (core, index) = (self.index().core(), self.index());
        let version = writing.version + 1;
        let record = NewRecord { hash: key.hash, version, key: key.bytes, value };
        let appended = match index.log().append(&mut client.appender, &record) {
            Err(Error::PoolFull { .. }) if value.is_none() => {
                index.records().append_tombstone(&mut client.appender, &record)?
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
            core.changes.tell(key.bytes, change);
            writing.records += 1;
        }
        index.enter(shard, new, old.entry);
        if change != KeyChange::Inserted {
            core.changes.tell(key.bytes, change);
            let removed = u64::from(change == KeyChange::Removed);
            writing.records = writing.records.saturating_sub(removed);
        }
        Ok(())
    }
}

#[cold]
fn with_room<P: Pmem, T>(
    store: &Chameleon<P>,
    client: &mut ChameleonClient,
    work: &mut impl FnMut(&mut ChameleonClient) -> Result<T>,
) -> Result<T> {
    loop {
        let freed = store.index().log().freed();
        match work(client) {
            Err(Error::PoolFull { .. }) if store.collector.gain_room(freed)? => {}
            done => return done,
        }
    }
}
