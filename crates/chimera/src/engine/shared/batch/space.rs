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

/// Bytes of a piece before those of a record.
const HEADERS_BYTES: u64 = 64;

/// Pieces with room for the record of batch `own`, of so many bytes: kept ones, and new ones.
///
/// # Errors
/// `PoolFull`, with nothing changed.
pub(super) fn take<P: Pmem, E: Engine<P>>(engine: &E, bytes: u64, own: u64) -> Result<Vec<Piece>> {
    let (mut pieces, mut room) = (Vec::new(), 0);
    while room < bytes {
        let Some(piece) = lock(&engine.core().pieces).pop() else { break };
        room += batch_record::room(&piece);
        pieces.push(piece);
    }
    if room >= bytes {
        return Ok(pieces);
    }
    take_pieces(engine, bytes, own, pieces, batch_record::room)
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
#[derive(Default)]
pub(super) struct Cushion {
    pieces: Vec<Piece>,
    tries_left: u32,
}

impl Cushion {
    /// Times that a batch tries again when it has found no room.
    const TRIES: u32 = 16;

    fn new(pieces: Vec<Piece>) -> Self {
        Self { pieces, tries_left: Self::TRIES }
    }

    /// Whether the batch that found no room tries again.
    pub(super) fn tries_again(&mut self) -> bool {
        let tries_again = self.tries_left > 0;
        self.tries_left = self.tries_left.saturating_sub(1);
        tries_again
    }

    /// Gives it to the pool.
    pub(super) fn give_up<P: Pmem, E: Engine<P>>(&mut self, engine: &E) {
        for piece in self.pieces.drain(..) {
            free(engine, piece);
        }
    }
}

/// Sets room aside for what a plan of batch `own` changes, twice: to make it, and to take it back. Where the pool may take much
/// more, storage for it is allocated ahead of use, and nothing is set aside.
///
/// # Errors
/// `PoolFull`, with nothing changed.
pub(super) fn set_aside<P: Pmem, E: Engine<P>>(
    engine: &E,
    plan: &Plan<'_>,
    own: u64,
) -> Result<Cushion> {
    let pool = &engine.core().pool;
    // A record takes at most half of what it begins on; and what makes room takes runs of its own.
    let block_bytes = pool.map.block_bytes;
    let need = 4 * plan.bytes() + (2 + pool.reserve_blocks()) * block_bytes;
    // Where there is much more, storage for it is all that may be missing.
    if pool.fresh_blocks() * block_bytes >= 4 * need
        && pool.ensure_ready(need.div_ceil(block_bytes)).is_ok()
    {
        return Ok(Cushion::new(Vec::new()));
    }
    let bytes_of = |piece: &Piece| piece.bytes.length();
    take_pieces(engine, need, own, Vec::new(), bytes_of).map(Cushion::new)
}

/// Pieces of so many bytes together, as `bytes_of` counts them, with those that there are. Another batch that lets nobody else
/// write must not miss them: they are given back, and taken when it has ended.
///
/// # Errors
/// `PoolFull`, with nothing changed.
fn take_pieces<P: Pmem, E: Engine<P>>(
    engine: &E,
    bytes: u64,
    own: u64,
    mut pieces: Vec<Piece>,
    bytes_of: impl Fn(&Piece) -> u64,
) -> Result<Vec<Piece>> {
    let (poison, environment) = (&engine.core().poison, &**engine.core().environment());
    loop {
        poison.check_space(own, environment)?;
        let mut room: u64 = pieces.iter().map(&bytes_of).sum();
        let mut failure = None;
        while room < bytes && failure.is_none() {
            match engine.take_piece(bytes - room + HEADERS_BYTES) {
                Ok(piece) => {
                    room += bytes_of(&piece);
                    pieces.push(piece);
                }
                Err(error) => failure = Some(error),
            }
        }
        if failure.is_none() && !poison.has_one_writer(own) {
            return Ok(pieces);
        }
        for piece in pieces.drain(..) {
            free(engine, piece);
        }
        if let Some(error) = failure {
            return Err(error);
        }
    }
}
