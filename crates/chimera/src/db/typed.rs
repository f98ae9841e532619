//! [`TypedDb`]: keys and values that are plain old data, without serialisation. [`TypedKeyspace`]: keys and values of other types,
//! several of them in one store.

mod key;
mod keyspace;
mod value;

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use chimera_pmem::{Hardware, Pmem};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{Db, Session, Transaction, Writes};
use crate::engine::Options;
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;
pub use key::TypedKey;
pub use keyspace::{TypedKeyspace, TypedRecords};
#[cfg(feature = "postcard")]
pub use value::Encoded;
pub use value::{Plain, TypedValue};

/// A store whose keys and values are plain-old-data types: no padding, no pointers, any bytes valid.
/// Derive the traits with `zerocopy`. Bytes are stored as they are in memory, so choose types with a
/// fixed byte order when stores move between kinds of machines.
///
/// ```
/// use chimera::{Options, TypedDb};
/// use zerocopy::{FromBytes, Immutable, IntoBytes};
///
/// #[derive(Debug, PartialEq, FromBytes, IntoBytes, Immutable)]
/// #[repr(C)]
/// struct Account {
///     balance: u64,
///     limit: u64,
/// }
///
/// # fn main() -> Result<(), chimera::Error> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("data");
/// let db = TypedDb::<u64, Account>::open(&path, &Options::new().segment_bytes(1 << 20))?;
/// let mut session = db.session();
/// session.put(&7, &Account { balance: 100, limit: 10 })?;
/// session.update(&7, |account| account.balance -= 30)?;
/// assert_eq!(session.get(&7)?, Some(Account { balance: 70, limit: 10 }));
/// # Ok(())
/// # }
/// ```
pub struct TypedDb<K, V, P: Pmem = Hardware> {
    db: Db<P>,
    types: PhantomData<fn(K) -> V>,
}

/// What keys and values of a [`TypedDb`] have to be. Implemented by itself.
pub trait PlainData: FromBytes + IntoBytes + Immutable {}
impl<T: FromBytes + IntoBytes + Immutable> PlainData for T {}

impl<K: PlainData, V: PlainData> TypedDb<K, V> {
    /// Opens or creates a store with records of these types' sizes. See [`Db::open`].
    ///
    /// # Errors
    /// As [`Db::open`]; [`Error::Mismatch`] when the store has records of other sizes.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let sizes = u32::try_from(size_of::<K>()).ok().zip(u32::try_from(size_of::<V>()).ok());
        let (key, value) =
            sizes.ok_or_else(|| Error::InvalidOptions("types too large".to_owned()))?;
        Db::open(path, &options.clone().fixed_size(key, value)).map(Self::new)
    }
}

impl<K: PlainData, V: PlainData, P: Pmem> TypedDb<K, V, P> {
    fn new(db: Db<P>) -> Self {
        Self { db, types: PhantomData }
    }

    /// A session: the way for a thread to read and write.
    ///
    /// # Panics
    /// As [`Db::session`].
    pub fn session(&self) -> TypedSession<K, V, P> {
        TypedSession { session: self.db.session(), types: PhantomData }
    }

    /// The store of bytes underneath.
    pub fn db(&self) -> &Db<P> {
        &self.db
    }

    /// The records, in no order that means anything. See [`Db::iter`].
    pub fn iter(&self) -> impl Iterator<Item = Result<(K, V)>> {
        self.db.iter().map(|record| record.map(|(key, value)| (plain(&key), plain(&value))))
    }

    /// The value of `key` in a [transaction](Db::transaction).
    ///
    /// # Errors
    /// As [`Session::get`].
    ///
    /// ```
    /// # use chimera::{Error, Options, TypedDb};
    /// # fn main() -> Result<(), Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let options = Options::new().segment_bytes(1 << 20);
    /// let accounts = TypedDb::<u32, u64>::open(directory.path().join("data"), &options)?;
    /// let mut session = accounts.session();
    /// session.put(&1, &70)?;
    /// session.put(&2, &30)?;
    /// session.session().transaction(|transaction| {
    ///     let from = accounts.get_in(transaction, &1)?.unwrap_or(0);
    ///     let to = accounts.get_in(transaction, &2)?.unwrap_or(0);
    ///     accounts.put_in(transaction, &1, &(from - 20));
    ///     accounts.put_in(transaction, &2, &(to + 20));
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(session.get(&2)?, Some(50));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_in(&self, transaction: &mut Transaction<'_, P>, key: &K) -> Result<Option<V>> {
        Ok(transaction.get(key.as_bytes())?.as_deref().map(plain))
    }

    /// Adds a put to a [`Batch`](crate::Batch) or a transaction.
    pub fn put_in(&self, writes: &mut impl Writes, key: &K, value: &V) {
        writes.add_put(key.as_bytes(), value.as_bytes());
    }

    /// Adds a delete to a [`Batch`](crate::Batch) or a transaction.
    pub fn delete_in(&self, writes: &mut impl Writes, key: &K) {
        writes.add_delete(key.as_bytes());
    }

    /// Closes the store in order. See [`Db::close`].
    ///
    /// # Errors
    /// As [`Db::close`].
    pub fn close(self) -> Result<()> {
        Ok(self.db.close()?)
    }
}

/// How a thread reads and writes a [`TypedDb`]; see [`Session`] for durability and cost.
pub struct TypedSession<K, V, P: Pmem = Hardware> {
    session: Session<P>,
    types: PhantomData<fn(K) -> V>,
}

