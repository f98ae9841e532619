//! [`Pass`]: how far a pass is.

use std::collections::HashSet;

/// What a pass is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// Between two passes.
    #[default]
    Idle,
    /// Shards from this one on are merged before runs are collected.
    MergeBefore(u32),
    Collect,
    /// Shards from this one on are merged after that.
    MergeAfter(u32),
}

/// A pass.
#[derive(Debug, Default)]
pub(super) struct Pass {
    pub(super) part: Part,
    /// Where the first records lie of the runs that were collected.
    pub(super) collected: HashSet<u64>,
    /// Runs that had been freed when collecting began.
    pub(super) freed: u64,
    /// Writes of the store when the last pass for a full pool was over.
    pub(super) writes: u64,
}

impl Pass {
    /// Begins another one, for a full pool.
    pub(super) fn begin(&mut self) {
        self.part = Part::MergeBefore(0);
        self.collected.clear();
    }

    pub(super) fn end(&mut self) {
        self.part = Part::Idle;
        self.collected.clear();
    }
}
