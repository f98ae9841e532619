//! [`Poison`]: whether writes are refused, and why; and whether they wait for a batch.

use chimera_pmem::Environment;

use super::held_keys::HeldKeys;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, lock, until_some};
use crate::types::error::{Error, Result};

/// Writes are refused. Twice the rest is the number of batches.
const REFUSES: u32 = 1;
const BATCH: u32 = 2;

/// Whether writes are refused: the store is open for reading only, or an earlier failure left it in
/// doubt. And whether there are batches that hold keys: one word says both, so that a write beside none looks once.
///
/// # Why nobody writes to a key that a batch holds
/// A batch is counted and has [taken](Batching::begin) its keys before it locks and unlocks the lock of each. A writer looks at
/// the count with the key's lock. If it had the lock before the batch, the batch has waited for its write. If it has the
/// lock after the batch, it sees the count, and whose the key is.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    state: AtomicU32,
    /// The failure; none for a store open for reading only.
    reason: Mutex<Option<String>>,
    held: HeldKeys,
    /// Batches so far.
    batches: AtomicU64,
}

impl Poison {
    pub(crate) fn new(read_only: bool) -> Self {
        Self { state: AtomicU32::new(u32::from(read_only)), ..Self::default() }
    }

    /// Refuses writes from now on. The first reason stays.
    #[cold]
    pub(crate) fn poison(&self, reason: &str) {
        lock(&self.reason).get_or_insert_with(|| reason.to_owned());
        self.state.fetch_or(REFUSES, Ordering::Release);
        log::error!("the store refuses writes from now on: {reason}");
    }

    /// # Errors
    /// `ReadOnly` or `Poisoned`.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_quiet() { Ok(()) } else { self.refuse() }
    }

    /// Whether writes are not refused, and no batch holds any key.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.state.load(Ordering::Acquire) == 0
    }

    /// What a writer that has locked a key with this hash, of batch `own` or of none, holds when it may write: `guard`, or where
    /// another batch holds the key, what `lock` locks anew when that has ended.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[cold]
    #[inline(never)]
    pub(crate) fn admit<G>(
        &self,
        (hash, own): (u64, u64),
        environment: &dyn Environment,
        mut guard: G,
        lock: impl Fn() -> G,
    ) -> Result<G> {
        // Asked before whether writes are refused: a batch that leaves the store in doubt has said so before it lets go.
        while self.held.is_held(hash, own) {
            // The batch needs the lock.
            drop(guard);
            until_some(environment, || (!self.held.is_held(hash, own)).then_some(()));
            guard = lock();
        }
        self.refuse().map(|()| guard)
    }

    /// Before a writer takes space, with nothing locked: waits for another batch that lets nobody else write.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[inline(always)]
    pub(crate) fn check_space(&self, own: u64, environment: &dyn Environment) -> Result<()> {
        if self.is_quiet() { Ok(()) } else { self.wait_for_space(own, environment) }
    }

    #[cold]
    fn wait_for_space(&self, own: u64, environment: &dyn Environment) -> Result<()> {
        until_some(environment, || (!self.has_one_writer(own)).then_some(()));
        self.refuse()
    }

    /// Whether another batch than `own` lets nobody else write.
    pub(crate) fn has_one_writer(&self, own: u64) -> bool {
        self.held.has_one_writer(own)
    }

    /// The failure, if there was one.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.reason).clone()
    }

    /// Poisons the store if the thread begins to panic before the result is dropped. One that is unwinding already may
    /// write: a write from a destructor is a write like any other.
    #[inline(always)]
    pub(crate) fn on_panic(&self) -> PoisonOnPanic<'_> {
        PoisonOnPanic { poison: self, was_panicking: std::thread::panicking() }
    }

    #[cold]
    fn refuse(&self) -> Result<()> {
        if self.state.load(Ordering::Acquire) & REFUSES == 0 {
            return Ok(());
        }
        Err(match &*lock(&self.reason) {
            Some(reason) => Error::Poisoned { reason: reason.clone() },
            None => Error::ReadOnly,
        })
    }
}

/// See [`Poison::on_panic`]. Of a guard it is the first field: the store is poisoned before the lock is let go.
#[derive(Debug)]
pub(crate) struct PoisonOnPanic<'a> {
    poison: &'a Poison,
    was_panicking: bool,
}

impl Drop for PoisonOnPanic<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if std::thread::panicking() && !self.was_panicking {
            self.poison.poison("a writer panicked");
        }
    }
}

/// A batch that holds its keys. Dropping it lets go of them; if that is a panic, writes are refused first.
pub(crate) struct Batching<'a> {
    _poison: PoisonOnPanic<'a>,
    held: HeldParts<'a>,
}

/// The parts that a batch holds. Dropped behind the field before it.
struct HeldParts<'a> {
    poison: &'a Poison,
    environment: &'a dyn Environment,
    batch: u64,
    parts: Vec<usize>,
    is_alone: bool,
}

impl<'a> Batching<'a> {
    /// Takes the keys of a batch, by their hashes. `pass` locks and unlocks the lock of the keys with a hash: so every writer that
    /// had one of them has gone when this returns.
    ///
    /// # Errors
    /// When writes are refused.
    pub(crate) fn begin(
        poison: &'a Poison,
        environment: &'a dyn Environment,
        hashes: &[u64],
        pass: impl Fn(u64),
    ) -> Result<Self> {
        let mut parts: Vec<usize> = hashes.iter().map(|hash| HeldKeys::part_of(*hash)).collect();
        parts.sort_unstable();
        parts.dedup();
        let batch = poison.batches.fetch_add(1, Ordering::Relaxed) + 1;
        poison.state.fetch_add(BATCH, Ordering::AcqRel);
        poison.held.take(&parts, batch, environment);
        let held = HeldParts { poison, environment, batch, parts, is_alone: false };
        let batching = Self { _poison: poison.on_panic(), held };
        for hash in hashes {
            pass(*hash);
        }
        poison.refuse().map(|()| batching)
    }

    /// Its number, by which its own writes are known.
    pub(crate) fn batch(&self) -> u64 {
        self.held.batch
    }

    /// Lets nobody else begin to write, until it ends. Whether it has not done so before.
    #[cold]
    pub(crate) fn be_alone(&mut self) -> bool {
        let HeldParts { poison, environment, batch, is_alone, .. } = &mut self.held;
        let is_first = !std::mem::replace(is_alone, true);
        if is_first {
            poison.held.take_alone(*batch, *environment);
        }
        is_first
    }
}

impl Drop for HeldParts<'_> {
    fn drop(&mut self) {
        if self.is_alone {
            self.poison.held.release_alone();
        }
        self.poison.held.release(&self.parts);
        self.poison.state.fetch_sub(BATCH, Ordering::Release);
    }
}
