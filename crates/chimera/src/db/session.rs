//! [`Session`]: how a thread reads and writes a store.

use std::fmt;

use chimera_pmem::{Hardware, Pmem};

use super::Db;
use super::metered::Metered;
use crate::types::error::{Error, Result};
use crate::types::operations::OperationStats;
use crate::types::swap::{Content, Swap};

/// How a thread reads and writes a store: Viper's "client" (section 4.1).
///
/// ```
/// use chimera::{Db, Options};
///
/// # fn main() -> Result<(), chimera::Error> {
/// # let directory = tempfile::tempdir().unwrap();
/// let db = Db::open(directory.path().join("data"), &Options::new())?;
/// let mut session = db.session();
/// assert!(session.put("greeting", "hello")?); // a new key
/// session.update("greeting", |value| value.extend_from_slice(b" world"))?; // atomic
/// let length = session.get_with("greeting", <[u8]>::len)?; // no allocation
/// assert_eq!(length, Some(11));
/// session.put_counter("visitors", 0_u64.to_le_bytes(), 0)?;
/// assert_eq!(session.fetch_add_u64("visitors", 0, 1)?, Some(0)); // the number before
/// assert!(session.delete("greeting")?);
/// # Ok(())
/// # }
/// ```
///
/// A session owns a buffer for values, and in stores of Viper the block it inserts into. It may move between
/// threads. When it is dropped its block is given back, for others to fill.
///
/// # Cost
/// Fences and flushed lines in stores of Viper, with records of any size, of 16 + 200 bytes. A fixed size is in brackets.
///
/// | method | fences | lines |
/// | --- | --- | --- |
/// | [`get`](Self::get), [`get_with`](Self::get_with), [`multi_get`](Self::multi_get) | 0 | 0 |
/// | [`put`](Self::put) of a new key | 2 | 4.71 (5.471) |
/// | [`put`](Self::put) over another value | 3; 4 where sessions' clocks differ | 5.71 (6.468) |
/// | [`update`](Self::update) | as a `put` over another value; 1 where one word changes, from the second time on | 5.71 (6.468); 1 |
/// | [`fetch_add_u64`](Self::fetch_add_u64), [`compare_and_swap_u64`](Self::compare_and_swap_u64) | 1, from the second one on; after a [`put_counter`](Self::put_counter) from the first one on | 1 |
/// | [`delete`](Self::delete) | 1 | 1 |
/// | [`multi_put`](Self::multi_put) | as that many puts; on plain files one wait | |
/// | [`write`](Self::write), [`transaction`](Self::transaction) | as its writes, and 2 | as its writes, and of a record of them |
///
/// Costs said below are those of Viper, and sections those of its paper
/// (PVLDB'21). The crate's page has a table of all engines.
pub struct Session<P: Pmem = Hardware> {
    client: Metered<P>,
    /// Dropped last.
    db: Db<P>,
}

impl<P: Pmem> Session<P> {
    pub(super) fn new(db: Db<P>, client: Metered<P>) -> Self {
        Self { client, db }
    }

    /// The store that it belongs to.
    pub fn db(&self) -> &Db<P> {
        &self.db
    }

    pub(super) fn metered(&mut self) -> &mut Metered<P> {
        &mut self.client
    }

