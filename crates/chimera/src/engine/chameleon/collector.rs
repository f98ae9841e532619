//! [`Collector`]: collection of the log. Records that the index still refers to are appended anew, so that their runs become
//! free.
//!
//! A record is copied under the lock of its shard, and only if the newest entry of its key refers to this very one. The copy
//! has the shard's next version, and goes to the MemTable as a put does. So it is newer than whatever it may be compared
//! with, and nothing is ever resurrected. No change is told, and the number of records stays.
//!
//! # What a crash leaves
//! - Before the copy is durable, the old record is in force. Its run is not freed, because the index refers to the record.
//! - After it, the copy is in force. It has the higher version, whether both records are replayed, or the copy alone is, or both
//!   are in tables.
//! - A deleted key does not come back. A tombstone is a newest slot, so a copy of the record before it is never made; and once
//!   a last table was made without the tombstone, nothing refers to a record of the key.
//! - A run is freed when nothing refers to its records. Copies are certified before that, because nothing else would be left
//!   of them if damage made the end of their run look cut off.
//!
//! # A pass
//! 1. *Merge*: where many entries above the last tables supersede records, each shard gets a new last table: then it is known
//!    which records nothing refers to.
//! 2. *Collect*: runs of which enough is not referred to, those with the most first; none unless there will be fewer runs.
//! 3. *Merge*: so that no table refers to what was copied. Then runs are free.
//!
//! A pass is made of steps: of one shard, or one run. A background task makes them, and [`Db::compact`](crate::Db::compact).
//! A session that finds the pool full makes a whole pass, and tries again. Each run is collected once
//! in a pass. Where there is no bypass index nothing is collected.

mod copy;
mod debt;
mod pass;
mod step;

use chimera_pmem::{Operation, Pmem};

use super::flusher::Flusher;
use crate::engine::contract::upkeep::Step;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::error::{Error, Result};
use crate::types::stats::ReclaimStats;
use debt::Debt;
use pass::Pass;

/// In a full pool runs are collected of which so many percent are not referred to.
const FULL_PERCENT: u32 = 5;

/// Collects the log.
pub(super) struct Collector<P: Pmem> {
    flusher: Flusher<P>,
    pass: Mutex<Pass>,
    passes: AtomicU64,
    moved_records: AtomicU64,
    moved_bytes: AtomicU64,
}

impl<P: Pmem> Collector<P> {
    pub(super) fn new(flusher: Flusher<P>) -> Self {
        let [passes, moved_records, moved_bytes] = [0; 3].map(AtomicU64::new);
        Self { flusher, pass: Mutex::default(), passes, moved_records, moved_bytes }
    }

    #[inline(always)]
    pub(super) fn flusher(&self) -> &Flusher<P> {
        &self.flusher
    }

    fn lock_pass(&self) -> MutexGuard<'_, Pass> {
        lock_relaxing(&self.pass, &**self.flusher.index().core().environment())
    }

    /// One step of a pass over runs of which at least so much is not referred to.
    ///
    /// # Errors
    /// Those of a write, and damage of a record or a table. The pass is over then, and no record is lost.
    pub(super) fn collect_step(&self, percent: u32) -> Result<Step> {
        let (core, shards) = (self.flusher.index().core(), self.flusher.index().shards());
        // What a store that has lost tables refers to is not known.
        if !shards.has_bypass() || core.poison.check().is_err() {
            return Ok(Step::Done);
        }
        let mut pass = self.lock_pass();
        let _booked = core.book(Operation::Reclaim, 0);
        let before = self.moved_bytes.load(Ordering::Relaxed);
        let made = self.step(&mut pass, percent);
        let moved_bytes = self.moved_bytes.load(Ordering::Relaxed) - before;
        let moved_bytes = pass.paced(moved_bytes, self.flusher.index().log().session_bytes());
        match made {
            Ok(true) => return Ok(Step::More { moved_bytes }),
            // Sessions come first.
            Ok(false) | Err(Error::PoolFull { .. }) => self.end_pass(&mut pass)?,
            Err(error) => {
                self.end_pass(&mut pass)?;
                return Err(error);
            }
        }
        core.pool.release_storage();
        Ok(Step::Done)
    }

    /// Looks for room in a full pool. `freed` runs of the log had been freed when the caller began. Whether it is worth
    /// while to try again.
    ///
    /// # Errors
    /// As [`collect_step`](Self::collect_step).
    ///
    /// # Cost
    /// A pass, unless nobody has written anything since the last one.
    #[cold]
    pub(super) fn gain_room(&self, freed: u64) -> Result<bool> {
        let index = self.flusher.index();
        if !index.shards().has_bypass() {
            return Ok(false);
        }
        let mut pass = self.lock_pass();
        let (log, _booked) = (index.log(), index.core().book(Operation::Reclaim, 0));
        log.free_ready()?;
        let is_due = log.freed() == freed && index.count_writes() != pass.writes;
        if is_due {
            index.records().leave_full_runs();
            log.seal_left();
            pass.begin();
            let passed = loop {
                match self.step(&mut pass, FULL_PERCENT) {
                    Ok(true) => {}
                    Ok(false) | Err(Error::PoolFull { .. }) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            pass.writes = index.count_writes();
            self.end_pass(&mut pass).and(passed)?;
        }
        self.flusher.keep_growth_room();
        // A pass may have moved tables together, and freed no run of the log.
        Ok(is_due || log.freed() != freed)
    }

    fn end_pass(&self, pass: &mut Pass) -> Result<()> {
        pass.end();
        let index = self.flusher.index();
        if !self.flusher.is_nearly_full() {
            index.records().leave_copies();
        }
        self.passes.fetch_add(1, Ordering::Relaxed);
        let freed = index.log().free_ready();
        self.flusher.keep_growth_room();
        freed.map(|_| ())
    }

    /// See `Upkeep::reclaim_stats`.
    pub(super) fn stats(&self) -> ReclaimStats {
        let index = self.flusher.index();
        if !index.shards().has_bypass() {
            return ReclaimStats::default();
        }
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReclaimStats {
            debt_bytes: Debt::of(index).bytes(),
            passes: of(&self.passes),
            moved_records: of(&self.moved_records),
            moved_bytes: of(&self.moved_bytes),
            ..ReclaimStats::default()
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
