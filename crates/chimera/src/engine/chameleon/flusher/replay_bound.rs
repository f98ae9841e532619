//! The bound of replay: in the normal mode a restart replays at most so many bytes of the log, whatever the order of writes
//! was. A MemTable that is hardly written to would pin the log where its oldest record lies.
//!
//! A fourth of the bound is for the runs that sessions append to, which are shorter where there are many sessions; half of it
//! for those that are full. What is over that is put into tables, from the oldest run on, by the session that takes another
//! run, or by who has collected one, in turn: about two bytes for each byte of the run that was taken. So it gets less where
//! a mode without a bound, or another bound, left more. The last fourth is for the runs that sessions fill until it is their turn.
//!
//! Records of a run are found by walking it. Where the MemTable of a shard refers to one of them, the MemTable is flushed; where
//! a bypass index does that is ahead of the tables, it becomes a last table.

use chimera_pmem::{Operation, Pmem};

use super::Flusher;
use crate::engine::chameleon::sites;
use crate::index::Probe;
use crate::index::probing_table::VolatileTable;
use crate::records::storage_log::{Appender, Unflushed};
use crate::sync::lock_relaxing;
use crate::types::error::Result;

/// Unless the options say otherwise.
pub(crate) const BYTES_MAX: u64 = 64 << 20;
/// Full runs may have this part of the bound, open ones that.
const FULL_PART: u64 = 2;
const OPEN_PART: u64 = 4;
/// Bytes that are put into tables for each byte of a run that was taken.
const SHARE: u64 = 2;

/// Bytes that open runs have together, where so many may be replayed.
pub(crate) fn open_bytes_max(bytes_max: u64) -> u64 {
    bytes_max / OPEN_PART
}

/// A record, as an index refers to it.
#[derive(Clone, Copy)]
struct Referred {
    hash: u64,
    at: u64,
    version: u64,
}

impl<P: Pmem> Flusher<P> {
    /// After a write: does what is due if the session has taken a run of the log. The caller has locked nothing.
    #[inline]
    pub(crate) fn bound_replay(&self, appender: &mut Appender, number: u32) {
        if appender.has_taken() {
            self.bound_replay_by(appender.take_taken_bytes(), number);
        }
    }

    /// Does what is due after `bytes` of runs were taken, also where the pool has become nearly full. What does not work is
    /// left to the next one: the write was done, and a store without space for tables says so when one is needed. The caller has locked no shard.
    #[cold]
    pub(crate) fn bound_replay_by(&self, bytes: u64, number: u32) {
        let core = self.index().core();
        if core.poison.check().is_err() {
            return;
        }
        let _booked = core.book(Operation::BlockHandOut, number);
        let environment = &**core.environment();
        if !self.modes.absorbs(environment) {
            // In turn: two would put the same into tables.
            let _turn = lock_relaxing(&self.replay_turn, environment);
            if let Err(error) = self.flush_oldest(bytes.saturating_mul(SHARE)) {
                log::warn!("a restart may replay more of the log than it should: {error}");
            }
        }
        // The run, and tables, have taken fresh blocks.
        self.keep_growth_room();
    }

    /// Puts so many bytes of the oldest full runs into tables, where these have too many.
    fn flush_oldest(&self, bytes: u64) -> Result<()> {
        let (mut left, mut after) = (bytes, 0);
        let full_max = self.replay_bytes_max / FULL_PART;
        while left > 0
            && let Some(run) = self.index().log().first_unflushed(full_max, after)
        {
            self.flush_run(&run)?;
            (left, after) = (left.saturating_sub(run.bytes), run.sequence);
        }
        if after > 0 {
            // The log has marked runs.
            self.index().core().pool.pmem.fence(sites::MARKS);
        }
        Ok(())
    }

    /// Puts all records of a run into tables that are in none yet.
    fn flush_run(&self, run: &Unflushed) -> Result<()> {
        let (log, shards) = (self.index().log(), self.index().shards());
        let freed = log.freed();
        let mut walk = log.walk(run.start);
        loop {
            let record = match log.next(&mut walk) {
                Ok(Some(walked)) => {
                    Referred { hash: walked.hash, at: walked.at, version: walked.version }
                }
                Ok(None) => return Ok(()),
                // Another session has put the rest into tables, and nothing refers to it any more.
                Err(_) if !log.is_unchanged(freed) => return Ok(()),
                Err(error) => return Err(error),
            };
            let shard = shards.number_of(record.hash);
            let (place, helper) = (shards.shard(shard), shards.shard(shard).helper());
            let tables = [shards.memtable(shard), shards.bypass(shard)];
            let is_referred = tables.into_iter().any(|table| refers_to(table, record));
            // A bypass index that another one has replaced meanwhile may be empty.
            if is_referred || place.helper() != helper {
                self.flush_record(shard, record)?;
            }
        }
    }

    /// Puts the record of a shard into a table, unless it is in one.
    fn flush_record(&self, shard: u32, record: Referred) -> Result<()> {
        let shards = self.index().shards();
        let mut work = self.index().lock_work(shard);
        let flushed_version = work.current.tables.flushed_version;
        let is_ahead = work.ahead.is_some()
            && record.version > flushed_version
            && refers_to(shards.bypass(shard), record);
        if is_ahead || refers_to(shards.memtable(shard), record) {
            self.empty_shard(shard, &mut work)?;
        }
        Ok(())
    }
}

/// Whether an entry of a table refers to a record.
fn refers_to(table: VolatileTable<'_>, record: Referred) -> bool {
    let probed = table.probe(record.hash, |found| {
        if found.offset == record.at { Probe::Found(()) } else { Probe::NotThis }
    });
    matches!(probed, Probe::Found(()))
}
