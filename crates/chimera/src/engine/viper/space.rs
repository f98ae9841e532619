//! Where records go: [`Client`], the blocks that one session fills (section 4.1), and [`Space`], which hands blocks to
//! sessions and takes them back.
//!
//! # Rules
//! 1. A block has one session that fills it, or none: [`Blocks`] says which. Its flags say so on media.
//! 2. A place that was [reserved](Space::reserve) stays the session's next one until it is consumed or abandoned.
//! 3. Space knows blocks and pages, and neither keys nor the index. Writers call it, and it calls no writer.
//! 4. The mover of records is a client like any other. It is kept here, because a session that finds no block makes the
//!    mover give back the one that it fills.

use chimera_pmem::{Operation, Pmem};

use super::blocks::Blocks;
use super::supply::{Supply, Taken};
use crate::engine::Core;
use crate::engine::contract::client::SharedClient;
use crate::pool::Purpose;
use crate::records::block_flags;
use crate::records::header::VERSION_MAX;
use crate::records::lengths::DESCRIPTOR_BYTES;
use crate::records::vpage::{Abandoned, Cursor, InsertPoint, LogPages, PAGE_KINDS, Pages, Place};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock, lock_relaxing};
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

/// What a session keeps between operations.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(super) shared: SharedClient,
    /// The highest version this session has given or met: see [`Space`].
    clock: u64,
    /// Where its next records go, one for each kind of page.
    points: [InsertPoint; PAGE_KINDS],
    /// Values that fit lie beside their keys, wherever the page ends.
    keeps_whole: bool,
    /// So do large ones.
    keeps_large_whole: bool,
    /// What it takes blocks for.
    purpose: Purpose,
    /// Blocks that are not to be given back yet: they hold chunks whose record is not live yet.
    held: Option<Vec<InsertPoint>>,
}

