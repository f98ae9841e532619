//! Collection of the log: records that the index still leads to are appended anew, so that their runs become free.
//!
//! A record is copied under the lock of its shard, and only if the newest entry of its key leads to this very one. The copy
//! has the shard's next version, and goes to the MemTable as a put does. So it is newer than whatever it may be compared
//! with, and nothing is ever resurrected. No change is told, and the number of records stays.
//!
//! # What a crash leaves
//! - Before the copy is durable, the old record is in force. Its run is not freed, because the index refers to the record.
//! - After it, the copy is in force. It has the higher version, whether both records are replayed, or the copy alone is, or both
//!   are in tables.
//! - A deleted key does not come back. A tombstone is a newest slot, so a copy of the record before it is never made; and once
//!   a last table was made without the tombstone, nothing leads to a record of the key.
//! - A run is freed when nothing refers to its records. Copies are certified before that, because nothing else would be left
//!   of them if damage made the end of their run look cut off.
//!
//! # A pass
//! 1. *Fold*: where many entries above the last tables supersede records, each shard gets a new last table: then it is known
//!    which records nothing leads to.
//! 2. *Collect*: runs of which enough is not referred to, those with the most first; none unless there will be fewer runs.
//! 3. *Fold*: so that no table leads to what was copied. Then runs are free.
//!
//! A pass is made of steps: of one shard, or one run. A background task makes them, and [`Db::compact`](crate::Db::compact).
//! Whoever finds the pool full makes a whole pass, and tries again if a run of the log was freed. Each run is collected once
//! in a pass. Where there is no bypass index nothing is collected.

use chimera_pmem::{Operation, Pmem};

use super::space::Spend;
use super::write::Key;
use super::{Chameleon, steps};
use crate::engine::shared::maintenance::Step;
use crate::index::probing_table::Slot;
use crate::records::storage_log::{NewRecord, Victim, Walked};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::error::{Error, Result};
use crate::types::stats::ReclaimStats;

/// In a full pool runs are collected of which so many percent are not referred to.
const FULL_PERCENT: u32 = 5;

/// What a pass is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// Between two passes.
    #[default]
    Idle,
    /// Shards from this one on are folded before runs are collected.
    FoldBefore(u32),
    Collect,
    /// Shards from this one on are folded after that.
    FoldAfter(u32),
}

/// A pass.
#[derive(Debug, Default)]
struct Passing {
    part: Part,
    /// Where the first records lie of the runs that were collected.
    collected: Vec<u64>,
    /// Runs that had been freed when collecting began.
    freed: u64,
    /// Writes of the store when the last pass for a full pool was over.
    writes: u64,
}

/// Collection of the log.
#[derive(Debug, Default)]
pub(super) struct Collection {
    passing: Mutex<Passing>,
    passes: AtomicU64,
    moved_records: AtomicU64,
    moved_bytes: AtomicU64,
}

/// What of the log nothing needs, about.
#[derive(Clone, Copy, Debug)]
struct Debt {
    /// In sealed runs, and not referred to.
    dropped: u64,
    /// Superseded by what is above the last tables, or tombstones.
    superseded: u64,
    /// Of all runs.
    whole: u64,
    run_bytes: u64,
}

