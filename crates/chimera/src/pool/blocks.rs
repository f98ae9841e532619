//! Where blocks lie in the pool's address space.

use super::PoolGeometry;

/// Bytes kept for a segment's header, at its end.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = 4096;

/// Turns block numbers into offsets without dividing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockMap {
    /// Where the first segment begins.
    pub(crate) base: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) blocks_per_segment: u64,
    pub(crate) block_bytes: u64,
    /// Where the first block begins.
    first_block: u64,
    /// Bytes between the last block of a segment and the first one of the next.
    gap_bytes: u64,
    /// 2^63 / `blocks_per_segment`, rounded up: exact for block numbers below 2^32 and up to
    /// [`BLOCKS_PER_SEGMENT_MAX`](Self::BLOCKS_PER_SEGMENT_MAX).
    reciprocal: u64,
}

impl BlockMap {
    /// `None` when a segment does not hold a single block.
    pub(crate) fn new(base: u64, geometry: &PoolGeometry) -> Option<Self> {
        let block_bytes = u64::from(geometry.block_bytes);
        let shift = u64::from(geometry.block_shift_bytes);
        let room = geometry.segment_bytes.checked_sub(SEGMENT_HEADER_BYTES + shift)?;
        let blocks_per_segment = room.checked_div(block_bytes)?;
        (1..=Self::BLOCKS_PER_SEGMENT_MAX).contains(&blocks_per_segment).then(|| Self {
            base,
            segment_bytes: geometry.segment_bytes,
            blocks_per_segment,
            block_bytes,
            first_block: base + shift,
            gap_bytes: geometry.segment_bytes - blocks_per_segment * block_bytes,
            reciprocal: (1_u64 << 63).div_ceil(blocks_per_segment),
        })
    }

    const BLOCKS_PER_SEGMENT_MAX: u64 = 1 << 31;

    /// Largest number of blocks, so that it fits 32 bits.
    pub(crate) const BLOCKS_MAX: u64 = u32::MAX as u64;

    /// Offset of a block in the pool.
    #[inline(always)]
    pub(crate) fn block_at(&self, block: u64) -> u64 {
        let segment = ((u128::from(block) * u128::from(self.reciprocal)) >> 63) as u64;
        self.first_block + block * self.block_bytes + segment * self.gap_bytes
    }

    /// The block that `at` lies in, which need not be one that is used; `None` where no block lies.
    ///
    /// # Cost
    /// Two divisions.
    #[inline]
    pub(crate) fn block_of(&self, at: u64) -> Option<u64> {
        let inside = at.checked_sub(self.base)?;
        let (segment, inside) = (inside / self.segment_bytes, inside % self.segment_bytes);
        let block = inside.checked_sub(self.shift())? / self.block_bytes;
        (block < self.blocks_per_segment).then(|| segment * self.blocks_per_segment + block)
    }

    /// Offset in its segment of block number `inside` of the segment; of the end of the last one, too.
    #[inline(always)]
    pub(crate) fn block_in_segment(&self, inside: u64) -> u64 {
        self.shift() + inside * self.block_bytes
    }

    /// Bytes that the first block of a segment is shifted from its begin.
    #[inline(always)]
    fn shift(&self) -> u64 {
        self.first_block - self.base
    }

    /// Blocks from this one to the end of its segment, this one included.
    pub(crate) fn blocks_to_segment_end(&self, block: u64) -> u64 {
        self.blocks_per_segment - block % self.blocks_per_segment
    }

    /// Offset of a segment's header in its file.
    pub(crate) fn header_in_segment(&self) -> u64 {
        self.segment_bytes - SEGMENT_HEADER_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: PoolGeometry =
        PoolGeometry { segment_bytes: 1 << 30, block_bytes: 24 << 10, block_shift_bytes: 0 };

    #[test]
    fn a_default_segment_holds_what_the_paper_says() {
        let map = BlockMap::new(8192, &USUAL).unwrap();
        assert_eq!(map.blocks_per_segment, 43_690);
        assert_eq!(map.block_bytes, 24 * 1024);
    }

    #[test]
    fn blocks_follow_each_other_and_stay_in_their_segment() {
        for (segment_bytes, block_bytes) in [
            (1 << 30, 24 << 10),
            (64 << 20, 256),
            (1 << 20, 24 << 10),
            (1 << 39, 256),
            (32 << 10, 24 << 10),
        ] {
            for block_shift_bytes in [0, 2048] {
                let geometry = PoolGeometry { block_shift_bytes, segment_bytes, block_bytes };
                let map = BlockMap::new(8192, &geometry).unwrap();
                let per = map.blocks_per_segment;
                let interesting =
                    [0, 1, per - 1, per, per + 1, 7 * per - 1, 7 * per, BlockMap::BLOCKS_MAX];
                for block in interesting.into_iter().filter(|block| *block <= BlockMap::BLOCKS_MAX)
                {
                    let segment = block / per;
                    let expected = 8192
                        + segment * segment_bytes
                        + u64::from(block_shift_bytes)
                        + (block % per) * map.block_bytes;
                    assert_eq!(map.block_at(block), expected, "block {block}");
                    assert_eq!(map.block_of(expected), Some(block));
                    assert_eq!(map.block_of(expected + map.block_bytes - 1), Some(block));
                }
                let end = map.block_at(per - 1) + map.block_bytes;
                assert_eq!((map.block_of(end), map.block_of(map.base - 1)), (None, None));
                assert!(end <= 8192 + segment_bytes - SEGMENT_HEADER_BYTES);
            }
        }
    }

    #[test]
    fn a_block_lies_in_its_segment_where_it_lies_in_the_pool() {
        for block_shift_bytes in [0, 2048] {
            let geometry = PoolGeometry { block_shift_bytes, segment_bytes: 1 << 20, ..USUAL };
            let map = BlockMap::new(8192, &geometry).unwrap();
            for inside in 0..map.blocks_per_segment {
                assert_eq!(map.block_in_segment(inside), map.block_at(inside) - 8192);
                let behind = map.block_at(map.blocks_per_segment + inside) - 8192 - (1 << 20);
                assert_eq!(map.block_in_segment(inside), behind);
            }
            let last = map.block_at(map.blocks_per_segment - 1) - 8192;
            assert_eq!(map.block_in_segment(map.blocks_per_segment), last + map.block_bytes);
        }
    }

    #[test]
    fn a_segment_too_small_for_a_block_is_refused() {
        let geometry = PoolGeometry { segment_bytes: 8192, ..USUAL };
        assert!(BlockMap::new(0, &geometry).is_none());
    }
}
