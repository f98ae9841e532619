//! [`HeldKeys`]: the keys that batches hold, by their hash.

use std::sync::OnceLock;

use chimera_pmem::Environment;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::until_some;

/// Parts that keys are divided into: a power of two; in models as few as possible.
const PARTS: usize = if cfg!(loom) { 2 } else { 4096 };

/// The keys that batches hold: of each part the session whose batch holds it, plus 1; 0 for none.
///
/// # Rules
/// 1. A batch takes all of its parts before it looks at any of its keys, the lowest part first: so batches never wait for each
///    other in a circle.
/// 2. A writer with the lock of its key looks here. Where another session's batch holds the key, it lets go of the lock and
///    waits.
#[derive(Debug, Default)]
pub(crate) struct HeldKeys {
    /// Made by the first batch.
    parts: OnceLock<Box<[AtomicU32]>>,
    /// The session whose batch is the only writer now, plus 1.
    alone: AtomicU32,
}

impl HeldKeys {
    /// The part of the keys with a hash.
    pub(super) fn part_of(hash: u64) -> usize {
        // Not the bits that choose a bucket or a segment of an index.
        (hash >> 24) as usize % PARTS
    }

    fn parts(&self) -> &[AtomicU32] {
        self.parts.get_or_init(|| (0..PARTS).map(|_| AtomicU32::new(0)).collect())
    }

    /// Whether a batch of another session holds keys with this hash, or lets nobody else write.
    pub(super) fn is_held(&self, hash: u64, session: u32) -> bool {
        let part = self.parts.get().map_or(0, |parts| {
            // Acquire: what the batch has written before it let go is seen.
            parts[Self::part_of(hash)].load(Ordering::Acquire)
        });
        is_other(part, session) || self.has_one_writer(session)
    }

    /// Whether a batch of another session lets nobody else write.
    pub(super) fn has_one_writer(&self, session: u32) -> bool {
        is_other(self.alone.load(Ordering::Acquire), session)
    }

    /// Takes parts, the lowest first, for a session. Waits for other batches.
    pub(super) fn take(&self, parts: &[usize], session: u32, environment: &dyn Environment) {
        let all = self.parts();
        for part in parts {
            until_some(environment, || {
                let free = all[*part].compare_exchange(
                    0,
                    session + 1,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                free.ok()
            });
        }
    }

    /// Lets go of parts that were taken.
    pub(super) fn release(&self, parts: &[usize]) {
        for part in parts {
            self.parts()[*part].store(0, Ordering::Release);
        }
    }

    /// Lets nobody else write.
    pub(super) fn take_alone(&self, session: u32, environment: &dyn Environment) {
        until_some(environment, || {
            let free =
                self.alone.compare_exchange(0, session + 1, Ordering::AcqRel, Ordering::Relaxed);
            free.ok()
        });
    }

    /// Lets others write again.
    pub(super) fn release_alone(&self) {
        self.alone.store(0, Ordering::Release);
    }
}

fn is_other(holder: u32, session: u32) -> bool {
    holder != 0 && holder != session + 1
}