impl<P: Pmem> Chameleon<P> {
    fn passing(&self) -> MutexGuard<'_, Passing> {
        lock_relaxing(&self.collection.passing, &**self.core.environment())
    }

    /// One step of a pass over runs of which at least so much is not referred to.
    ///
    /// # Errors
    /// Those of a write, and damage of a record or a table. The pass is over then, and no record is lost.
    pub(super) fn collect_step(&self, percent: u32) -> Result<Step> {
        // What a store that has lost tables refers to is not known.
        if !self.index.has_bypass() || self.core.poison.check().is_err() {
            return Ok(Step::Done);
        }
        let mut passing = self.passing();
        let _booked = self.core.book(Operation::Reclaim, 0);
        let before = self.collection.moved_bytes.load(Ordering::Relaxed);
        match self.step(&mut passing, percent) {
            Ok(true) => {
                let moved_bytes = self.collection.moved_bytes.load(Ordering::Relaxed) - before;
                return Ok(Step::More { moved_bytes });
            }
            // Sessions come first.
            Ok(false) | Err(Error::PoolFull { .. }) => self.end_pass(&mut passing)?,
            Err(error) => {
                self.end_pass(&mut passing)?;
                return Err(error);
            }
        }
        self.core.pool.release_storage();
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
        if !self.index.has_bypass() {
            return Ok(false);
        }
        let mut passing = self.passing();
        let _booked = self.core.book(Operation::Reclaim, 0);
        self.log.free_ready()?;
        if self.log.freed() == freed && self.count_writes() != passing.writes {
            // What is freed is held before others take it.
            self.log.keep_runs(true);
            self.leave_full();
            self.log.seal_left();
            passing.part = Part::FoldBefore(0);
            passing.collected.clear();
            let passed = loop {
                match self.step(&mut passing, FULL_PERCENT) {
                    Ok(true) => {}
                    Ok(false) | Err(Error::PoolFull { .. }) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            passing.writes = self.count_writes();
            self.log.keep_runs(false);
            self.end_pass(&mut passing).and(passed)?;
        }
        self.hold();
        Ok(self.log.freed() != freed)
    }

    fn end_pass(&self, passing: &mut Passing) -> Result<()> {
        passing.part = Part::Idle;
        passing.collected.clear();
        self.leave_copies();
        self.collection.passes.fetch_add(1, Ordering::Relaxed);
        let freed = self.log.free_ready();
        self.hold();
        freed.map(|_| ())
    }

    /// Writes since the store was made.
    fn count_writes(&self) -> u64 {
        (0..self.index.shape.shards()).map(|shard| self.lock_to_look(shard).version).sum()
    }

    /// A step; `false` when nothing is left.
    fn step(&self, passing: &mut Passing, percent: u32) -> Result<bool> {
        match passing.part {
            Part::Idle => {
                if self.index.unbypassed() > 0 {
                    return Ok(self.complete_one() != Step::Done);
                }
                let debt = self.debt();
                let Debt { dropped, superseded, whole, run_bytes } = debt;
                let is_worth = (dropped + superseded) * 100 >= whole * u64::from(percent);
                passing.part =
                    if superseded > dropped { Part::FoldBefore(0) } else { Part::Collect };
                passing.freed = self.log.freed();
                self.log.seal_left();
                Ok(is_worth && dropped + superseded >= run_bytes)
            }
            Part::FoldBefore(shard) => {
                passing.part = Part::FoldBefore(shard + 1);
                if !self.fold_one(shard)? {
                    self.log.free_ready()?;
                    passing.freed = self.log.freed();
                    passing.part = Part::Collect;
                }
                Ok(true)
            }
            Part::Collect => {
                match self.collect_one(passing, percent) {
                    Ok(true) => {}
                    Ok(false) | Err(Error::PoolFull { .. }) => passing.part = Part::FoldAfter(0),
                    Err(error) => return Err(error),
                }
                Ok(true)
            }
            Part::FoldAfter(shard) => {
                passing.part = Part::FoldAfter(shard + 1);
                if self.fold_one(shard)? {
                    return Ok(true);
                }
                self.log.free_ready()?;
                Ok(self.go_on(passing))
            }
        }
    }

    /// In a full pool a part of a pass makes room for the next one. Whether there is one.
    fn go_on(&self, passing: &mut Passing) -> bool {
        self.hold();
        let freed = self.log.freed();
        let is_gain = std::mem::replace(&mut passing.freed, freed) != freed && self.is_holding();
        passing.part = Part::Collect;
        is_gain
    }

    /// Folds a shard, if there is room; `false` when there is no shard of that number.
    fn fold_one(&self, shard: u32) -> Result<bool> {
        if shard == self.index.shape.shards() {
            return Ok(false);
        }
        match self.fold(shard, Spend::Nothing) {
            Ok(()) | Err(Error::PoolFull { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Collects the run with the most that is not referred to; `false` when there is none left.
    fn collect_one(&self, passing: &mut Passing, percent: u32) -> Result<bool> {
        let freed = self.log.freed();
        let victims = self.log.victims(u64::from(percent.max(1)));
        let is_left = |victim: &&Victim| !passing.collected.contains(&victim.start);
        let dead = victims.iter().map(Victim::dead_bytes).sum::<u64>();
        let is_full = self.is_holding();
        let room = self.room_for_copies();
        let next = victims.iter().filter(is_left).find(|it| !is_full || it.live_bytes <= room);
        let Some(victim) = next.filter(|_| dead >= self.run_bytes()) else { return Ok(false) };
        passing.collected.push(victim.start);
        match self.collect(victim) {
            // Somebody freed runs meanwhile, perhaps this one: if it is there and damaged, the next pass finds that.
            Err(Error::Corrupted { .. }) if !self.log.is_unchanged(freed) => {}
            collected => collected?,
        }
        // Copies are in no table yet.
        match self.taken_for_copies() {
            0 => {}
            bytes => self.bound_replay_by(bytes, 0),
        }
        Ok(true)
    }

    /// Collects a run, which stays until its copies are certain: the end of a run that is appended to may look cut off.
    fn collect(&self, victim: &Victim) -> Result<()> {
        if !self.log.pin(victim) {
            return Ok(());
        }
        let collected = self.copy_all(victim);
        self.certify_copies();
        self.log.unpin(victim);
        collected
    }

    fn copy_all(&self, victim: &Victim) -> Result<()> {
        let mut walk = self.log.walk(victim.start);
        while let Some(walked) = self.log.next(&mut walk)? {
            self.copy(&walked)?;
        }
        Ok(())
    }

    /// Appends a record anew, if the newest entry of its key leads to it.
    fn copy(&self, walked: &Walked<'_>) -> Result<()> {
        let key = Key { hash: walked.hash, bytes: walked.key };
        let shard = self.index.number_of(key.hash);
        let mut writing = self.lock_with_room(0, shard, Spend::Nothing)?;
        let newest = match self.find_locked(shard, key) {
            Err(Error::KeyCollisions) => None,
            found => found?.entry,
        };
        let is_it = |at: u64| {
            let record = self.log.decode(at);
            at == walked.at && record.is_some_and(|record| record.version() == walked.version)
        };
        let is_current = newest.is_some_and(|found| is_it(found.offset));
        if !is_current && !self.core.pool.pmem.skips(steps::COLLECT_CURRENT) {
            return Ok(());
        }
        let version = writing.version + 1;
        let value = walked.value;
        let record = NewRecord { hash: key.hash, version, key: key.bytes, value };
        let appended = self.append_copy(&record)?;
        writing.version = version;
        let new = Slot::new(key.hash, appended.at, appended.bytes, value.is_none());
        self.enter(shard, new, newest);
        let bytes = key.bytes.len() + value.map_or(0, <[u8]>::len);
        self.collection.moved_records.fetch_add(1, Ordering::Relaxed);
        self.collection.moved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn run_bytes(&self) -> u64 {
        u64::from(self.parameters.log_run_blocks) * self.core.pool.map.block_bytes
    }

    fn debt(&self) -> Debt {
        let counts = self.log.counts();
        let (mut entries, mut records) = (0, 0);
        for number in 0..self.index.shape.shards() {
            // Nothing is locked: it may be replaced meanwhile, and then this is a little wrong.
            let last = self.index.shard(number).last().and_then(|last| self.index.entries_of(last));
            let writing = self.lock_to_look(number);
            records += writing.records;
            let upper = self.index.memtable(number).len() + self.index.bypass(number).len();
            entries += u64::from(upper) + u64::from(last.unwrap_or(0));
        }
        let superseded = entries.saturating_sub(records);
        Debt {
            dropped: counts.dropped_bytes,
            superseded: counts.live_bytes * superseded / entries.max(1),
            whole: counts.bytes,
            run_bytes: self.run_bytes(),
        }
    }

    /// See [`Engine::reclaim_stats`](crate::engine::Engine::reclaim_stats).
    pub(super) fn collect_stats(&self) -> ReclaimStats {
        if !self.index.has_bypass() {
            return ReclaimStats::default();
        }
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Debt { dropped, superseded, .. } = self.debt();
        ReclaimStats {
            debt_bytes: dropped + superseded,
            passes: of(&self.collection.passes),
            moved_records: of(&self.collection.moved_records),
            moved_bytes: of(&self.collection.moved_bytes),
            ..ReclaimStats::default()
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