impl Client {
    pub(super) fn new(number: u32) -> Self {
        Self { shared: SharedClient::new(number), ..Self::default() }
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

    /// Whether a record is to be stored with its value spilled: because the value is too long for any page, because it is
    /// to go to its place ahead of the journal, or because the page has room for the key only, and that saves space (section 4.2). The same until the place is
    /// consumed.
    #[inline(always)]
    fn spills(&self, pages: &LogPages, key_bytes: usize, value_bytes: usize) -> bool {
        if pages.is_large(value_bytes) {
            return !self.keeps_large_whole || pages.is_spilled(value_bytes);
        }
        key_bytes >= pages.spill_key_bytes_min()
            && !self.keeps_whole
            && pages.kind_of(key_bytes, value_bytes) == 0
            && pages.room(&self.points[0], key_bytes, value_bytes).is_none()
            && pages.room(&self.points[0], key_bytes, DESCRIPTOR_BYTES).is_some()
    }

    /// From now on values that fit lie beside their keys, but for large ones.
    pub(super) fn keep_whole(&mut self) {
        self.keeps_whole = true;
    }

    /// Whether large values that fit lie beside their keys from now on.
    pub(super) fn keep_large_whole(&mut self, keeps: bool) {
        self.keeps_large_whole = keeps;
    }

    /// The client of the mover, which makes room for others.
    fn of_mover() -> Self {
        let purpose = Purpose::Reclaim;
        Self { purpose, keeps_whole: true, keeps_large_whole: true, ..Self::default() }
    }

    /// Keeps blocks that are filled until they are [released](Space::release_blocks).
    pub(super) fn hold_blocks(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Whether it fills any block.
    fn has_blocks(&self) -> bool {
        self.points.iter().any(|point| point.block.is_some())
    }
}

/// The place of a session's next record.
#[derive(Clone, Copy)]
pub(super) struct Reserved {
    pub(super) place: Place,
    /// Bytes beside the key: of the value, or of the descriptor of its chunks.
    pub(super) beside_bytes: usize,
    /// The value goes to chunks.
    pub(super) is_spilled: bool,
}

/// The blocks of a store, and the sessions that fill them.
pub(super) struct Space<P: Pmem, V: Pages> {
    supply: Supply<P, V>,
    /// The highest version that sessions have told of. A session has a clock of its own, so that
    /// writers share nothing; it tells, and catches up, when it takes a block. It may lag behind: a
    /// session that meets a record with a higher version than its clock says goes beyond that.
    clock: AtomicU64,
    /// The client of the mover of records: one at a time.
    mover: Mutex<Client>,
    /// Blocks of [pieces](crate::pool::runs::Piece) that recovery found.
    found_pieces: Mutex<Vec<u64>>,
}

impl<P: Pmem, V: Pages> Space<P, V> {
    pub(super) fn new(core: Core<P>, pages: V, huge_pages: bool) -> Self {
        Self {
            supply: Supply::new(core, pages, huge_pages),
            clock: AtomicU64::new(0),
            mover: Mutex::new(Client::of_mover()),
            found_pieces: Mutex::default(),
        }
    }

    #[inline(always)]
    pub(super) fn supply(&self) -> &Supply<P, V> {
        &self.supply
    }

    #[inline(always)]
    pub(super) fn core(&self) -> &Core<P> {
        self.supply.core()
    }

    #[inline(always)]
    pub(super) fn pages(&self) -> &V {
        self.supply.pages()
    }

    #[inline(always)]
    pub(super) fn blocks(&self) -> &Blocks {
        self.supply.blocks()
    }

    /// The highest version that was told of.
    pub(super) fn newest_version(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Tells of a version. The highest one before.
    pub(super) fn note_version(&self, version: u64) -> u64 {
        self.clock.fetch_max(version, Ordering::Relaxed)
    }

    // ---- the place of the next record ----------------------------------------------------------

    /// The place for a record of these sizes, and whether its value goes to chunks. The same until
    /// [`consume`](Self::consume).
    ///
    /// # Errors
    /// `PoolFull` when there is no block to be had.
    #[inline(always)]
    pub(super) fn reserve(
        &self,
        client: &mut Client,
        key_bytes: usize,
        value_bytes: usize,
    ) -> Result<Reserved> {
        let spilling = self.pages().spilling();
        let is_spilled = spilling.is_some_and(|pages| client.spills(pages, key_bytes, value_bytes));
        let beside_bytes = if is_spilled { DESCRIPTOR_BYTES } else { value_bytes };
        let kind = self.pages().kind_of(key_bytes, beside_bytes);
        loop {
            if let Some(place) = self.pages().room(&client.points[kind], key_bytes, beside_bytes) {
                return Ok(Reserved { place, beside_bytes, is_spilled });
            }
            let need = self.pages().units_of(key_bytes, beside_bytes);
            self.advance(client, kind, need)?;
        }
    }

    /// The place last [reserved](Self::reserve) is in use.
    #[inline(always)]
    pub(super) fn consume(&self, client: &mut Client, key_bytes: usize, beside_bytes: usize) {
        let point = &mut client.points[self.pages().kind_of(key_bytes, beside_bytes)];
        self.pages().consume(point, key_bytes, beside_bytes);
        self.pages().prefetch_shared(&self.core().pool, point);
    }

    /// The record that was begun at the place last reserved will not be committed.
    #[cold]
    pub(super) fn abandon(
        &self,
        client: &mut Client,
        key_bytes: usize,
        beside_bytes: usize,
        cause: Abandoned,
    ) {
        let kind = self.pages().kind_of(key_bytes, beside_bytes);
        self.pages().abandon(&mut client.points[kind], cause);
        // What was written there is free, and so are the record's chunks: no account is right any more.
        for point in &mut client.points {
            point.left = None;
        }
    }

    /// Starts loading where the record after the present one goes.
    #[inline(always)]
    pub(super) fn prefetch_next(&self, client: &Client, key_bytes: usize, beside_bytes: usize) {
        let point = &client.points[self.pages().kind_of(key_bytes, beside_bytes)];
        self.pages().prefetch_next(&self.core().pool, point, key_bytes, beside_bytes);
    }

    /// Where the next chunk goes: with room for more than a word. A block for it that was in use before
    /// has `need` units free.
    ///
    /// # Errors
    /// `PoolFull` when there is no block to be had.
    pub(super) fn point_for_chunk<'c>(
        &self,
        client: &'c mut Client,
        need: u32,
    ) -> Result<&'c mut InsertPoint> {
        while client.points[CHUNKS].block.is_none()
            || LogPages::room_for_chunk(&client.points[CHUNKS]) < CHUNK_BYTES_MIN
        {
            match self.advance(client, CHUNKS, need) {
                // Then any room will do.
                Err(Error::PoolFull { .. }) => {
                    let least = self.pages().units_of(1, CHUNK_BYTES_MIN);
                    self.advance(client, CHUNKS, least)?;
                }
                other => other?,
            }
        }
        Ok(&mut client.points[CHUNKS])
    }

    /// Goes on to the next part of the page, page or block.
    #[cold]
    fn advance(&self, client: &mut Client, kind: usize, need: u32) -> Result<()> {
        let pmem = &self.core().pool.pmem;
        pmem.operation_begin(Operation::BlockHandOut, client.shared.number);
        let done = self.advance_booked(client, kind, need);
        pmem.operation_acknowledge();
        done
    }

    fn advance_booked(&self, client: &mut Client, kind: usize, need: u32) -> Result<()> {
        let (pool, pages) = (&*self.core().pool, self.pages());
        let point = &mut client.points[kind];
        if point.block.is_none() {
            let taken = self.take_block(V::KIND_FLAGS[kind], need, client.purpose)?;
            let Taken { block, is_reused, emptied } = taken;
            client.clock = client.clock.max(self.note_version(client.clock));
            let chance = pool.environment.random_u64();
            *point = pages.begin(block, is_reused, kind, chance);
            point.emptied = emptied;
        } else if !pages.advance(pool, point) {
            self.leave_point(client, kind);
            return Ok(());
        }
        let number = pages.page_number(point.block.unwrap_or_default(), point.page);
        let lock = || self.blocks().page_lock(number).lock(&*pool.environment);
        pages.enter(pool, kind, point, lock);
        pages.prefetch_shared(pool, point);
        Ok(())
    }

    /// Gives the blocks of a session back, for others to fill.
    pub(super) fn leave(&self, client: &mut Client) {
        for kind in 0..client.points.len() {
            self.leave_point(client, kind);
        }
    }

    fn leave_point(&self, client: &mut Client, kind: usize) {
        self.note_version(client.clock);
        let point = std::mem::take(&mut client.points[kind]);
        let Some(block) = point.block else { return };
        if let Some(held) = &mut client.held {
            held.push(point);
            return;
        }
        self.supply.leave_block(block, self.pages().leave(&self.core().pool, point));
    }

    /// Gives back the blocks that were [held](Client::hold_blocks). All that lies in them is durable.
    pub(super) fn release_blocks(&self, client: &mut Client) {
        for point in client.held.take().unwrap_or_default() {
            let _booked = self.core().book(Operation::BlockHandOut, client.shared.number);
            let block = point.block.unwrap_or_default();
            let _room_before_the_chunks = self.pages().leave(&self.core().pool, point);
            self.supply.leave_block(block, None);
        }
    }

    // ---- the mover -----------------------------------------------------------------------------

    /// The client of the mover, for who moves records.
    pub(super) fn lock_mover(&self) -> MutexGuard<'_, Client> {
        lock_relaxing(&self.mover, &*self.core().pool.environment)
    }

