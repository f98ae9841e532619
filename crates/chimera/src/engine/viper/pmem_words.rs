//! [`PmemWords`]: the index in persistent memory, for comparison (Figure 11).

use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Pmem};

use crate::index::OutOfSpace;
use crate::index::volatile::extendible_hash::{HashGeometry, Words};
use crate::pool::Pool;
use crate::records::block_flags;
use crate::records::vpage::Pages;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arena, Mutex, lock};
use crate::types::error::{Error, Result};

/// The sites of an index in persistent memory.
pub(crate) mod sites {
    /// A word of the index. Not a site to be tested: it is flushed for what that costs, and means
    /// nothing after a crash.
    pub(crate) const WORD: chimera_pmem::Site = chimera_pmem::Site::new("viper.index.word");
}

/// The words of an index in blocks of the pool that are flagged `INDEX`. Every change is flushed and
/// fenced, which is what the placement costs; the words mean nothing after a restart.
pub(crate) struct PmemWords<P: Pmem> {
    pool: Arc<Pool<P>>,
    segment_bytes: u64,
    segments_per_block: u64,
    /// Blocks that may be taken instead of fresh ones: at the end those of an earlier index, before them,
    /// until records are written, those that hold none.
    old_blocks: Mutex<Vec<u64>>,
    /// Offsets of segments.
    starts: Arena<AtomicU64>,
    segments: AtomicU64,
}

impl<P: Pmem> PmemWords<P> {
    /// No segments yet.
    ///
    /// # Errors
    /// `InvalidOptions` when a block does not hold a segment.
    pub(crate) fn new<V: Pages>(pool: Arc<Pool<P>>, geometry: HashGeometry) -> Result<Self> {
        let segment_bytes = geometry.segment_bytes();
        // The first line holds the block's flags.
        let segments_per_block = (pool.map.block_bytes - CACHE_LINE) / segment_bytes;
        if segments_per_block == 0 {
            let what = "an index in persistent memory needs blocks larger than its segments";
            return Err(Error::InvalidOptions(what.to_owned()));
        }
        let pages = V::of(&pool)?;
        let is_empty = |block: &u64| {
            matches!(block_flags::read(&pool, *block), Ok(0)) && pages.is_empty(&pool, *block)
        };
        let mut old_blocks: Vec<_> = (0..pool.used_blocks()).filter(is_empty).collect();
        old_blocks.extend((0..pool.used_blocks()).filter(|block| is_index(&pool, *block)));
        let segments = AtomicU64::new(0);
        Ok(Self {
            pool,
            segment_bytes,
            segments_per_block,
            old_blocks: Mutex::new(old_blocks),
            starts: Arena::new(64, false),
            segments,
        })
    }

    fn take_block(&self) -> Result<u64> {
        let old = lock(&self.old_blocks).pop();
        let block = old.map_or_else(|| self.pool.take_block(), Ok)?;
        if block_flags::read(&self.pool, block).ok() != Some(block_flags::INDEX) {
            // Before anything else is there that could be taken for records.
            block_flags::set_fresh(&self.pool, block, block_flags::INDEX);
        }
        // Zeros are what an index begins with; the first line holds the flags.
        let at = self.pool.map.block_at(block);
        let words = self.pool.extent(at + CACHE_LINE, self.pool.map.block_bytes - CACHE_LINE);
        self.pool.pmem.zero(words, sites::WORD);
        self.pool.pmem.flush(words, sites::WORD);
        self.pool.pmem.fence(sites::WORD);
        Ok(at)
    }

    #[inline(always)]
    fn start(&self, segment: u64) -> u64 {
        let start = self.starts.get(segment).expect("a segment that was ensured");
        start.load(Ordering::Acquire)
    }
}

fn is_index<P: Pmem>(pool: &Pool<P>, block: u64) -> bool {
    block_flags::read(pool, block).is_ok_and(|flags| flags & block_flags::INDEX != 0)
}

impl<P: Pmem> Words for PmemWords<P> {
    const IN_POOL: bool = true;

    /// The line's offset.
    type Line<'a> = u64;

    fn ensure_segments(&self, count: u64) -> Result<(), OutOfSpace> {
        let mut segments = self.segments.load(Ordering::Acquire);
        while segments < count {
            self.starts.ensure(segments + self.segments_per_block).map_err(|_| OutOfSpace)?;
            let first = self.take_block().map_err(|_| OutOfSpace)? + CACHE_LINE;
            for inside in 0..self.segments_per_block {
                let start = self.starts.get(segments).ok_or(OutOfSpace)?;
                start.store(first + inside * self.segment_bytes, Ordering::Release);
                segments += 1;
            }
            self.segments.store(segments, Ordering::Release);
        }
        Ok(())
    }

    #[inline(always)]
    fn line(&self, segment: u64, number: u32) -> u64 {
        self.start(segment) + u64::from(number) * CACHE_LINE
    }

    #[inline(always)]
    fn load(&self, line: u64, word: u32) -> u64 {
        self.pool.pmem.load_u64(line + 8 * u64::from(word))
    }

    #[inline(always)]
    fn store(&self, line: u64, word: u32, value: u64) {
        self.pool.pmem.store_u64(line + 8 * u64::from(word), value, sites::WORD);
    }

    #[inline(always)]
    fn prefetch(&self, line: u64) {
        self.pool.pmem.prefetch(self.pool.extent(line, CACHE_LINE));
    }

    fn persist(&self, line: u64) {
        self.pool.pmem.flush(self.pool.extent(line, CACHE_LINE), sites::WORD);
        self.pool.pmem.fence(sites::WORD);
    }

    fn persist_segment(&self, segment: u64) {
        self.pool
            .pmem
            .flush(self.pool.extent(self.start(segment), self.segment_bytes), sites::WORD);
        self.pool.pmem.fence(sites::WORD);
    }

    fn settle(&self) {
        lock(&self.old_blocks).retain(|block| is_index(&self.pool, *block));
    }

    fn bytes(&self) -> u64 {
        self.segments.load(Ordering::Acquire) * self.segment_bytes
    }
}
