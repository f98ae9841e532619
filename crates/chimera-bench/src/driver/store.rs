//! [`Store`] and [`StoreSession`]: what drivers drive. The store itself, baselines and peers implement
//! them, and are measured by the same loops.
//!
//! More traits say what only some can: [`Create`] of those that a [`Setup`] describes, [`Reopen`] of those that survive
//! being closed, [`Instrument`] of those whose use of persistent memory can be counted. All calls are statically
//! dispatched: a loop is compiled for each implementer.

use std::path::Path;

use chimera::Demand;
use chimera_pmem::{Hardware, Instrumented};

use super::setup::Setup;
use crate::error::{BenchError, Result};
use crate::results::rows::Facts;

/// A store of records under keys, shared by threads.
pub trait Store: Sync + Sized {
    /// How a thread reads and writes.
    type Session: StoreSession;

    /// A session for a thread.
    fn session(&self) -> Self::Session;

    /// Hands every record to `take`, in any order. Nobody writes meanwhile.
    ///
    /// # Errors
    /// When a record cannot be read.
    fn for_each(&self, take: impl FnMut(&[u8], &[u8])) -> Result<()>;

    /// Makes what was acknowledged as durable as the medium can.
    ///
    /// # Errors
    /// When the store refuses.
    fn sync(&self) -> Result<()>;

    /// Closes the store in order.
    ///
    /// # Errors
    /// When something could not be written.
    fn close(self) -> Result<()>;

    /// What it says of itself and of where it is.
    fn facts(&self) -> Facts;

    /// What it needs.
    fn footprint(&self) -> Footprint;
}

/// What a store needs for its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Records in it.
    pub records: u64,
    /// Memory that it says it uses.
    pub dram_bytes: u64,
    /// Persistent memory in use.
    pub pmem_bytes: u64,
}

/// A store that is made as a [`Setup`] says.
pub(crate) trait Create: Store {
    /// Creates an empty store with room for `demand`; in the directory `path`, if it has files.
    fn create(setup: &Setup, path: &Path, demand: &Demand) -> Result<Self>;
}

/// One thread's way to a [`Store`]. Implementers mark every method `inline`: the loops that are timed
/// consist of nothing but such a call.
pub trait StoreSession: Send {
    /// Hands the value of `key` to `take`; `None` when there is no such key.
    ///
    /// # Errors
    /// When the store fails, as for each of these.
    fn get_with<T>(&mut self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>>;

    /// Stores a record; whether the key is new.
    ///
    /// # Errors
    /// When the store fails.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool>;

    /// Stores many records with as few waits as the store can; one after the other unless it can do better.
    ///
    /// # Errors
    /// When the store fails.
    fn put_batch(&mut self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        records.iter().try_for_each(|(key, value)| self.put(key, value).map(|_| ()))
    }

    /// Stores many records, all or none.
    ///
    /// # Errors
    /// When the store fails, or has no batches.
    fn write_atomically(&mut self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let _ = records;
        Err(BenchError::Arguments("this store has no batches".to_owned()))
    }

    /// Reads a value and replaces it by what `change` makes of it; whether the key is there. `change` may be called again.
    /// One step in stores that have such an operation, and a get and a put in others.
    ///
    /// # Errors
    /// When the store fails.
    fn update(&mut self, key: &[u8], mut change: impl FnMut(&mut Vec<u8>)) -> Result<bool> {
        let Some(mut value) = self.get_with(key, <[u8]>::to_vec)? else { return Ok(false) };
        change(&mut value);
        self.put(key, &value).map(|_| true)
    }

    /// Adds to the word at `at` in a value, in place where the store can; what it was before, if the key is there.
    ///
    /// # Errors
    /// When the store fails.
    fn fetch_add_u64(&mut self, key: &[u8], at: usize, delta: u64) -> Result<Option<u64>> {
        let mut old = None;
        self.update(key, |value| {
            let word = value.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
            old = word.map(|word| {
                let old = u64::from_le_bytes(*word);
                *word = old.wrapping_add(delta).to_le_bytes();
                old
            });
        })?;
        Ok(old)
    }

    /// Hands the first `count` records from `start` on to `take`, in the order of keys; how many there were. Only of
    /// stores that are ordered.
    ///
    /// # Errors
    /// When the store fails, or has no order.
    fn scan(&mut self, start: &[u8], count: usize, take: impl FnMut(&[u8])) -> Result<usize> {
        let _ = (start, count, take);
        Err(BenchError::Arguments("this store has no order, and cannot be scanned".to_owned()))
    }

    /// Removes a record; whether it was there.
    ///
    /// # Errors
    /// When the store fails.
    fn delete(&mut self, key: &[u8]) -> Result<bool>;
}

/// A store that is there again after it was closed.
pub(crate) trait Reopen: Create {
    /// Opens the store in `path`.
    fn reopen(setup: &Setup, path: &Path) -> Result<Self>;

    /// Opens the store in `path` by `threads` threads, and does nothing else meanwhile.
    fn recover(setup: &Setup, path: &Path, threads: usize) -> Result<(Self, Recovered)>;
}

/// What opening a store was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Records found.
    pub(crate) records: u64,
    /// From the call to the open store.
    pub(crate) duration_ns: u64,
    /// From the call to the first record of a scan, where keys are kept in their order.
    pub(crate) order: Option<OrderMade>,
}

/// How the order of keys was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderMade {
    /// From what was written at the last close, and not by gathering keys.
    pub(crate) is_loaded: bool,
    /// From the call that opened the store.
    pub(crate) duration_ns: u64,
}

/// A store whose loads, stores, flushes and fences can be counted.
pub(crate) trait Instrument: Store {
    /// Creates an empty store in anonymous memory that counts all it does, and does nothing in the
    /// background.
    fn create_counting(setup: &Setup, demand: &Demand) -> Result<Self>;

    /// Where it is counted.
    fn counters(&self) -> &Instrumented<Hardware>;
}
