//! Free space is rebuilt beside sessions: the index is walked, and the room of each item that it leads to is marked as
//! taken.
//!
//! Until that is done, nothing that was in use when the store was opened is used for new items: these go to fresh runs.
//! Why the marks are exact, whatever is written meanwhile:
//! - An item that an entry of the walk leads to is there: whoever frees it changes the entry first, and waits for the lock
//!   of its segment, which the walk holds.
//! - An entry that changes after it was walked led to an item that is marked. The mark is taken back when the item is
//!   freed.
//! - An entry that changes before leads to an item in a fresh run when it is walked. The old item was never marked, so
//!   there is nothing to take back. The old item is freed under the lock that its entry changed under, so the walk does not
//!   end in between.
//!
//! The walk is made of short steps. A background task makes them. Whoever finds the pool full makes those that are left,
//! and tries again: so nobody waits for a task, and no pool seems to be full that is not.
//!
//! A program that opens a store, puts a record and closes it again must not leave a run behind each time. So whoever needs
//! the first fresh run makes some steps before it takes one: a small store is walked then. And fresh runs begin with a
//! block, and each is as long as all before it together, up to the usual length.

use chimera_pmem::{Operation, Pmem};

use super::findings::Findings;
use super::items::{Items, Unsound};
use crate::engine::contract::upkeep::Step;
use crate::index::persistent::partitioned_hash::{FoundSlot, Walk};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};

/// Slots of the index that a step looks at.
const STEP_SLOTS: u64 = 64;
/// Entries that are walked before the first fresh run is taken, unless said otherwise.
pub(super) const FIRST_ENTRIES: u64 = 4096;

/// How far free space is rebuilt.
#[derive(Debug, Default)]
pub(super) struct Rebuild {
    is_pending: AtomicBool,
    /// The store is open for reading only, and nobody has asked yet what is free.
    is_unasked: AtomicBool,
    walking: Mutex<Walking>,
    /// So many entries are walked before the first fresh run is taken.
    first_entries: u64,
    /// Entries that were walked, where empty slots count a sixteenth.
    entries: AtomicU64,
    /// Segments of the index that are walked.
    segments: AtomicU64,
    damages: AtomicU64,
}

/// What whoever walks has at hand.
#[derive(Debug, Default)]
struct Walking {
    walk: Walk,
    findings: Findings,
}

impl Rebuild {
    /// So many entries are to be walked before the first fresh run is taken.
    pub(super) fn new(first_entries: u64) -> Self {
        Self { first_entries, ..Self::default() }
    }

    /// There is something to rebuild. Before there are sessions.
    pub(super) fn begin(&self) {
        self.is_pending.store(true, Ordering::Release);
    }

    /// Nothing is to be rebuilt unless somebody asks. Before there are sessions.
    pub(super) fn begin_unasked(&self) {
        self.is_unasked.store(true, Ordering::Release);
    }

    /// Whether it is known what is free.
    pub(super) fn is_known(&self) -> bool {
        !self.is_pending() && !self.is_unasked.load(Ordering::Acquire)
    }

    /// Whether there still is.
    pub(super) fn is_pending(&self) -> bool {
        // Acquire: who sees that it is done sees all free space.
        self.is_pending.load(Ordering::Acquire)
    }

    /// Segments walked so far, and damages found.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.segments.load(Ordering::Relaxed), self.damages.load(Ordering::Relaxed))
    }

    /// What whoever walks has at hand: one at a time.
    fn walking<P: Pmem>(&self, items: &Items<P>) -> MutexGuard<'_, Walking> {
        lock_relaxing(&self.walking, &**items.core().environment())
    }

    /// One step.
    ///
    /// # Cost
    /// Up to 64 entries are looked at, and the first lines of their items. Their segment is locked meanwhile: readers and
    /// writers of its keys wait for some microseconds.
    pub(super) fn step<P: Pmem>(&self, items: &Items<P>) -> Step {
        let mut walking = self.walking(items);
        if !self.is_pending() {
            return Step::Done;
        }
        let _booked = items.core().book(Operation::Recovery, 0);
        if self.walk_some(items, &mut walking) {
            return Step::More { moved_bytes: 0 };
        }
        walking.findings.say();
        let empty = items.heap().end_recovery();
        if items.core().poison.check().is_ok() {
            for run in empty {
                items.heap().give_back(run);
            }
        }
        self.is_pending.store(false, Ordering::Release);
        Step::Done
    }

    /// What is left of the first steps, in the place of the background task.
    ///
    /// # Cost
    /// As [`step`](Self::step) for each 64 of so many entries as the options say: some milliseconds.
    #[cold]
    pub(super) fn make_first_steps<P: Pmem>(&self, items: &Items<P>) {
        while self.entries.load(Ordering::Relaxed) < self.first_entries {
            if self.step(items) == Step::Done {
                return;
            }
        }
    }

    /// All steps that are left.
    #[cold]
    pub(super) fn make_all_steps<P: Pmem>(&self, items: &Items<P>) {
        while self.step(items) != Step::Done {}
    }

    /// A step of the walk; `false` when nothing is left.
    fn walk_some<P: Pmem>(&self, items: &Items<P>, walking: &mut Walking) -> bool {
        let Walking { walk, findings } = walking;
        let is_more = items.index().walk(walk, |found| {
            let entries = (found.len() as u64).max(STEP_SLOTS / 16);
            self.entries.fetch_add(entries, Ordering::Relaxed);
            mark_found(items, found, findings);
        });
        self.segments.store(walk.segments(), Ordering::Relaxed);
        self.damages.store(findings.damages, Ordering::Relaxed);
        is_more
    }

    /// Finds out what is in use in a store that is open for reading only, where items are not looked at when it is opened.
    /// What is damaged, if that was found out now or before.
    pub(super) fn ask<P: Pmem>(&self, items: &Items<P>) -> Option<(u64, &'static str)> {
        let mut walking = self.walking(items);
        if self.is_unasked.load(Ordering::Acquire) {
            let _booked = items.core().book(Operation::Recovery, 0);
            while self.walk_some(items, &mut walking) {}
            walking.findings.say();
            self.is_unasked.store(false, Ordering::Release);
        }
        walking.findings.first.filter(|_| items.pool().read_only)
    }

    /// The store is closed: says what was found so far, if the walk has not ended.
    pub(super) fn end<P: Pmem>(&self, items: &Items<P>) {
        if self.is_pending() {
            self.walking(items).findings.say();
        }
    }
}

/// Marks the items that some slots of the index lead to, while they cannot be freed.
fn mark_found<P: Pmem>(items: &Items<P>, found: &[FoundSlot], findings: &mut Findings) {
    found.iter().filter_map(|(_, entry)| *entry).for_each(|(_, at)| items.heap().prefetch(at));
    let mut value = Vec::new();
    for &(slot_at, entry) in found {
        let Some((hash, at)) = entry else {
            findings.damage(slot_at, "an entry of the index is damaged");
            // Its item may be anywhere.
            items.heap().condemn_found();
            continue;
        };
        if let Err(Unsound { at }) = items.mark(hash, at, false, &mut value) {
            findings.damage(at, "a record does not match its checksum");
            items.heap().condemn(at);
        }
    }
}
