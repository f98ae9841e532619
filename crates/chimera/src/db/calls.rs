//! The calls of [`Session`] that [`Db`] offers as well: each borrows a session for its time.

use chimera_pmem::Pmem;

use super::Db;
#[cfg(doc)]
use super::Session;
use crate::types::error::{Error, Result};
use crate::types::swap::{Content, Swap};

impl<P: Pmem> Db<P> {
    /// Hands the value of `key` to `take`. See [`Session::get_with`].
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn get_with<T>(
        &self,
        key: impl AsRef<[u8]>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.with_client(|client| client.get_with(key.as_ref(), take))
    }

    /// The values of many keys. See [`Session::multi_get`].
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = Vec::with_capacity(keys.len());
        self.multi_get_with(keys, |_, value| values.push(value.map(<[u8]>::to_vec)))?;
        Ok(values)
    }

    /// Hands the values of many keys to `take`. See [`Session::multi_get_with`].
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.with_client(|client| client.multi_get_with(keys, take))
    }

    /// Stores `value` under `key` if there is no such key. See [`Session::put_if_absent`].
    ///
    /// # Errors
    /// As [`Session::put`].
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.with_client(|client| client.insert(key.as_ref(), value.as_ref()))
    }

    /// Stores a value with a number that will be updated. See [`Session::put_counter`].
    ///
    /// # Errors
    /// As [`Session::put_counter`].
    pub fn put_counter(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: usize,
    ) -> Result<bool> {
        self.with_client(|client| client.put_counter(key.as_ref(), value.as_ref(), at))
    }

    /// Replaces the value of `key` by what `change` makes of it. See [`Session::update`].
    ///
    /// # Errors
    /// As [`Session::update`].
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool> {
        self.with_client(|client| {
            client.update(key.as_ref(), |value| {
                change(value);
                true
            })
        })
    }

    /// As [`update`](Self::update), with a `change` that can give up. See [`Session::try_update`].
    ///
    /// # Errors
    /// As [`Session::try_update`].
    pub fn try_update<E: From<Error>>(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<bool, E> {
        let mut stopped = None;
        let found = self.with_client(|client| {
            client.update(key.as_ref(), |value| {
                stopped = change(value).err();
                stopped.is_none()
            })
        })?;
        stopped.map_or(Ok(found), Err)
    }

    /// Replaces the value of `key` by what `change` makes of it, or stores `absent`. See [`Session::update_or_insert`].
    ///
    /// # Errors
    /// As [`Session::update_or_insert`].
    pub fn update_or_insert(
        &self,
        key: impl AsRef<[u8]>,
        absent: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool> {
        self.with_client(|client| {
            client.update_or_insert(key.as_ref(), absent.as_ref(), |value| {
                change(value);
                true
            })
        })
    }

    /// Adds to a number inside a value. See [`Session::fetch_add_u64`].
    ///
    /// # Errors
    /// As [`Session::fetch_add_u64`].
    pub fn fetch_add_u64(
        &self,
        key: impl AsRef<[u8]>,
        at: usize,
        delta: u64,
    ) -> Result<Option<u64>> {
        let add = |old: u64| Some(old.wrapping_add(delta));
        self.with_client(|client| client.update_u64(key.as_ref(), at, add))
    }

    /// Adds to a number inside a value, or of `absent`, which is stored then. See [`Session::fetch_add_u64_or_insert`].
    ///
    /// # Errors
    /// As [`Session::fetch_add_u64_or_insert`].
    pub fn fetch_add_u64_or_insert(
        &self,
        key: impl AsRef<[u8]>,
        at: usize,
        delta: u64,
        absent: impl AsRef<[u8]>,
    ) -> Result<u64> {
        self.with_client(|client| client.add_or_insert(key.as_ref(), (at, delta), absent.as_ref()))
    }

    /// Replaces a number inside a value if it is as expected. See [`Session::compare_and_swap_u64`].
    ///
    /// # Errors
    /// As [`Session::compare_and_swap_u64`].
    pub fn compare_and_swap_u64(
        &self,
        key: impl AsRef<[u8]>,
        at: usize,
        expected: u64,
        new: u64,
    ) -> Result<Option<u64>> {
        let change = |old| (old == expected).then_some(new);
        self.with_client(|client| client.update_u64(key.as_ref(), at, change))
    }

    /// Makes `new` the value of `key` if that is as expected. See [`Session::compare_and_swap`].
    ///
    /// # Errors
    /// As [`Session::compare_and_swap`].
    #[expect(clippy::needless_pass_by_value, reason = "values are written where they are used")]
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: impl Content,
        new: impl Content,
    ) -> Result<Swap> {
        self.with_client(|client| {
            client.compare_and_swap(key.as_ref(), expected.value(), new.value())
        })
    }

    /// Removes `key` if `condition` holds of its value. See [`Session::delete_if`].
    ///
    /// # Errors
    /// As [`Session::delete_if`].
    pub fn delete_if(
        &self,
        key: impl AsRef<[u8]>,
        condition: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        self.with_client(|client| client.delete_if(key.as_ref(), condition))
    }
}
