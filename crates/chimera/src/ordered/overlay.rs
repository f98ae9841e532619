//! [`Overlay`]: what changes before there is a tree to change.
//!
//! # Protocol
//! While it is open, whoever applies a change keeps it here, by its key, in place of an earlier one. It is closed once,
//! when the tree has all changes that were kept: those that were there are taken out and made, again and again until
//! there are few; these are made under the lock, and then it is closed. So no change is between the two: one that came
//! before the lock was taken is made by whoever closes, and one that comes later finds it closed, and is made to a tree
//! that has all earlier ones.

use std::collections::BTreeMap;

use chimera_pmem::Environment;

use super::queue::Change;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock_relaxing};

/// So many changes are made with the lock held, while others wait for it.
const FEW: usize = if cfg!(loom) { 0 } else { 64 };
/// After so many rounds all that are left are made with the lock held, because writers are faster.
const ROUNDS: usize = if cfg!(loom) { 1 } else { 16 };

/// The last change of each key.
type PendingChanges = BTreeMap<Box<[u8]>, Change>;

/// What changes before there is a tree to change.
#[derive(Debug)]
pub(super) struct Overlay {
    is_open: AtomicBool,
    /// None when it is closed.
    kept: Mutex<Option<PendingChanges>>,
    /// Bytes of memory for what was kept; changed under the lock.
    bytes: AtomicU64,
}

impl Overlay {
    /// An open one, without changes.
    pub(super) fn new() -> Self {
        Self {
            is_open: AtomicBool::new(true),
            kept: Mutex::new(Some(PendingChanges::new())),
            bytes: AtomicU64::new(0),
        }
    }

    /// Whether the tree is not there yet.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        // Acquire: who finds it closed sees the tree with all that was kept.
        self.is_open.load(Ordering::Acquire)
    }

    /// Keeps a change. `false` when there is a tree to make it to. The caller applies all changes of this key.
    ///
    /// # Cost
    /// A load once the tree is there; before, a lock and an allocation.
    #[inline]
    pub(super) fn keep(&self, environment: &dyn Environment, key: &[u8], change: Change) -> bool {
        self.is_open() && self.keep_locked(environment, key, change)
    }

    #[cold]
    fn keep_locked(&self, environment: &dyn Environment, key: &[u8], change: Change) -> bool {
        let mut kept = lock_relaxing(&self.kept, environment);
        let Some(kept) = kept.as_mut() else { return false };
        if kept.insert(key.into(), change).is_none() {
            let bytes = (key.len() + size_of::<(Box<[u8]>, Change)>()) as u64;
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        true
    }

    /// Bytes of memory for what was kept, until it is closed.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Hands all changes to `make`, which changes the tree, and closes.
    pub(super) fn close(&self, environment: &dyn Environment, mut make: impl FnMut(&[u8], Change)) {
        for round in 0.. {
            let mut guard = lock_relaxing(&self.kept, environment);
            let Some(kept) = guard.as_mut() else { return };
            let changes = std::mem::take(kept);
            if changes.len() > FEW && round < ROUNDS {
                drop(guard);
                for (key, change) in &changes {
                    make(key, *change);
                }
                continue;
            }
            for (key, change) in &changes {
                make(key, *change);
            }
            *guard = None;
            self.bytes.store(0, Ordering::Relaxed);
            self.is_open.store(false, Ordering::Release);
            return;
        }
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use chimera_pmem::SteppedEnvironment;

    use super::*;

    #[test]
    fn the_last_change_of_a_key_is_made_and_later_ones_are_not_kept() {
        let (overlay, environment) = (Overlay::new(), SteppedEnvironment::in_memory(1));
        let changes = [Change::Present, Change::Absent, Change::Present];
        for number in 0..1000_u64 {
            for change in &changes[..=number as usize % 3] {
                assert!(overlay.keep(&environment, &number.to_be_bytes(), *change));
            }
        }
        let mut made = Vec::new();
        overlay.close(&environment, |key, change| made.push((key.to_vec(), change)));
        let expected = |number: u64| (number.to_be_bytes().to_vec(), changes[number as usize % 3]);
        assert!(made.into_iter().eq((0..1000).map(expected)));
        assert!(!overlay.is_open() && !overlay.keep(&environment, b"k", Change::Absent));
    }

    #[test]
    fn what_comes_while_changes_are_made_is_made_later() {
        let (overlay, environment) = (Overlay::new(), SteppedEnvironment::in_memory(1));
        for number in 0..100_u64 {
            assert!(overlay.keep(&environment, &number.to_be_bytes(), Change::Present));
        }
        let mut made = Vec::new();
        overlay.close(&environment, |key, change| {
            // The first ones change again just after they were taken out.
            if made.len() < 10 {
                assert!(overlay.keep(&environment, key, Change::Absent));
            }
            made.push((key.to_vec(), change));
        });
        assert_eq!(made.len(), 110);
        for (first, again) in made[..10].iter().zip(&made[100..]) {
            assert_eq!((&first.0, again.1), (&again.0, Change::Absent));
        }
    }
}
