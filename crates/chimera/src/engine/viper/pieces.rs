//! [Pieces](Piece) of Viper's pools, for records of batches: whole blocks with a flag of their own.
//!
//! # Rules
//! 1. A piece is a block that is durably empty, so no entry of the index leads into it. Its flags say durably that it is a piece
//!    before a record is written there: nobody looks for records in it.
//! 2. Readers may still look where a record was before the block was empty. So bytes of a piece change under the locks of its
//!    pages, and whoever has read there finds that the index does not lead there any more.
//! 3. A piece that is freed gets the pages of a new block, durably, before its flags say that it is one.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::space::Space;
use crate::pool::Purpose;
use crate::pool::runs::{Piece, PieceOf};
use crate::records::block_flags::{BATCH, FREE, OWNED};
use crate::records::vpage::{Pages, sites};
use crate::types::error::Result;

impl<P: Pmem, V: Pages> Space<P, V> {
    /// Takes a block as a piece: an empty one, or a fresh one.
    ///
    /// # Errors
    /// `PoolFull`, with nothing changed.
    ///
    /// # Durability
    /// A crash before leaves the block as it was, or a piece without a record.
    ///
    /// # Cost
    /// 2 fences and the lines of new pages; of an empty block up to 3 fences.
    pub(super) fn take_piece(&self) -> Result<Piece> {
        let (pool, blocks) = (&*self.core().pool, self.blocks());
        while let Some(block) = blocks.take_empty(pool.reserve_lacks()) {
            blocks.own(block);
            // What the queue knows of free space is a hint.
            if !self.pages().is_empty(pool, block) {
                self.supply().leave_block(block, None);
                continue;
            }
            match self.supply().empty(block, OWNED | BATCH) {
                Ok(()) => return Ok(self.piece_of(block)),
                // It stays out of use.
                Err(error) => log::warn!("block {block} is not used: {error}"),
            }
        }
        let format = |block| self.pages().format(pool, block, OWNED | BATCH);
        let block = pool.take_block(Purpose::Put, format)?;
        blocks.ensure(block + 1)?;
        blocks.own(block);
        Ok(self.piece_of(block))
    }

    fn piece_of(&self, block: u64) -> Piece {
        let (pool, block_bytes) = (&self.core().pool, self.core().pool.map.block_bytes);
        let at = pool.map.block_at(block) + CACHE_LINE;
        Piece { bytes: pool.extent(at, block_bytes - CACHE_LINE), of: PieceOf::Block(block) }
    }

    /// Makes a piece without a record an empty block again, for sessions to fill.
    ///
    /// # Errors
    /// When its flags are damaged; it stays out of use.
    ///
    /// # Durability
    /// A crash before leaves a piece without a record, or an empty block.
    ///
    /// # Cost
    /// The lines of new pages, 2 fences.
    pub(super) fn free_piece(&self, piece: &Piece) -> Result<()> {
        let PieceOf::Block(block) = piece.of else { return Ok(()) };
        let pool = &self.core().pool;
        {
            let _pages = self.supply().lock_pages(block);
            self.pages().format(pool, block, OWNED | BATCH);
            pool.pmem.fence(sites::FORMAT);
            self.supply().reset_flags(block, FREE)?;
        }
        self.blocks().leave(block, None, || self.pages().room_in(pool, block));
        Ok(())
    }

    /// Does `work`, which stores into a piece, under the locks of its pages.
    pub(super) fn change_piece(&self, piece: &Piece, work: &dyn Fn()) {
        let PieceOf::Block(block) = piece.of else { return };
        let _pages = self.supply().lock_pages(block);
        work();
    }

    /// Recovery found a piece.
    pub(super) fn note_piece(&self, block: u64) {
        self.blocks().own(block);
        self.note_found_piece(block);
    }

    /// The pieces that recovery found: once.
    pub(super) fn take_found_pieces(&self) -> Vec<Piece> {
        let mut blocks = self.take_found_blocks();
        blocks.sort_unstable();
        blocks.into_iter().map(|block| self.piece_of(block)).collect()
    }
}
