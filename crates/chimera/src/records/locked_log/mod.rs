//! The locked log: records of any size, one after the other, in runs of blocks. The log knows where each run ends,
//! how many of its records are live, and to which run it appends. It is told nothing of any index: an engine keeps
//! the offset that [`append`](LockedLog::append) returns, and comes back with it.
//!
//! ```text
//! run   64 bytes of the pool | record | record | .. | end
//! ```
//! [`lengths`](super::lengths) tells what a record consists of.
//!
//! # Who may call
//! One thread at a time appends, retires and recovers: these take `&mut self`. Between them any number may read.
//!
//! # Protocol
//! - **append**: the record behind the last one, but for its first word, and an end behind it; flush, *fence*; the
//!   first word, which makes it live; flush, *fence*.
//! - **retire**: the lowest bit of the first word is cleared; flush, *fence*. A run without live records is freed,
//!   unless it is appended to.
//! - **begin a run**: its first word is made an end before the pool hands it out.
//! - **recover**: each run that the pool found is walked, verified, and written back once more. The engine is given
//!   the live records, retires those that lost, and has the log free the runs in which nothing is live.
//!
//! # Invariants
//! 1. A record is durable before its word says that it is live.
//! 2. Behind the last record of a run lies a word that durably is an end.
//! 3. The first word of a run durably is an end before the run is taken.
//!
//! So no crash leaves a zero where a record begins or the log ends: a zero there is damage. docs/DURABILITY.md has what a crash
//! in each step leaves.

mod append;
mod read;
mod recovery;

use std::collections::BTreeMap;
use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Pmem};

use super::key_hash::KeyHash;
use super::lengths::{BESIDE_BYTES_MAX, span};
use super::limits::Limits;
use crate::pool::{BlockKind, Pool, checked_word, runs};
pub(crate) use read::LogRecord;

/// Where the log stores, flushes and fences.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// An end, where the log of a run that is taken begins.
        BEGIN = "log.begin";
        /// A record and the end behind it, before the record is live.
        RECORD = "log.record";
        /// The word that makes a record live.
        COMMIT = "log.commit";
        /// The word of a record that is retired.
        RETIRE = "log.retire", in_place;
        /// What recovery found, written back once more.
        FOUND = "log.found", may_be_clean;
    }
}

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The checksums of a record that is read.
        READ_CHECK = "log.step.read_check";
    }
}

/// Longest key, in bytes, where a run has room for it.
const KEY_BYTES_MAX: usize = 4096;
/// Bytes of a run that no record can have: the pool's line, and the end behind the last record.
const RUN_OVERHEAD_BYTES: u64 = CACHE_LINE + 8;

/// The word that ends the log of a run at `at`. It is never 0: where a record lost its first word, the records behind it are
/// not lost without an error.
fn end_word(at: u64) -> u64 {
    checked_word::encode_at(0, at)
}

/// A log of records.
pub(crate) struct LockedLog<P: Pmem> {
    pool: Arc<Pool<P>>,
    hash: KeyHash,
    /// The kind of its runs.
    kind: BlockKind,
    /// By the offset of their first record.
    runs: BTreeMap<u64, LogRun>,
    /// The run that is appended to.
    filling: Option<u64>,
    /// The highest version that was given.
    version: u64,
}

/// A run of the log.
struct LogRun {
    run: runs::Run,
    /// Offsets where its last record ends, and where the run does.
    tail: u64,
    end: u64,
    live_records: u64,
}

impl<P: Pmem> LockedLog<P> {
    /// A log without runs, which takes those of this kind.
    pub(crate) fn new(pool: Arc<Pool<P>>, hash: KeyHash, kind: BlockKind) -> Self {
        Self { pool, hash, kind, runs: BTreeMap::new(), filling: None, version: 0 }
    }

    /// The longest key and value.
    pub(crate) fn limits(&self) -> Limits {
        let pool = &self.pool;
        let room = u64::from(pool.run_blocks_max()) * pool.map.block_bytes - RUN_OVERHEAD_BYTES;
        let key_bytes = KEY_BYTES_MAX.min(room as usize / 4);
        let value_bytes =
            (room - span(key_bytes, 0)).min(u64::from(BESIDE_BYTES_MAX)) as usize & !7;
        Limits { key_bytes, value_bytes }
    }
}

#[cfg(test)]
mod tests;
