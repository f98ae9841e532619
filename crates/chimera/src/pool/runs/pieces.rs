//! [`Piece`]: a part of the pool with a record of a batch, or kept free for one. Of an engine that takes runs it is a run of a
//! kind of its own, which no engine needs to know.

use chimera_pmem::{Extent, Pmem};

use super::Run;
use crate::pool::Pool;
use crate::pool::block_word::BlockKind;
use crate::sync::lock;
use crate::types::error::{Error, Result};

/// Runs of records of batches.
pub(crate) const BATCH: BlockKind = BlockKind::new(14, "batch");

/// Usual bytes of a piece that is a run: the record of a batch of a dozen short values.
const BYTES_USUAL: u64 = 4 << 10;
/// Fewest bytes, where there is no room for more.
const BYTES_MIN: u64 = 256;

/// A part of the pool for records of batches.
#[derive(Debug)]
pub(crate) struct Piece {
    /// What of it a record may use.
    pub(crate) bytes: Extent,
    pub(crate) of: PieceOf,
}

/// What a piece is.
#[derive(Debug)]
pub(crate) enum PieceOf {
    Run(Run),
    /// A block, of an engine that takes single blocks.
    Block(u64),
}

impl<P: Pmem> Pool<P> {
    /// Takes a run as a piece, of about so many bytes, or of fewer where there is no room for that.
    ///
    /// # Errors
    /// `PoolFull`, with nothing changed.
    ///
    /// # Durability
    /// As [`take_bare_run`](Self::take_bare_run).
    ///
    /// # Cost
    /// As [`take_bare_run`](Self::take_bare_run).
    pub(crate) fn take_piece(&self, bytes: u64) -> Result<Piece> {
        let most = u64::from(self.run_blocks_max());
        let blocks_for = |bytes: u64| {
            let blocks = (super::HEADER_BYTES + bytes).div_ceil(self.map.block_bytes);
            blocks.min(most) as u32
        };
        let (mut blocks, fewest) = (blocks_for(bytes.max(BYTES_USUAL)), blocks_for(BYTES_MIN));
        loop {
            match self.take_bare_run(BATCH, blocks) {
                Ok(run) => return Ok(self.piece_of(run)),
                Err(Error::PoolFull { .. }) if blocks > fewest => blocks = (blocks / 2).max(fewest),
                Err(error) => return Err(error),
            }
        }
    }

    fn piece_of(&self, run: Run) -> Piece {
        Piece { bytes: self.run_bytes(&run), of: PieceOf::Run(run) }
    }

    /// The pieces that opening found: once.
    pub(crate) fn take_found_pieces(&self) -> Vec<Piece> {
        let runs = std::mem::take(&mut *lock(&self.batch_runs));
        runs.into_iter().map(|run| self.piece_of(run)).collect()
    }
}
