//! [`Runs`]: what is known of each run of the log, in DRAM alone.
//!
//! A run is found by the block that an offset lies in, without a lock. Runs are added and removed, and change their
//! [`Use`], under one lock, which is held while a line of a header is stored.

use std::collections::BTreeSet;

use chimera_pmem::Environment;

use super::header::{HEADER_BYTES, HeaderAt};
use super::replay::{ReplayList, Share};
use crate::pool::BlockMap;
use crate::pool::runs::Run;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use crate::sync::{Arena, Mutex, MutexGuard, lock_relaxing};
use crate::types::error::{Error, Result};
use crate::types::totals::Totals;

/// Elements of tables on the heap.
const FIRST: usize = 64;

/// In packed counts: records above this many bits, words of 8 bytes below. A run has fewer of both.
const RECORDS_SHIFT: u32 = 40;

/// The number of a run's entry.
pub(super) type Slot = u32;

/// Records and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl Counts {
    fn pack(self) -> u64 {
        self.records << RECORDS_SHIFT | (self.bytes / 8)
    }

    fn unpack(packed: u64) -> Self {
        let words = packed & ((1 << RECORDS_SHIFT) - 1);
        Self { records: packed >> RECORDS_SHIFT, bytes: words * 8 }
    }
}

/// What is known of a run. Entries of runs that were removed are used again.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
#[repr(C)]
pub(super) struct LogRun {
    /// Records that were referred to, packed [`Counts`], and those of them that are not any more.
    referred: AtomicU64,
    dropped: AtomicU64,
    /// Records that are to be in tables, and those that are in durable ones.
    written: AtomicU64,
    flushed: AtomicU64,
    /// Whether it is sealed: 1. Changes under the lock.
    is_sealed: AtomicU64,
}

impl LogRun {
    fn begin(&self, is_sealed: bool) {
        for count in [&self.referred, &self.dropped, &self.written, &self.flushed] {
            count.store(0, Ordering::Relaxed);
        }
        self.is_sealed.store(is_sealed.into(), Ordering::Relaxed);
    }

    /// A record of so many bytes is referred to.
    #[inline(always)]
    pub(super) fn refer(&self, bytes: u64) {
        self.referred.fetch_add(Counts { records: 1, bytes }.pack(), Ordering::Relaxed);
    }

    /// A record is to be in a table. Only who appends to the run says so.
    #[inline(always)]
    pub(super) fn write(&self) {
        self.written.store(self.written.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// A record of so many bytes is not referred to any more. Whether it was the last one of a sealed run.
    #[inline]
    pub(super) fn drop_reference(&self, bytes: u64) -> bool {
        let one = Counts { records: 1, bytes }.pack();
        self.dropped.fetch_add(one, Ordering::SeqCst);
        self.is_sealed() && self.is_unreferred()
    }

    /// A record is in a durable table. Whether it was the last one of a sealed run.
    #[inline]
    pub(super) fn flush(&self) -> bool {
        self.flushed.fetch_add(1, Ordering::SeqCst);
        self.is_sealed() && self.is_flushed()
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.unflushed() == 0
    }

    pub(super) fn is_unreferred(&self) -> bool {
        self.live().records == 0
    }

    /// Records that are to be in tables and are not in durable ones.
    pub(super) fn unflushed(&self) -> u64 {
        let flushed = self.flushed.load(Ordering::SeqCst);
        self.written.load(Ordering::Acquire).saturating_sub(flushed)
    }

    /// As [`unflushed`](Self::unflushed), below zero where a record was told of twice; and records that are referred to.
    #[cfg(test)]
    pub(super) fn balance(&self) -> (i64, i64) {
        let load = |count: &AtomicU64| count.load(Ordering::SeqCst);
        let records = |count| Counts::unpack(load(count)).records as i64;
        let unflushed = load(&self.written) as i64 - load(&self.flushed) as i64;
        (unflushed, records(&self.referred) - records(&self.dropped))
    }

    /// What is referred to. Its bytes are those that the engine named.
    pub(super) fn live(&self) -> Counts {
        let dropped = Counts::unpack(self.dropped.load(Ordering::SeqCst));
        let referred = Counts::unpack(self.referred.load(Ordering::Acquire));
        Counts {
            records: referred.records.saturating_sub(dropped.records),
            bytes: referred.bytes.saturating_sub(dropped.bytes),
        }
    }

    fn is_sealed(&self) -> bool {
        self.is_sealed.load(Ordering::SeqCst) != 0
    }
}

/// What a run is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A session appends to it.
    Open,
    /// It is open, and no session appends to it.
    Left,
    /// Its tail is final, unless it is opened again.
    Sealed,
    /// It is being freed.
    Free,
    /// It has damaged records: it is never freed nor appended to.
    Condemned,
}

/// A run as the lock sees it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) run: Run,
    pub(super) header: HeaderAt,
    pub(super) sequence: u64,
    /// Where its records end, and where the run does. Of an open run where they ended when it was opened.
    pub(super) tail: u64,
    pub(super) end: u64,
    pub(super) usage: Use,
    /// The header says that its records up to here are in durable tables.
    pub(super) flushed: u64,
    /// What of it is [listed](Table::list).
    pub(super) share: Share,
}

