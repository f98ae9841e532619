//! [`PoolOptions`]: what of a store's options the pool carries out.

use std::time::Duration;

use chimera_pmem::{Environment, Medium};

use crate::types::durability::Durability;
use crate::types::error::{Error, Result};

#[cfg(test)]
mod tests;

/// What of a store's options the pool carries out. [`Options`](crate::Options) documents each.
#[derive(Clone, Debug)]
pub(crate) struct PoolOptions {
    pub(crate) durability: Durability,
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    pub(crate) salvage: bool,
    pub(crate) anonymous_bytes: Option<u64>,
    /// None: it follows what is in use.
    pub(crate) populate_ahead_bytes: Option<u64>,
    pub(crate) populate_at_open: bool,
    pub(crate) capacity_bytes: Option<u64>,
    pub(crate) journal_bytes: Option<u64>,
    /// `Duration::MAX`: for as long as there is room.
    pub(crate) checkpoint_interval: Duration,
    pub(crate) memory_budget: Option<u64>,
    /// Instead of what the memory budget leaves for pages with stores of their own.
    pub(crate) page_limit: Option<u64>,
    /// Least bytes that go to their place ahead of the journal, instead of what the durability says.
    pub(crate) direct_bytes_min: Option<u64>,
    /// What is stored to new blocks goes to their file until the next sync.
    pub(crate) takes_places: bool,
    /// The store is a new one, and incomplete until [`complete`](crate::Db::complete) says otherwise.
    pub(crate) incomplete: bool,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Auto,
            create: true,
            read_only: false,
            salvage: false,
            anonymous_bytes: None,
            populate_ahead_bytes: None,
            populate_at_open: false,
            capacity_bytes: None,
            journal_bytes: None,
            checkpoint_interval: Self::CHECKPOINT_INTERVAL_DEFAULT,
            memory_budget: None,
            page_limit: None,
            direct_bytes_min: None,
            takes_places: true,
            incomplete: false,
        }
    }
}

impl PoolOptions {
    /// Fewest, usual and most bytes of a journal.
    const JOURNAL_BYTES_MIN: u64 = 16 << 10;
    pub(super) const JOURNAL_BYTES_DEFAULT: u64 = 64 << 20;
    const JOURNAL_BYTES_MAX: u64 = 1 << 30;
    /// How long changes stay in the journal alone, at least and usually.
    const CHECKPOINT_INTERVAL_MIN: Duration = Duration::from_millis(10);
    const CHECKPOINT_INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
    /// The usual budget is one of so many parts of what the process may use.
    const MEMORY_PARTS: u64 = 4;

    /// Bytes of memory that a store on a plain file may take: as asked for, or a part of what the process may use. `None`
    /// where nothing says that.
    pub(crate) fn memory_budget(&self, environment: &dyn Environment) -> Option<u64> {
        let usual = || environment.memory_bytes().map(|bytes| bytes / Self::MEMORY_PARTS);
        self.memory_budget.or_else(usual)
    }

    /// # Errors
    /// `InvalidOptions` for what no pool can have.
    pub(crate) fn validate(&self) -> Result<()> {
        let invalid = |what: &str| Err(Error::InvalidOptions(what.to_owned()));
        if self.populate_at_open && self.capacity_bytes.or(self.anonymous_bytes).is_none() {
            return invalid("populating at open needs a capacity");
        }
        if self.checkpoint_interval < Self::CHECKPOINT_INTERVAL_MIN {
            return invalid("a checkpoint interval must be 10 ms at least");
        }
        if let Some(bytes) = self.journal_bytes {
            let possible = Self::JOURNAL_BYTES_MIN..=Self::JOURNAL_BYTES_MAX;
            if !possible.contains(&bytes) || !bytes.is_multiple_of(4096) {
                return invalid(
                    "a journal must have a multiple of 4096 bytes, from 16 KiB to 1 GiB",
                );
            }
        }
        Ok(())
    }

    /// See [`Durability::effective_on`].
    pub(crate) fn effective_durability(&self, medium: Medium) -> Result<Durability> {
        self.durability.effective_on(medium)
    }
}
