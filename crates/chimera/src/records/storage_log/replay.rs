//! [`ReplayList`]: what a restart would replay, kept up to date in DRAM, and bounded: by how long the runs are that sessions
//! append to, and by naming the runs whose records an engine is to put into tables first.
//!
//! A restart replays the records of a run behind its mark. A sealed run is marked once all of its records are in tables; one
//! that is open only when it is sealed, so all of it counts that may ever be filled.

use std::collections::BTreeSet;
use std::ops::Bound;

use chimera_pmem::Pmem;

use super::StorageLog;

/// What of a run a restart may replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// The sequence number that the run had when it was listed.
    pub(super) sequence: u64,
    /// Bytes of its records, if it is sealed; up to its end, if it is open.
    pub(super) sealed: u64,
    pub(super) open: u64,
}

/// What of all runs a restart may replay.
#[derive(Debug, Default)]
pub(super) struct ReplayList {
    sealed: BTreeSet<(u64, u32)>,
    bytes: Share,
}

/// A sealed run with records that are not all in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unflushed {
    pub(crate) sequence: u64,
    /// Where the first of these records lies, for [`walk`](StorageLog::walk), and bytes from there on.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

impl ReplayList {
    /// The share of a run changes.
    pub(super) fn change(&mut self, slot: u32, before: Share, after: Share) {
        if before.sealed > 0 {
            self.sealed.remove(&(before.sequence, slot));
        }
        if after.sealed > 0 {
            self.sealed.insert((after.sequence, slot));
        }
        self.bytes.sealed = self.bytes.sealed - before.sealed + after.sealed;
        self.bytes.open = self.bytes.open - before.open + after.open;
    }

    /// Bytes of sealed runs, and those that open ones may have.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.bytes.sealed, self.bytes.open)
    }

    /// The first sealed run with a sequence number above this one.
    fn next(&self, after: u64) -> Option<u32> {
        let range = (Bound::Excluded((after, u32::MAX)), Bound::Unbounded);
        self.sealed.range(range).next().map(|(_, slot)| *slot)
    }
}

impl<P: Pmem> StorageLog<P> {
    /// The runs that are appended to are to have so many bytes together, at most: where they come close, fresh ones are
    /// shorter. A run has room for its first record in any case.
    pub(crate) fn with_open_bytes_max(mut self, bytes: u64) -> Self {
        self.open_bytes_max = bytes;
        self
    }

    /// While the sealed runs with records that are not in tables have more than so many bytes: the first of them with a
    /// sequence number above `after`.
    pub(crate) fn first_unflushed(&self, bytes_max: u64, after: u64) -> Option<Unflushed> {
        let mut table = self.runs.lock(&*self.pool.environment);
        if table.replay.bytes().0 <= bytes_max {
            return None;
        }
        let slot = table.replay.next(after)?;
        let entry = table.entry(slot);
        let start = entry.replay_from();
        Some(Unflushed { sequence: entry.share.sequence, start, bytes: entry.tail - start })
    }

    /// Blocks of a fresh run that needs so many at least.
    pub(super) fn fresh_blocks(&self, least: u32) -> u32 {
        if self.open_bytes_max == u64::MAX {
            return self.run_blocks;
        }
        let open = self.runs.lock(&*self.pool.environment).replay.bytes().1;
        // Half of what is left, so that there is always some for the next session.
        let bytes = self.open_bytes_max.saturating_sub(open) / 2;
        let blocks = (bytes / self.pool.map.block_bytes).min(self.run_blocks.into()) as u32;
        blocks.max(least.min(self.run_blocks))
    }

    /// Whether a run that is opened again keeps those that are open within their limit.
    pub(super) fn may_open(&self, open: u64, more: u64) -> bool {
        open.saturating_add(more) <= self.open_bytes_max
    }
}
