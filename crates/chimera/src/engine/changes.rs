//! [`Changes`]: the one place in each change of an index where an add-on is told of it.

use std::sync::Arc;

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
    /// Tells `told`, if there is anybody.
    pub(super) fn new(told: Option<Arc<dyn TellChange>>) -> Self {
        Self { told }
    }

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
