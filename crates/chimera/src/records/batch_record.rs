//! The record of a batch: all that it changes, in one or more [pieces](Piece) of the pool. While it is whole, the batch is made
//! again by whoever opens the store.
//!
//! ```text
//! piece     [id: 8] [number of the piece, from 0: 4 | pieces: 4] [bytes: 8] [check: 8] bytes
//! ```
//! The bytes of all pieces of an id, one after the other, are its changes, in the order in which they are made:
//! ```text
//! change    [1 = put, 2 = delete, 3 = put of a new key: 4] [bytes of the key: 4] [bytes of the value: 4] [0: 4] key value
//! ```
//! The check is XXH3 of the piece's bytes, seeded with the hash that a key of the place and the words before has. It depends on
//! the store's secret seed, so no value that somebody stored there before passes for a record. An id is random, and 0 is none.
//!
//! # Protocol
//! - **write**: all pieces; flush, *fence*. Then the changes are made, each durable by itself.
//! - **clear**, when all are made, or none will be: zero to the id of piece 0; flush, *fence*.
//! - **recovery**: whole records are written back, and the ids of all other pieces; *fence*. The changes of the records are made
//!   again. Then they are cleared.
//!
//! # Invariants
//! 1. A change of a batch begins when its record is durable.
//! 2. From then until the record is durably cleared nobody else changes a key of the batch. So making the changes again leaves
//!    each key as the batch leaves it, whichever of them were made before.
//! 3. A piece is freed when its media hold no whole record. A process that was killed while it cleared one leaves an id that may
//!    come back: the piece, taken again, would bring an old batch back.

use chimera_pmem::{Extent, Pmem};
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zerocopy::IntoBytes;

use super::key_hash::KeyHash;
use crate::pool::Pool;
use crate::pool::runs::Piece;

/// Where records of batches are stored, flushed and fenced.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// The record, before its changes begin.
        RECORD = "batch.record";
        /// The id of a record whose changes are made, or never will be.
        CLEAR = "batch.clear";
        /// A record that recovery found, or the id of one that it found cleared or never whole, written back.
        FOUND = "batch.found", may_be_clean;
    }
}

/// Checks and steps that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The checks of a record that recovery reads.
        READ_CHECK = "batch.step.read_check";
        /// Making the changes of a record again.
        REDO = "batch.step.redo";
    }
}

const HEADER_BYTES: u64 = 32;
/// More bytes than any record has: of the changes of a batch, and of the headers of its pieces.
const RECORD_BYTES_MAX: u64 = 2 * BYTES_MAX;
/// Bytes of a change beside its key and value.
pub(crate) const CHANGE_BYTES: usize = 16;
/// Most bytes of the changes of a batch.
pub(crate) const BYTES_MAX: u64 = 64 << 20;
const PUT: u32 = 1;
const DELETE: u32 = 2;
const INSERT: u32 = 3;

/// A change of one key: a put of a value, or a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundChange {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
    /// The key was not there before: a put that is taken back by a delete.
    pub(crate) is_new: bool,
}

/// A whole record, as it was found.
#[derive(Debug)]
pub(crate) struct FoundRecord {
    id: u64,
    /// The numbers of its pieces, of those that were looked at, in their order, and what it has of each.
    pub(crate) pieces: Vec<(usize, Extent)>,
}

impl FoundRecord {
    /// Where its first piece lies.
    pub(crate) fn at(&self) -> u64 {
        self.pieces[0].1.offset()
    }
}

