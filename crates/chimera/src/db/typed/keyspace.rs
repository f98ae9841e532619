//! [`TypedKeyspace`]: a keyspace whose keys and values have types.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use chimera_pmem::{Hardware, Pmem};

use super::{TypedKey, TypedValue};
use crate::db::{Keyspace, KeyspaceScan, Record, Transaction, Writes};
use crate::types::error::{Error, Result};
use crate::types::swap::{Absent, Swap};

/// A [`Keyspace`] whose keys and values have types: see [`Keyspace::typed`].
///
/// Each call is that of [`Session`](crate::Session) which has its name, with a session that is borrowed for its time. Bytes
/// that are of no such key or value are [`Error::Keyspace`]: a keyspace has one pair of types, which nobody records.
pub struct TypedKeyspace<K, V, P: Pmem = Hardware> {
    keyspace: Keyspace<P>,
    types: PhantomData<fn(K) -> V>,
}

/// The records of a range of keys: see [`TypedKeyspace::scan`].
#[must_use]
pub struct TypedRecords<K, V, P: Pmem = Hardware> {
    scan: KeyspaceScan<P>,
    /// Of the keyspace.
    name: Arc<str>,
    types: PhantomData<fn() -> (K, V)>,
}

fn encoded(key: &impl TypedKey) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode(&mut bytes);
    bytes
}

fn bytes_of(value: &impl TypedValue) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

fn value_of<V: TypedValue>(name: &str, bytes: &[u8]) -> Result<V> {
    let what = "a value is none of its type: use the types that it was written with";
    V::decode(bytes).ok_or_else(|| Error::keyspace(name, what))
}

fn record_of<K: TypedKey, V: TypedValue>(name: &str, (key, value): Record) -> Result<(K, V)> {
    let what = "a key is none of its type: use the types that it was written with";
    let key = K::decode(&key).ok_or_else(|| Error::keyspace(name, what))?;
    Ok((key, value_of(name, &value)?))
}

impl<P: Pmem> Keyspace<P> {
    /// The keyspace with types of keys and values. So a store has records of many types, each in a keyspace of its own.
    ///
    /// ```
    /// # use chimera::{Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let options = Options::new().segment_bytes(1 << 20).ordered(true);
    /// let db = Db::open(directory.path().join("data"), &options)?;
    /// let ages = db.keyspace("ages")?.typed::<String, u8>();
    /// let visits = db.keyspace("visits")?.typed::<(u32, String), u64>();
    /// ages.put(&"Ada".to_owned(), &36)?;
    /// for (day, name) in [(2, "Ada"), (10, "Ada"), (10, "Eve")] {
    ///     visits.put(&(day, name.to_owned()), &1)?;
    /// }
    /// assert_eq!(ages.get(&"Ada".to_owned())?, Some(36));
    /// let since = visits.scan((10, String::new())..)?.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(since[1], ((10, "Eve".to_owned()), 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed<K: TypedKey, V: TypedValue>(self) -> TypedKeyspace<K, V, P> {
        TypedKeyspace { keyspace: self, types: PhantomData }
    }
}

impl<K: TypedKey, V: TypedValue, P: Pmem> TypedKeyspace<K, V, P> {
    /// The keyspace of bytes underneath.
    pub fn keyspace(&self) -> &Keyspace<P> {
        &self.keyspace
    }

    /// See [`Session::put`](crate::Session::put).
    ///
    /// # Errors
    /// As there.
    pub fn put(&self, key: &K, value: &V) -> Result<bool> {
        self.keyspace.put(encoded(key), bytes_of(value))
    }

    /// See [`Session::multi_put`](crate::Session::multi_put).
    ///
    /// # Errors
    /// As there.
    pub fn multi_put(&self, records: &[(K, V)]) -> Result<u64> {
        let bytes = |(key, value): &(K, V)| (encoded(key), bytes_of(value));
        let records: Vec<_> = records.iter().map(bytes).collect();
        self.keyspace.multi_put(&records)
    }