impl Entry {
    /// Where a restart begins to replay.
    pub(super) fn replay_from(&self) -> u64 {
        self.flushed.max(self.header.0 + HEADER_BYTES)
    }

    /// Adds which use of which run it is, and where its records end.
    pub(super) fn add_to(&self, totals: &mut Totals) {
        totals.add_state(self.sequence, self.tail);
    }
}

/// What changes under the lock.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// By the number of the entry.
    pub(super) entries: Vec<Option<Entry>>,
    vacant: Vec<Slot>,
    /// Runs with room that no session appends to: bytes of room, entry.
    pub(super) with_room: BTreeSet<(u64, Slot)>,
    /// The highest sequence number that is durable, and the run whose header says so.
    pub(super) highest: (u64, Slot),
    /// What a restart replays.
    pub(super) replay: ReplayList,
}

impl Table {
    /// Entries and their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Entry)> {
        let entries = (0..).zip(&self.entries);
        entries.filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
    }

    pub(super) fn entry(&mut self, slot: Slot) -> &mut Entry {
        self.entries[slot as usize].as_mut().expect("a run of the log")
    }

    /// Lists what a restart replays of a run, whose use, tail or mark has changed.
    pub(super) fn list(&mut self, slot: Slot) {
        let entry = self.entry(slot);
        let from = entry.replay_from();
        let (sealed, open) = match entry.usage {
            Use::Sealed => (entry.tail - from, 0),
            Use::Open | Use::Left => (0, entry.end - from),
            Use::Free | Use::Condemned => (0, 0),
        };
        let after = Share { sequence: entry.sequence, sealed, open };
        let before = std::mem::replace(&mut entry.share, after);
        self.replay.change(slot, before, after);
    }

    /// The header of a run says durably that this sequence number was given.
    pub(super) fn note_sequence(&mut self, sequence: u64, slot: Slot) {
        self.highest = self.highest.max((sequence, slot));
    }
}

/// All runs of a log.
#[derive(Debug)]
pub(super) struct Runs {
    /// For each block the entry of its run, plus 1.
    of_block: Arena<AtomicU32>,
    slots: Arena<LogRun>,
    table: Mutex<Table>,
    next_sequence: AtomicU64,
    /// Changes before bytes of a run are used for something else.
    freed: AtomicU64,
    /// Runs that may have lost their last reference.
    candidates: AtomicU64,
    /// References of runs that were found are not known yet: 1.
    is_counting: AtomicU64,
}

impl Runs {
    pub(super) fn new() -> Self {
        Self {
            of_block: Arena::new(FIRST, false),
            slots: Arena::new(FIRST, false),
            table: Mutex::default(),
            next_sequence: AtomicU64::new(1),
            freed: AtomicU64::new(0),
            candidates: AtomicU64::new(0),
            is_counting: AtomicU64::new(0),
        }
    }

