//! Models of [`KeyLocks`].

use std::sync::Arc;

use loom::thread;

use super::KeyLocks;
use crate::engine::contract::poison::{Batching, Poison};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::under_loom::model;

/// A hash for each of the locks there are in a model.
const HASHES: [u64; 2] = [0, 1 << 24];

struct Store {
    locks: KeyLocks,
    poison: Poison,
    values: [AtomicU64; 2],
}

impl Store {
    fn new() -> Arc<Self> {
        let values = [AtomicU64::new(0), AtomicU64::new(0)];
        let locks = KeyLocks::new(model::environment());
        Arc::new(Self { locks, poison: Poison::new(false), values })
    }

    /// As a write of batch `own`, or of none: adds one, not in one step.
    fn write(&self, key: usize, own: u64) {
        let guard = self.locks.lock_to_write(HASHES[key], &self.poison, own);
        let _guard = guard.expect("nobody fails");
        let value = &self.values[key];
        value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// As a batch: adds one to both. Nobody else changes them from when it looks until it is done.
    fn batch(&self) {
        let environment = model::environment();
        let pass = |hash| self.locks.pass(hash, &self.poison);
        let batching = Batching::begin(&self.poison, &*environment, &HASHES, pass);
        let batching = batching.expect("no failure");
        let before = [0, 1].map(|key| self.values[key].load(Ordering::Relaxed));
        for key in 0..2 {
            assert_eq!(
                self.values[key].load(Ordering::Relaxed),
                before[key],
                "another has written"
            );
            self.write(key, batching.batch());
        }
        drop(batching);
    }

    /// Adds one, not in one step. Whether writes are refused.
    fn add(&self, key: usize) -> bool {
        let Ok(_guard) = self.locks.lock(HASHES[key], &self.poison) else { return false };
        let value = &self.values[key];
        value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        true
    }
}

#[test]
fn loom_writers_of_a_key_exclude_each_other() {
    model::check(3, || {
        let store = Store::new();
        let other = thread::spawn({
            let store = store.clone();
            move || store.add(0) && store.add(1)
        });
        assert!(store.add(1) && store.add(0));
        assert!(other.join().expect("no panic"));
        for key in 0..2 {
            let _guard = store.locks.lock_to_look(HASHES[key], &store.poison);
            assert_eq!(store.values[key].load(Ordering::Relaxed), 2);
        }
    });
}

#[test]
fn loom_who_comes_after_a_failure_is_refused() {
    model::check(3, || {
        let store = Store::new();
        let other = thread::spawn({
            let store = store.clone();
            move || {
                let _guard = store.locks.lock(HASHES[0], &store.poison).expect("not refused yet");
                store.values[0].store(1, Ordering::Relaxed);
                store.poison.poison("a failure in the middle");
            }
        });
        if let Ok(_guard) = store.locks.lock(HASHES[0], &store.poison) {
            let value = store.values[0].load(Ordering::Relaxed);
            assert_eq!(value, 0, "a writer goes on from what a failed one left");
        }
        other.join().expect("no panic");
        assert!(!store.add(0));
    });
}

#[test]
fn loom_nobody_writes_to_the_keys_of_a_batch() {
    model::check(3, || {
        let store = Store::new();
        let other = thread::spawn({
            let store = store.clone();
            move || store.write(1, 0)
        });
        store.batch();
        other.join().expect("no panic");
        let values = [0, 1].map(|key| store.values[key].load(Ordering::Relaxed));
        assert_eq!(values, [1, 2]);
    });
}

#[test]
fn loom_batches_exclude_each_other() {
    model::check(2, || {
        let store = Store::new();
        let other = thread::spawn({
            let store = store.clone();
            move || store.batch()
        });
        store.batch();
        other.join().expect("no panic");
        let values = [0, 1].map(|key| store.values[key].load(Ordering::Relaxed));
        assert_eq!(values, [2, 2]);
    });
}
