//! Room for batches: pieces for their records, and what is set aside for other values.

use chimera_pmem::Pmem;

use super::plan::Plan;
use crate::engine::contract::engine::Engine;
use crate::pool::runs::Piece;
use crate::records::batch_record;
use crate::sync::lock;
use crate::types::error::Result;

/// Bytes of pieces that are kept for the next batches.
const KEPT_BYTES: u64 = 256 << 10;

/// Pieces with room for a record of so many bytes: kept ones, and new ones.
///
/// # Errors
/// `PoolFull`, with nothing changed.
pub(super) fn take<P: Pmem, E: Engine<P>>(engine: &E, bytes: u64) -> Result<Vec<Piece>> {
    let (mut pieces, mut room) = (Vec::new(), 0);
    while room < bytes || pieces.is_empty() {
        let kept = lock(&engine.core().pieces).pop();
        let piece = match kept {
            Some(piece) => Ok(piece),
            // Its header, and that of the run.
            None => engine.take_piece(bytes - room + 64),
        };
        match piece {
            Ok(piece) => {
                room += batch_record::room(&piece);
                pieces.push(piece);
            }
            Err(error) => {
                put_back(engine, pieces);
                return Err(error);
            }
        }
    }
    Ok(pieces)
}

/// Keeps pieces for the next batches. What is too much is freed.
pub(super) fn put_back<P: Pmem, E: Engine<P>>(engine: &E, pieces: Vec<Piece>) {
    for piece in pieces {
        let mut kept = lock(&engine.core().pieces);
        let kept_bytes: u64 = kept.iter().map(|piece| piece.bytes.length()).sum();
        if kept_bytes + piece.bytes.length() <= KEPT_BYTES {
            kept.push(piece);
            continue;
        }
        drop(kept);
        free(engine, piece);
    }
}

/// Frees the pieces that are kept.
pub(crate) fn give_back<P: Pmem, E: Engine<P>>(engine: &E) {
    let kept = std::mem::take(&mut *lock(&engine.core().pieces));
    for piece in kept {
        free(engine, piece);
    }
}

pub(super) fn free<P: Pmem, E: Engine<P>>(engine: &E, piece: Piece) {
    if let Err(error) = engine.free_piece(piece) {
        log::warn!("room of a batch stays in use: {error}");
    }
}

/// Room that is given up when it is needed.
pub(super) struct Cushion(Vec<Piece>);

impl Cushion {
    pub(super) fn new(pieces: Vec<Piece>) -> Self {
        Self(pieces)
    }

    /// Gives it to the pool.
    pub(super) fn give_up<P: Pmem, E: Engine<P>>(&mut self, engine: &E) {
        for piece in self.0.drain(..) {
            free(engine, piece);
        }
    }
}

/// Sets room aside for what a plan changes, twice: to make it, and to take it back. Nothing where the pool has much more, which is
/// allocated.
///
/// # Errors
/// `PoolFull`, with nothing changed.
pub(super) fn set_aside<P: Pmem, E: Engine<P>>(engine: &E, plan: &Plan<'_>) -> Result<Vec<Piece>> {
    let pool = &engine.core().pool;
    // A record takes at most half of what it begins on; and what makes room takes runs of its own.
    let block_bytes = pool.map.block_bytes;
    let need = 4 * plan.bytes() + (2 + pool.reserve_blocks()) * block_bytes;
    let ready = pool.ready_blocks().saturating_sub(pool.used_blocks());
    if ready.min(pool.fresh_blocks()) * block_bytes >= 4 * need {
        return Ok(Vec::new());
    }
    let (mut pieces, mut bytes) = (Vec::new(), 0);
    while bytes < need {
        match engine.take_piece(need - bytes) {
            Ok(piece) => {
                bytes += piece.bytes.length();
                pieces.push(piece);
            }
            Err(error) => {
                Cushion(pieces).give_up(engine);
                return Err(error);
            }
        }
    }
    Ok(pieces)
}
