//! [`Supply`]: the blocks of a store, for sessions to fill. Taking one from the queue, emptying it, leaving it, giving it back.

use chimera_pmem::{Fenced, Pmem};

use super::blocks::Blocks;
use super::steps;
use crate::engine::Core;
use crate::records::block_flags;
use crate::records::vpage::{Pages, Place, Room};
use crate::sync::{VersionGuard, VersionLock};
use crate::types::error::Result;

/// A block for a session.
pub(super) struct Taken {
    pub(super) block: u64,
    /// It was in use before.
    pub(super) is_reused: bool,
    /// When nothing was left in it, under a journal and where that is known.
    pub(super) emptied: Option<Fenced>,
}

/// The blocks of a store. It knows no sessions.
pub(super) struct Supply<P: Pmem, V: Pages> {
    core: Core<P>,
    pages: V,
    blocks: Blocks,
}

impl<P: Pmem, V: Pages> Supply<P, V> {
    pub(super) fn new(core: Core<P>, pages: V, huge_pages: bool) -> Self {
        Self { core, pages, blocks: Blocks::new(&pages, huge_pages) }
    }

    #[inline(always)]
    pub(super) fn core(&self) -> &Core<P> {
        &self.core
    }

    #[inline(always)]
    pub(super) fn pages(&self) -> &V {
        &self.pages
    }

    #[inline(always)]
    pub(super) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// A block from the queue with room for a record of `need` units, so that `kept` empty ones stay. Looks at `tries` blocks.
    pub(super) fn take_reused(&self, flags: u32, need: u32, kept: u64, tries: u64) -> Option<u64> {
        // Each at most once: those without enough room go back to the queue.
        let mut from = 0;
        for _ in 0..self.blocks.queued().min(tries) {
            let Some(block) = self.blocks.take_queued(from, kept) else { break };
            from = block + 1;
            if self.is_taken(block, flags, need) {
                return Some(block);
            }
        }
        // Others without enough room may be before it.
        self.blocks.take_empty(kept).filter(|block| self.is_taken(*block, flags, need))
    }

    /// Makes a session the owner of a block that was taken from the queue, or puts it back.
    pub(super) fn is_taken(&self, block: u64, flags: u32, need: u32) -> bool {
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
        self.empty_pages(block, flags)?;
        self.reset_flags(block, flags)
    }

    /// Makes durable that a block of the caller is empty, which is to have these flags.
    fn empty_pages(&self, block: u64, flags: u32) -> Result<()> {
        // Before anything is touched.
        block_flags::read(&self.core.pool, block)?;
        let _pages = self.lock_pages(block);
        self.pages.persist_empty(&self.core.pool, block, flags);
        Ok(())
    }

    /// Makes these the flags of a block of the caller that is durably empty, durably.
    pub(super) fn reset_flags(&self, block: u64, flags: u32) -> Result<()> {
        block_flags::change(&self.core.pool, block, flags, block_flags::KNOWN & !flags)
    }

    /// The lock of the page that a place lies in.
    #[inline(always)]
    pub(super) fn page_lock(&self, place: &Place) -> &VersionLock {
        self.blocks.page_lock(self.pages.page_number(place.block, place.page))
    }

    /// Locks all pages of a block, the first one first. Until they are let go nothing is written to the block, and it is
    /// not given back.
    pub(super) fn lock_pages(&self, block: u64) -> Vec<VersionGuard<'_>> {
        (0..self.pages.pages_per_block())
            .map(|page| self.blocks.page_lock(self.pages.page_number(block, page)))
            .map(|lock| lock.lock(&*self.core.pool.environment))
            .collect()
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

    /// Gives a block back to the pool, if it is durably empty and the last one; `false` when it stays.
    pub(super) fn give_back(&self, block: u64) -> bool {
        // Who verifies a block under these locks must not meet one whose storage has gone.
        let _pages = self.lock_pages(block);
        block_flags::read(&self.core.pool, block).ok() == Some(block_flags::FREE)
            && self.pages.is_empty(&self.core.pool, block)
            && !self.blocks.is_damaged(block)
            && self.core.pool.give_back(block, || self.reset_flags(block, 0))
    }
}