    /// See [`Session::put_if_absent`](crate::Session::put_if_absent).
    ///
    /// # Errors
    /// As there.
    pub fn put_if_absent(&self, key: &K, value: &V) -> Result<bool> {
        self.keyspace.put_if_absent(encoded(key), bytes_of(value))
    }

    /// See [`Session::get`](crate::Session::get).
    ///
    /// # Errors
    /// As there.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        let value = |bytes: &[u8]| value_of(self.keyspace.name(), bytes);
        self.keyspace.get_with(encoded(key), value)?.transpose()
    }

    /// See [`Session::multi_get`](crate::Session::multi_get).
    ///
    /// # Errors
    /// As there.
    pub fn multi_get(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        let keys: Vec<_> = keys.iter().map(encoded).collect();
        let found = self.keyspace.multi_get(&keys)?.into_iter();
        let value = |bytes: Vec<u8>| value_of(self.keyspace.name(), &bytes);
        found.map(|bytes| bytes.map(value).transpose()).collect()
    }

    /// See [`Session::contains_key`](crate::Session::contains_key).
    ///
    /// # Errors
    /// As there.
    pub fn contains_key(&self, key: &K) -> Result<bool> {
        self.keyspace.contains_key(encoded(key))
    }

    /// See [`Session::update`](crate::Session::update).
    ///
    /// # Errors
    /// As there.
    pub fn update(&self, key: &K, mut change: impl FnMut(&mut V)) -> Result<bool> {
        self.try_update(key, |value| {
            change(value);
            Ok(())
        })
    }

    /// See [`Session::try_update`](crate::Session::try_update).
    ///
    /// # Errors
    /// As there.
    pub fn try_update<E: From<Error>>(
        &self,
        key: &K,
        mut change: impl FnMut(&mut V) -> std::result::Result<(), E>,
    ) -> std::result::Result<bool, E> {
        self.keyspace.try_update(encoded(key), |bytes| self.change(bytes, &mut change))
    }

    /// See [`Session::update_or_insert`](crate::Session::update_or_insert).
    ///
    /// # Errors
    /// As there.
    pub fn update_or_insert(
        &self,
        key: &K,
        absent: &V,
        mut change: impl FnMut(&mut V),
    ) -> Result<bool> {
        let (key, absent) = (encoded(key), bytes_of(absent));
        let mut failed = None;
        let is_new = self.keyspace.update_or_insert(key, absent, |bytes| {
            let mut change = |value: &mut V| {
                change(value);
                Ok::<_, Error>(())
            };
            failed = self.change(bytes, &mut change).err();
        })?;
        // What failed before the key was gone is of no matter.
        failed.filter(|_| !is_new).map_or(Ok(is_new), Err)
    }

    /// Makes `new` the value of `key` if that is `expected`; `None` is that the key is not there. See
    /// [`Session::compare_and_swap`](crate::Session::compare_and_swap).
    ///
    /// # Errors
    /// As there.
    pub fn compare_and_swap(&self, key: &K, expected: Option<&V>, new: Option<&V>) -> Result<Swap> {
        let key = encoded(key);
        match (expected.map(bytes_of), new.map(bytes_of)) {
            (Some(expected), Some(new)) => self.keyspace.compare_and_swap(key, expected, new),
            (Some(expected), None) => self.keyspace.compare_and_swap(key, expected, Absent),
            (None, Some(new)) => self.keyspace.compare_and_swap(key, Absent, new),
            (None, None) => self.keyspace.compare_and_swap(key, Absent, Absent),
        }
    }

    /// See [`Session::delete_if`](crate::Session::delete_if).
    ///
    /// # Errors
    /// As there.
    pub fn delete_if(&self, key: &K, mut condition: impl FnMut(&V) -> bool) -> Result<bool> {
        let mut failed = None;
        let deleted = self.keyspace.delete_if(encoded(key), |bytes| {
            let value = value_of(self.keyspace.name(), bytes);
            value
                .map(|value| condition(&value))
                .map_err(|error| failed = Some(error))
                .unwrap_or(false)
        })?;
        // What failed before the value was another one is of no matter.
        failed.filter(|_| !deleted).map_or(Ok(deleted), Err)
    }

    /// See [`Session::delete`](crate::Session::delete).
    ///
    /// # Errors
    /// As there.
    pub fn delete(&self, key: &K) -> Result<bool> {
        self.keyspace.delete(encoded(key))
    }

    /// The value of `key` in a transaction, which may read several keyspaces. See [`Transaction::get`].
    ///
    /// # Errors
    /// As there, and as [`get`](Self::get).
    pub fn get_in(&self, transaction: &mut Transaction<'_, P>, key: &K) -> Result<Option<V>> {
        let value = transaction.get(self.keyspace.key_of(encoded(key)))?;
        value.map(|bytes| value_of(self.keyspace.name(), &bytes)).transpose()
    }

    /// Adds a put to a batch or a transaction, which may write to several keyspaces. See [`Batch::put`](crate::Batch::put).
    pub fn put_in(&self, writes: &mut impl Writes, key: &K, value: &V) {
        writes.add_put(&self.keyspace.key_of(encoded(key)), &bytes_of(value));
    }

    /// Adds a delete to a batch or a transaction. See [`Batch::delete`](crate::Batch::delete).
    pub fn delete_in(&self, writes: &mut impl Writes, key: &K) {
        writes.add_delete(&self.keyspace.key_of(encoded(key)));
    }

    /// The records of a range of keys, in the order of the keys. See [`Db::scan`](crate::Db::scan).
    ///
    /// # Errors
    /// As there.
    pub fn scan(&self, range: impl RangeBounds<K>) -> Result<TypedRecords<K, V, P>> {
        let bound = |bound: Bound<&K>| bound.map(encoded);
        let range = (bound(range.start_bound()), bound(range.end_bound()));
        let name = self.keyspace.name().into();
        Ok(TypedRecords { scan: self.keyspace.scan(range)?, name, types: PhantomData })
    }

    /// The records, in no order that means anything. See [`Db::iter`](crate::Db::iter).
    ///
    /// # Cost
    /// Reads all records of the store.
    pub fn iter(&self) -> impl Iterator<Item = Result<(K, V)>> {
        self.keyspace.iter().map(|record| record_of(self.keyspace.name(), record?))
    }

    /// Changes a value where it lies. What is no value stays as it is.
    fn change<E: From<Error>>(
        &self,
        bytes: &mut Vec<u8>,
        change: &mut impl FnMut(&mut V) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut value = value_of(self.keyspace.name(), bytes)?;
        change(&mut value)?;
        bytes.clear();
        value.encode(bytes);
        Ok(())
    }
}

impl<K: TypedKey, V: TypedValue, P: Pmem> Iterator for TypedRecords<K, V, P> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.scan.next().map(|record| record_of(&self.name, record?))
    }
}

impl<K: TypedKey, V: TypedValue, P: Pmem> DoubleEndedIterator for TypedRecords<K, V, P> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.scan.next_back().map(|record| record_of(&self.name, record?))
    }
}

impl<K, V, P: Pmem> Clone for TypedKeyspace<K, V, P> {
    fn clone(&self) -> Self {
        Self { keyspace: self.keyspace.clone(), types: PhantomData }
    }
}

impl<K, V, P: Pmem> fmt::Debug for TypedKeyspace<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedKeyspace").field("keyspace", &self.keyspace).finish()
    }
}

impl<K, V, P: Pmem> fmt::Debug for TypedRecords<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedRecords").field("scan", &self.scan).finish_non_exhaustive()
    }
}
