//! Point indexes: from the hash of a key to the place of its record.
//!
//! An index never sees a key and never reads a record. It stores 64-bit hashes ("fingerprints") and
//! opaque [`Location`](crate::pool::Location)s. The owner of the records answers, for a location
//! that the index proposes, whether the right record lies there ([`Probe`], [`Resolve`]). Two keys
//! may have the same hash, so an index keeps any number of entries per hash.
//!
//! # Rooms
//! - `volatile/`: indexes in DRAM, rebuilt when a store is opened.
//! - `persistent/`: indexes in persistent memory, which are there when a store is opened.
//! - `probing_table/`: tables of a fixed size with linear probing, in DRAM and in persistent memory: the parts of which an
//!   engine makes the levels of its index. Only in builds with such an engine.
//! - `table_filter/`: filters of such tables in DRAM: which hashes a table may have. Only in builds with such an engine.
//! - `robin_hood_table`: one large table in DRAM, which holds a whole index. Only in builds with an engine that uses it.
//! - `directory`: from a part of a hash to a segment, in DRAM, for both.
//!
//! # What is deliberately absent
//! Nothing here depends on a record format or on an engine. `volatile` does not depend on the layout of a pool either.

mod directory;
pub(crate) mod persistent;
pub(crate) mod probing_table;
#[cfg(all(feature = "baselines", not(loom)))]
pub(crate) mod robin_hood_table;
#[cfg(all(feature = "baselines", not(loom)))]
pub(crate) mod table_filter;
pub(crate) mod volatile;

/// What a verification closure answers for a location that an index proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe<T> {
    /// The record of the key that is looked for is there, live; this was taken from it.
    Found(T),
    /// The location holds something else: another key with the same hash.
    NotThis,
    /// The location holds nothing stable now, for instance because the record is being moved: look
    /// the key up again.
    Retry,
}

/// What is known about a location that has the hash of a record to be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolve {
    /// Another key with the same hash: both stay.
    OtherKey,
    /// The same key, and the record in the index is newer.
    KeepOld,
    /// The same key, and the record to be entered is newer.
    KeepNew,
}

/// More entries of one hash than chance ever brings about: the index takes no more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many keys have the same hash")]
pub(crate) struct TooManyCollisions;

/// There is no memory for an index to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of space for the index")]
pub(crate) struct OutOfSpace;
