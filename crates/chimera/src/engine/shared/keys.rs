//! [`KeyLocks`]: the lock of a key, taken before its record is looked for.

use std::sync::Arc;

use chimera_pmem::Environment;

use crate::engine::contract::poison::{Poison, PoisonOnPanic};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::until_some;
use crate::types::error::Result;

/// Locks of keys, by their hash. A writer holds the lock of its key from before it looks for the
/// key's record until its change is complete, and never holds two.
///
/// # Invariant
/// While a key's lock is held nobody else changes, retires or enters a record of the key.
#[derive(Debug)]
pub(crate) struct KeyLocks {
    stripes: Box<[AtomicU32]>,
    environment: Arc<dyn Environment>,
}

/// Number of locks: a power of two; in models as few as possible.
const STRIPES: usize = if cfg!(loom) { 2 } else { 4096 };

impl KeyLocks {
    pub(crate) fn new(environment: Arc<dyn Environment>) -> Self {
        Self { stripes: (0..STRIPES).map(|_| AtomicU32::new(0)).collect(), environment }
    }

    /// Locks the keys of this hash, to move a record.
    ///
    /// # Errors
    /// When writes are refused.
    #[inline(always)]
    pub(crate) fn lock<'a>(&'a self, hash: u64, poison: &'a Poison) -> Result<KeyGuard<'a>> {
        let guard = self.lock_to_look(hash, poison);
        // After locking: the holder before may have failed.
        poison.check()?;
        Ok(guard)
    }

    /// As [`lock`](Self::lock), for a write, of batch `own` or of none: waits for another batch that holds the keys.
    ///
    /// # Errors
    /// When writes are refused.
    #[inline(always)]
    pub(crate) fn lock_to_write<'a>(
        &'a self,
        hash: u64,
        poison: &'a Poison,
        own: u64,
    ) -> Result<KeyGuard<'a>> {
        let guard = self.lock_to_look(hash, poison);
        // After locking: the holder before may have failed, or a batch may hold the key.
        if poison.is_quiet() {
            return Ok(guard);
        }
        poison.admit((hash, own), &*self.environment, guard, || self.lock_to_look(hash, poison))
    }

    /// Waits until whoever holds the lock of the keys of this hash has let go of it.
    pub(crate) fn pass(&self, hash: u64, poison: &Poison) {
        drop(self.lock_to_look(hash, poison));
    }

    /// Locks the keys of this hash, also when writes are refused.
    #[inline(always)]
    pub(crate) fn lock_to_look<'a>(&'a self, hash: u64, poison: &'a Poison) -> KeyGuard<'a> {
        // Not the bits that choose a bucket or a segment of the index.
        let stripe = &self.stripes[(hash >> 24) as usize % STRIPES];
        until_some(&*self.environment, || {
            stripe.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()
        });
        KeyGuard { _poison: poison.on_panic(), _stripe: Held(stripe) }
    }

    /// Bytes of DRAM.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(&*self.stripes) as u64
    }
}

/// Holds the lock of a key.
#[derive(Debug)]
pub(crate) struct KeyGuard<'a> {
    _poison: PoisonOnPanic<'a>,
    _stripe: Held<'a>,
}

#[derive(Debug)]
struct Held<'a>(&'a AtomicU32);

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(test)]
mod tests {
    use chimera_pmem::RealEnvironment;

    use super::*;

    #[test]
    fn a_writer_that_panics_poisons_the_store_and_releases_its_lock() {
        let locks = KeyLocks::new(Arc::new(RealEnvironment::new()));
        let poison = Poison::default();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = locks.lock(1, &poison).unwrap();
            panic!("in the middle");
        }));
        assert!(outcome.is_err());
        let error = locks.lock(1, &poison).unwrap_err();
        assert!(error.to_string().contains("a writer panicked"), "{error}");
    }
}
