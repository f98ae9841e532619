//! Blocks for large values on plain files. What lies where nothing was goes to its place ahead of the journal
//! ([`Pmem::flush_new_shared`]). So a block in which nothing is live any more is emptied before it is needed, and it is used
//! again once that is written back. Until then fresh blocks are taken, as long as few others wait; then who needs one writes
//! it back.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::supply::{Supply, Taken};
use crate::pool::Purpose;
use crate::records::block_flags;
use crate::records::lengths::BESIDE_BYTES_MAX;
use crate::records::vpage::Pages;
use crate::types::error::Result;

/// Blocks that are emptied when one is needed: more than one, so that none are left when all values are overwritten.
const EMPTIED_AT_ONCE: u64 = 2;

impl<P: Pmem, V: Pages> Supply<P, V> {
    /// Whether values that go to blocks of these flags go to their place ahead of the journal.
    pub(super) fn writes_once(&self, flags: u32, purpose: Purpose) -> bool {
        // Records that are moved go to the lowest blocks.
        if flags != block_flags::LARGE || purpose != Purpose::Put || self.blocks().is_starved() {
            return false;
        }
        let pool = &self.core().pool;
        // The first line of a block has its flags.
        let room = pool.map.block_bytes.saturating_sub(CACHE_LINE);
        let most = room.min(u64::from(BESIDE_BYTES_MAX));
        pool.pmem.journal().is_some_and(|journal| journal.writes_new(most))
    }

    /// Whether fresh blocks are taken rather than those in which nothing is live: few wait to be written back.
    pub(super) fn may_wait(&self) -> bool {
        self.blocks().emptied() < self.waiting_max()
    }

    /// Writes back that blocks were emptied, and takes one.
    ///
    /// # Errors
    /// As [`Pool::write_back`](crate::pool::Pool::write_back).
    #[cold]
    pub(super) fn take_written_back(&self, flags: u32) -> Result<Option<Taken>> {
        let pool = &*self.core().pool;
        let Some(journal) = pool.pmem.journal() else { return Ok(None) };
        journal.wait_for_checkpoint();
        if let Some(taken) = self.take_emptied(flags) {
            return Ok(Some(taken));
        }
        pool.write_back(journal)?;
        Ok(self.take_emptied(flags))
    }

    /// A block in which nothing was left, as is written back, if there is one.
    pub(super) fn take_emptied(&self, flags: u32) -> Option<Taken> {
        self.empty_ahead(flags);
        let pool = &*self.core().pool;
        let journal = pool.pmem.journal()?;
        let may_take = |emptied| journal.is_written_back(emptied);
        let (block, emptied) = self.blocks().take_emptied(pool.reserve_lacks(), may_take)?;
        let taken = Taken { block, is_reused: true, emptied: Some(emptied) };
        self.is_taken(block, flags, 1).then_some(taken)
    }

    /// Empties blocks in which nothing is live.
    fn empty_ahead(&self, flags: u32) {
        for _ in 0..EMPTIED_AT_ONCE {
            let Some(block) = self.blocks().take_to_empty() else { return };
            self.blocks().own(block);
            match self.empty_if_unused(block, flags) {
                Ok(true) => self.queue_emptied(block),
                Ok(false) => self.leave_block(block, None),
                // It stays out of use: neither owned nor queued by anyone.
                Err(error) => log::warn!("block {block} is not used: {error}"),
            }
        }
    }

    fn empty_if_unused(&self, block: u64, flags: u32) -> Result<bool> {
        let is_empty = self.pages().is_empty(&self.core().pool, block);
        if !is_empty || self.blocks().is_damaged(block) {
            return Ok(false);
        }
        self.empty(block, block_flags::FREE | flags).map(|()| true)
    }

    fn queue_emptied(&self, block: u64) {
        let pmem = &self.core().pool.pmem;
        let count = self.blocks().queue_emptied(block, pmem.fenced());
        if count.is_multiple_of((self.waiting_max() / 2).max(1))
            && let Some(journal) = pmem.journal()
        {
            journal.write_back_soon();
        }
    }

    /// Most blocks that wait.
    fn waiting_max(&self) -> u64 {
        let pool = &self.core().pool;
        let block_bytes = pool.map.block_bytes;
        pool.waiting_bytes_max(self.blocks().emptied() * block_bytes) / block_bytes
    }
}