impl<K: PlainData, V: PlainData, P: Pmem> TypedSession<K, V, P> {
    /// Stores `value` under `key`; tells whether the key is new.
    ///
    /// # Errors
    /// As [`Session::put`].
    pub fn put(&mut self, key: &K, value: &V) -> Result<bool> {
        self.session.put(key.as_bytes(), value.as_bytes())
    }

    /// Stores many records, in order; returns how many keys are new. See [`Session::multi_put`].
    ///
    /// # Errors
    /// As [`Session::multi_put`].
    pub fn multi_put(&mut self, records: &[(K, V)]) -> Result<u64> {
        let records: Vec<_> =
            records.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())).collect();
        self.session.multi_put(&records)
    }

    /// Stores `value` under `key` if there is no such key. See [`Session::put_if_absent`].
    ///
    /// # Errors
    /// As [`Session::put`].
    pub fn put_if_absent(&mut self, key: &K, value: &V) -> Result<bool> {
        self.session.put_if_absent(key.as_bytes(), value.as_bytes())
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn get(&mut self, key: &K) -> Result<Option<V>> {
        self.session.get_with(key.as_bytes(), plain)
    }

    /// The values of many keys, in order. See [`Session::multi_get`].
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn multi_get(&mut self, keys: &[K]) -> Result<Vec<Option<V>>> {
        let keys: Vec<_> = keys.iter().map(IntoBytes::as_bytes).collect();
        let mut values = Vec::with_capacity(keys.len());
        self.session.multi_get_with(&keys, |_, value| values.push(value.map(plain)))?;
        Ok(values)
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn contains_key(&mut self, key: &K) -> Result<bool> {
        self.session.contains_key(key.as_bytes())
    }

    /// Replaces the value of `key` by what `change` makes of it; `false` when there is no such key.
    ///
    /// # Errors
    /// As [`Session::update`].
    pub fn update(&mut self, key: &K, mut change: impl FnMut(&mut V)) -> Result<bool> {
        self.session.update(key.as_bytes(), |bytes| {
            let mut value: V = plain(bytes);
            change(&mut value);
            bytes.copy_from_slice(value.as_bytes());
        })
    }

    /// As [`update`](Self::update), of which `change` may stop with an error of its own: then nothing changes. See
    /// [`Session::try_update`].
    ///
    /// # Errors
    /// As [`Session::try_update`].
    pub fn try_update<E: From<Error>>(
        &mut self,
        key: &K,
        mut change: impl FnMut(&mut V) -> std::result::Result<(), E>,
    ) -> std::result::Result<bool, E> {
        self.session.try_update(key.as_bytes(), |bytes| {
            let mut value: V = plain(bytes);
            change(&mut value)?;
            bytes.copy_from_slice(value.as_bytes());
            Ok(())
        })
    }

    /// Replaces the value of `key` by what `change` makes of it, or stores `absent`. See [`Session::update_or_insert`].
    ///
    /// # Errors
    /// As [`Session::update_or_insert`].
    pub fn update_or_insert(
        &mut self,
        key: &K,
        absent: &V,
        mut change: impl FnMut(&mut V),
    ) -> Result<bool> {
        self.session.update_or_insert(key.as_bytes(), absent.as_bytes(), |bytes| {
            let mut value: V = plain(bytes);
            change(&mut value);
            bytes.copy_from_slice(value.as_bytes());
        })
    }

    /// Makes `new` the value of `key` if that is `expected`. See [`Session::compare_and_swap`].
    ///
    /// # Errors
    /// As [`Session::compare_and_swap`].
    pub fn compare_and_swap(&mut self, key: &K, expected: &V, new: &V) -> Result<Swap> {
        self.session.compare_and_swap(key.as_bytes(), expected.as_bytes(), new.as_bytes())
    }

    /// Removes `key` if `condition` holds of its value. See [`Session::delete_if`].
    ///
    /// # Errors
    /// As [`Session::delete_if`].
    pub fn delete_if(&mut self, key: &K, mut condition: impl FnMut(&V) -> bool) -> Result<bool> {
        self.session.delete_if(key.as_bytes(), |bytes| condition(&plain(bytes)))
    }

    /// Removes `key`; tells whether it was there.
    ///
    /// # Errors
    /// As [`Session::delete`].
    pub fn delete(&mut self, key: &K) -> Result<bool> {
        self.session.delete(key.as_bytes())
    }

    /// The session of bytes underneath, for in-place updates of fields.
    pub fn session(&mut self) -> &mut Session<P> {
        &mut self.session
    }
}

/// A key or a value from bytes of its size, which a store with records of that size gives.
fn plain<T: PlainData>(bytes: &[u8]) -> T {
    T::read_from_bytes(bytes)
        .unwrap_or_else(|_| unreachable!("the store's records have the types' sizes"))
}

impl<K, V, P: Pmem> Clone for TypedDb<K, V, P> {
    fn clone(&self) -> Self {
        Self { db: self.db.clone(), types: PhantomData }
    }
}

impl<K, V, P: Pmem> fmt::Debug for TypedDb<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedDb").field("db", &self.db).finish()
    }
}

impl<K, V, P: Pmem> fmt::Debug for TypedSession<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedSession").field("session", &self.session).finish()
    }
}
