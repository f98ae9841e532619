//! Puts, updates and deletes. docs/DURABILITY.md has what a crash in each step leaves.

use chimera_pmem::{Operation, Pmem};

use super::index::LogIndex;
use super::read::Old;
use super::{COLLISIONS_MAX, LogHash, LogHashClient};
use crate::engine::KeyChange;
use crate::engine::shared::KeyGuard;
use crate::engine::shared::writes::swap_read;
use crate::records::storage_log::{Appended, NewRecord};
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

/// Writes records, and removes them.
pub(super) struct Writer<'e, P: Pmem, I>(pub(super) &'e LogHash<P, I>);

impl<P: Pmem, I: LogIndex<P>> Writer<'_, P, I> {
    #[inline(always)]
    fn lock(&self, client: &LogHashClient, hash: u64) -> Result<KeyGuard<'_>> {
        self.0.keys.lock_to_write(hash, &self.0.core.poison, client.shared.batch)
    }

    /// Stores `value` under `key`; tells whether the key is new.
    pub(super) fn put_value(
        &self,
        client: &mut LogHashClient,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let booked = self.0.core.book(Operation::Insert, client.shared.number);
        let hash = self.0.core.hash.of(key);
        self.0.index.prefetch(hash);
        let _key = self.lock(client, hash)?;
        let (old, alike) = self.0.find_locked(hash, key)?;
        if old.is_some() {
            booked.is(Operation::Overwrite);
        } else if alike > COLLISIONS_MAX {
            return Err(Error::KeyCollisions);
        }
        self.write(client, hash, key, value, old)?;
        Ok(old.is_none())
    }

    /// See [`Engine::insert`](crate::engine::Engine::insert).
    pub(super) fn insert_value(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let _booked = self.0.core.book(Operation::Insert, client.shared.number);
        self.0.index.prefetch(hash);
        let _key = self.lock(client, hash)?;
        let (old, alike) = self.0.find_locked(hash, key)?;
        if old.is_some() {
            return Ok(false);
        }
        if alike > COLLISIONS_MAX {
            return Err(Error::KeyCollisions);
        }
        self.write(client, hash, key, value, None).map(|()| true)
    }

    /// Appends a record of `key`, whose lock the caller holds, and makes the index lead to it.
    ///
    /// # Durability
    /// The record, and with a durable index its entry, are durable on return.
    ///
    /// # Cost
    /// The lines of the record, 1 fence; with a durable index 1 line and 1 fence more.
    fn write(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        value: &[u8],
        old: Option<Old>,
    ) -> Result<()> {
        let Some(old) = old else {
            self.0.index.reserve(hash)?;
            let appended = self.append(client, hash, key, Some(value));
            let record = appended.inspect_err(|_| self.0.index.release(hash))?;
            self.0.core.changes.tell(key, KeyChange::Inserted);
            let entered = self.0.index.insert(hash, record);
            self.settle(record);
            return entered.inspect_err(|_| self.0.core.changes.tell(key, KeyChange::Removed));
        };
        let record = self.append(client, hash, key, Some(value))?;
        let is_changed = self.0.index.swap(hash, old.at, record)?;
        self.settle(record);
        if !is_changed {
            return Err(lost_entry(old));
        }
        self.0.core.changes.tell(key, KeyChange::Replaced);
        Ok(())
    }

    #[inline]
    fn append(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<Appended> {
        let version = self.0.versions.next(hash);
        self.0.log.append(&mut client.appender, &NewRecord { hash, version, key, value })
    }

    /// The entry of a record is durable, or there is none: with a durable index, replay need not look at the record.
    #[inline]
    fn settle(&self, record: Appended) {
        if I::IS_DURABLE {
            self.0.log.flushed(record.at);
        }
    }

    /// See [`Engine::replace`](crate::engine::Engine::replace).
    pub(super) fn replace_value(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<Swap> {
        let _booked = self.0.core.book(Operation::Update, client.shared.number);
        self.0.index.prefetch(hash);
        let _key = self.lock(client, hash)?;
        let (Some(old), _) = self.0.find_locked(hash, key)? else { return Ok(Swap::Missing) };
        self.0.read_found(old.at, hash, &mut client.shared.value)?;
        swap_read(client, expected, new, |client| self.write(client, hash, key, new, Some(old)))
    }

    /// Removes `key`; tells whether it was there.
    pub(super) fn remove(&self, client: &mut LogHashClient, key: &[u8]) -> Result<bool> {
        let _booked = self.0.core.book(Operation::Delete, client.shared.number);
        let hash = self.0.core.hash.of(key);
        self.0.index.prefetch(hash);
        let _key = self.lock(client, hash)?;
        let (Some(old), _) = self.0.find_locked(hash, key)? else { return Ok(false) };
        self.remove_found(client, hash, key, old).map(|()| true)
    }

    /// See [`Engine::remove_if`](crate::engine::Engine::remove_if).
    pub(super) fn remove_if_value(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
    ) -> Result<Swap> {
        let _booked = self.0.core.book(Operation::Delete, client.shared.number);
        self.0.index.prefetch(hash);
        let _key = self.lock(client, hash)?;
        let (Some(old), _) = self.0.find_locked(hash, key)? else { return Ok(Swap::Missing) };
        self.0.read_found(old.at, hash, &mut client.shared.value)?;
        if client.shared.value != expected {
            return Ok(Swap::Different);
        }
        self.remove_found(client, hash, key, old).map(|()| Swap::Swapped)
    }

    /// Removes the record that `key` has, whose lock the caller holds.
    fn remove_found(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        old: Old,
    ) -> Result<()> {
        if !I::IS_DURABLE {
            self.append(client, hash, key, None)?;
        }
        if !self.0.index.remove(hash, old.at)? {
            return Err(lost_entry(old));
        }
        self.0.core.changes.tell(key, KeyChange::Removed);
        Ok(())
    }
}

/// The entry of a key was changed while the key was locked: by nobody.
#[cold]
fn lost_entry(old: Old) -> Error {
    Error::corrupted("the entry of the index that led to a record has changed", old.at)
}