/// Adds a change to the bytes of a record: of a key that is new, or that is there.
pub(crate) fn push(bytes: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>, is_new: bool) {
    let kind = match value {
        Some(_) if is_new => INSERT,
        Some(_) => PUT,
        None => DELETE,
    };
    let value = value.unwrap_or_default();
    let words = [kind, key.len() as u32, value.len() as u32, 0];
    bytes.extend_from_slice(words.as_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
}

/// Bytes of a record that a piece has room for.
pub(crate) fn room(piece: &Piece) -> u64 {
    (piece.bytes.length() & !7).saturating_sub(HEADER_BYTES)
}

/// Writes a record into pieces that have room for it, as many of them as it needs. `beside` does what stores into a piece.
///
/// # Durability
/// Durable on return. A crash before leaves no whole record.
///
/// # Cost
/// The lines of its bytes and of a header for each piece; 1 fence.
pub(crate) fn write<P: Pmem>(
    (pool, hash): (&Pool<P>, KeyHash),
    pieces: &[Piece],
    bytes: &[u8],
    beside: impl Fn(&Piece, &dyn Fn()),
) {
    let id = pool.environment.random_u64().max(1);
    let mut parts = Vec::new();
    let mut rest = bytes;
    for piece in pieces {
        let (part, behind) = rest.split_at(rest.len().min(room(piece) as usize));
        parts.push((piece, part));
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    debug_assert!(rest.is_empty(), "the pieces have room");
    for (number, (piece, part)) in (0_u64..).zip(&parts) {
        let at = piece.bytes.offset();
        let header = [id, number | (parts.len() as u64) << 32, part.len() as u64];
        let check = check(hash, at, &header, part);
        beside(piece, &|| {
            let to = pool.extent(at + HEADER_BYTES, part.len() as u64);
            pool.pmem.copy(to, part, sites::RECORD);
            for (word, value) in (0..).zip(header.iter().chain([&check])) {
                pool.pmem.store_u64(at + 8 * word, *value, sites::RECORD);
            }
        });
        pool.pmem.flush(pool.extent(at, HEADER_BYTES + part.len() as u64), sites::RECORD);
    }
    pool.pmem.fence(sites::RECORD);
}

/// Clears the record whose first piece lies at `at`.
///
/// # Durability
/// Durable on return. A crash before leaves the record, or none.
///
/// # Cost
/// 1 line, 1 fence.
pub(crate) fn clear<P: Pmem>(pool: &Pool<P>, at: u64) {
    pool.pmem.store_u64(at, 0, sites::CLEAR);
    pool.pmem.flush(pool.extent(at, 8), sites::CLEAR);
    pool.pmem.fence(sites::CLEAR);
}

/// A piece, as its header says.
struct FoundPiece {
    id: u64,
    number: u32,
    count: u32,
    number_of_piece: usize,
    /// What of it the record has.
    whole: Extent,
}

/// The whole records in these pieces. Of each the bytes are read, and not kept.
pub(crate) fn find<P: Pmem>(pool: &Pool<P>, hash: KeyHash, pieces: &[Piece]) -> Vec<FoundRecord> {
    let headers = pieces.iter().enumerate();
    let headers = headers.filter_map(|(number, piece)| read_header(pool, number, piece.bytes));
    let mut headers: Vec<_> = headers.collect();
    headers.sort_unstable_by_key(|piece| (piece.id, piece.number));
    let records = headers.chunk_by(|one, next| one.id == next.id);
    let records = records.filter_map(record_of);
    records.filter(|record| read_bytes(pool, hash, record).is_some()).collect()
}

/// A record of all pieces with its id, if they are there, and no more than a record has.
fn record_of(pieces: &[FoundPiece]) -> Option<FoundRecord> {
    let FoundPiece { id, count, .. } = pieces[0];
    let is_next =
        |(number, piece): (u32, &FoundPiece)| piece.number == number && piece.count == count;
    let bytes: u64 = pieces.iter().map(|piece| piece.whole.length()).sum();
    let is_whole = pieces.len() as u64 == u64::from(count) && (0..).zip(pieces).all(is_next);
    let pieces = pieces.iter().map(|piece| (piece.number_of_piece, piece.whole)).collect();
    (is_whole && bytes <= RECORD_BYTES_MAX).then_some(FoundRecord { id, pieces })
}

fn read_header<P: Pmem>(
    pool: &Pool<P>,
    number_of_piece: usize,
    piece: Extent,
) -> Option<FoundPiece> {
    let at = piece.offset();
    let room = (piece.length() & !7).checked_sub(HEADER_BYTES)?;
    let [id, numbers, length] =
        std::array::from_fn(|word| pool.pmem.load_u64(at + 8 * word as u64));
    (id != 0 && length <= room).then(|| FoundPiece {
        id,
        number: numbers as u32,
        count: (numbers >> 32) as u32,
        number_of_piece,
        whole: pool.extent(at, HEADER_BYTES + length),
    })
}

/// The bytes of a record, if all of its pieces match their checks.
fn read_bytes<P: Pmem>(pool: &Pool<P>, hash: KeyHash, record: &FoundRecord) -> Option<Vec<u8>> {
    let (pmem, mut all) = (&pool.pmem, Vec::new());
    for (number, (_, whole)) in (0_u64..).zip(&record.pieces) {
        let (at, length) = (whole.offset(), whole.length() - HEADER_BYTES);
        let begin = all.len();
        all.resize(begin + length as usize, 0);
        pmem.read(pool.extent(at + HEADER_BYTES, length), &mut all[begin..]);
        let header = [record.id, number | (record.pieces.len() as u64) << 32, length];
        let is_right = pmem.load_u64(at + 24) == check(hash, at, &header, &all[begin..]);
        if !(is_right || pmem.skips(steps::READ_CHECK)) {
            return None;
        }
    }
    Some(all)
}

/// The changes that a record says, in their order; `None` where it says anything else.
pub(crate) fn read<P: Pmem>(
    pool: &Pool<P>,
    hash: KeyHash,
    record: &FoundRecord,
) -> Option<Vec<FoundChange>> {
    changes(&read_bytes(pool, hash, record)?)
}

fn check(hash: KeyHash, at: u64, [id, numbers, length]: &[u64; 3], bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, hash.of([at, *id, *numbers, *length].as_bytes()))
}

/// The changes that the bytes of a record say; `None` where they are not what [`push`] writes.
fn changes(bytes: &[u8]) -> Option<Vec<FoundChange>> {
    let (mut rest, mut changes) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (words, behind) = rest.split_first_chunk::<CHANGE_BYTES>()?;
        let word = |number: usize| {
            let word = words[4 * number..4 * number + 4].try_into();
            u32::from_le_bytes(word.expect("4 bytes"))
        };
        let (key, behind) = behind.split_at_checked(word(1) as usize)?;
        let (value, behind) = behind.split_at_checked(word(2) as usize)?;
        let value = match word(0) {
            PUT | INSERT => Some(value.to_vec()),
            DELETE if value.is_empty() => None,
            _ => return None,
        };
        changes.push(FoundChange { key: key.to_vec(), value, is_new: word(0) == INSERT });
        rest = behind;
    }
    Some(changes)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
