//! [`BlockWord`]: the first word of a block. Of a run it says kind and length; of a single block it has the
//! flags of an engine without runs. A [checked word](super::checked_word), so all of it changes in one atomic
//! store.
//!
//! ```text
//! bits of the number   what
//!  0..8                flags of a single block; zero in a run
//!  8..12               kind: 0 = single, 1 to 14 = registered by the engine, 15 = free
//! 12..32               blocks of the run, minus 1
//! ```
//!
//! Zero is the word of a single block without flags, so fresh storage is valid. Only the first block
//! of a run has such a word; the other blocks of the run hold bytes of the engine there.

use chimera_pmem::{Pmem, Site};

use super::{Pool, checked_word};

const KIND_SHIFT: u32 = 8;
const BLOCKS_SHIFT: u32 = 12;
const KIND: u32 = (1 << (BLOCKS_SHIFT - KIND_SHIFT)) - 1;

/// Most blocks in a run.
pub(crate) const RUN_BLOCKS_MAX: u32 = 1 << (u32::BITS - BLOCKS_SHIFT);

/// What an engine uses a run of blocks for. The engine registers its kinds by passing them to
/// [`recover_runs`](Pool::recover_runs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockKind {
    code: u8,
    name: &'static str,
}

impl BlockKind {
    /// A run that nobody has.
    pub(super) const FREE: Self = Self { code: KIND as u8, name: "free" };

    /// Kind number `code`, from 1 to 14, which a report calls `name`.
    #[cfg_attr(not(test), allow(dead_code, reason = "only engines with runs have kinds"))]
    pub(crate) const fn new(code: u8, name: &'static str) -> Self {
        assert!(0 < code && code < Self::FREE.code, "kinds have numbers from 1 to 14");
        Self { code, name }
    }

    /// Its number on media.
    pub(crate) fn code(self) -> u8 {
        self.code
    }

    /// What a report calls it.
    pub(crate) fn name(self) -> &'static str {
        self.name
    }
}

/// The content of a block's first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockWord(u32);

impl BlockWord {
    /// A single block.
    pub(crate) fn single(flags: u32) -> Self {
        Self(flags)
    }

    /// A run of `blocks` blocks, 1 to [`RUN_BLOCKS_MAX`].
    pub(super) fn run(code: u8, blocks: u32) -> Self {
        debug_assert!((1..=RUN_BLOCKS_MAX).contains(&blocks) && u32::from(code) <= KIND);
        Self(u32::from(code) << KIND_SHIFT | (blocks - 1) << BLOCKS_SHIFT)
    }

    /// From media, unless the word is damaged.
    #[inline]
    pub(crate) fn decode(word: u64) -> Option<Self> {
        checked_word::decode(word).map(Self)
    }

    /// For media.
    #[inline]
    pub(crate) fn encode(self) -> u64 {
        checked_word::encode(self.0)
    }

    /// The whole number: of a single block, its flags.
    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    pub(super) fn code(self) -> u8 {
        (self.0 >> KIND_SHIFT & KIND) as u8
    }

    pub(super) fn blocks(self) -> u32 {
        (self.0 >> BLOCKS_SHIFT) + 1
    }
}

impl<P: Pmem> Pool<P> {
    /// Stores the first word of a block and starts writing it back.
    #[inline]
    pub(crate) fn store_block_word(&self, block: u64, word: BlockWord, site: Site) {
        let at = self.map.block_at(block);
        self.pmem.store_u64(at, word.encode(), site);
        self.pmem.flush(self.extent(at, 8), site);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_comes_back_as_it_was() {
        for (code, blocks) in [(1, 2), (14, RUN_BLOCKS_MAX), (15, 9)] {
            let word = BlockWord::run(code, blocks);
            assert_eq!(BlockWord::decode(word.encode()), Some(word));
            assert_eq!((word.code(), word.blocks()), (code, blocks));
        }
    }

    #[test]
    fn fresh_storage_is_a_single_block_without_flags() {
        assert_eq!(BlockWord::decode(0), Some(BlockWord::single(0)));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let word = BlockWord::run(3, 77).encode();
        for bit in 0..64 {
            assert_eq!(BlockWord::decode(word ^ 1 << bit), None, "bit {bit}");
        }
    }
}
