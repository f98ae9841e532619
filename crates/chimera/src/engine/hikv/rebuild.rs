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

use chimera_pmem::{Operation, Pmem};

use super::Hikv;
use super::read::Unsound;
use super::recovery::Findings;
use crate::engine::shared::maintenance::Step;
use crate::index::persistent::partitioned_hash::{FoundSlot, Walk};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock_relaxing};

/// How far free space is rebuilt.
#[derive(Debug, Default)]
pub(super) struct Rebuild {
    is_pending: AtomicBool,
    walk: Mutex<Walk>,
    /// Segments of the index that are walked.
    segments: AtomicU64,
    damages: AtomicU64,
}

impl Rebuild {
    /// There is something to rebuild. Before there are sessions.
    pub(super) fn begin(&self) {
        self.is_pending.store(true, Ordering::Release);
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
}

impl<P: Pmem> Hikv<P> {
    /// One step.
    ///
    /// # Cost
    /// Up to 64 entries are looked at, and the first lines of their items. Their segment is locked meanwhile: readers and
    /// writers of its keys wait for some microseconds.
    pub(super) fn rebuild_some(&self) -> Step {
        let mut walk = lock_relaxing(&self.rebuild.walk, &**self.core.environment());
        if !self.rebuild.is_pending() {
            return Step::Done;
        }
        let _booked = self.core.book(Operation::Recovery, 0);
        if self.index.walk(&mut walk, |found| self.mark_found(found)) {
            self.rebuild.segments.store(walk.segments(), Ordering::Relaxed);
            return Step::More { moved_bytes: 0 };
        }
        let empty = self.heap.end_recovery();
        if self.core.poison.check().is_ok() {
            for run in empty {
                self.heap.give_back(run);
            }
        }
        self.rebuild.is_pending.store(false, Ordering::Release);
        Step::Done
    }

    /// All steps that are left.
    #[cold]
    pub(super) fn rebuild_all(&self) {
        while self.rebuild_some() != Step::Done {}
    }

    /// Marks the items that some slots of the index lead to, while they cannot be freed.
    fn mark_found(&self, found: &[FoundSlot]) {
        found.iter().filter_map(|(_, entry)| *entry).for_each(|(_, at)| self.heap.prefetch(at));
        let (mut findings, mut value) = (Findings::default(), Vec::new());
        for &(slot_at, entry) in found {
            let Some((hash, at)) = entry else {
                findings.damage(slot_at, "an entry of the index is damaged");
                // Its item may be anywhere.
                self.heap.condemn_found();
                continue;
            };
            if let Err(Unsound { at }) = self.recover_item(hash, at, false, &mut value) {
                findings.damage(at, "a record does not match its checksum");
                self.heap.condemn(at);
            }
        }
        if let Some((at, what)) = findings.first {
            let count = findings.damages;
            log::error!("damage was found {count} times, first at byte {at}: {what}");
            self.rebuild.damages.fetch_add(count, Ordering::Relaxed);
        }
    }
}
