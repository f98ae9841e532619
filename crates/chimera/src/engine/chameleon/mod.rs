//! ChameleonDB (EuroSys'21): a storage log, and an index of many shards, each with levels of hash tables in persistent memory.
//! A bypass index in DRAM has all entries of the levels above the last one, so that gets need not look there.
//!
//! # Layers
//! Each is a type that owns the one below it, and calls only what lies below. So all calls run down; what is to be done further
//! up is a value that is returned.
//!
//! | layer | what it does |
//! | --- | --- |
//! | [`Chameleon`] | puts, gets, deletes (`write`, `get`); the face to the rest of the store (`engine`) |
//! | [`Collector`](collector) | runs of the log become free |
//! | [`Flusher`](flusher) | where MemTables go, and when: a full one, by the [mode](modes), or one that pins the log |
//! | [`Compactor`](compactor) | makes tables of MemTables and of tables, by a plan that is made first |
//! | [`Tables`](tables) | writes tables, and installs an [edit](edit) of a shard's tables; [`space`] for them, also in a full pool |
//! | [`Index`](index) | all shards over the log: finds, enters, reads, lists, verifies |
//! | [`Shards`](shards), [`Records`](records) | MemTables, bypass indexes and places of tables of each [`shard`]; the log |
//!
//! [`creation`] and [`recovery`] put them together.
//!
//! # Protocol
//! Every write holds the lock of its shard, a word in DRAM, from before it looks for the key until it is done.
//! - **put**: look for the key; append a record to the session's run of the log, flush, *fence*; enter it in the MemTable.
//!   One fence, whether the key is new or not.
//!   By option it looks for the key in the MemTable alone.
//! - **get**: no lock. Look in the MemTable, the bypass index and the last table; read the record that is found; verify that
//!   no table has moved and no run of the log was freed meanwhile. See [`index`].
//! - **delete**: as a put, of a record without a value: a tombstone.
//! - **flush**: a full MemTable becomes a table of the first level, and goes to the bypass index. The table, with a new copy
//!   of the shard's manifest; *fence*; the word that puts the copy in force, flush, *fence*.
//! - **compaction**: full levels become one table of the next level that has room; if none has, the bypass index and the last
//!   table become a new last table. Steps as for a flush. Then, in DRAM, the log learns which records nothing refers to.
//! - **modes**: a full MemTable goes to the bypass index alone; a full bypass index becomes a last table, or a table of its own.
//!   See [`modes`], and [`latency`] for when gets are protected.
//! - **bound**: a session that has taken a run of the log flushes the shards that the oldest runs wait for. See
//!   [`flusher`].
//! - **recovery**: the manifest is read. What the log has beyond it goes to MemTables, by version. Bypass indexes are made of
//!   tables beside sessions, and runs of the log are freed again when all are.
//! - **collection**: records of runs with little else are [appended anew](collector), so that the runs become free. A full
//!   pool has a [reserve](space) for that, for tombstones and for last tables.
//!
//! - **[baselines]**: an option leaves the bypass index out, and gives each table a helper instead, a
//!   copy or a filter, or nothing. A get looks at one table after the other, the newest one first. A compaction merges tables.
//!   Nothing is collected, and there are no modes. Media are the same.
//!
//! # Invariants
//! 1. A record is durable before a MemTable refers to it.
//! 2. Versions rise within a shard. Every record of a shard up to the manifest's version is in its tables, or superseded by
//!    one that is; a record above it is in the log, and replayed.
//! 3. The newest slot of each key refers to a record that is there, in DRAM and in tables alone. A record is dropped when
//!    something has superseded it and no table refers to it, or a table in force has what superseded it, and that is durable.
//! 4. A slot in the levels above the last one is in force only if the bypass index has it; where there is none, only if no
//!    newer slot is of its key.
//! 5. Of a new key an add-on is told before the MemTable has it. Of a removal it is told when the MemTable has the tombstone.
//!
//! docs/DURABILITY.md has what a crash in each step leaves.

mod baselines;
mod collector;
mod compactor;
mod counts;
mod creation;
mod edit;
mod engine;
mod flusher;
mod get;
mod index;
mod latency;
mod modes;
mod records;
mod recovery;
mod report;
mod runs;
mod shape;
mod shard;
mod shards;
mod sites;
mod space;
mod steps;
mod store;
mod tables;
mod upkeep;
mod write;

pub use counts::{IndexWritten, TablesWritten};
pub(crate) use creation::Type;
pub use latency::ProtectSwitch;
pub use report::{ChameleonInspect, ChameleonStats};
pub(crate) use report::{ChameleonInspect as Inspect, ChameleonStats as Stats};
pub(crate) use store::Chameleon;

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
