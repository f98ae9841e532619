//! The storage log: records of any size, appended and never changed, in runs of blocks. Each session appends to a run of
//! its own. It is that of ChameleonDB (EuroSys'21, sections 2 and 2.5), with whole keys, checksums, and runs that are freed.
//!
//! ```text
//! run   64 bytes of the pool | 64 bytes: header | record | record | ..
//! ```
//! `layout` has the words of a record, `header` those of a run.
//!
//! # Steps
//! - **append**: the record behind the last one; flush, *fence*. A record certifies itself by its checksums, so nothing
//!   else says that it is there. With batches the flush and the fence come when a session has so many bytes pending; the
//!   record can be read before that.
//! - **begin a run**: its header, with a sequence number that no run had before, is durable before the pool hands it out.
//! - **seal a run**: once all of its records are durable, its header says where they end; flush. The next fence of the
//!   session makes that durable; until then the run is open.
//! - **certify**: all records of an open run are durable; then its header says where they end; flush, *fence*. Damage of these
//!   records is noticed from then on. Without that a damaged last record looks as if it had been cut off.
//! - **mark as flushed**: once all records of a sealed run are in durable tables of the index, its header says so; flush.
//!   Replay begins behind that mark.
//! - **open again**: a run that is not full gets a new sequence number, and its header says that it is open from its tail
//!   on; flush, *fence*. Then it is appended to.
//! - **free**: nothing refers to any record of a sealed run. What was pending when that was so is made durable, as the
//!   successors of its records may be among it. If the run has the highest sequence number, another run's header remembers
//!   the number; flush, *fence*. Then the pool frees it.
//! - **recover**: the headers of all runs; the end of each open run, behind which nothing is cut that was durable. What was
//!   found is written back once more, and open runs are sealed. Then the records that may not be in tables are replayed.
//!
//! # Invariants
//! 1. A sequence number is given once, in all lives of the store. A record names the lower half of the number that its
//!    run had, so bytes of an earlier use of a run are never taken for records of an open one.
//! 2. Records of a session are durable in their order: those in a run before the session appends to another one.
//! 3. Up to the tail in its header all records of a run are durable and sound.
//! 4. A run is freed only when no slot of the index refers to its records and whatever superseded them is durable.
//!
//! # Who may call
//! An [`Appender`] is one session's. Any number of threads may call everything else, but for recovery, which comes before
//! all. No call on the way of a put or a get takes a lock, but where a run or a batch is full. The log is told nothing of
//! an index but numbers: which records are [referred to](StorageLog::dropped) and which are [in
//! tables](StorageLog::flushed).
//!
//! docs/DURABILITY.md has what a crash in each step leaves.

mod append;
mod free;
mod header;
mod layout;
mod read;
mod recovery;
mod replay;
mod runs;
mod sessions;
mod take;
mod walk;

use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Pmem};

use super::key_hash::KeyHash;
use super::limits::Limits;
use crate::pool::{BlockKind, Pool};
use crate::sync::atomic::AtomicU64;
use crate::types::totals::Totals;
pub(crate) use append::{Appended, Appender, NewRecord};
pub(crate) use free::Victim;
use header::HEADER_BYTES;
pub(crate) use read::Record;
pub(crate) use recovery::Recovered;
#[cfg(any(test, feature = "baselines"))]
pub(crate) use recovery::Replayed;
pub(crate) use replay::Unflushed;
use runs::Runs;
use sessions::Sessions;
pub(crate) use walk::Walked;

/// Where the log stores, flushes and fences.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// The header of a run that begins, before the run is taken.
        BEGIN = "storage_log.begin";
        /// A record.
        RECORD = "storage_log.record";
        /// A record that may lie in a run of the reserve: one that is collected, or a tombstone in a full pool.
        KEPT = "storage_log.kept";
        /// A record that waits for its batch.
        PENDING = "storage_log.pending", deferred;
        /// The bytes that a session has pending.
        BATCH = "storage_log.batch";
        /// The end of the records of a run.
        SEAL = "storage_log.seal", in_place, deferred;
        /// The end of the records of an open run that are certain.
        CERTIFY = "storage_log.certify", in_place;
        /// That all records of a run are in durable tables.
        FLUSHED = "storage_log.flushed", in_place, deferred;
        /// A sealed run that is appended to again.
        UNSEAL = "storage_log.unseal", in_place;
        /// The sequence number of a run that is freed, in another run.
        HIGHEST = "storage_log.highest", in_place;
        /// What recovery found, written back once more.
        FOUND = "storage_log.found", may_be_clean;
    }
}

/// Checks and steps that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The checksums of a record that is read.
        READ_CHECK = "storage_log.step.read_check";
        /// The checksums of a record that recovery walks over.
        WALK_CHECK = "storage_log.step.walk_check";
        /// That a record behind the tail of an open run is of the run's sequence number.
        USE_CHECK = "storage_log.step.use_check";
        /// That pending bytes are durable before a run is freed.
        FREE_SYNC = "storage_log.step.free_sync";
    }
}

/// An append-only log of records.
pub(crate) struct StorageLog<P: Pmem> {
    pool: Arc<Pool<P>>,
    hash: KeyHash,
    /// The kind of its runs.
    kind: BlockKind,
    /// Blocks of a run, unless a record needs more.
    run_blocks: u32,
    /// Bytes that a session may have pending; 0 for none.
    batch_bytes: u64,
    /// Bytes that the runs have together which are appended to, about.
    open_bytes_max: u64,
    runs: Runs,
    sessions: Sessions,
    /// Bytes of the fresh runs that were taken for what sessions write.
    session_bytes: AtomicU64,
}

impl<P: Pmem> StorageLog<P> {
    /// A log without runs, which takes those of this kind: of `run_blocks` blocks, or what a larger record needs. A
    /// session may have up to `batch_bytes` bytes of records, and one record more, that are not durable yet.
    pub(crate) fn new(
        pool: Arc<Pool<P>>,
        hash: KeyHash,
        kind: BlockKind,
        run_blocks: u32,
        batch_bytes: u32,
    ) -> Self {
        let run_blocks = run_blocks.clamp(1, pool.run_blocks_max());
        let batch_bytes = batch_bytes.into();
        let (runs, sessions) = (Runs::new(), Sessions::default());
        let (open_bytes_max, session_bytes) = (u64::MAX, AtomicU64::new(0));
        Self {
            pool,
            hash,
            kind,
            run_blocks,
            batch_bytes,
            open_bytes_max,
            runs,
            sessions,
            session_bytes,
        }
    }

    /// Whether sessions may have records pending.
    pub(crate) fn has_batches(&self) -> bool {
        self.batch_bytes > 0
    }

    /// The longest key and value.
    pub(crate) fn limits(&self) -> Limits {
        let room = self.room_in(self.pool.run_blocks_max());
        let key_bytes = layout::KEY_BYTES_MAX.min(room as usize / 4);
        let left = room.saturating_sub(layout::span(key_bytes, 0)) as usize & !7;
        Limits { key_bytes, value_bytes: left.min(layout::VALUE_BYTES_MAX) }
    }

    /// Which runs there are, and where their records end: what an older header would tell otherwise.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let table = self.runs.lock(&*self.pool.environment);
        table.iter().for_each(|(_, entry)| entry.add_to(&mut totals));
        totals
    }

    /// Bytes for records in a run of so many blocks; none where its header does not fit.
    fn room_in(&self, blocks: u32) -> u64 {
        let bytes = u64::from(blocks) * self.pool.map.block_bytes;
        bytes.saturating_sub(CACHE_LINE + HEADER_BYTES)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