    pub(super) fn lock(&self, environment: &dyn Environment) -> MutexGuard<'_, Table> {
        lock_relaxing(&self.table, environment)
    }

    /// The entry of the run that `at` lies in.
    #[inline]
    pub(super) fn slot_of(&self, map: &BlockMap, at: u64) -> Option<Slot> {
        let block = map.block_of(at)?;
        self.of_block.get(block)?.load(Ordering::Acquire).checked_sub(1)
    }

    /// The run that `at` lies in.
    #[inline]
    pub(super) fn run_of(&self, map: &BlockMap, at: u64) -> Option<&LogRun> {
        self.slots.get(self.slot_of(map, at)?.into())
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: Slot) -> &LogRun {
        self.slots.get(slot.into()).expect("an entry that was made")
    }

    /// Adds a run.
    ///
    /// # Errors
    /// `PoolFull` when there is no memory, with the run.
    pub(super) fn add(&self, table: &mut Table, entry: Entry) -> Result<Slot, (Run, Error)> {
        let (first, end) = (entry.run.first(), entry.run.first() + u64::from(entry.run.blocks()));
        let slot = table.vacant.last().copied().unwrap_or(table.entries.len() as Slot);
        let is_room =
            self.of_block.ensure(end).and_then(|()| self.slots.ensure(u64::from(slot) + 1));
        if is_room.is_err() {
            return Err((entry.run, Error::no_memory("the table of the log's runs")));
        }
        self.get(slot).begin(entry.usage == Use::Sealed);
        table.note_sequence(entry.sequence, slot);
        if table.vacant.pop().is_none() {
            table.entries.push(None);
        }
        table.entries[slot as usize] = Some(entry);
        table.list(slot);
        self.set_blocks(first..end, slot + 1);
        Ok(slot)
    }

    /// Removes a run, so that it can be freed. Whoever reads it meanwhile finds out afterwards.
    pub(super) fn remove(&self, table: &mut Table, slot: Slot) -> Run {
        let entry = table.entries[slot as usize].take().expect("a run of the log");
        table.vacant.push(slot);
        let first = entry.run.first();
        self.set_blocks(first..first + u64::from(entry.run.blocks()), 0);
        self.note_freed();
        entry.run
    }

    /// From now on a run is used for something else: whoever sees what is stored there sees that it was freed.
    fn note_freed(&self) {
        self.freed.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::Release);
    }

    fn set_blocks(&self, blocks: std::ops::Range<u64>, number: u32) {
        for block in blocks {
            if let Some(of_block) = self.of_block.get(block) {
                of_block.store(number, Ordering::Release);
            }
        }
    }

    /// What a run is used for changes.
    pub(super) fn set_use(&self, table: &mut Table, slot: Slot, usage: Use) {
        table.entry(slot).usage = usage;
        table.list(slot);
        // Either whoever drops the last reference or counts the last record sees that the run is sealed, or whoever
        // seals it sees that.
        self.get(slot).is_sealed.store((usage == Use::Sealed).into(), Ordering::SeqCst);
    }

    /// The next sequence number.
    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// The next sequence number is higher than this.
    pub(super) fn skip_sequences(&self, upto: u64) {
        self.next_sequence.fetch_max(upto + 1, Ordering::Relaxed);
    }

    /// See [`StorageLog::freed`](super::StorageLog::freed).
    #[inline]
    pub(super) fn freed(&self) -> u64 {
        self.freed.load(Ordering::Acquire)
    }

    /// See [`StorageLog::is_unchanged`](super::StorageLog::is_unchanged).
    #[inline]
    pub(super) fn is_unchanged(&self, before: u64) -> bool {
        fence(Ordering::Acquire);
        self.freed() == before
    }

    /// A run may have lost its last reference.
    pub(super) fn note_candidate(&self) {
        self.candidates.fetch_add(1, Ordering::Release);
    }

    /// Whether a run may have lost its last reference since this was asked last.
    pub(super) fn take_candidates(&self) -> bool {
        self.candidates.load(Ordering::Relaxed) != 0
            && self.candidates.swap(0, Ordering::Acquire) != 0
    }

    pub(super) fn set_counting(&self, is_counting: bool) {
        self.is_counting.store(is_counting.into(), Ordering::Release);
    }

    pub(super) fn is_counting(&self) -> bool {
        self.is_counting.load(Ordering::Acquire) != 0
    }
}

#[cfg(all(test, loom))]
mod models;