    /// Makes the mover, unless it is at work, give back the block it fills: there is no other.
    /// Whether there is a reason to look again: it did, or is at work.
    fn make_mover_leave(&self) -> bool {
        let Ok(mut mover) = self.mover.try_lock() else { return true };
        let has_blocks = mover.has_blocks();
        self.leave(&mut mover);
        has_blocks
    }

    // ---- pieces --------------------------------------------------------------------------------

    pub(super) fn note_found_piece(&self, block: u64) {
        lock(&self.found_pieces).push(block);
    }

    pub(super) fn take_found_blocks(&self) -> Vec<u64> {
        std::mem::take(&mut *lock(&self.found_pieces))
    }

    // ---- blocks --------------------------------------------------------------------------------

    /// A block for a session, marked as owned and with `flags`: one with room if there is one, else a new
    /// one.
    fn take_block(&self, flags: u32, need: u32, purpose: Purpose) -> Result<Taken> {
        let mut starved = 0;
        let pool = &*self.core().pool;
        let format = |block| self.pages().format(pool, block, block_flags::OWNED | flags);
        let mut keeps_empty = self.supply.writes_once(flags, purpose);
        if keeps_empty {
            if let Some(taken) = self.supply.take_emptied(flags) {
                return Ok(taken);
            }
            keeps_empty = self.supply.may_wait();
            if !keeps_empty && let Some(taken) = self.supply.take_written_back(flags)? {
                return Ok(taken);
            }
        }
        let block = loop {
            let tries = if starved == 0 { REUSED_TRIES } else { u64::MAX };
            let kept = match purpose {
                Purpose::Put if keeps_empty => u64::MAX,
                Purpose::Put => pool.reserve_lacks(),
                _ => 0,
            };
            if let Some(block) = self.supply.take_reused(flags, need, kept, tries) {
                return Ok(Taken { block, is_reused: true, emptied: None });
            }
            match pool.take_block(purpose, format) {
                Ok(block) => break block,
                Err(_) if keeps_empty => keeps_empty = false,
                // Sessions are not to be starved by what makes room for them.
                Err(Error::PoolFull { .. })
                    if purpose == Purpose::Put
                        && starved < STARVED_TRIES
                        && (self.make_mover_leave() | self.blocks().starve(pool.used_blocks())) =>
                {
                    pool.environment.relax(starved);
                    starved += 1;
                }
                Err(error) => return Err(error),
            }
        };
        self.blocks().feed();
        self.blocks().ensure(block + 1)?;
        self.blocks().own(block);
        let emptied = pool.pmem.is_journaled().then(|| pool.fresh_emptied());
        Ok(Taken { block, is_reused: false, emptied })
    }
}

#[cold]
fn no_version() -> Error {
    Error::corrupted("a record's version leaves no room for higher ones", 0)
}
