//! [`Debt`]: what of the log nothing needs, about.

use chimera_pmem::Pmem;

use crate::engine::chameleon::index::Index;

/// What of the log nothing needs, about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Debt {
    /// In sealed runs, and not referred to.
    pub(super) dropped: u64,
    /// Superseded by what is above the last tables, or tombstones.
    pub(super) superseded: u64,
    /// Of all runs.
    whole: u64,
}

impl Debt {
    pub(super) fn of<P: Pmem>(index: &Index<P>) -> Self {
        let (counts, shards) = (index.log().counts(), index.shards());
        let (mut entries, mut records) = (0, 0);
        for number in 0..shards.shape().shards() {
            // Nothing is locked: it may be replaced meanwhile, and then this is a little wrong.
            let last = shards.shard(number).last().and_then(|last| shards.entries_of(last));
            let writing = index.lock_to_look(number);
            records += writing.records;
            let upper = shards.memtable(number).len() + shards.bypass(number).len();
            entries += u64::from(upper) + u64::from(last.unwrap_or(0));
        }
        let superseded = entries.saturating_sub(records);
        Self {
            dropped: counts.dropped_bytes,
            superseded: counts.live_bytes * superseded / entries.max(1),
            whole: counts.bytes,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.dropped + self.superseded
    }

    /// Whether it is at least so much of the log, and a run.
    pub(super) fn is_worth_a_pass(&self, percent: u32, run_bytes: u64) -> bool {
        self.bytes() * 100 >= self.whole * u64::from(percent) && self.bytes() >= run_bytes
    }
}
