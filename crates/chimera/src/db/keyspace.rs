//! [`Keyspace`]: a named part of a store, whose keys are apart from all others.
//!
//! Its keys have four bytes in front: 0xFF, and its number, the highest byte first. Number 0 is where names are: behind these
//! four bytes a name, and as its value the number of the keyspace and whether it is being dropped. Under the four bytes alone is
//! the number that the next one gets. Numbers are not used again.

mod calls;
mod session;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use chimera_pmem::{Hardware, Pmem};

#[cfg(doc)]
use super::Session;
use super::{Db, KeyRange, Record, Scan, prefix_range};
use crate::types::error::{Error, Result};
use crate::types::swap::{Absent, Swap};
pub use session::KeyspaceSession;

/// The first byte of all keys of keyspaces.
const MARK: u8 = 0xff;
/// Bytes in front of a key.
const PREFIX_BYTES: usize = 4;
/// The highest number.
const NUMBER_MAX: u64 = (1 << 24) - 1;
/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 255;
/// In the value of a name: it is being dropped.
const DROPPED: u64 = 1 << 32;

type Prefix = [u8; PREFIX_BYTES];

/// A named part of a store: see [`Db::keyspace`].
///
/// All calls and scans stay inside: two keyspaces may have the same key. It is a handle of the store, as a clone of [`Db`] is.
pub struct Keyspace<P: Pmem = Hardware> {
    db: Db<P>,
    name: Arc<str>,
    prefix: Prefix,
}

/// The records of a range of keys of a keyspace: see [`Keyspace::scan`].
#[must_use]
pub struct KeyspaceScan<P: Pmem = Hardware>(Scan<P>);

fn prefix_of(number: u64) -> Prefix {
    let [.., high, middle, low] = number.to_be_bytes();
    [MARK, high, middle, low]
}

fn with_prefix(prefix: Prefix, key: &[u8]) -> Vec<u8> {
    [&prefix[..], key].concat()
}

/// The same range, of keys with a prefix.
fn range_of(prefix: Prefix, range: &impl KeyRange) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let (from, to) = range.bounds();
    let (first, behind) = prefix_range(&prefix);
    let bound = |bound: Bound<&[u8]>, none: Bound<Vec<u8>>| match bound {
        Bound::Included(key) => Bound::Included(with_prefix(prefix, key)),
        Bound::Excluded(key) => Bound::Excluded(with_prefix(prefix, key)),
        Bound::Unbounded => none,
    };
    (bound(from, first), bound(to, behind))
}

/// The number in the value of a name, and whether the keyspace is being dropped.
fn number_in(name: &str, value: &[u8]) -> Result<(u64, bool)> {
    let word = value.try_into().map(u64::from_le_bytes).unwrap_or_default();
    let (number, is_dropped) = (word & !DROPPED, word & DROPPED != 0);
    if number == 0 || number > NUMBER_MAX {
        return Err(Error::keyspace(
            name,
            "its record says no number: the store's own keys must not begin with the byte 255",
        ));
    }
    Ok((number, is_dropped))
}

