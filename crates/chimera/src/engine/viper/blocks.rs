//! [`Blocks`]: the volatile side of blocks: page locks, how much of a block is free, which blocks wait
//! to be filled.

use std::collections::{BTreeMap, BTreeSet};

use chimera_pmem::{Fenced, prefetch_read};

use crate::records::vpage::{Pages, Room};
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{Arena, Mutex, VersionLock, lock};
use crate::types::error::{Error, Result};

/// A session fills the block.
const OWNED: u32 = 1 << 31;
/// The block is in the queue.
const QUEUED: u32 = 1 << 30;
/// The block holds records, or may: some session has filled it. Not so a block that was just handed out.
const KNOWN: u32 = 1 << 29;
/// The number of free units, roughly.
const FREE: u32 = KNOWN - 1;

/// A block that a session leaves, or that recovery finds, is queued from this part on: otherwise
/// many short-lived sessions would waste much. Once the pool is full, one free slot is enough.
const QUEUED_AT_LEFT_PART: u32 = 16;

/// Who has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// A session that fills it.
    Session,
    /// The queue, for the next session that needs one.
    Queue,
    Nobody,
}

/// Blocks that wait to be filled, each in one list. The lowest are taken first, so that the highest become empty and can be
/// given back.
#[derive(Default)]
struct Queue {
    /// Those in which something may be live.
    partly: BTreeSet<u64>,
    /// Those in which nothing is live: they have room for anything.
    empty: BTreeSet<u64>,
    /// Those in which nothing is left, durably, for large values alone: when that was fenced.
    emptied: BTreeMap<u64, Fenced>,
    /// The same, the longest emptied first.
    by_emptied: BTreeSet<(Fenced, u64)>,
    /// Blocks that were ever emptied so.
    emptied_ever: u64,
}

impl Queue {
    fn remove(&mut self, block: u64) -> bool {
        if let Some(emptied) = self.emptied.remove(&block) {
            return self.by_emptied.remove(&(emptied, block));
        }
        self.partly.remove(&block) || self.empty.remove(&block)
    }

    /// Blocks in which nothing is live.
    fn empty_count(&self) -> u64 {
        (self.empty.len() + self.emptied.len()) as u64
    }

    /// The lowest block from `from` on in which nothing is live.
    fn first_empty(&self, from: u64) -> Option<u64> {
        let emptied = self.emptied.range(from..).next().map(|(block, _)| block);
        self.empty.range(from..).next().into_iter().chain(emptied).min().copied()
    }
}

/// Page locks and block states in DRAM, and the queue of blocks with free units.
///
/// The number of free units is a hint: a session that fills a block goes by the pages alone.
///
/// # Invariant
/// A block has at most one of: a session that fills it (`OWNED`), a place in the queue (`QUEUED`). So
/// no two sessions ever write into the same free slot.
pub(super) struct Blocks {
    page_locks: Arena<VersionLock>,
    states: Arena<AtomicU32>,
    queue: Mutex<Queue>,
    /// Blocks in which recovery left damage. Empty but for salvage.
    damaged: Mutex<BTreeSet<u64>>,
    /// There are no fresh blocks any more: a block with one free unit is queued.
    is_starved: AtomicBool,
    units_per_block: u32,
    /// A block that no session fills is queued once one in so many of its units has become free.
    refilled_at_part: u32,
    pages_per_block: u64,
}

impl Blocks {
    pub(super) fn new<V: Pages>(pages: &V, huge_pages: bool) -> Self {
        Self {
            page_locks: Arena::new(64, huge_pages),
            states: Arena::new(16, huge_pages),
            queue: Mutex::default(),
            damaged: Mutex::default(),
            is_starved: AtomicBool::new(false),
            units_per_block: pages.units_per_block(),
            refilled_at_part: pages.reuse().refilled_at_part(),
            pages_per_block: pages.pages_per_block(),
        }
    }

    /// Blocks of one page with so many units.
    #[cfg(test)]
    fn of_units(units_per_block: u32, blocks: u64) -> Self {
        let made = Self {
            page_locks: Arena::new(1, false),
            states: Arena::new(1, false),
            queue: Mutex::default(),
            damaged: Mutex::default(),
            is_starved: AtomicBool::new(false),
            units_per_block,
            refilled_at_part: 4,
            pages_per_block: 1,
        };
        made.ensure(blocks).expect("memory");
        made
    }

