//! Which records are referred to and which are in tables, and what follows: runs that are marked, and runs that are
//! freed.

use std::collections::HashSet;

use chimera_pmem::Pmem;

use super::runs::{Slot, Table, Use};
use super::{StorageLog, sites, steps};
use crate::types::error::Result;

/// A sealed run for collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Victim {
    /// Where its first record lies, for [`walk`](StorageLog::walk).
    pub(crate) start: u64,
    /// Bytes of its records, and of those that are referred to.
    pub(crate) bytes: u64,
    pub(crate) live_bytes: u64,
}

/// What the log has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogCounts {
    pub(crate) runs: u64,
    /// Bytes of all runs, of the records that are referred to, and of those in sealed runs that are not.
    pub(crate) bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) dropped_bytes: u64,
    /// Bytes of records that a restart would replay, at most: of those that are sealed, and all that open runs can have.
    pub(crate) replay_bytes: u64,
}

impl<P: Pmem> StorageLog<P> {
    /// Counts what the log has.
    ///
    /// # Cost
    /// A look at each run, under the lock.
    pub(crate) fn counts(&self) -> LogCounts {
        let table = self.runs.lock(&*self.pool.environment);
        let (sealed, open) = table.replay.bytes();
        let counts = LogCounts { replay_bytes: sealed + open, ..LogCounts::default() };
        table.iter().fold(counts, |sum, (slot, entry)| {
            let is_sealed = entry.usage == Use::Sealed;
            let dropped = if is_sealed { self.victim(slot, entry).dead_bytes() } else { 0 };
            LogCounts {
                runs: sum.runs + 1,
                bytes: sum.bytes + (entry.end - entry.header.0),
                live_bytes: sum.live_bytes + self.runs.get(slot).live().bytes,
                dropped_bytes: sum.dropped_bytes + dropped,
                ..sum
            }
        })
    }

    /// Whether `at` lies in a run of the log.
    #[cfg(any(test, feature = "baselines"))]
    pub(crate) fn has_run_at(&self, at: u64) -> bool {
        self.runs.slot_of(&self.pool.map, at).is_some()
    }

    /// After recovery: a slot of the index refers to the record at `at`. Of the records that recovery found, the engine
    /// tells of a [drop](Self::dropped) only where it has counted the reference before.
    pub(crate) fn count_reference(&self, at: u64, bytes: u64) {
        if let Some(run) = self.runs.run_of(&self.pool.map, at) {
            run.refer(bytes);
        }
    }

    /// All references to records that recovery found are counted: from now on runs are freed.
    pub(crate) fn end_counting(&self) {
        self.runs.set_counting(false);
        self.runs.note_candidate();
    }

    /// No slot of the index refers to the record at `at` any more. `bytes` is what was counted, or more. Whether there is
    /// a run to [free](Self::free_ready).
    ///
    /// # Cost
    /// 1 atomic addition.
    #[inline]
    pub(crate) fn dropped(&self, at: u64, bytes: u64) -> bool {
        let run = self.runs.run_of(&self.pool.map, at);
        let is_last = run.is_some_and(|run| run.drop_reference(bytes));
        if is_last {
            self.runs.note_candidate();
        }
        is_last
    }

    /// The record at `at` is in a durable table, or one that was appended later superseded it. Marks the run when that
    /// holds for all of its records. Told once for each record that was appended, and for each that the engine kept at
    /// replay, before its last reference is [dropped](Self::dropped).
    ///
    /// # Durability
    /// Of the mark: with the next fence of this thread.
    ///
    /// # Cost
    /// 1 atomic addition; 1 line for the last record of a run.
    pub(crate) fn flushed(&self, at: u64) {
        let map = &self.pool.map;
        if self.runs.run_of(map, at).is_some_and(super::runs::LogRun::flush) {
            let mut table = self.runs.lock(&*self.pool.environment);
            if let Some(slot) = self.runs.slot_of(map, at) {
                self.mark_flushed(&mut table, slot);
            }
        }
    }

    /// Marks a sealed run whose records are all in durable tables, in a store that is open for writing.
    pub(super) fn mark_flushed(&self, table: &mut Table, slot: Slot) {
        let is_flushed = self.runs.get(slot).is_flushed() && !self.pool.read_only;
        let entry = table.entry(slot);
        if entry.usage == Use::Sealed && is_flushed && entry.flushed < entry.tail {
            // Records that superseded some of them may be pending.
            self.sync_all();
            entry.flushed = entry.tail;
            let tail = entry.tail - entry.header.0;
            entry.header.mark_flushed(&self.pool, tail, sites::FLUSHED);
            if self.pool.pmem.journal().is_some() {
                // What is fenced much later would be written to a run whose storage has gone meanwhile.
                self.pool.pmem.fence(sites::FLUSHED);
            }
            table.list(slot);
        }
    }

    /// Changes before bytes of a run that is freed are used for something else. A reader that found a record at an offset
    /// and [finds it unchanged](Self::is_unchanged) afterwards has read that record.
    #[inline]
    pub(crate) fn freed(&self) -> u64 {
        self.runs.freed()
    }

    /// Whether no run was freed since [`freed`](Self::freed) was `before`, as far as what was read until now can tell.
    #[inline]
    pub(crate) fn is_unchanged(&self, before: u64) -> bool {
        self.runs.is_unchanged(before)
    }