impl<P: Pmem> Db<P> {
    /// The keyspace of this name, which is made if there is none. Its keys are apart from those of all other keyspaces and from
    /// those of the store itself, which must not begin with the byte 255 from then on: those are the keys of keyspaces.
    ///
    /// Calls of the store itself see the keys of all keyspaces, with four bytes in front. So do exports: import one into a store that
    /// has no keyspaces of its own, else those of one number become one.
    ///
    /// # Errors
    /// [`Error::Keyspace`] for a name that is empty or longer than 255 bytes, in a store of records of a fixed size, when there
    /// have been 16,777,215 keyspaces, and for one that is not there in a store that is open for reading only; as
    /// [`Session::put`].
    ///
    /// # Durability
    /// A new keyspace is as durable as a [`put`](Self::put).
    ///
    /// # Cost
    /// A get. To make one an addition, a sync, a get of each name, and a put; without order two listings of all keys of the store.
    ///
    /// ```
    /// # use chimera::{Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
    /// let (users, orders) = (db.keyspace("users")?, db.keyspace("orders")?);
    /// users.session().put("17", "Ada")?;
    /// orders.session().put("17", "apples")?;
    /// assert_eq!(users.session().get("17")?.as_deref(), Some(&b"Ada"[..]));
    /// assert_eq!(db.keyspaces()?, ["orders", "users"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyspace(&self, name: &str) -> Result<Keyspace<P>> {
        let record = self.keyspace_record(name)?;
        let none_to_read =
            || Error::keyspace(name, "there is none, and the store is open for reading only");
        loop {
            match self.get(&record)? {
                Some(value) => match number_in(name, &value)? {
                    (number, false) => {
                        let (db, prefix) = (self.clone(), prefix_of(number));
                        return Ok(Keyspace { db, name: name.into(), prefix });
                    }
                    // Whoever began may have ended in the middle.
                    (number, true) if !self.pool().read_only => self.end_drop(&record, number)?,
                    (_, true) => return Err(none_to_read()),
                },
                None if self.pool().read_only => return Err(none_to_read()),
                None => {
                    let next = self.free_number()?;
                    if next > NUMBER_MAX {
                        return Err(Error::keyspace(
                            name,
                            "there have been as many as there are numbers: make a new store",
                        ));
                    }
                    self.compare_and_swap(&record, Absent, next.to_le_bytes())?;
                }
            }
        }
    }

    /// The names of all keyspaces, in their order.
    ///
    /// # Errors
    /// As [`scan`](Self::scan), or [`keys`](Self::keys) in a store without order.
    ///
    /// # Cost
    /// A scan of the names; without order a listing of all keys of the store.
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.for_names(|name, _, is_dropped| {
            if !is_dropped {
                names.push(name.to_owned());
            }
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// Removes a keyspace with all of its keys; tells whether there was one. Handles of it must not be used any more: what they
    /// write belongs to no keyspace.
    ///
    /// It is not all or nothing. Who opens a keyspace of this name meanwhile, or after an end in the middle, waits until all keys
    /// are gone, and gets an empty one.
    ///
    /// # Errors
    /// As [`keyspaces`](Self::keyspaces) and [`delete`](Self::delete).
    ///
    /// # Cost
    /// As [`keyspaces`](Self::keyspaces), and a delete for each key.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        let record = self.keyspace_record(name)?;
        loop {
            let Some(value) = self.get(&record)? else { return Ok(false) };
            let (number, is_dropped) = number_in(name, &value)?;
            let dropped = (number | DROPPED).to_le_bytes();
            match self.compare_and_swap(&record, &value, dropped) {
                Ok(Swap::Swapped) => self.end_drop(&record, number)?,
                _ if is_dropped => self.end_drop(&record, number)?,
                Ok(_) => continue,
                // The mark needs room. Keys can go without it, and make some.
                Err(Error::PoolFull { .. }) => {
                    self.delete_all(number)?;
                    if self.compare_and_swap(&record, value, Absent)? != Swap::Swapped {
                        continue;
                    }
                }
                Err(error) => return Err(error),
            }
            return Ok(true);
        }
    }

    /// The key under which a name is.
    fn keyspace_record(&self, name: &str) -> Result<Vec<u8>> {
        if self.kind().is_fixed() {
            return Err(Error::keyspace(
                name,
                "records of this store have one size: make one of any size",
            ));
        }
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(Error::keyspace(name, "a name has 1 to 255 bytes"));
        }
        Ok(with_prefix(prefix_of(0), name.as_bytes()))
    }

    /// Removes all keys of a keyspace that is being dropped, then its name.
    fn end_drop(&self, record: &[u8], number: u64) -> Result<()> {
        self.delete_all(number)?;
        self.compare_and_swap(record, (number | DROPPED).to_le_bytes(), Absent).map(drop)
    }

    fn delete_all(&self, number: u64) -> Result<()> {
        self.for_keys_of(prefix_of(number), |key| self.delete(key).map(drop))
    }

    /// A number that no keyspace has, nor any key: the one that is written down as the next may be too low, where it was left out
    /// by salvage or comes from an import.
    fn free_number(&self) -> Result<u64> {
        loop {
            let next = self.fetch_add_u64_or_insert(prefix_of(0), 0, 1, 1_u64.to_le_bytes())?;
            // Before anything depends on it: writes of two sessions may become durable in any order.
            self.sync()?;
            if next > NUMBER_MAX {
                return Ok(next);
            }
            let mut is_free = true;
            self.for_names(|_, number, _| is_free &= number != next)?;
            self.for_keys_of(prefix_of(next), |_| {
                is_free = false;
                Ok(())
            })?;
            if is_free {
                return Ok(next);
            }
        }
    }

    /// Hands each name to `take`, with its number and whether the keyspace is being dropped.
    fn for_names(&self, mut take: impl FnMut(&str, u64, bool)) -> Result<()> {
        let mut names = Vec::new();
        self.for_keys_of(prefix_of(0), |key| {
            let name = key.get(PREFIX_BYTES..).filter(|name| !name.is_empty());
            names.extend(name.map(<[u8]>::to_vec));
            Ok(())
        })?;
        for name in names {
            let Some(value) = self.get(with_prefix(prefix_of(0), &name))? else { continue };
            let name = String::from_utf8_lossy(&name);
            let (number, is_dropped) = number_in(&name, &value)?;
            take(&name, number, is_dropped);
        }
        Ok(())
    }

    /// Hands all keys with a prefix to `take`, which may delete them.
    fn for_keys_of(&self, prefix: Prefix, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if self.is_ordered() {
            return self.scan_prefix(prefix)?.try_for_each(|record| take(&record?.0));
        }
        for key in self.keys() {
            let key = key?;
            if key.starts_with(&prefix) {
                take(&key)?;
            }
        }
        Ok(())
    }
}

