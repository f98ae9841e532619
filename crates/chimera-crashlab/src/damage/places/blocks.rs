//! Where the blocks of a pool lie in its files.

use crate::damage::image::{Image, SUPERBLOCK};

pub(super) const PAGE_BYTES: u64 = 4096;
/// Where the segments of a directory begin in the pool.
pub(super) const BASE: u64 = 2 * PAGE_BYTES;
pub(super) const COPY_WORDS: u64 = 51;
/// The first word of the engine's area of a copy.
const AREA: usize = 21;
pub(super) const USED_BLOCKS_AT: u64 = 1024;

/// What a superblock says.
pub(super) struct Pool {
    pub(super) engine: u64,
    pub(super) segment_bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) shift_bytes: u64,
    pub(super) segments: u64,
    pub(super) used: u64,
    /// The words of the copy that is in force.
    pub(super) words: Vec<u64>,
}

/// A block: its file, where it lies there, and how far a run may go on.
pub(super) struct Block {
    pub(super) file: String,
    pub(super) at: u64,
    /// From offsets in the file to offsets in the pool.
    pub(super) to_pool: u64,
    pub(super) left: u64,
}

impl Pool {
    pub(super) fn read(image: &Image) -> Option<Self> {
        let sequence = |copy: u64| image.word(SUPERBLOCK, copy * PAGE_BYTES + 48);
        let has = |copy: u64| image.word(SUPERBLOCK, copy * PAGE_BYTES) != 0;
        let newer = sequence(1).wrapping_sub(sequence(0)) as i64 > 0;
        let copy = u64::from(has(1) && (!has(0) || newer));
        let word = |number: u64| image.word(SUPERBLOCK, copy * PAGE_BYTES + 8 * number);
        let (segment_bytes, sizes) = (word(4), word(5));
        let pool = Self {
            engine: word(1) >> 32,
            segment_bytes,
            block_bytes: sizes & 0xffff_ffff,
            shift_bytes: sizes >> 32,
            segments: word(7),
            used: image.word(SUPERBLOCK, USED_BLOCKS_AT) & 0xffff_ffff,
            words: (0..COPY_WORDS).map(word).collect(),
        };
        (segment_bytes > PAGE_BYTES && pool.block_bytes > 0).then_some(pool)
    }

    /// A word of the engine's area.
    pub(super) fn area(&self, number: usize) -> u64 {
        self.words[AREA + number]
    }

    pub(super) fn blocks_per_segment(&self) -> u64 {
        (self.segment_bytes - PAGE_BYTES).saturating_sub(self.shift_bytes) / self.block_bytes
    }

    /// A block that is in use.
    pub(super) fn block(&self, number: u64) -> Option<Block> {
        let per = self.blocks_per_segment().max(1);
        let (segment, inside) = (number / per, number % per);
        let left = (per - inside).min(self.used.checked_sub(number)?);
        (left > 0 && segment < self.segments).then(|| Block {
            file: Image::segment(segment),
            at: self.shift_bytes + inside * self.block_bytes,
            to_pool: BASE + segment * self.segment_bytes,
            left,
        })
    }
}

/// A run: where its bytes behind the pool's line lie in its file.
pub(super) struct Run {
    pub(super) block: Block,
    pub(super) at: u64,
    pub(super) end: u64,
}
