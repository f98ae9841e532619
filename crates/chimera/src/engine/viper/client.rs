//! [`Client`]: one session's block and the slots it fills next (section 3.3.1).

use chimera_pmem::{CACHE_LINE, Operation, Pmem};

use super::Viper;
use crate::index::volatile::extendible_hash::Words;
use crate::records::block_flags;
use crate::records::vpage::{PageLayout, Place, VERSION_MAX, VPages};
use crate::sync::atomic::Ordering;
use crate::types::error::{Error, Result};

/// What a session keeps between operations.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// For counters.
    pub(crate) number: u32,
    /// The highest version this session has given or met: see [`Viper::clock`].
    clock: u64,
    insert: InsertPoint,
    /// A value that was read; and one that is being changed.
    pub(super) value: Vec<u8>,
    pub(super) changed: Vec<u8>,
}

/// Where the next record goes.
#[derive(Debug, Default)]
struct InsertPoint {
    block: Option<u64>,
    /// Free slots may have been used before: bits cleared by others must be made durable first.
    is_reused: bool,
    pages_left: u64,
    page: u64,
    page_at: u64,
    word: u32,
    /// The free slots of word `word` of the page's bitset, known to be durably free.
    free: u64,
}

impl Client {
    pub(crate) fn new(number: u32) -> Self {
        Self { number, ..Self::default() }
    }

    /// The slot for the next record; the same one until [`consume`](Self::consume).
    ///
    /// # Errors
    /// `PoolFull` when there is no block to be had.
    #[inline]
    pub(super) fn slot<P: Pmem, W: Words>(&mut self, engine: &Viper<P, W>) -> Result<Place> {
        while self.insert.free == 0 {
            self.advance(engine)?;
        }
        let point = &self.insert;
        let slot = engine.pages.layout.slot_of(point.word, point.free.trailing_zeros());
        let record_at = point.page_at + engine.pages.layout.slot_at(slot);
        Ok(Place {
            block: point.block.unwrap_or_default(),
            page: point.page,
            slot,
            page_at: point.page_at,
            record_at,
        })
    }

    /// The slot last given by [`slot`](Self::slot) is in use.
    #[inline]
    pub(super) fn consume<P: Pmem, W: Words>(&mut self, engine: &Viper<P, W>) {
        self.insert.free &= self.insert.free - 1;
        self.prefetch_shared(engine);
    }

    /// The version of the next record: higher than all that this session has given, and than `met`.
    ///
    /// # Errors
    /// `Corrupted` when there is none, which no number of puts can bring about.
    #[inline]
    pub(super) fn tick(&mut self, met: u64) -> Result<u64> {
        let last = self.clock.max(met);
        if last >= VERSION_MAX {
            return Err(no_version());
        }
        self.clock = last + 1;
        Ok(self.clock)
    }

    /// No slot of the bitset's word is for use: it is damaged.
    #[cold]
    pub(super) fn abandon_word(&mut self) {
        self.insert.free = 0;
    }

    /// Starts loading where the record after this one goes, but for the line it may share with this
    /// one, which is on its way out of the cache.
    #[inline]
    pub(super) fn prefetch_next<P: Pmem, W: Words>(&self, engine: &Viper<P, W>) {
        let (point, layout) = (&self.insert, &engine.pages.layout);
        let free = point.free & (point.free - 1);
        if free != 0 && u64::from(layout.slot_bytes) > CACHE_LINE {
            let slot = layout.slot_of(point.word, free.trailing_zeros());
            let at = point.page_at + layout.slot_at(slot) + CACHE_LINE;
            let length = u64::from(layout.slot_bytes) - CACHE_LINE;
            engine.pool.pmem.prefetch_write(engine.pool.extent(at, length));
        }
    }

    /// Starts loading the lines that the next put shares with the one before: flushing has thrown them
    /// out of the cache.
    #[inline]
    fn prefetch_shared<P: Pmem, W: Words>(&self, engine: &Viper<P, W>) {
        let (point, layout) = (&self.insert, &engine.pages.layout);
        if point.free != 0 {
            let slot = layout.slot_of(point.word, point.free.trailing_zeros());
            let bits = point.page_at + PageLayout::bitset_at(point.word);
            for at in [point.page_at + layout.slot_at(slot), bits] {
                engine.pool.pmem.prefetch_write(engine.pool.extent(at, 8));
            }
        }
    }

    /// Goes on to the next word of the bitset, page or block.
    #[cold]
    fn advance<P: Pmem, W: Words>(&mut self, engine: &Viper<P, W>) -> Result<()> {
        let pmem = &engine.pool.pmem;
        pmem.operation_begin(Operation::BlockHandOut, self.number);
        let done = self.advance_booked(engine);
        pmem.operation_acknowledge();
        done
    }