    /// Sealed runs of which at least so many percent are not referred to, those with the most first. None before
    /// references are counted. Nobody appends to them from now on.
    pub(crate) fn victims(&self, percent_min: u64) -> Vec<Victim> {
        if self.runs.is_counting() {
            return Vec::new();
        }
        let mut table = self.runs.lock(&*self.pool.environment);
        let mut found: Vec<_> = table
            .iter()
            .filter(|(_, entry)| entry.usage == Use::Sealed)
            .map(|(slot, entry)| (slot, self.victim(slot, entry)))
            .filter(|(_, victim)| victim.dead_bytes() * 100 >= victim.bytes * percent_min)
            .collect();
        found.sort_by_key(|(_, victim)| (std::cmp::Reverse(victim.dead_bytes()), victim.start));
        if !table.with_room.is_empty() {
            let slots: HashSet<_> = found.iter().map(|(slot, _)| *slot).collect();
            table.with_room.retain(|(_, slot)| !slots.contains(slot));
        }
        found.into_iter().map(|(_, victim)| victim).collect()
    }

    /// Keeps a sealed run from being freed until it is [let go](Self::unpin). `false` when it is not there any more.
    pub(crate) fn pin(&self, victim: &Victim) -> bool {
        let table = self.runs.lock(&*self.pool.environment);
        let slot = self.runs.slot_of(&self.pool.map, victim.start);
        let entry = slot.and_then(|slot| table.entries[slot as usize].as_ref());
        let is_there = entry.is_some_and(|entry| {
            entry.usage == Use::Sealed && entry.header.0 + super::HEADER_BYTES == victim.start
        });
        if is_there && let Some(slot) = slot {
            self.runs.get(slot).refer(0);
        }
        is_there
    }

    /// A run that was pinned may be freed again.
    pub(crate) fn unpin(&self, victim: &Victim) {
        self.dropped(victim.start, 0);
    }

    fn victim(&self, slot: Slot, entry: &super::runs::Entry) -> Victim {
        let start = entry.header.0 + super::HEADER_BYTES;
        let live_bytes = self.runs.get(slot).live().bytes;
        Victim { start, bytes: entry.tail - start, live_bytes }
    }

    /// Frees the sealed runs that nothing refers to, once whatever superseded their records is durable. How many.
    ///
    /// The run with the highest sequence number stays while the log has no other run that can remember the number.
    ///
    /// # Errors
    /// `Corrupted` when the word of such a run is damaged; the run stays in use until the store is opened again.
    ///
    /// # Durability
    /// Durable on return.
    ///
    /// # Cost
    /// A load when no run lost its last reference. Else a look at all runs, [`sync_all`](Self::sync_all), and what freeing
    /// each costs the pool; 1 line, 1 fence where the highest sequence number is remembered elsewhere.
    pub(crate) fn free_ready(&self) -> Result<u64> {
        if self.pool.read_only || self.runs.is_counting() || !self.runs.take_candidates() {
            return Ok(0);
        }
        let ready = self.claim_ready();
        if ready.is_empty() {
            return Ok(0);
        }
        if !self.pool.pmem.skips(steps::FREE_SYNC) {
            // Records that superseded theirs may be pending.
            self.sync_all();
        }
        let runs = self.remove_ready(&ready);
        let count = runs.len() as u64;
        runs.into_iter().try_for_each(|run| self.pool.free_run(run))?;
        Ok(count)
    }

    /// Makes sure that nobody appends to the runs that nothing refers to.
    fn claim_ready(&self) -> Vec<Slot> {
        let mut table = self.runs.lock(&*self.pool.environment);
        let sealed = table.iter().filter(|(_, entry)| entry.usage == Use::Sealed);
        let ready = sealed.filter(|(slot, _)| self.runs.get(*slot).is_unreferred());
        let ready: Vec<_> = ready.map(|(slot, _)| slot).collect();
        for slot in &ready {
            self.runs.set_use(&mut table, *slot, Use::Free);
        }
        table.with_room.retain(|(_, slot)| !ready.contains(slot));
        ready
    }

    /// Removes the runs that were claimed, all but the one with the highest sequence number where no run stays that can
    /// remember it.
    fn remove_ready(&self, ready: &[Slot]) -> Vec<crate::pool::runs::Run> {
        let mut table = self.runs.lock(&*self.pool.environment);
        let (highest, keeper) = table.highest;
        let mut kept = None;
        if ready.contains(&keeper) {
            let stays = |usage| matches!(usage, Use::Open | Use::Left | Use::Sealed);
            let other = table.iter().find(|(_, entry)| stays(entry.usage)).map(|(slot, _)| slot);
            if let Some(other) = other {
                table.entry(other).header.mark_highest(&self.pool, highest, sites::HIGHEST);
                self.pool.pmem.fence(sites::HIGHEST);
                table.highest = (highest, other);
            } else {
                kept = Some(keeper);
                self.runs.set_use(&mut table, keeper, Use::Sealed);
                // It is freed once there is another run.
                self.runs.note_candidate();
            }
        }
        let removed = ready.iter().filter(|slot| Some(**slot) != kept);
        removed.map(|slot| self.runs.remove(&mut table, *slot)).collect()
    }
}

impl Victim {
    /// Bytes of its records that are not referred to.
    pub(crate) fn dead_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.live_bytes)
    }
}