    /// Stores `value` under `key`; tells whether the key is new.
    ///
    /// # Errors
    /// [`KeySize`](crate::Error::KeySize), [`ValueSize`](crate::Error::ValueSize);
    /// [`PoolFull`](crate::Error::PoolFull), with nothing changed;
    /// [`MemoryBudget`](crate::Error::MemoryBudget) for a new key, with nothing changed;
    /// [`ReadOnly`](crate::Error::ReadOnly), [`Poisoned`](crate::Error::Poisoned);
    /// [`Corrupted`](crate::Error::Corrupted) when the record to be replaced is damaged.
    ///
    /// # Durability
    /// The new value survives whatever the store's durability promises once the call returns. If the
    /// machine stops before, either the old or the new value is there, whole.
    ///
    /// # Cost
    /// The lines of the record and 1 for its bit, 2 fences (section 4.2). To replace an old record 1 line and 1
    /// fence more; where sessions' clocks differ, the lines of the record's header and 1 fence more again. One
    /// to three cache misses beside. With records of any size the word that has a record's lengths is its bit.
    /// A spilled value costs the lines of its chunks more, and no fence.
    ///
    /// A block that is taken costs 2 fences and 3 lines in all, over the 102 records of 16 + 200 bytes it
    /// holds. One whose records were deleted costs 1 fence more for each of its pages; with records of any
    /// size up to 2, and all lines of the page, which is cleared.
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.client.put(key.as_ref(), value.as_ref())
    }

    /// As [`put`](Self::put), of a value in which bytes `at..at + 8` are a number that will be updated: the first
    /// [`fetch_add_u64`](Self::fetch_add_u64) there costs no more than later ones.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`FieldOutOfRange`](crate::Error::FieldOutOfRange).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// As [`put`](Self::put). The record's checksum leaves the number out, where `at` is a multiple of 8.
    ///
    /// ```
    /// # use chimera::{Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// let mut session = db.session();
    /// session.put_counter("visits", 41_u64.to_le_bytes(), 0)?;
    /// assert_eq!(session.fetch_add_u64("visits", 0, 1)?, Some(41));
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_counter(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: usize,
    ) -> Result<bool> {
        self.client.put_counter(key.as_ref(), value.as_ref(), at)
    }

    /// Stores many records, in order; returns how many keys are new. Of a key that comes twice the last value stays.
    ///
    /// Each record is a [`put`](Self::put) of its own: others may see some of them before the call returns. It is not all
    /// or nothing.
    ///
    /// # Errors
    /// As [`put`](Self::put). Where a key or a value has no possible length, nothing was stored; after any other error
    /// the records before the one that failed were, and are durable as soon as the next write of the store is.
    ///
    /// # Durability
    /// All are durable when the call returns, as [`put`](Self::put) says. If the machine stops before, each key has its
    /// old value or its new one, whole.
    ///
    /// # Cost
    /// As that many [`put`](Self::put)s, but the cache misses of 16 keys in the index overlap; and on plain files with
    /// immediate durability the call waits for one sync, instead of one for each record.
    ///
    /// ```
    /// # use chimera::{Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// let mut session = db.session();
    /// assert_eq!(session.multi_put(&[("apples", "red"), ("pears", "green")])?, 2);
    /// assert_eq!(session.multi_get(&["pears", "plums"])?, [Some(b"green".to_vec()), None]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&mut self, records: &[(K, V)]) -> Result<u64> {
        self.client.multi_put(records)
    }

    /// A copy of the value of `key`.
    ///
    /// # Errors
    /// [`KeySize`](crate::Error::KeySize); [`Corrupted`](crate::Error::Corrupted) when the record
    /// does not match its checksums.
    ///
    /// # Durability
    /// The returned value is as durable as an acknowledged write.
    ///
    /// # Cost
    /// Takes no lock. A cache miss in the index and the lines of the record, with records of any size those
    /// of 256 bytes at least; an allocation, which [`get_with`](Self::get_with) does without. A key that is
    /// not there costs the index alone.
    #[inline]
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// # Cost
    /// As [`get_with`](Self::get_with): the record is read and verified.
    #[inline]
    pub fn contains_key(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.get_with(key, |_| ()).map(|found| found.is_some())
    }

    /// Hands the value of `key` to `take`, from the session's buffer; returns what `take` made of
    /// it, or `None` when there is no such key.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// # Cost
    /// As [`get`](Self::get), without the allocation.
    #[inline]
    pub fn get_with<T>(
        &mut self,
        key: impl AsRef<[u8]>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.client.get_with(key.as_ref(), take)
    }

    /// Gets without what a session adds to its engine: no metering, no waiting for a journal. Returns how many
    /// keys it found. For counting what that addition costs.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[cfg(feature = "baselines")]
    pub fn get_by_engine<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        take: impl FnMut(&[u8]),
    ) -> Result<usize> {
        self.client.get_by_engine(keys, take)
    }

    /// Copies of the values of many keys, in order.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// # Cost
    /// As that many [`get`](Self::get)s, but cache misses of 16 keys overlap: up to three times as
    /// fast on large stores.
    pub fn multi_get<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = Vec::with_capacity(keys.len());
        self.multi_get_with(keys, |_, value| values.push(value.map(<[u8]>::to_vec)))?;
        Ok(values)
    }

    /// Hands the values of many keys to `take`, in order, with the number of the key.
    ///
    /// # Errors
    /// As [`get`](Self::get). Keys before the one that fails have been handed out.
    ///
    /// # Cost
    /// As [`multi_get`](Self::multi_get), without allocations.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.client.multi_get_with(keys, take)
    }

    /// Replaces the value of `key` by what `change` makes of a private copy of it, as one atomic step;
    /// `false` when there is no such key. `change` runs again when another session was faster, and
    /// must not change the length where values have one size.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// A [`get`](Self::get), and what the change costs: within one aligned word of 8 bytes the write of a
    /// [`fetch_add_u64`](Self::fetch_add_u64), otherwise a [`put`](Self::put) (section 4.4), and nothing where
    /// nothing changes.
    pub fn update(
        &mut self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool> {
        self.client.update(key.as_ref(), |value| {
            change(value);
            true
        })
    }

    /// As [`update`](Self::update), with a `change` that can give up with an error of its own: then nothing is changed, and that
    /// error is returned.
    ///
    /// # Errors
    /// What `change` says; else as [`put`](Self::put).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// As [`update`](Self::update).
    ///
    /// ```
    /// # use chimera::{Db, Error, Options};
    /// #[derive(Debug)]
    /// enum Refused {
    ///     TooFew,
    ///     Store(Error),
    /// }
    ///
    /// impl From<Error> for Refused {
    ///     fn from(error: Error) -> Self {
    ///         Self::Store(error)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Refused> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// let mut session = db.session();
    /// session.put("seats", [1])?;
    /// let mut book = || {
    ///     session.try_update("seats", |seats| {
    ///         seats[0] = seats[0].checked_sub(1).ok_or(Refused::TooFew)?;
    ///         Ok(())
    ///     })
    /// };
    /// assert!(book()?);
    /// assert!(matches!(book(), Err(Refused::TooFew)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_update<E: From<Error>>(
        &mut self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<bool, E> {
        let mut stopped = None;
        let found = self.client.update(key.as_ref(), |value| {
            stopped = change(value).err();
            stopped.is_none()
        })?;
        stopped.map_or(Ok(found), Err)
    }

    /// Replaces the value of `key` by what `change` makes of it, or stores `absent` where there is no such key, as one atomic
    /// step; tells whether the key is new. `change` is not asked about `absent`, and may run more than once.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// As [`update`](Self::update); for a new key a look at the index more, and a [`put`](Self::put).
    pub fn update_or_insert(
        &mut self,
        key: impl AsRef<[u8]>,
        absent: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool> {
        self.client.update_or_insert(key.as_ref(), absent.as_ref(), |value| {
            change(value);
            true
        })
    }

    /// Stores `value` under `key` if there is no such key; tells whether there was none. Of several sessions that try so at
    /// once, one is told so.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// As [`put`](Self::put). Where the key is there, the record is looked at and nothing is written.
    ///
    /// ```
    /// # use chimera::{Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// let mut session = db.session();
    /// assert!(session.put_if_absent("order-17", "paid")?);
    /// assert!(!session.put_if_absent("order-17", "paid twice")?);
    /// assert_eq!(session.get("order-17")?.as_deref(), Some(&b"paid"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_if_absent(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.client.insert(key.as_ref(), value.as_ref())
    }

    /// Adds `delta`, wrapping, to the little-endian number in bytes `at..at + 8` of the value of
    /// `key`; returns what it was before, or `None` when there is no such key.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`FieldOutOfRange`](crate::Error::FieldOutOfRange).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// Where `at` is a multiple of 8: 1 line, 1 fence, once the record's checksum leaves these 8 bytes out. The first
    /// update of a record takes them out: it costs a [`get`](Self::get) and a [`put`](Self::put), room for a new
    /// record included. So does the first one after a `put`, one of another word than the last, and any one behind
    /// the first 65,528 bytes of a value. The rest of the record stays verified. Where `at` is no multiple of 8: as
    /// [`update`](Self::update).
    #[inline]
    pub fn fetch_add_u64(
        &mut self,
        key: impl AsRef<[u8]>,
        at: usize,
        delta: u64,
    ) -> Result<Option<u64>> {
        let add = |old: u64| Some(old.wrapping_add(delta));
        self.client.update_u64(key.as_ref(), at, add)
    }

    /// As [`fetch_add_u64`](Self::fetch_add_u64); where there is no such key, `absent` is stored with `delta` added to its number.
    /// Returns the number before: that of `absent` for a new key.
    ///
    /// # Errors
    /// As [`fetch_add_u64`](Self::fetch_add_u64).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// As [`fetch_add_u64`](Self::fetch_add_u64); for a new key a look at the index more, and a [`put`](Self::put).
    ///
    /// ```
    /// # use chimera::{Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// let mut session = db.session();
    /// assert_eq!(session.fetch_add_u64_or_insert("visits", 0, 1, [0; 8])?, 0);
    /// assert_eq!(session.fetch_add_u64_or_insert("visits", 0, 1, [0; 8])?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fetch_add_u64_or_insert(
        &mut self,
        key: impl AsRef<[u8]>,
        at: usize,
        delta: u64,
        absent: impl AsRef<[u8]>,
    ) -> Result<u64> {
        self.client.add_or_insert(key.as_ref(), (at, delta), absent.as_ref())
    }

    /// Stores `new` in bytes `at..at + 8` of the value of `key`, little-endian, if `expected` is
    /// there; returns the number before, or `None` when there is no such key.
    ///
    /// # Errors
    /// As [`fetch_add_u64`](Self::fetch_add_u64).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// As [`fetch_add_u64`](Self::fetch_add_u64). Where the number is not `expected`, nothing is written.
    #[inline]
    pub fn compare_and_swap_u64(
        &mut self,
        key: impl AsRef<[u8]>,
        at: usize,
        expected: u64,
        new: u64,
    ) -> Result<Option<u64>> {
        let change = |old| (old == expected).then_some(new);
        self.client.update_u64(key.as_ref(), at, change)
    }

    /// Makes `new` the value of `key` if that is `expected`. Each of both is a value or [`Absent`](crate::Absent): so a key is
    /// made if there is none, or removed if it has a certain value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// As [`update`](Self::update), but the value is compared where it lies. From `Absent` as
    /// [`put_if_absent`](Self::put_if_absent), to `Absent` as [`delete_if`](Self::delete_if).
    ///
    /// ```
    /// # use chimera::{Absent, Db, Options, Swap};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// let mut session = db.session();
    /// assert_eq!(session.compare_and_swap("lock", Absent, "mine")?, Swap::Swapped);
    /// assert_eq!(session.compare_and_swap("lock", Absent, "yours")?, Swap::Different);
    /// assert_eq!(session.compare_and_swap("lock", "mine", Absent)?, Swap::Swapped);
    /// assert!(!session.contains_key("lock")?);
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::needless_pass_by_value, reason = "values are written where they are used")]
    pub fn compare_and_swap(
        &mut self,
        key: impl AsRef<[u8]>,
        expected: impl Content,
        new: impl Content,
    ) -> Result<Swap> {
        self.client.compare_and_swap(key.as_ref(), expected.value(), new.value())
    }

    /// Removes `key`; tells whether it was there.
    ///
    /// # Errors
    /// As [`get`](Self::get); [`ReadOnly`](crate::Error::ReadOnly),
    /// [`Poisoned`](crate::Error::Poisoned).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// 1 line, 1 fence (section 4.5).
    #[inline]
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.client.delete(key.as_ref())
    }

    /// Removes `key` if `condition` holds of its value, as one atomic step; tells whether it was removed. `condition` is asked
    /// again when the value has changed meanwhile.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    ///
    /// # Durability
    /// As [`put`](Self::put).
    ///
    /// # Cost
    /// A [`get`](Self::get), and a [`delete`](Self::delete) that compares the value where it lies.
    ///
    /// ```
    /// # use chimera::{Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// let mut session = db.session();
    /// session.put("session-1", [20])?;
    /// let now = 30;
    /// assert!(session.delete_if("session-1", |expires| expires[0] < now)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_if(
        &mut self,
        key: impl AsRef<[u8]>,
        condition: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        self.client.delete_if(key.as_ref(), condition)
    }

    /// What this session has done since it was opened. Other threads ask
    /// [`Db::session_stats`](super::Db::session_stats). When it ends its counts stay in
    /// [`Db::stats`](super::Db::stats).
    ///
    /// # Cost
    /// Some microseconds.
    pub fn stats(&self) -> OperationStats {
        self.client.stats()
    }

    /// The number under which counters book this session.
    pub fn number(&self) -> u32 {
        self.client.number()
    }
}

impl<P: Pmem> Drop for Session<P> {
    fn drop(&mut self) {
        self.client.end();
    }
}

impl<P: Pmem> fmt::Debug for Session<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("number", &self.client.number()).finish_non_exhaustive()
    }
}
