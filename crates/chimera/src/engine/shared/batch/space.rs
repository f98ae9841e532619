//! Room for batches: pieces for their records, and what is set aside for other values.

use chimera_pmem::Pmem;

use super::plan::Plan;
use crate::engine::contract::engine::Engine;
use crate::engine::contract::upkeep::Upkeep;
use crate::pool::runs::Piece;
use crate::records::batch_record;
use crate::sync::{lock, lock_relaxing};
use crate::types::error::Result;

/// Bytes of pieces that are kept for the next batches.
const KEPT_BYTES: u64 = 256 << 10;

/// As many locks of keys as an engine has, unless ChameleonDB has more shards.
const LOCKS: u64 = if cfg!(loom) { 2 } else { 4096 };

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

/// Room that nobody else takes.
#[derive(Default)]
struct Room {
    pieces: Vec<Piece>,
    /// Fresh blocks that the pool holds.
    blocks: u64,
}

impl Room {
    /// Gives it to the pool.
    fn give_up<P: Pmem, E: Engine<P>>(&mut self, engine: &E) {
        for piece in self.pieces.drain(..) {
            free(engine, piece);
        }
        match std::mem::take(&mut self.blocks) {
            0 => {}
            blocks => engine.core().pool.release_fresh(blocks),
        }
    }
}

/// Room that is given up when it is needed.
#[derive(Default)]
pub(super) struct Cushion {
    room: Room,
    /// What is kept for taking the batch back.
    kept: Room,
    tries: u32,
}

impl Cushion {
    /// Times that a batch tries again when it has found no room, to make it, and to take it back.
    const TRIES: u32 = 16;

    /// The number of the next try of a batch that found no room; none when there were enough.
    pub(super) fn next_try(&mut self) -> Option<u32> {
        self.tries += 1;
        (self.tries <= Self::TRIES).then_some(self.tries)
    }

    /// Gives the pool what is for making the batch.
    pub(super) fn give_up<P: Pmem, E: Engine<P>>(&mut self, engine: &E) {
        self.room.give_up(engine);
    }

    /// The batch is taken back from now on: what is kept for that is given up next.
    pub(super) fn begin_taking_back<P: Pmem, E: Engine<P>>(&mut self, engine: &E) {
        self.give_up(engine);
        self.room = std::mem::take(&mut self.kept);
        self.tries = 0;
    }

    /// Gives all of it to the pool.
    pub(super) fn give_back<P: Pmem, E: Engine<P>>(mut self, engine: &E) {
        self.begin_taking_back(engine);
        self.give_up(engine);
    }
}

/// Sets room aside for what a plan of batch `own` changes, to make it, and to take it back. Where the pool may take much more,
/// fresh blocks are held with storage for them; else room is taken.
///
/// # Errors
/// `PoolFull`, with nothing changed.
pub(super) fn set_aside<P: Pmem, E: Engine<P>>(
    engine: &E,
    plan: &Plan<'_>,
    own: u64,
) -> Result<Cushion> {
    let pool = &engine.core().pool;
    let block_bytes = pool.map.block_bytes;
    // A record takes at most half of what it begins on; and what makes room takes runs of its own.
    let kept = 2 * plan.bytes() + block_bytes;
    let need = kept + pool.reserve_blocks() * block_bytes;
    let [need_blocks, kept_blocks] = [need, kept].map(|bytes| bytes.div_ceil(block_bytes));
    let held = |blocks| Room { blocks, ..Room::default() };
    if pool.hold_fresh(need_blocks + kept_blocks, 4) {
        return Ok(Cushion { room: held(need_blocks), kept: held(kept_blocks), tries: 0 });
    }
    let take = |bytes| {
        let length = |piece: &Piece| piece.bytes.length();
        let pieces = take_pieces(engine, bytes, own, Vec::new(), length)?;
        Ok(Room { pieces, blocks: 0 })
    };
    let mut room = take(need)?;
    match take(kept) {
        Ok(kept) => Ok(Cushion { room, kept, tries: 0 }),
        Err(error) => {
            room.give_up(engine);
            Err(error)
        }
    }
}

/// Pieces of so many bytes together, as `bytes_of` counts them, with those that there are. Waits for another batch that lets
/// nobody else write.
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
    let core = engine.core();
    let (poison, environment) = (&core.poison, &**core.environment());
    let _taking = loop {
        poison.check_space(own, environment)?;
        let taking = lock_relaxing(&core.taking, environment);
        // Asked with the lock: who has it when a batch begins to be alone takes nothing later.
        if !poison.has_one_writer(own) {
            break taking;
        }
    };
    let mut room: u64 = pieces.iter().map(&bytes_of).sum();
    while room < bytes {
        match engine.take_piece(bytes - room + HEADERS_BYTES) {
            Ok(piece) => {
                room += bytes_of(&piece);
                pieces.push(piece);
            }
            Err(error) => {
                for piece in pieces {
                    free(engine, piece);
                }
                return Err(error);
            }
        }
    }
    Ok(pieces)
}

/// Waits for who had begun to write, or to take pieces, before a batch was alone.
pub(super) fn pass_all<P: Pmem, E: Engine<P>>(engine: &E) {
    let core = engine.core();
    drop(lock_relaxing(&core.taking, &**core.environment()));
    // Locks of keys are chosen by these bits of a hash, or by the highest.
    for number in 0..LOCKS {
        engine.upkeep().pass(number << 24 | number << 52);
    }
}