    /// Makes room for blocks `0..count`.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn ensure(&self, count: u64) -> Result<()> {
        let page_locks = self.page_locks.ensure(count * self.pages_per_block);
        page_locks.and_then(|()| self.states.ensure(count)).map_err(|_| no_memory())
    }

    /// The lock of a page, by its number.
    #[inline(always)]
    pub(super) fn page_lock(&self, page_number: u64) -> &VersionLock {
        self.page_locks.get(page_number).expect("a block that was ensured")
    }

    /// Whether room was made for a block: not so for one that a session is just taking from the pool.
    pub(super) fn has(&self, block: u64) -> bool {
        self.states.get(block).is_some()
    }

    #[inline(always)]
    fn state(&self, block: u64) -> &AtomicU32 {
        self.states.get(block).expect("a block that was ensured")
    }

    /// Starts loading the state of a block.
    #[inline(always)]
    pub(super) fn prefetch(&self, block: u64) {
        prefetch_read(self.state(block));
    }

    /// Counts units that became free.
    ///
    /// # Cost
    /// One atomic addition; the queue's lock once for each time a block has become free enough.
    #[inline]
    pub(super) fn note_freed(&self, block: u64, units: u32) {
        // Release: who reads the number sees the bit clear. Acquire: see `starve`.
        let state = self.state(block).fetch_add(units, Ordering::AcqRel) + units;
        let free = state & FREE;
        if state & (OWNED | QUEUED) == 0 && free >= self.worth_queueing(self.refilled_at_part) {
            self.enqueue(block);
        } else if state & QUEUED != 0 && free >= self.units_per_block {
            self.note_empty(block);
        }
    }

    /// A block that is queued, or was just now, has become empty.
    #[cold]
    fn note_empty(&self, block: u64) {
        let mut queue = lock(&self.queue);
        if queue.partly.remove(&block) {
            queue.empty.insert(block);
        }
    }

    /// Free units from which on a block is queued.
    fn worth_queueing(&self, part: u32) -> u32 {
        let starved = self.is_starved.load(Ordering::Relaxed);
        if starved { 1 } else { (self.units_per_block / part).max(1) }
    }

    /// There is no fresh block to be had: queues every block with a free unit, from now on too.
    /// Whether there is a reason to look at the queue again.
    #[cold]
    pub(super) fn starve(&self, blocks: u64) -> bool {
        if self.is_starved.swap(true, Ordering::Relaxed) {
            // Somebody else may have queued some in the meantime.
            return self.queued() > 0;
        }
        for block in 0..blocks {
            // Written, so that of this and a change of the number by somebody else one comes first:
            // either the change is seen here, or who made it sees that one free unit is enough.
            let look = |state: &AtomicU32| state.fetch_or(0, Ordering::AcqRel);
            // A block that a session is just taking from the pool has no state yet.
            if self.states.get(block).map_or(0, look) & FREE > 0 {
                self.enqueue(block);
            }
        }
        true
    }

    /// Whether there are no fresh blocks.
    pub(super) fn is_starved(&self) -> bool {
        self.is_starved.load(Ordering::Relaxed)
    }

    /// There are fresh blocks again.
    pub(super) fn feed(&self) {
        if self.is_starved.load(Ordering::Relaxed) {
            self.is_starved.store(false, Ordering::Relaxed);
        }
    }

    #[cold]
    fn enqueue(&self, block: u64) {
        let queue = |state| (state & (OWNED | QUEUED) == 0).then_some(state | QUEUED);
        // Another may have been faster to queue it, or to take it again.
        if self.state(block).fetch_update(Ordering::Relaxed, Ordering::Relaxed, queue).is_ok() {
            let mut queue = lock(&self.queue);
            // Looked at once it is said to be queued: a thread that makes it empty after that says so.
            let free = self.state(block).fetch_or(0, Ordering::AcqRel) & FREE;
            let queue = &mut *queue;
            let is_empty = free >= self.units_per_block;
            if is_empty { &mut queue.empty } else { &mut queue.partly }.insert(block);
        }
    }

    /// Remembers that a block holds something damaged.
    pub(super) fn note_damaged(&self, block: u64) {
        lock(&self.damaged).insert(block);
    }

    /// Whether a block holds something damaged.
    pub(super) fn is_damaged(&self, block: u64) -> bool {
        lock(&self.damaged).contains(&block)
    }

    /// Takes the first block from `from` on out of the queue. So many empty blocks stay.
    pub(super) fn take_queued(&self, from: u64, kept: u64) -> Option<u64> {
        let mut queue = lock(&self.queue);
        let partly = queue.partly.range(from..).next().copied();
        let empty = queue.first_empty(from).filter(|_| queue.empty_count() > kept);
        let block = partly.into_iter().chain(empty).min()?;
        queue.remove(block).then_some(block)
    }

    /// Takes the first block in which nothing is live out of the queue. So many of them stay.
    pub(super) fn take_empty(&self, kept: u64) -> Option<u64> {
        let mut queue = lock(&self.queue);
        let block = queue.first_empty(0).filter(|_| queue.empty_count() > kept)?;
        queue.remove(block).then_some(block)
    }

    /// Takes the block out of the queue that was [emptied](Self::queue_emptied) the longest ago, and says when, if `may_take`
    /// says so of that. So many blocks in which nothing is live stay.
    pub(super) fn take_emptied(
        &self,
        kept: u64,
        may_take: impl FnOnce(Fenced) -> bool,
    ) -> Option<(u64, Fenced)> {
        let mut queue = lock(&self.queue);
        let is_any = queue.empty_count() > kept;
        let (emptied, block) = queue.by_emptied.first().copied().filter(|_| is_any)?;
        (may_take(emptied) && queue.remove(block)).then_some((block, emptied))
    }

    /// Takes a block out of the queue in which nothing is live, and that is not [emptied](Self::queue_emptied) yet.
    pub(super) fn take_to_empty(&self) -> Option<u64> {
        let mut queue = lock(&self.queue);
        let block = queue.empty.first().copied()?;
        queue.remove(block).then_some(block)
    }

    /// Puts a block of the caller into the queue, for large values: nothing was left in it when `emptied` was fenced. How many
    /// blocks that was done with so far.
    pub(super) fn queue_emptied(&self, block: u64, emptied: Fenced) -> u64 {
        let mut queue = lock(&self.queue);
        self.state(block).store(KNOWN | QUEUED | self.units_per_block, Ordering::Release);
        queue.emptied.insert(block, emptied);
        queue.by_emptied.insert((emptied, block));
        queue.emptied_ever += 1;
        queue.emptied_ever
    }

    /// Blocks in the queue that are [emptied](Self::queue_emptied).
    pub(super) fn emptied(&self) -> u64 {
        lock(&self.queue).emptied.len() as u64
    }

    /// Makes the caller the owner of a block of records, queued or not, if nobody else is.
    pub(super) fn claim(&self, block: u64) -> bool {
        let mut queue = lock(&self.queue);
        // A session that takes a fresh block makes room for its state only then.
        let Some(state) = self.states.get(block) else { return false };
        if state.load(Ordering::Relaxed) & QUEUED != 0 {
            // The session that has taken it out of the queue is about to own it.
            let is_queued = queue.remove(block);
            if is_queued {
                self.own(block);
            }
            return is_queued;
        }
        drop(queue);
        let own = |state| (state & (OWNED | QUEUED | KNOWN) == KNOWN).then_some(OWNED | KNOWN);
        state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, own).is_ok()
    }

    /// Free units of a block of records that no session fills, roughly.
    pub(super) fn free_units(&self, block: u64) -> Option<u32> {
        let state = self.states.get(block)?.load(Ordering::Relaxed);
        (state & (OWNED | KNOWN) == KNOWN).then_some((state & FREE).min(self.units_per_block))
    }

    /// A session fills the block from now on.
    pub(super) fn own(&self, block: u64) {
        // Acquire: a bit whose clearing was counted before is seen clear from here on.
        self.state(block).swap(OWNED | KNOWN, Ordering::AcqRel);
    }

    /// Nobody fills the block any more. `left` is the free space that the session knows of; together with the
    /// space that became free since it owns the block this is all. `count` looks at the whole block, where
    /// the session knows of none or the pool is starved. Space that becomes free meanwhile may be counted
    /// twice, but is never left out.
    pub(super) fn leave(&self, block: u64, left: Option<Room>, count: impl FnOnce() -> Room) {
        let state = self.state(block);
        let left = left.filter(|_| !self.is_starved());
        let Room { free, fillable, fillable_if_starved } = left.unwrap_or_else(|| {
            // Acquire: a bit whose clearing was counted before is seen clear below. One that is not seen
            // clear is counted after.
            state.swap(OWNED | KNOWN, Ordering::AcqRel);
            count()
        });
        state.fetch_add(free.min(FREE / 2), Ordering::Relaxed);
        let became_free = (state.fetch_and(!OWNED, Ordering::AcqRel) & FREE).saturating_sub(free);
        let room = if free + became_free >= self.units_per_block {
            self.units_per_block
        } else if self.is_starved() {
            // Asked last: `starve` has seen this block without its owner, or is seen here.
            fillable_if_starved + became_free
        } else if left.is_some() {
            // What became free in a log is no room before all of the block is free.
            fillable
        } else {
            fillable + became_free
        };
        if room >= self.worth_queueing(QUEUED_AT_LEFT_PART) {
            self.enqueue(block);
        }
    }

    /// Who has the block now.
    pub(super) fn whose(&self, block: u64) -> Whose {
        // A block that a session is just taking from the pool has no state yet.
        match self.states.get(block).map_or(0, |state| state.load(Ordering::Relaxed)) {
            state if state & OWNED != 0 => Whose::Session,
            state if state & QUEUED != 0 => Whose::Queue,
            _ => Whose::Nobody,
        }
    }

    /// Blocks in the queue.
    pub(super) fn queued(&self) -> u64 {
        let queue = lock(&self.queue);
        queue.partly.len() as u64 + queue.empty_count()
    }

    /// Bytes of DRAM.
    pub(super) fn bytes(&self) -> u64 {
        self.page_locks.bytes_resident_estimate() + self.states.bytes_resident_estimate()
    }
}

#[cold]
fn no_memory() -> Error {
    Error::no_memory("the tables of its blocks")
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
