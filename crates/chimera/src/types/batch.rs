//! [`Batch`]: writes that are made as one, and the conditions under which they are; [`Version`]: what stands for a value.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

/// What stands for a value: a hash of 128 bits, which two values have alike by chance once in 10^38 pairs. A value that was
/// replaced and then restored has the version that it had before.
///
/// ```
/// use chimera::Version;
///
/// assert_eq!(Version::of(b"paid"), Version::of(b"paid"));
/// assert_ne!(Version::of(b"paid"), Version::of(b"sent"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(u128);

impl Version {
    /// That of a value.
    pub fn of(value: impl AsRef<[u8]>) -> Self {
        Self(xxh3_128(value.as_ref()))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({:032x})", self.0)
    }
}

/// Writes that are made as one: all of them or none, whatever ends the process or the machine meanwhile. With conditions, which
/// all hold when they are made, or none is. For [`Session::write`](crate::Session::write).
///
/// ```
/// use chimera::{Batch, Db, Error, Options};
///
/// # fn main() -> Result<(), chimera::Error> {
/// # let directory = tempfile::tempdir().unwrap();
/// let db = Db::open(directory.path().join("data"), &Options::new().segment_bytes(1 << 20))?;
/// let mut order = Batch::new();
/// order
///     .put("order-17", "two pears")
///     .add_u64("orders", 0, 1, 0_u64.to_le_bytes())
///     .delete("basket-5")
///     .require_absent("order-17");
/// db.write(&order)?;
/// // Told twice, it is done once.
/// assert!(matches!(db.write(&order), Err(Error::ConditionFailed { condition: 0 })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub(crate) writes: Vec<(Vec<u8>, Write)>,
    pub(crate) conditions: Vec<(Vec<u8>, Condition)>,
}

/// A write of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Put(Vec<u8>),
    Delete,
    Add { at: usize, delta: u64, absent: Vec<u8> },
}

/// What has to hold of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Absent,
    Value(Vec<u8>),
    Version(Version),
}

impl Condition {
    /// Whether it holds where the key has this value.
    pub(crate) fn holds(&self, value: Option<&[u8]>) -> bool {
        match self {
            Self::Absent => value.is_none(),
            Self::Value(expected) => value == Some(expected),
            Self::Version(version) => value.is_some_and(|value| Version::of(value) == *version),
        }
    }
}

impl Batch {
    /// No writes, and no conditions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores `value` under `key`. Of writes to one key each one finds what the one before has left.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.add(key, Write::Put(value.as_ref().to_vec()))
    }

    /// Removes `key`, if it is there.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(key, Write::Delete)
    }

    /// Adds `delta`, wrapping, to the little-endian number in bytes `at..at + 8` of the value of `key`, or of `absent`, which is
    /// stored then, where there is no such key.
    pub fn add_u64(
        &mut self,
        key: impl AsRef<[u8]>,
        at: usize,
        delta: u64,
        absent: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.add(key, Write::Add { at, delta, absent: absent.as_ref().to_vec() })
    }

    /// Nothing is written unless there is no such key, before any write of the batch.
    pub fn require_absent(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.require(key, Condition::Absent)
    }

    /// Nothing is written unless `key` has this value, before any write of the batch.
    pub fn require_value(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.require(key, Condition::Value(value.as_ref().to_vec()))
    }

    /// Nothing is written unless `key` has a value of this version, before any write of the batch.
    pub fn require_version(&mut self, key: impl AsRef<[u8]>, version: Version) -> &mut Self {
        self.require(key, Condition::Version(version))
    }

    /// The number of writes.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are no writes. There may be conditions.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Removes all writes and conditions.
    pub fn clear(&mut self) {
        self.writes.clear();
        self.conditions.clear();
    }

    /// Whether nothing is to be done or looked at.
    pub(crate) fn is_nothing(&self) -> bool {
        self.writes.is_empty() && self.conditions.is_empty()
    }

    pub(crate) fn require(&mut self, key: impl AsRef<[u8]>, condition: Condition) -> &mut Self {
        self.conditions.push((key.as_ref().to_vec(), condition));
        self
    }

    fn add(&mut self, key: impl AsRef<[u8]>, write: Write) -> &mut Self {
        self.writes.push((key.as_ref().to_vec(), write));
        self
    }
}
