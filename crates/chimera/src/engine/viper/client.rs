//! [`Client`]: one session's blocks, and where in them it writes next (section 4.1).

use chimera_pmem::{Operation, Pmem};

use super::{Viper, steps};
use crate::engine::shared::client::SharedClient;
use crate::records::block_flags;
use crate::records::header::VERSION_MAX;
use crate::records::lengths::DESCRIPTOR_BYTES;
use crate::records::vpage::{
    Abandoned, Cursor, InsertPoint, LogPages, PAGE_KINDS, Pages, Place, Room,
};
use crate::sync::VersionGuard;
use crate::sync::atomic::Ordering;
use crate::types::error::{Error, Result};

/// Blocks in the queue that a session looks at for one with room, before it takes a fresh one.
const REUSED_TRIES: u64 = 8;

/// Times that a session looks at all of them, when there are no fresh ones, before the pool is full: others
/// may be looking at the one it needs, or be about to leave one.
const STARVED_TRIES: u32 = 16;

/// The kind of pages that chunks of values go to.
const CHUNKS: usize = PAGE_KINDS - 1;

/// A chunk has at least so many bytes of a value, unless it is the first one.
const CHUNK_BYTES_MIN: usize = 64;

/// A block kept back, if there is one just now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spare(pub(super) Option<u64>);

/// What a session keeps between operations.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) shared: SharedClient,
    /// The highest version this session has given or met: see [`Viper::clock`].
    clock: u64,
    /// Where its next records go, one for each kind of page.
    points: [InsertPoint; PAGE_KINDS],
    /// Values that fit lie beside their keys, wherever the page ends.
    pub(super) keeps_whole: bool,
    /// Of the mover, which makes room for others: a block for when there is no other.
    pub(super) spare: Option<Spare>,
    /// Blocks that are not to be given back yet: they hold chunks whose record is not live yet.
    held: Option<Vec<InsertPoint>>,
}

impl Client {
    pub(crate) fn new(number: u32) -> Self {
        Self { shared: SharedClient::new(number), ..Self::default() }
    }

    /// The place for a record of these sizes; the same one until [`consume`](Self::consume).
    ///
    /// # Errors
    /// `PoolFull` when there is no block to be had.
    #[inline]
    pub(super) fn place<P: Pmem, V: Pages>(
        &mut self,
        engine: &Viper<P, V>,
        key_bytes: usize,
        beside_bytes: usize,
    ) -> Result<Place> {
        let kind = engine.pages.kind_of(key_bytes, beside_bytes);
        loop {
            if let Some(place) = engine.pages.room(&self.points[kind], key_bytes, beside_bytes) {
                return Ok(place);
            }
            let need = engine.pages.units_of(key_bytes, beside_bytes);
            self.advance(engine, kind, need)?;
        }
    }

    /// The place last given by [`place`](Self::place) is in use.
    #[inline]
    pub(super) fn consume<P: Pmem, V: Pages>(
        &mut self,
        engine: &Viper<P, V>,
        key_bytes: usize,
        beside_bytes: usize,
    ) {
        let point = &mut self.points[engine.pages.kind_of(key_bytes, beside_bytes)];
        engine.pages.consume(point, key_bytes, beside_bytes);
        engine.pages.prefetch_shared(&engine.core.pool, point);
    }