    fn advance_booked<P: Pmem, W: Words>(&mut self, engine: &Viper<P, W>) -> Result<()> {
        let point = &mut self.insert;
        let pages = &engine.pages;
        if let Some(block) = point.block {
            if point.word + 1 < pages.layout.bitset_words {
                point.word += 1;
            } else if point.pages_left > 0 {
                point.pages_left -= 1;
                point.page = (point.page + 1) % pages.pages_per_block;
                point.word = 0;
            } else {
                self.leave(engine);
                return Ok(());
            }
            point.page_at = pages.place(block, point.page, 0).page_at;
        } else {
            let (block, is_reused) = engine.take_block()?;
            self.clock = self.clock.max(engine.clock.fetch_max(self.clock, Ordering::Relaxed));
            let page = engine.pool.environment.random_u64() % pages.pages_per_block;
            *point = InsertPoint {
                block: Some(block),
                is_reused,
                pages_left: pages.pages_per_block - 1,
                page,
                page_at: pages.place(block, page, 0).page_at,
                ..InsertPoint::default()
            };
        }
        // The slots of a damaged word are not for use.
        let bits = pages.bits(&engine.pool, point.page_at, point.word).unwrap_or(u64::MAX);
        point.free = !bits & pages.layout.bits_of_word(point.word);
        if point.is_reused && point.free != 0 {
            VPages::persist_bits(&engine.pool, point.page_at, point.word);
        }
        self.prefetch_shared(engine);
        Ok(())
    }

    /// Gives the block back, if there is one, for others to fill.
    pub(crate) fn leave<P: Pmem, W: Words>(&mut self, engine: &Viper<P, W>) {
        engine.clock.fetch_max(self.clock, Ordering::Relaxed);
        if let Some(block) = self.insert.block.take() {
            self.insert.free = 0;
            engine.leave_block(block);
        }
    }
}

impl<P: Pmem, W: Words> Viper<P, W> {
    /// A block for a session, marked as owned: one with free slots if there is one, else a new one.
    /// Tells whether its slots may have been used before.
    fn take_block(&self) -> Result<(u64, bool)> {
        let block = loop {
            if let Some(block) = self.take_reused() {
                return Ok((block, true));
            }
            match self.pool.take_block() {
                Ok(block) => break block,
                Err(Error::PoolFull { .. }) if self.blocks.starve(self.pool.used_blocks()) => {}
                Err(error) => return Err(error),
            }
        };
        self.blocks.feed();
        self.blocks.ensure(block + 1).map_err(|_| super::no_memory())?;
        self.blocks.own(block);
        // A fresh block is all zeros, unless somebody has changed the file.
        let is_blank = matches!(block_flags::read(&self.pool, block), Ok(0))
            && self.pages.free_slots(&self.pool, block) == self.pages.slots_per_block();
        if !is_blank {
            self.pages.blank_block(&self.pool, block);
        }
        block_flags::change(&self.pool, block, block_flags::OWNED, 0)?;
        Ok((block, false))
    }

    /// A block with free slots from the queue.
    fn take_reused(&self) -> Option<u64> {
        while let Some(block) = self.blocks.take_queued() {
            match self.own_reused(block) {
                Ok(()) => return Some(block),
                // It stays out of use: neither owned nor queued by anyone.
                Err(error) => log::warn!("block {block} is not used: {error}"),
            }
        }
        None
    }

    fn own_reused(&self, block: u64) -> Result<()> {
        self.blocks.own(block);
        let in_place = block_flags::read(&self.pool, block)? & block_flags::IN_PLACE != 0;
        let is_empty = self.pages.free_slots(&self.pool, block) == self.pages.slots_per_block();
        if !(in_place && is_empty) {
            return block_flags::change(&self.pool, block, block_flags::OWNED, 0);
        }
        // No value is left that was updated in place. The bits must be durable before the flag is
        // cleared, or a crash could bring back a value whose checksum does not apply.
        for (_, page_at) in self.pages.pages_of(block) {
            for word in 0..self.pages.layout.bitset_words {
                VPages::persist_bits(&self.pool, page_at, word);
            }
        }
        block_flags::change(&self.pool, block, block_flags::OWNED, block_flags::IN_PLACE)?;
        self.mark_pages(block, false);
        Ok(())
    }

    /// Ends a session's hold of a block.
    fn leave_block(&self, block: u64) {
        if let Err(error) = block_flags::change(&self.pool, block, 0, block_flags::OWNED) {
            log::warn!("block {block} is not used again: {error}");
            return;
        }
        self.blocks.leave(block, || self.pages.free_slots(&self.pool, block));
    }
}

#[cold]
fn no_version() -> Error {
    Error::corrupted("a record's version leaves no room for higher ones", 0)
}
