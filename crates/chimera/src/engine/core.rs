//! [`Core`]: what every engine is built on.

use std::sync::Arc;

use chimera_pmem::{Environment, Pmem};

use super::Options;
use super::shared::{KeyHash, Poison};
use crate::pool::Pool;

/// What every engine is built on.
pub(crate) struct Core<P: Pmem> {
    pub(crate) pool: Arc<Pool<P>>,
    /// Whether writes are refused.
    pub(crate) poison: Poison,
    pub(crate) hash: KeyHash,
    pub(crate) background: Background,
    /// Who is told of changes of the index.
    pub(crate) changes: Changes,
}

/// What work in the background may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Background {
    /// What is free to at least so many percent is reclaimed; 0 for nothing.
    pub(crate) reclaim_percent: u32,
    /// Bytes that reclamation moves in a second, at most.
    pub(crate) reclaim_bytes_per_second: u64,
}

impl<P: Pmem> Core<P> {
    pub(crate) fn new(pool: Arc<Pool<P>>, options: &Options) -> Self {
        Self {
            poison: Poison::new(pool.read_only),
            hash: KeyHash::new(pool.superblock().hash_seed),
            background: Background {
                reclaim_percent: options.reclaim_percent,
                reclaim_bytes_per_second: options.reclaim_bytes_per_second,
            },
            changes: Changes { told: options.told.clone() },
            pool,
        }
    }

    /// Clock, randomness, tasks and files.
    #[inline(always)]
    pub(crate) fn environment(&self) -> &Arc<dyn Environment> {
        &self.pool.environment
    }
}

/// How the index has changed for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// The key is new.
    Inserted,
    /// The key has another record.
    Replaced,
    /// The key is gone.
    Removed,
}

/// Who is told of each change of the index: an ordered index, say. Called under the key's lock, so changes
/// of a key come in their order, and before the write is acknowledged.
pub trait TellChange: Send + Sync {
    /// `key` has changed in the index. Must not use the store.
    fn changed(&self, key: &[u8], change: KeyChange);
}

/// The one place where an add-on is told of changes of the index.
pub(crate) struct Changes {
    told: Option<Arc<dyn TellChange>>,
}

impl Changes {
    /// Tells that the index has changed for `key`, whose lock the caller holds.
    ///
    /// # Cost
    /// A load and a branch where nobody is to be told.
    #[inline(always)]
    pub(crate) fn tell(&self, key: &[u8], change: KeyChange) {
        if let Some(told) = &self.told {
            told.changed(key, change);
        }
    }
}
