//! Adding segments, allocating storage ahead of use, handing out blocks.

use std::sync::atomic::Ordering;

use chimera_pmem::Pmem;

use super::files::full_or_io;
use super::{Pool, USED_BLOCKS_AT, segment, sites};
use crate::db::error::{Error, Result};
use crate::sync::lock;

/// What growing needs to know.
pub(super) struct Growth {
    /// Open segment files, for allocating storage in them.
    pub(super) segments: Vec<std::sync::Arc<dyn chimera_pmem::environment::File>>,
    /// Most blocks the pool may have.
    pub(super) blocks_max: u64,
    /// Blocks to allocate at a time.
    pub(super) step_blocks: u64,
}

/// The used-blocks word: the number, and its complement in part, so that damage is noticed.
pub(super) fn encode_used(used: u64) -> u64 {
    used | (!used & 0xffff_ffff) << 32
}

/// The number in a used-blocks word, if it is one.
pub(super) fn decode_used(word: u64) -> Option<u64> {
    let used = word & 0xffff_ffff;
    (encode_used(used) == word).then_some(used)
}

impl<P: Pmem> Pool<P> {
    /// Hands out the next fresh block; its bytes are zero.
    ///
    /// # Errors
    /// `PoolFull`, with nothing changed.
    ///
    /// # Durability
    /// That the block is in use is durable on return.
    ///
    /// # Cost
    /// 1 line, 1 fence; storage is allocated here only when the background task has fallen behind.
    pub(crate) fn take_block(&self) -> Result<u64> {
        loop {
            let growth = lock(&self.growth);
            let block = self.used.load(Ordering::Acquire);
            if block < self.ready.load(Ordering::Acquire) {
                let word = self.extent(USED_BLOCKS_AT, 8);
                self.pmem.store_u64(USED_BLOCKS_AT, encode_used(block + 1), sites::USED_BLOCKS);
                self.pmem.flush(word, sites::USED_BLOCKS);
                self.pmem.fence(sites::USED_BLOCKS);
                self.used.store(block + 1, Ordering::Release);
                return Ok(block);
            }
            drop(growth);
            self.grow()?;
        }
    }

    /// Allocates storage for the next blocks, adding a segment where needed, and touches it so that
    /// no access faults later.
    ///
    /// # Errors
    /// `PoolFull` when the file system, the device or the configured capacity is exhausted.
    pub(crate) fn grow(&self) -> Result<()> {
        let mut growth = lock(&self.growth);
        let ready = self.ready.load(Ordering::Acquire);
        let segment = ready / self.map.blocks_per_segment;
        let inside = ready % self.map.blocks_per_segment;
        if ready >= growth.blocks_max {
            let reason = format!("its {ready} blocks are all that its capacity allows");
            return Err(Error::PoolFull { reason });
        }
        if segment == growth.segments.len() as u64 {
            self.add_segment(&mut growth, segment)?;
        }
        let blocks = growth
            .step_blocks
            .min(self.map.blocks_per_segment - inside)
            .min(growth.blocks_max - ready);
        let start = self.map.block_at(ready);
        let length = blocks * self.map.block_bytes;
        let in_file = start - (self.map.base + segment * self.map.segment_bytes);
        let path = self.files.segment_path(segment);
        growth.segments[segment as usize]
            .allocate(in_file, length)
            .map_err(|source| full_or_io(source, "allocate space in", &path))?;
        let page = 4096;
        let first = start / page * page;
        let end = (start + length).next_multiple_of(page).min(self.pmem.mapped());
        self.pmem
            .populate(first, end - first)
            .map_err(|source| full_or_io(source, "touch the memory of", &path))?;
        self.ready.store(ready + blocks, Ordering::Release);
        Ok(())
    }

    fn add_segment(&self, growth: &mut Growth, index: u64) -> Result<()> {
        let header = self.map.header_in_segment();
        let path = self.files.segment_path(index);
        let file =
            self.files.create_sized(&path, &[(header, super::blocks::SEGMENT_HEADER_BYTES)])?;
        let at = self.map.base + index * self.map.segment_bytes;
        self.pmem.map(at, &file, 0, self.map.segment_bytes).map_err(Error::io("map", &path))?;
        let words = segment::encode(lock(&self.superblock).pool_id, index);
        for (number, word) in words.iter().enumerate() {
            self.pmem.store_u64(at + header + 8 * number as u64, *word, sites::SEGMENT_HEADER);
        }
        self.pmem.flush(self.extent(at + header, 8 * segment::WORDS as u64), sites::SEGMENT_HEADER);
        self.pmem.fence(sites::SEGMENT_HEADER);
        self.change_superblock(|superblock| superblock.segments = index + 1);
        growth.segments.push(file);
        Ok(())
    }
}
