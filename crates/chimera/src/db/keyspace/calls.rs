//! The calls of a session that a [`Keyspace`] offers as well.

use chimera_pmem::Pmem;

use super::{Keyspace, with_prefix};
#[cfg(doc)]
use crate::db::Session;
use crate::types::error::{Error, Result};
use crate::types::swap::{Content, Swap};

/// Each call is that of [`Session`] which has its name, on a key of the keyspace, with a session that is borrowed for its time: for
/// threads that do not more than a few operations.
impl<P: Pmem> Keyspace<P> {
    /// The key as the store itself has it: for batches and transactions, which may write to several keyspaces.
    ///
    /// ```
    /// # use chimera::{Batch, Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path().join("data"), &Options::new().ordered(true).segment_bytes(1 << 20))?;
    /// let (orders, stock) = (db.keyspace("orders")?, db.keyspace("stock")?);
    /// let mut batch = Batch::new();
    /// batch.put(orders.key_of("17"), "pears").put(stock.key_of("pears"), [2]);
    /// db.write(&batch)?;
    /// assert_eq!(stock.get("pears")?, Some(vec![2]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_of(&self, key: impl AsRef<[u8]>) -> Vec<u8> {
        with_prefix(self.prefix, key.as_ref())
    }

    /// See [`Session::put`].
    ///
    /// # Errors
    /// As there.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.db.put(self.key_of(key), value)
    }

    /// See [`Session::put_counter`].
    ///
    /// # Errors
    /// As there.
    pub fn put_counter(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: usize,
    ) -> Result<bool> {
        self.db.put_counter(self.key_of(key), value, at)
    }

    /// See [`Session::put_if_absent`].
    ///
    /// # Errors
    /// As there.
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.db.put_if_absent(self.key_of(key), value)
    }

    /// See [`Session::get`].
    ///
    /// # Errors
    /// As there.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.db.get(self.key_of(key))
    }

    /// See [`Session::get_with`].
    ///
    /// # Errors
    /// As there.
    pub fn get_with<T>(
        &self,
        key: impl AsRef<[u8]>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.db.get_with(self.key_of(key), take)
    }

    /// See [`Session::contains_key`].
    ///
    /// # Errors
    /// As there.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.db.contains_key(self.key_of(key))
    }

    /// See [`Session::multi_put`].
    ///
    /// # Errors
    /// As there.
    pub fn multi_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, records: &[(K, V)]) -> Result<u64> {
        let prefixed = records.iter().map(|(key, value)| (self.key_of(key), value));
        let records: Vec<_> = prefixed.collect();
        self.db.multi_put(&records)
    }

    /// See [`Session::multi_get`].
    ///
    /// # Errors
    /// As there.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let keys: Vec<_> = keys.iter().map(|key| self.key_of(key)).collect();
        self.db.multi_get(&keys)
    }

    /// See [`Session::update`].
    ///
    /// # Errors
    /// As there.
    pub fn update(&self, key: impl AsRef<[u8]>, change: impl FnMut(&mut Vec<u8>)) -> Result<bool> {
        self.db.update(self.key_of(key), change)
    }

    /// See [`Session::try_update`].
    ///
    /// # Errors
    /// As there.
    pub fn try_update<E: From<Error>>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<bool, E> {
        self.db.try_update(self.key_of(key), change)
    }

    /// See [`Session::update_or_insert`].
    ///
    /// # Errors
    /// As there.
    pub fn update_or_insert(
        &self,
        key: impl AsRef<[u8]>,
        absent: impl AsRef<[u8]>,
        change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool> {
        self.db.update_or_insert(self.key_of(key), absent, change)
    }

    /// See [`Session::fetch_add_u64`].
    ///
    /// # Errors
    /// As there.
    pub fn fetch_add_u64(
        &self,
        key: impl AsRef<[u8]>,
        at: usize,
        delta: u64,
    ) -> Result<Option<u64>> {
        self.db.fetch_add_u64(self.key_of(key), at, delta)
    }

    /// See [`Session::fetch_add_u64_or_insert`].
    ///
    /// # Errors
    /// As there.
    pub fn fetch_add_u64_or_insert(
        &self,
        key: impl AsRef<[u8]>,
        at: usize,
        delta: u64,
        absent: impl AsRef<[u8]>,
    ) -> Result<u64> {
        self.db.fetch_add_u64_or_insert(self.key_of(key), at, delta, absent)
    }

    /// See [`Session::compare_and_swap_u64`].
    ///
    /// # Errors
    /// As there.
    pub fn compare_and_swap_u64(
        &self,
        key: impl AsRef<[u8]>,
        at: usize,
        expected: u64,
        new: u64,
    ) -> Result<Option<u64>> {
        self.db.compare_and_swap_u64(self.key_of(key), at, expected, new)
    }

    /// See [`Session::compare_and_swap`].
    ///
    /// # Errors
    /// As there.
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: impl Content,
        new: impl Content,
    ) -> Result<Swap> {
        self.db.compare_and_swap(self.key_of(key), expected, new)
    }

    /// See [`Session::delete`].
    ///
    /// # Errors
    /// As there.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.db.delete(self.key_of(key))
    }

    /// See [`Session::delete_if`].
    ///
    /// # Errors
    /// As there.
    pub fn delete_if(
        &self,
        key: impl AsRef<[u8]>,
        condition: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        self.db.delete_if(self.key_of(key), condition)
    }
}
