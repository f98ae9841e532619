//! [`HeldKeys`]: the keys that batches hold, by their hash.

use std::sync::OnceLock;

use chimera_pmem::Environment;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::until_some;

/// Parts that keys are divided into: a power of two; in models as few as possible.
const PARTS: usize = if cfg!(loom) { 2 } else { 4096 };

/// The keys that batches hold: of each part the number of the batch that holds it, 0 for none. Each batch has a number of its
/// own.
///
/// # Rules
/// 1. A batch takes all of its parts before it looks at any of its keys, the lowest part first: so batches never wait for each
///    other in a circle.
/// 2. A writer with the lock of its key looks here. Where another batch than its own holds the key, it lets go of the lock and
///    waits.
#[derive(Debug, Default)]
pub(crate) struct HeldKeys {
    /// Made by the first batch.
    parts: OnceLock<Box<[AtomicU64]>>,
    /// The batch that is the only writer now.
    alone: AtomicU64,
}

impl HeldKeys {
    /// The part of the keys with a hash.
    pub(super) fn part_of(hash: u64) -> usize {
        // Not the bits that choose a bucket or a segment of an index.
        (hash >> 24) as usize % PARTS
    }

    fn parts(&self) -> &[AtomicU64] {
        self.parts.get_or_init(|| (0..PARTS).map(|_| AtomicU64::new(0)).collect())
    }

    /// Whether another batch than `own` holds keys with this hash, or lets nobody else write.
    pub(super) fn is_held(&self, hash: u64, own: u64) -> bool {
        let part = self.parts.get().map_or(0, |parts| {
            // Acquire: what the batch has written before it let go is seen.
            parts[Self::part_of(hash)].load(Ordering::Acquire)
        });
        is_other(part, own) || self.has_one_writer(own)
    }

    /// Whether another batch than `own` lets nobody else write.
    pub(super) fn has_one_writer(&self, own: u64) -> bool {
        is_other(self.alone.load(Ordering::Acquire), own)
    }

    /// Takes parts, the lowest first, for a batch. Waits for others.
    pub(super) fn take(&self, parts: &[usize], batch: u64, environment: &dyn Environment) {
        let all = self.parts();
        for part in parts {
            take_word(&all[*part], batch, environment);
        }
    }

    /// Lets go of parts that were taken.
    pub(super) fn release(&self, parts: &[usize]) {
        for part in parts {
            self.parts()[*part].store(0, Ordering::Release);
        }
    }

    /// Lets nobody else write.
    pub(super) fn take_alone(&self, batch: u64, environment: &dyn Environment) {
        take_word(&self.alone, batch, environment);
    }

    /// Lets others write again.
    pub(super) fn release_alone(&self) {
        self.alone.store(0, Ordering::Release);
    }
}

fn take_word(word: &AtomicU64, batch: u64, environment: &dyn Environment) {
    until_some(environment, || {
        word.compare_exchange(0, batch, Ordering::AcqRel, Ordering::Relaxed).ok()
    });
}

fn is_other(holder: u64, own: u64) -> bool {
    holder != 0 && holder != own
}
