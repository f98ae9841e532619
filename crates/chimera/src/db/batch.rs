//! Batches and transactions: [`Session::write`], [`Session::transaction`].

use std::collections::BTreeMap;
use std::fmt;

use chimera_pmem::{Hardware, Pmem};

use super::metered::Metered;
use super::{Db, Session};
use crate::types::batch::{Batch, Condition, Version};
use crate::types::error::{Error, Result};

/// Times that a transaction is tried.
const ATTEMPTS: u32 = 64;

impl<P: Pmem> Session<P> {
    /// Makes all writes of a batch, or none: where a condition does not hold, or anything else fails, nothing is changed.
    ///
    /// Other writers see none of a batch, or all of it: they wait for it where they write to one of its keys. Whoever reads
    /// meanwhile does not wait: gets, listings and scans may see some of its writes and not yet others, also of a batch that is
    /// taken back because there is no room for all of it. A [`transaction`](Self::transaction) that has seen such a half is made
    /// again.
    ///
    /// # Errors
    /// [`ConditionFailed`](Error::ConditionFailed); [`FieldOutOfRange`](Error::FieldOutOfRange);
    /// [`BatchSize`](Error::BatchSize) for more than 64 MiB of keys and values, the longer of those before and after; else as
    /// [`put`](Self::put), with nothing changed. In a pool that is as good as full no batch of several keys can be made, not even
    /// of deletes. Where a batch cannot be taken back either, because others took the last room meanwhile, the store refuses
    /// writes ([`Poisoned`](Error::Poisoned)): opening the store again makes the batch, or takes it back.
    ///
    /// # Durability
    /// As [`put`](Self::put), of all writes together. If the process or the machine stops before, all are there, or none.
    ///
    /// # Cost
    /// A [`get`](Self::get) of each key and that many [`put`](Self::put)s and deletes; and, where more than one key changes, the
    /// lines of a record of all changes, 1 line more, and 2 fences: 16 puts of 16 + 200 bytes take 60 lines and 2 fences more than
    /// by themselves. Room for the record is taken by the first batch, and storage for a batch is allocated ahead. In a pool that
    /// is nearly full room is set aside for each batch, and given back: some fences more.
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        self.metered().write(batch)
    }

    /// Does `work`, which reads and writes as if nobody else did meanwhile: what it writes is made as one when it returns, if
    /// nothing that it has read has changed since. Else it is done again, 64 times at most.
    ///
    /// What `work` reads may be of different moments as long as it runs: then it is done again. Nothing is written where it returns
    /// an error.
    ///
    /// # Errors
    /// What `work` says. [`Conflict`](Error::Conflict) when others were faster each time; else as [`write`](Self::write).
    ///
    /// # Durability
    /// As [`write`](Self::write).
    ///
    /// # Cost
    /// That of `work`'s gets, and of [`write`](Self::write), which reads all those keys once more.
    ///
    /// ```
    /// use chimera::{Db, Error, Options};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// let mut session = db.session();
    /// session.put("anna", [70])?;
    /// session.put("ben", [30])?;
    /// session.transaction(|accounts| {
    ///     let (anna, ben) = (accounts.get("anna")?, accounts.get("ben")?);
    ///     let (anna, ben) = (anna.unwrap_or(vec![0])[0], ben.unwrap_or(vec![0])[0]);
    ///     accounts.put("anna", [anna - 20]);
    ///     accounts.put("ben", [ben + 20]);
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(session.get("ben")?, Some(vec![50]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction<T, E: From<Error>>(
        &mut self,
        work: impl FnMut(&mut Transaction<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        transaction(self.metered(), work)
    }
}

impl<P: Pmem> Db<P> {
    /// Makes all writes of a batch, or none. See [`Session::write`].
    ///
    /// # Errors
    /// As [`Session::write`].
    pub fn write(&self, batch: &Batch) -> Result<()> {
        self.with_client(|client| client.write(batch))
    }

    /// Does `work` as if nobody else wrote meanwhile. See [`Session::transaction`].
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn transaction<T, E: From<Error>>(
        &self,
        work: impl FnMut(&mut Transaction<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.with_client(|client| Ok(transaction(client, work)))?
    }
}

fn transaction<P: Pmem, T, E: From<Error>>(
    client: &mut Metered<P>,
    mut work: impl FnMut(&mut Transaction<'_, P>) -> Result<T, E>,
) -> Result<T, E> {
    for attempt in 0..ATTEMPTS {
        let mut transaction = Transaction::new(&mut *client);
        let done = work(&mut transaction)?;
        let Transaction { reads, writes, has_changed, .. } = transaction;
        if !has_changed {
            match client.write(&batch_of(reads, writes)) {
                Err(Error::ConditionFailed { .. }) => {}
                outcome => return outcome.map(|()| done).map_err(E::from),
            }
        }
        client.relax(attempt);
    }
    Err(Error::Conflict { attempts: ATTEMPTS }.into())
}

/// What each key had when it was read first.
type Reads = BTreeMap<Vec<u8>, Option<Version>>;
/// What each key is to have.
type Written = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// What a transaction writes, on condition that what it has read is still so.
fn batch_of(reads: Reads, writes: Written) -> Batch {
    let mut batch = Batch::new();
    for (key, version) in reads {
        batch.require(key, version.map_or(Condition::Absent, Condition::Version));
    }
    for (key, value) in writes {
        match value {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        };
    }
    batch
}

/// What the work of a [transaction](Session::transaction) reads and writes through.
pub struct Transaction<'s, P: Pmem = Hardware> {
    client: &'s mut Metered<P>,
    reads: Reads,
    writes: Written,
    /// A key that was read twice had two values: the transaction is made again.
    has_changed: bool,
}

impl<'s, P: Pmem> Transaction<'s, P> {
    fn new(client: &'s mut Metered<P>) -> Self {
        Self { client, reads: Reads::new(), writes: Written::new(), has_changed: false }
    }

    /// A copy of the value of `key`: what the transaction has written there, if it has.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        if let Some(written) = self.writes.get(key) {
            return Ok(written.clone());
        }
        let value = self.client.get_with(key, <[u8]>::to_vec)?;
        let version = value.as_ref().map(Version::of);
        match self.reads.get(key) {
            Some(before) => self.has_changed |= *before != version,
            None => drop(self.reads.insert(key.to_vec(), version)),
        }
        Ok(value)
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn contains_key(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.get(key).map(|value| value.is_some())
    }

    /// Stores `value` under `key` when the transaction ends.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.writes.insert(key.as_ref().to_vec(), Some(value.as_ref().to_vec()));
    }

    /// Removes `key` when the transaction ends.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.writes.insert(key.as_ref().to_vec(), None);
    }
}

/// What gathers writes of several keys, to be made as one: a [`Batch`], or a [`Transaction`]. Typed stores and keyspaces add to
/// either.
pub trait Writes: sealed::Sealed {
    #[doc(hidden)]
    fn add_put(&mut self, key: &[u8], value: &[u8]);
    #[doc(hidden)]
    fn add_delete(&mut self, key: &[u8]);
}

impl Writes for Batch {
    fn add_put(&mut self, key: &[u8], value: &[u8]) {
        self.put(key, value);
    }

    fn add_delete(&mut self, key: &[u8]) {
        self.delete(key);
    }
}

impl<P: Pmem> Writes for Transaction<'_, P> {
    fn add_put(&mut self, key: &[u8], value: &[u8]) {
        self.put(key, value);
    }

    fn add_delete(&mut self, key: &[u8]) {
        self.delete(key);
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Batch {}
    impl<P: chimera_pmem::Pmem> Sealed for super::Transaction<'_, P> {}
}

impl<P: Pmem> fmt::Debug for Transaction<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("reads", &self.reads.len())
            .field("writes", &self.writes.len())
            .finish_non_exhaustive()
    }
}