    /// Whether a record is to be stored with its value spilled: because the value is too long for any page, or
    /// because the page has room for the key only, and that saves space (section 4.2). The same until
    /// [`consume`](Self::consume).
    #[inline(always)]
    pub(super) fn spills(&self, pages: &LogPages, key_bytes: usize, value_bytes: usize) -> bool {
        pages.is_spilled(value_bytes)
            || key_bytes >= pages.spill_key_bytes_min()
                && !self.keeps_whole
                && pages.kind_of(key_bytes, value_bytes) == 0
                && pages.room(&self.points[0], key_bytes, value_bytes).is_none()
                && pages.room(&self.points[0], key_bytes, DESCRIPTOR_BYTES).is_some()
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

    /// Keeps blocks that are filled until [`release_blocks`](Self::release_blocks).
    pub(super) fn hold_blocks(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Gives back the blocks that were kept. All that lies in them is durable.
    pub(super) fn release_blocks<P: Pmem, V: Pages>(&mut self, engine: &Viper<P, V>) {
        for point in self.held.take().unwrap_or_default() {
            let _booked = engine.core.book(Operation::BlockHandOut, self.shared.number);
            let block = point.block.unwrap_or_default();
            let _room_before_the_chunks = engine.pages.leave(&engine.core.pool, point);
            engine.leave_block(block, None);
        }
    }

    /// Where the next chunk goes: with room for more than a word. A block for it that was in use before
    /// has `need` units free.
    ///
    /// # Errors
    /// `PoolFull` when there is no block to be had.
    pub(super) fn point_for_chunk<P: Pmem, V: Pages>(
        &mut self,
        engine: &Viper<P, V>,
        need: u32,
    ) -> Result<&mut InsertPoint> {
        while self.points[CHUNKS].block.is_none()
            || LogPages::room_for_chunk(&self.points[CHUNKS]) < CHUNK_BYTES_MIN
        {
            match self.advance(engine, CHUNKS, need) {
                // Then any room will do.
                Err(Error::PoolFull { .. }) => {
                    let least = engine.pages.units_of(1, CHUNK_BYTES_MIN);
                    self.advance(engine, CHUNKS, least)?;
                }
                other => other?,
            }
        }
        Ok(&mut self.points[CHUNKS])
    }

    /// The record that was begun at the place last given will not be committed.
    #[cold]
    pub(super) fn abandon<V: Pages>(
        &mut self,
        pages: &V,
        key_bytes: usize,
        beside_bytes: usize,
        cause: Abandoned,
    ) {
        pages.abandon(&mut self.points[pages.kind_of(key_bytes, beside_bytes)], cause);
        // What was written there is free, and so are the record's chunks: no account is right any more.
        for point in &mut self.points {
            point.left = None;
        }
    }

    /// Starts loading where the record after the present one goes.
    #[inline(always)]
    pub(super) fn prefetch_next<P: Pmem, V: Pages>(
        &self,
        engine: &Viper<P, V>,
        key_bytes: usize,
        beside_bytes: usize,
    ) {
        let point = &self.points[engine.pages.kind_of(key_bytes, beside_bytes)];
        engine.pages.prefetch_next(&engine.core.pool, point, key_bytes, beside_bytes);
    }

    /// Goes on to the next part of the page, page or block.
    #[cold]
    fn advance<P: Pmem, V: Pages>(
        &mut self,
        engine: &Viper<P, V>,
        kind: usize,
        need: u32,
    ) -> Result<()> {
        let pmem = &engine.core.pool.pmem;
        pmem.operation_begin(Operation::BlockHandOut, self.shared.number);
        let done = self.advance_booked(engine, kind, need);
        pmem.operation_acknowledge();
        done
    }

    fn advance_booked<P: Pmem, V: Pages>(
        &mut self,
        engine: &Viper<P, V>,
        kind: usize,
        need: u32,
    ) -> Result<()> {
        let pages = &engine.pages;
        let point = &mut self.points[kind];
        if point.block.is_none() {
            let (block, is_reused) =
                engine.take_block(V::KIND_FLAGS[kind], need, self.spare.as_mut())?;
            self.clock = self.clock.max(engine.clock.fetch_max(self.clock, Ordering::Relaxed));
            let chance = engine.core.pool.environment.random_u64();
            *point = pages.begin(block, is_reused, kind, chance);
        } else if !pages.advance(&engine.core.pool, point) {
            self.leave_point(engine, kind);
            return Ok(());
        }
        let number = pages.page_number(point.block.unwrap_or_default(), point.page);
        let lock = || engine.blocks.page_lock(number).lock(&*engine.core.pool.environment);
        pages.enter(&engine.core.pool, kind, point, lock);
        pages.prefetch_shared(&engine.core.pool, point);
        Ok(())
    }

    /// Whether it fills any block.
    pub(super) fn has_blocks(&self) -> bool {
        self.points.iter().any(|point| point.block.is_some())
    }

    /// Gives the blocks back, for others to fill.
    pub(crate) fn leave<P: Pmem, V: Pages>(&mut self, engine: &Viper<P, V>) {
        for kind in 0..self.points.len() {
            self.leave_point(engine, kind);
        }
    }

    fn leave_point<P: Pmem, V: Pages>(&mut self, engine: &Viper<P, V>, kind: usize) {
        engine.clock.fetch_max(self.clock, Ordering::Relaxed);
        let point = std::mem::take(&mut self.points[kind]);
        let Some(block) = point.block else { return };
        if let Some(held) = &mut self.held {
            held.push(point);
            return;
        }
        engine.leave_block(block, engine.pages.leave(&engine.core.pool, point));
    }
}

impl<P: Pmem, V: Pages> Viper<P, V> {
    /// A block for a session, marked as owned and with `flags`: one with room if there is one, else a new
    /// one. Tells whether it was in use before.
    fn take_block(&self, flags: u32, need: u32, spare: Option<&mut Spare>) -> Result<(u64, bool)> {
        let mut starved = 0;
        let pool = &*self.core.pool;
        let format = |block| self.pages.format(pool, block, block_flags::OWNED | flags);
        let block = loop {
            let tries = if starved == 0 { REUSED_TRIES } else { u64::MAX };
            if let Some(block) = self.take_reused(flags, need, tries) {
                return Ok((block, true));
            }
            if let Some(spare) = spare {
                // Sessions are not to be starved by what makes room for them.
                match pool.take_reserved_block(format) {
                    Ok(block) => break block,
                    Err(error) => {
                        let block = spare.0.take().ok_or(error)?;
                        self.blocks.own(block);
                        self.empty(block, block_flags::OWNED | flags)?;
                        return Ok((block, true));
                    }
                }
            }
            match pool.take_block(format) {
                Ok(block) => break block,
                Err(Error::PoolFull { .. })
                    if starved < STARVED_TRIES
                        && (self.make_mover_leave() | self.blocks.starve(pool.used_blocks())) =>
                {
                    pool.environment.relax(starved);
                    starved += 1;
                }
                Err(error) => return Err(error),
            }
        };
        self.blocks.feed();
        self.blocks.ensure(block + 1).map_err(|_| super::no_memory())?;
        self.blocks.own(block);
        Ok((block, false))
    }

    /// A block from the queue with room for a record of `need` units. Looks at `tries` blocks.
    fn take_reused(&self, flags: u32, need: u32, tries: u64) -> Option<u64> {
        // Each at most once: those without enough room go back to the queue.
        let mut from = 0;
        for _ in 0..self.blocks.queued().min(tries) {
            let Some(block) = self.blocks.take_queued(from) else { break };
            from = block + 1;
            if self.is_taken(block, flags, need) {
                return Some(block);
            }
        }
        // Others without enough room may be before it.
        self.blocks.take_empty().filter(|block| self.is_taken(*block, flags, need))
    }

    /// Makes a session the owner of a block that was taken from the queue, or puts it back.
    fn is_taken(&self, block: u64, flags: u32, need: u32) -> bool {
        match self.own_reused(block, flags, need) {
            Ok(true) => return true,
            Ok(false) => {
                self.blocks.leave(block, None, || self.pages.room_in(&self.core.pool, block));
            }
            // It stays out of use: neither owned nor queued by anyone.
            Err(error) => log::warn!("block {block} is not used: {error}"),
        }
        false
    }

    /// Makes a session the owner of a queued block; `false` when it is not for records of this kind.
    fn own_reused(&self, block: u64, flags: u32, need: u32) -> Result<bool> {
        self.blocks.own(block);
        let pmem = &self.core.pool.pmem;
        let now = block_flags::read(&self.core.pool, block)?;
        let is_empty = self.pages.is_empty(&self.core.pool, block);
        let is_alike = now & V::KIND_MASK == flags;
        if !(is_empty || is_alike && self.pages.has_room(&self.core.pool, block, need)) {
            return Ok(false);
        }
        if is_alike {
            let clear = if pmem.skips(steps::CLEAR_FREE) { 0 } else { block_flags::FREE };
            block_flags::change(&self.core.pool, block, block_flags::OWNED, clear)?;
            return Ok(true);
        }
        // No record is left in pages of another kind. That must be durable before the flags change, or a crash could
        // bring back a record that is looked for in the wrong place.
        self.empty(block, block_flags::OWNED | flags)?;
        Ok(true)
    }

    /// Makes an empty block of the caller one that was never used but for these flags, durably.
    pub(super) fn empty(&self, block: u64, flags: u32) -> Result<()> {
        self.empty_pages(block)?;
        self.reset_flags(block, flags)
    }

    /// Makes durable that a block of the caller is empty.
    fn empty_pages(&self, block: u64) -> Result<()> {
        // Before anything is touched.
        block_flags::read(&self.core.pool, block)?;
        let _pages = self.lock_pages(block);
        self.pages.persist_empty(&self.core.pool, block);
        Ok(())
    }

    /// Locks all pages of a block, the first one first. Until they are let go nothing is written to the block, and it is
    /// not given back.
    pub(super) fn lock_pages(&self, block: u64) -> Vec<VersionGuard<'_>> {
        (0..self.pages.pages_per_block())
            .map(|page| self.blocks.page_lock(self.pages.page_number(block, page)))
            .map(|lock| lock.lock(&*self.core.pool.environment))
            .collect()
    }

    /// Makes these the flags of a block of the caller that is durably empty, durably.
    pub(super) fn reset_flags(&self, block: u64, flags: u32) -> Result<()> {
        block_flags::change(&self.core.pool, block, flags, block_flags::KNOWN & !flags)
    }

    /// Ends a session's hold of a block; `left` is the room in it, where the session has kept account.
    pub(super) fn leave_block(&self, block: u64, left: Option<Room>) {
        let unmark = |flags| match flags & block_flags::OWNED {
            // One that was only looked at.
            0 => Ok(()),
            owned => block_flags::change(&self.core.pool, block, 0, owned),
        };
        if let Err(error) = block_flags::read(&self.core.pool, block).and_then(unmark) {
            log::warn!("block {block} is not used again: {error}");
            return;
        }
        self.blocks.leave(block, left, || self.pages.room_in(&self.core.pool, block));
    }
}

#[cold]
fn no_version() -> Error {
    Error::corrupted("a record's version leaves no room for higher ones", 0)
}