impl<P: Pmem> Keyspace<P> {
    /// A session of the keyspace.
    ///
    /// # Panics
    /// As [`Db::session`].
    pub fn session(&self) -> KeyspaceSession<P> {
        KeyspaceSession::new(self.db.session(), self.prefix)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The store that it is a part of.
    pub fn db(&self) -> &Db<P> {
        &self.db
    }

    /// How many keys there are, roughly while others write.
    ///
    /// # Errors
    /// As [`Db::keyspaces`].
    ///
    /// # Cost
    /// Reads every record of the keyspace; without order all keys of the store.
    pub fn count(&self) -> Result<u64> {
        let mut count = 0;
        self.db.for_keys_of(self.prefix, |_| {
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    /// The records of a range of keys, in the order of the keys. See [`Db::scan`].
    ///
    /// # Errors
    /// As [`Db::scan`].
    pub fn scan(&self, range: impl KeyRange) -> Result<KeyspaceScan<P>> {
        self.db.scan(range_of(self.prefix, &range)).map(KeyspaceScan)
    }

    /// The records whose keys begin with `prefix`. See [`Db::scan_prefix`].
    ///
    /// # Errors
    /// As [`Db::scan`].
    pub fn scan_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<KeyspaceScan<P>> {
        self.db.scan_prefix(with_prefix(self.prefix, prefix.as_ref())).map(KeyspaceScan)
    }

    /// The record with the lowest key.
    ///
    /// # Errors
    /// As [`Db::scan`].
    pub fn first(&self) -> Result<Option<Record>> {
        self.scan(..)?.next().transpose()
    }

    /// The record with the highest key.
    ///
    /// # Errors
    /// As [`Db::scan`].
    pub fn last(&self) -> Result<Option<Record>> {
        self.scan(..)?.next_back().transpose()
    }

    /// Removes the keys of a range. See [`Db::delete_range`].
    ///
    /// # Errors
    /// As [`Db::delete_range`].
    pub fn delete_range(&self, range: impl KeyRange) -> Result<u64> {
        self.db.delete_range(range_of(self.prefix, &range))
    }

    /// The records, in no order that means anything. See [`Db::iter`].
    ///
    /// # Cost
    /// Reads all records of the store.
    pub fn iter(&self) -> impl Iterator<Item = Result<Record>> {
        let prefix = self.prefix;
        self.db.iter().filter_map(move |record| match record {
            Ok((key, value)) => {
                let key = key.strip_prefix(&prefix[..])?.to_vec();
                Some(Ok((key, value)))
            }
            Err(error) => Some(Err(error)),
        })
    }
}

impl<P: Pmem> KeyspaceScan<P> {
    fn inside(record: Result<Record>) -> Result<Record> {
        record.map(|(mut key, value)| {
            key.drain(..PREFIX_BYTES);
            (key, value)
        })
    }
}

impl<P: Pmem> Iterator for KeyspaceScan<P> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Self::inside)
    }
}

impl<P: Pmem> DoubleEndedIterator for KeyspaceScan<P> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(Self::inside)
    }
}

impl<P: Pmem> std::iter::FusedIterator for KeyspaceScan<P> {}

impl<P: Pmem> Clone for Keyspace<P> {
    fn clone(&self) -> Self {
        Self { db: self.db.clone(), name: self.name.clone(), prefix: self.prefix }
    }
}

impl<P: Pmem> fmt::Debug for Keyspace<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<P: Pmem> fmt::Debug for KeyspaceScan<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyspaceScan").field(&self.0).finish()
    }
}
