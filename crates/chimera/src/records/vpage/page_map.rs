//! [`PageMap`]: where pages lie.

use crate::pool::BlockMap;

/// Where the pages of blocks lie in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageMap {
    blocks: BlockMap,
    pub(crate) block_bytes: u64,
    pub(crate) page_bytes: u64,
}

impl PageMap {
    pub(crate) fn new(blocks: BlockMap, page_bytes: u32) -> Self {
        Self { blocks, block_bytes: blocks.block_bytes, page_bytes: u64::from(page_bytes) }
    }

    /// Offset of a block in the pool.
    #[inline(always)]
    pub(crate) fn block_at(&self, block: u64) -> u64 {
        self.blocks.block_at(block)
    }

    /// Offset of a page in the pool.
    #[inline(always)]
    pub(crate) fn page_at(&self, block: u64, page: u64) -> u64 {
        self.block_at(block) + page * self.page_bytes
    }
}
