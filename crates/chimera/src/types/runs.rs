//! [`RunCounts`]: what the blocks of a pool are used for.

/// Runs of consecutive blocks by what they are used for. The sum of all blocks is the number of used blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RunCounts {
    /// Runs in use: single blocks that the engine gave no name, then its kinds in their order.
    pub kinds: Vec<RunsOfKind>,
    /// Runs that are free.
    pub free_runs: u64,
    /// Blocks of free runs.
    pub free_blocks: u64,
    /// Blocks of the longest free run: a longer one needs fresh blocks.
    pub longest_free_blocks: u64,
    /// Blocks behind a damaged word, whose use is not known.
    pub damaged_blocks: u64,
}

/// Runs of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RunsOfKind {
    /// What the engine calls the kind.
    pub kind: &'static str,
    /// Runs.
    pub runs: u64,
    /// Blocks of these runs.
    pub blocks: u64,
}

impl RunsOfKind {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self { kind, runs: 0, blocks: 0 }
    }
}

impl RunCounts {
    pub(crate) fn note_in_use(&mut self, kind: usize, blocks: u64) {
        let counts = &mut self.kinds[kind];
        counts.runs += 1;
        counts.blocks += blocks;
    }

    pub(crate) fn note_free(&mut self, blocks: u64) {
        self.free_runs += 1;
        self.free_blocks += blocks;
        self.longest_free_blocks = self.longest_free_blocks.max(blocks);
    }

    pub(crate) fn note_damaged(&mut self, blocks: u64) {
        self.damaged_blocks += blocks;
    }
}
