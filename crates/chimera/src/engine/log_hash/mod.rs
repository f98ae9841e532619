//! A storage log and one hash table: what ChameleonDB (EuroSys'21, section 3.2) is compared with. The table is either an
//! extendible hash in persistent memory ([`pmem_hash`]) or a robin hood table in DRAM ([`dram_hash`]). For measurements, not
//! for use.
//!
//! # Protocol
//! Every write holds the lock of its key, a word in DRAM, from before it looks for the key until it is done.
//! - **put**: look for the key; append a record to the session's run of the log, flush, *fence*; make the index lead to it.
//!   `pmem-hash` persists that by one more line and fence; `dram-hash` does not.
//!   With batches, which only `dram-hash` has, the flush and the fence come when the session has so many bytes pending.
//! - **get**: no lock. What the index proposes is read, and taken if neither the index nor the log has changed meanwhile.
//! - **delete**: `pmem-hash` removes the entry, durably, and appends nothing. `dram-hash` appends a record without a value, a
//!   tombstone, and then removes the entry.
//! - **recovery**: `pmem-hash` takes its index as it is, and counts. `dram-hash` replays the whole log: of the records of a
//!   key the one with the highest version counts.
//!
//! # Invariants
//! 1. In `pmem-hash` a record is durable before the index leads to it.
//! 2. In `pmem-hash` a key has the value that the index says. The log is never asked which record is the last one.
//! 3. In `dram-hash` the versions of a key's records rise, also over a delete and over a restart.
//! 4. Nothing of the log is ever freed, so a record stays where it is.
//!
//! # What is left out on purpose
//! The log is not collected: what was replaced or deleted takes room until the store is thrown away, and a store is full the
//! earlier. In a full store `dram-hash` cannot delete either.

mod alike;
mod creation;
pub(super) mod dram_hash;
mod engine;
mod index;
mod list;
pub(super) mod pmem_hash;
mod read;
mod recovery;
mod report;
#[cfg(test)]
mod tests;
mod write;

use chimera_pmem::Pmem;

use crate::engine::Core;
use crate::engine::contract::client::{Client, SharedClient};
use crate::engine::shared::KeyLocks;
use crate::pool::BlockKind;
use crate::records::limits::Limits;
use crate::records::storage_log::{Appender, StorageLog};
use crate::sync::atomic::{AtomicU64, Ordering};
use creation::Parameters;
pub use report::{LogHashInspect, LogHashStats};

/// The kinds of runs.
const LOG: BlockKind = BlockKind::new(1, "log_hash.log");
const SEGMENT: BlockKind = BlockKind::new(2, "log_hash.segment");
const DIRECTORY: BlockKind = BlockKind::new(3, "log_hash.directory");

/// Most other keys that have the hash of one that is put.
const COLLISIONS_MAX: u32 = 15;

/// The engine, with an index: one open store.
pub(crate) struct LogHash<P: Pmem, I> {
    core: Core<P>,
    parameters: Parameters,
    limits: Limits,
    log: StorageLog<P>,
    index: I,
    keys: KeyLocks,
    versions: Versions,
    /// What is damaged is passed over.
    salvages: bool,
    /// Bytes of the log that opening has replayed.
    replayed_bytes: u64,
}

/// What a session keeps between operations.
#[derive(Debug)]
pub(crate) struct LogHashClient {
    shared: SharedClient,
    appender: Appender,
}

impl Client for LogHashClient {
    #[inline(always)]
    fn shared(&mut self) -> &mut SharedClient {
        &mut self.shared
    }

    #[inline(always)]
    fn shared_ref(&self) -> &SharedClient {
        &self.shared
    }
}

/// The last version that was given out among the keys of some hashes.
#[derive(Debug)]
struct Versions(Box<[AtomicU64]>);

/// A power of two.
const VERSIONS: u64 = 4096;

impl Versions {
    fn new() -> Self {
        Self((0..VERSIONS).map(|_| AtomicU64::new(0)).collect())
    }

    /// A version that no record of a key with this hash has had, if those that are there were [noted](Self::note).
    #[inline(always)]
    fn next(&self, hash: u64) -> u64 {
        self.of(hash).fetch_add(1, Ordering::Relaxed) + 1
    }

    fn note(&self, hash: u64, version: u64) {
        self.of(hash).fetch_max(version, Ordering::Relaxed);
    }

    fn of(&self, hash: u64) -> &AtomicU64 {
        &self.0[(hash >> 24 & (VERSIONS - 1)) as usize]
    }

    fn bytes(&self) -> u64 {
        size_of_val(&*self.0) as u64
    }
}
