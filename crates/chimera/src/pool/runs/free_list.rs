//! [`FreeList`]: the free runs of a pool, in DRAM.

use std::collections::{BTreeMap, BTreeSet};

use chimera_pmem::Fenced;

use super::holes::Holes;

/// First block and length of a free run.
pub(crate) type FreeRun = (u64, u32);

/// Free runs by place and by length. Each entry is what a word on media says.
#[derive(Debug, Default)]
pub(crate) struct FreeList {
    by_first: BTreeMap<u64, u32>,
    by_blocks: BTreeSet<(u32, u64)>,
    /// When the runs were emptied that were in use since the pool was opened, by first block.
    emptied: BTreeMap<u64, Fenced>,
    /// Blocks of them that have no storage.
    pub(super) holes: Holes,
    /// Those that opening found, where a life that was lost may have left something. It is [removed](super::leftovers) before any
    /// blocks are taken.
    pub(super) leftovers: Vec<FreeRun>,
    /// Some of its holes may not be durable.
    pub(super) has_unsynced_holes: bool,
}

impl FreeList {
    pub(super) fn insert(&mut self, (first, blocks): FreeRun) {
        self.by_first.insert(first, blocks);
        self.by_blocks.insert((blocks, first));
    }

    /// As [`insert`](Self::insert), of a run in which nothing was left in use when that was fenced.
    pub(super) fn insert_emptied(&mut self, run: FreeRun, emptied: Fenced) {
        self.insert(run);
        self.emptied.insert(run.0, emptied);
    }

    /// When nothing was left in use in a run.
    pub(super) fn emptied(&self, (first, _): FreeRun) -> Fenced {
        self.emptied.get(&first).copied().unwrap_or_default()
    }

    pub(super) fn remove(&mut self, (first, blocks): FreeRun) {
        self.by_first.remove(&first);
        self.emptied.remove(&first);
        self.by_blocks.remove(&(blocks, first));
    }

    /// The shortest run of at least `blocks` blocks; of several, the first.
    pub(super) fn best_fit(&self, blocks: u32) -> Option<FreeRun> {
        self.by_blocks.range((blocks, 0)..).next().map(|&(blocks, first)| (first, blocks))
    }

    /// All runs, the longest one first.
    pub(crate) fn longest(&self) -> impl Iterator<Item = FreeRun> {
        self.by_blocks.iter().rev().map(|&(blocks, first)| (first, blocks))
    }

    /// The run that ends before `block`.
    pub(super) fn ending_at(&self, block: u64) -> Option<FreeRun> {
        let (&first, &blocks) = self.by_first.range(..block).next_back()?;
        (first + u64::from(blocks) == block).then_some((first, blocks))
    }

    /// The run that begins at `block`.
    pub(super) fn starting_at(&self, block: u64) -> Option<FreeRun> {
        self.by_first.get(&block).map(|&blocks| (block, blocks))
    }

    /// All runs, in the order of their blocks.
    pub(super) fn in_order(&self) -> impl Iterator<Item = FreeRun> {
        self.by_first.iter().map(|(&first, &blocks)| (first, blocks))
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<FreeRun> {
        assert_eq!(self.by_first.len(), self.by_blocks.len());
        self.in_order().collect()
    }
}
