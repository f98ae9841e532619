//! [`BlockWord`]: the first word of a block. Of a run it says kind and length; of a single block it has the
//! flags of an engine without runs, and a number of the engine's. A [checked word](super::checked_word) of its place,
//! so all of it changes in one atomic store.
//!
//! ```text
//! bits of the number   what
//!  0..8                flags of a single block; zero in a run
//!  8..12               kind: 0 = single, 1 to 14 = registered by the engine, 15 = free
//! 12..32               blocks of the run, minus 1; in a single block a number of the engine's
//! ```
//!
//! Zero is never the word of a block, so storage that lost its bytes is damage. Only the first block
//! of a run has such a word; the other blocks of the run hold bytes of the engine there.

use chimera_pmem::{Pmem, Site};

use super::{Pool, checked_word};

const KIND_SHIFT: u32 = 8;
const BLOCKS_SHIFT: u32 = 12;
const KIND: u32 = (1 << (BLOCKS_SHIFT - KIND_SHIFT)) - 1;
const FLAGS: u32 = (1 << KIND_SHIFT) - 1;

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
    /// A single block, with the engine's flags and its number.
    #[inline]
    pub(crate) fn single(flags: u32, number: u32) -> Self {
        debug_assert!(flags <= FLAGS && number < RUN_BLOCKS_MAX);
        Self(flags | number << BLOCKS_SHIFT)
    }

    /// A run of `blocks` blocks, 1 to [`RUN_BLOCKS_MAX`].
    pub(super) fn run(code: u8, blocks: u32) -> Self {
        debug_assert!((1..=RUN_BLOCKS_MAX).contains(&blocks) && u32::from(code) <= KIND);
        Self(u32::from(code) << KIND_SHIFT | (blocks - 1) << BLOCKS_SHIFT)
    }

    /// From byte `at` of the media, unless the word is damaged.
    #[inline]
    pub(crate) fn decode(word: u64, at: u64) -> Option<Self> {
        checked_word::decode_at(word, at).map(Self)
    }

    /// What the lower half of a word says, whatever its check.
    pub(crate) fn decode_unchecked(word: u64) -> Self {
        Self(word as u32)
    }

    /// For byte `at` of the media.
    #[inline]
    pub(crate) fn encode(self, at: u64) -> u64 {
        checked_word::encode_at(self.0, at)
    }

    /// Whether it is the word of a single block.
    #[inline]
    pub(crate) fn is_single(self) -> bool {
        self.code() == 0
    }

    /// The flags of a single block.
    #[inline]
    pub(crate) fn flags(self) -> u32 {
        self.0 & FLAGS
    }

    /// The engine's number of a single block.
    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.0 >> BLOCKS_SHIFT
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
        self.pmem.store_u64(at, word.encode(at), site);
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
            assert_eq!(BlockWord::decode(word.encode(8192), 8192), Some(word));
            assert_eq!((word.code(), word.blocks()), (code, blocks));
            assert!(!word.is_single());
        }
        for (flags, number) in [(0, 0), (FLAGS, 0), (9, RUN_BLOCKS_MAX - 1)] {
            let word = BlockWord::single(flags, number);
            assert_eq!(BlockWord::decode(word.encode(8192), 8192), Some(word));
            assert_eq!((word.flags(), word.number(), word.is_single()), (flags, number, true));
        }
    }

    #[test]
    fn zero_and_the_word_of_another_block_are_none() {
        let word = BlockWord::run(3, 77).encode(8192);
        assert_eq!(BlockWord::decode(0, 8192), None);
        assert_eq!(BlockWord::decode(word, 8192 + 24_576), None);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let word = BlockWord::run(3, 77).encode(8192);
        for bit in 0..64 {
            assert_eq!(BlockWord::decode(word ^ 1 << bit, 8192), None, "bit {bit}");
        }
    }
}
