//! [`Iter`] and [`Keys`]: the records of a store, one after the other.

use std::fmt;

use chimera_pmem::{Hardware, Pmem};

use super::Db;
use crate::engine::contract::listed::Listed;
use crate::types::error::Result;
use crate::types::losses::Losses;

/// Records that are read at a time, at most; and bytes, unless a single record has more.
const BATCH_RECORDS: usize = 128;
const BATCH_BYTES: usize = 256 << 10;

/// The records of a store, in no order that means anything: see [`Db::iter`].
#[must_use]
pub struct Iter<'a, P: Pmem = Hardware> {
    pages: Batches<'a, P, (Vec<u8>, Vec<u8>)>,
}

/// The keys of a store, in no order that means anything: see [`Db::keys`].
#[must_use]
pub struct Keys<'a, P: Pmem = Hardware> {
    pages: Batches<'a, P, Vec<u8>>,
}

/// What a listing gave, batch by batch. Between two batches nothing is held but the position.
struct Batches<'a, P: Pmem, T> {
    db: &'a Db<P>,
    take: fn(&Listed<'_>) -> T,
    /// Where the next batch begins; none after the last one.
    next: Option<u64>,
    batch: std::vec::IntoIter<T>,
}

impl<P: Pmem, T> Batches<'_, P, T> {
    fn next(&mut self) -> Option<Result<T>> {
        loop {
            if let Some(item) = self.batch.next() {
                return Some(Ok(item));
            }
            let from = self.next.take()?;
            // After an error there is nothing more.
            if let Err(error) = self.fill(from) {
                return Some(Err(error));
            }
        }
    }

    fn fill(&mut self, from: u64) -> Result<()> {
        let (mut batch, mut bytes, mut next) = (Vec::new(), 0, None);
        self.db.list(from, |listed| {
            batch.push((self.take)(listed));
            bytes += listed.key.len() + listed.value.len();
            let is_full = batch.len() >= BATCH_RECORDS || bytes >= BATCH_BYTES;
            // Records at one position are in one batch.
            if is_full && listed.done_below > listed.position {
                next = Some(listed.done_below);
            }
            next.is_none()
        })?;
        self.next = next;
        self.batch = batch.into_iter();
        Ok(())
    }
}

impl<P: Pmem> Iter<'_, P> {
    /// What damage has kept out so far: see [`Db::losses`].
    pub fn losses(&self) -> Losses {
        self.pages.db.losses()
    }
}

impl<P: Pmem> Keys<'_, P> {
    /// What damage has kept out so far: see [`Db::losses`].
    pub fn losses(&self) -> Losses {
        self.pages.db.losses()
    }
}

impl<P: Pmem> Iterator for Iter<'_, P> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pages.next()
    }
}

impl<P: Pmem> Iterator for Keys<'_, P> {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pages.next()
    }
}

impl<P: Pmem> Db<P> {
    /// Every record, in no order that means anything. A key that is there from beginning to end comes exactly
    /// once, with a value that it has meanwhile. Others may write; after an error the iterator ends.
    ///
    /// ```
    /// # use chimera::{Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// db.put(b"apples", b"3")?;
    /// db.put(b"pears", b"5")?;
    /// let mut names = Vec::new();
    /// for record in db.iter() {
    ///     let (key, _value) = record?;
    ///     names.push(key);
    /// }
    /// names.sort();
    /// assert_eq!(names, [b"apples".to_vec(), b"pears".to_vec()]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Items are [`Corrupted`](crate::Error::Corrupted) when a record does not match its checksums. A store that was
    /// opened with salvage leaves it out, and [`Iter::losses`] says so.
    ///
    /// # Cost
    /// Memory for 128 records or 256 KiB of them, whichever is less, and a record. Stopping early is free.
    pub fn iter(&self) -> Iter<'_, P> {
        let take = |listed: &Listed<'_>| (listed.key.to_vec(), listed.value.to_vec());
        Iter { pages: Batches::new(self, take) }
    }

    /// Every key: as [`iter`](Self::iter), without the copies of values.
    pub fn keys(&self) -> Keys<'_, P> {
        Keys { pages: Batches::new(self, |listed| listed.key.to_vec()) }
    }
}

impl<'a, P: Pmem, T> Batches<'a, P, T> {
    fn new(db: &'a Db<P>, take: fn(&Listed<'_>) -> T) -> Self {
        Self { db, take, next: Some(0), batch: Vec::new().into_iter() }
    }
}

impl<'a, P: Pmem> IntoIterator for &'a Db<P> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    type IntoIter = Iter<'a, P>;

    fn into_iter(self) -> Iter<'a, P> {
        self.iter()
    }
}

impl<P: Pmem> fmt::Debug for Iter<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("next", &self.pages.next).finish_non_exhaustive()
    }
}

impl<P: Pmem> fmt::Debug for Keys<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("next", &self.pages.next).finish_non_exhaustive()
    }
}
