//! [`KeyspaceSession`]: how a thread reads and writes a keyspace.

use std::fmt;

use chimera_pmem::{Hardware, Pmem};

#[cfg(doc)]
use super::Keyspace;
use super::{PREFIX_BYTES, Prefix};
use crate::db::Session;
use crate::types::error::{Error, Result};
use crate::types::swap::{Content, Swap};

/// How a thread reads and writes a [`Keyspace`]: a [`Session`] whose keys are those of the keyspace. For durability and cost see
/// there. A key is copied behind the four bytes of the keyspace, which takes no allocation once a key of its length was used.
pub struct KeyspaceSession<P: Pmem = Hardware> {
    session: Session<P>,
    key: PrefixedKey,
}

/// Room for a key behind the bytes of its keyspace.
struct PrefixedKey(Vec<u8>);

impl PrefixedKey {
    fn of(&mut self, key: impl AsRef<[u8]>) -> &[u8] {
        self.0.truncate(PREFIX_BYTES);
        self.0.extend_from_slice(key.as_ref());
        &self.0
    }
}

impl<P: Pmem> KeyspaceSession<P> {
    pub(super) fn new(session: Session<P>, prefix: Prefix) -> Self {
        Self { session, key: PrefixedKey(prefix.to_vec()) }
    }
}

/// Each call is that of [`Session`] which has its name, on a key of the keyspace.
impl<P: Pmem> KeyspaceSession<P> {
    /// See [`Session::put`].
    ///
    /// # Errors
    /// As there.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.session.put(self.key.of(key), value)
    }

    /// See [`Session::put_counter`].
    ///
    /// # Errors
    /// As there.
    pub fn put_counter(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: usize,
    ) -> Result<bool> {
        self.session.put_counter(self.key.of(key), value, at)
    }

    /// See [`Session::put_if_absent`].
    ///
    /// # Errors
    /// As there.
    pub fn put_if_absent(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.session.put_if_absent(self.key.of(key), value)
    }

    /// See [`Session::get`].
    ///
    /// # Errors
    /// As there.
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.session.get(self.key.of(key))
    }

    /// See [`Session::get_with`].
    ///
    /// # Errors
    /// As there.
    pub fn get_with<T>(
        &mut self,
        key: impl AsRef<[u8]>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.session.get_with(self.key.of(key), take)
    }

    /// See [`Session::contains_key`].
    ///
    /// # Errors
    /// As there.
    pub fn contains_key(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.session.contains_key(self.key.of(key))
    }

    /// See [`Session::multi_put`].
    ///
    /// # Errors
    /// As there.
    pub fn multi_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&mut self, records: &[(K, V)]) -> Result<u64> {
        let prefixed = records.iter().map(|(key, value)| (self.key.of(key).to_vec(), value));
        let records: Vec<_> = prefixed.collect();
        self.session.multi_put(&records)
    }

    /// See [`Session::multi_get`].
    ///
    /// # Errors
    /// As there.
    pub fn multi_get<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let keys: Vec<_> = keys.iter().map(|key| self.key.of(key).to_vec()).collect();
        self.session.multi_get(&keys)
    }

    /// See [`Session::update`].
    ///
    /// # Errors
    /// As there.
    pub fn update(
        &mut self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool> {
        self.session.update(self.key.of(key), change)
    }

    /// See [`Session::try_update`].
    ///
    /// # Errors
    /// As there.
    pub fn try_update<E: From<Error>>(
        &mut self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<bool, E> {
        self.session.try_update(self.key.of(key), change)
    }

    /// See [`Session::update_or_insert`].
    ///
    /// # Errors
    /// As there.
    pub fn update_or_insert(
        &mut self,
        key: impl AsRef<[u8]>,
        absent: impl AsRef<[u8]>,
        change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool> {
        self.session.update_or_insert(self.key.of(key), absent, change)
    }

    /// See [`Session::fetch_add_u64`].
    ///
    /// # Errors
    /// As there.
    pub fn fetch_add_u64(
        &mut self,
        key: impl AsRef<[u8]>,
        at: usize,
        delta: u64,
    ) -> Result<Option<u64>> {
        self.session.fetch_add_u64(self.key.of(key), at, delta)
    }

    /// See [`Session::fetch_add_u64_or_insert`].
    ///
    /// # Errors
    /// As there.
    pub fn fetch_add_u64_or_insert(
        &mut self,
        key: impl AsRef<[u8]>,
        at: usize,
        delta: u64,
        absent: impl AsRef<[u8]>,
    ) -> Result<u64> {
        self.session.fetch_add_u64_or_insert(self.key.of(key), at, delta, absent)
    }

    /// See [`Session::compare_and_swap_u64`].
    ///
    /// # Errors
    /// As there.
    pub fn compare_and_swap_u64(
        &mut self,
        key: impl AsRef<[u8]>,
        at: usize,
        expected: u64,
        new: u64,
    ) -> Result<Option<u64>> {
        self.session.compare_and_swap_u64(self.key.of(key), at, expected, new)
    }

    /// See [`Session::compare_and_swap`].
    ///
    /// # Errors
    /// As there.
    pub fn compare_and_swap(
        &mut self,
        key: impl AsRef<[u8]>,
        expected: impl Content,
        new: impl Content,
    ) -> Result<Swap> {
        self.session.compare_and_swap(self.key.of(key), expected, new)
    }

    /// See [`Session::delete`].
    ///
    /// # Errors
    /// As there.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.session.delete(self.key.of(key))
    }

    /// See [`Session::delete_if`].
    ///
    /// # Errors
    /// As there.
    pub fn delete_if(
        &mut self,
        key: impl AsRef<[u8]>,
        condition: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        self.session.delete_if(self.key.of(key), condition)
    }
}

impl<P: Pmem> fmt::Debug for KeyspaceSession<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyspaceSession").field("session", &self.session).finish_non_exhaustive()
    }
}
