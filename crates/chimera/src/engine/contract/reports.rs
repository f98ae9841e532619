//! [`Reports`]: what an engine says of an open store.

use chimera_pmem::Pmem;

use super::engine::Engine;
use crate::engine::options::Options;
use crate::metrics::Exposition;
use crate::types::progress::Progress;

/// What an engine says of an open store.
pub(crate) trait Reports<P: Pmem>: Engine<P> {
    /// What it says of itself alone.
    type Stats;

    /// What it says of what the store is made of.
    type Inspect;

    /// Says what the store is made of. Other sessions may go on.
    fn inspect(&self, progress: Option<&Progress>) -> Self::Inspect;

    /// DRAM of its index and of its tables.
    ///
    /// # Cost
    /// Adds counters up: it is asked for every second.
    fn dram(&self) -> Dram;

    /// What of the [store's](crate::Stats) figures the engine knows.
    fn stats(&self) -> EngineFigures<Self::Stats>;

    /// Writes metrics that this engine alone has, if there are any.
    fn write_metrics(&self, text: &mut Exposition) {
        let _ = text;
    }

    /// Options for an empty store like this one.
    fn options_for_copy(&self) -> Options {
        Options::new().segment_bytes(self.core().pool.map.segment_bytes)
    }
}

/// Bytes of DRAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dram {
    pub(crate) index_bytes: u64,
    pub(crate) table_bytes: u64,
}

/// What of [`Stats`](crate::Stats) an engine knows.
pub(crate) struct EngineFigures<Details> {
    /// Used blocks that are free for reuse.
    pub(crate) blocks_free: u64,
    /// What it says of itself alone.
    pub(crate) details: Details,
}

impl<Details> EngineFigures<Details> {
    /// The same, with its details as one of all engines'.
    pub(crate) fn map<All>(self, all: impl FnOnce(Details) -> All) -> EngineFigures<All> {
        let Self { blocks_free, details } = self;
        EngineFigures { blocks_free, details: all(details) }
    }
}
