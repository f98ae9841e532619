//! Values that no block has room for: in chunks, each in a block that is one page (section 3.2.3).
//!
//! ```text
//! record   lengths, header, key, descriptor: [location of the first chunk: 8] [name: 8]
//!                                            [bytes of the value: 4 | check: 4]
//! chunk    [1 | 0: 15 | length: 16 | check: 32] [name: 8] [location of the record: 8]
//!          [location of the next chunk: 8] [chunks after this one: 4 | check: 4] bytes
//! ```
//! A value's name is a random number. A chunk counts while the record it names counts and has the same
//! name: so nothing need be done about chunks when a record is deleted, nor about those of a record that
//! a crash prevented. Until its record counts, a chunk is protected by its session's hold of the block.

use chimera_pmem::{Extent, Pmem};

use super::lengths::{Entry, Lengths, VALUE_BYTES_MAX};
use super::{LOG_AT, LogPages, sites};
use crate::pool::{Location, Pool, checked_word};
use crate::records::vpage::{Chunk, DESCRIPTOR_BYTES, InsertPoint, Pages, Place};
use crate::sync::atomic::{Ordering, fence};

/// From the start of a chunk to its fields and to its bytes.
const NAME_AT: u64 = 8;
const RECORD_AT: u64 = 16;
const NEXT_AT: u64 = 24;
const POSITION_AT: u64 = 32;
const BYTES_AT: u64 = 40;

/// Bytes of a chunk with so many bytes of a value.
pub(super) fn chunk_span(bytes: u64) -> u64 {
    BYTES_AT + bytes.next_multiple_of(8)
}

/// A part of a value in the pool.
pub(super) struct Piece {
    pub(super) place: Place,
    pub(super) bytes: Extent,
    pub(super) length: usize,
}

impl LogPages {
    /// The place of a location read from media, if a record can begin there.
    fn checked_place<P: Pmem>(&self, pool: &Pool<P>, raw: u64) -> Option<Place> {
        let is_in_use = raw & 0xffff != 0 && raw >> 19 < pool.used_blocks();
        let location = Location::from_raw(raw).filter(|_| is_in_use)?;
        let place = self.place_of(location);
        let is_inside = place.page < self.pages_per_block
            && place.record_at + BYTES_AT <= self.block_end(&place);
        is_inside.then_some(place)
    }

    /// Hands the pieces of a record's value to `visit`, in their order, as far as they can be found.
    /// Whether that was all.
    pub(super) fn for_pieces<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        lengths: Lengths,
        mut visit: impl FnMut(&Piece) -> bool,
    ) -> bool {
        let pmem = &pool.pmem;
        let descriptor_at = Self::value_at(place, lengths.key_bytes as usize);
        let name = pmem.load_u64(descriptor_at + 8);
        let Some(bytes) = checked_word::decode(pmem.load_u64(descriptor_at + 16)) else {
            return false;
        };
        let in_use = pool.used_blocks() * self.map.block_bytes;
        if bytes as usize > Self::VALUE_BYTES_MAX || u64::from(bytes) > in_use {
            return false;
        }
        let (mut left, mut next) = (u64::from(bytes), pmem.load_u64(descriptor_at));
        // Counts down, so a chain cannot come back to where it was.
        let mut position = None;
        while left > 0 {
            let Some(piece) = self.piece(pool, next, place, name) else { return false };
            let at = piece.place.record_at;
            let Some(now) = checked_word::decode(pmem.load_u64(at + POSITION_AT)) else {
                return false;
            };
            let length = piece.length as u64;
            let is_in_order = position.is_none_or(|before: u32| before.checked_sub(1) == Some(now));
            // All but the last have whole words.
            let is_aligned = now == 0 || length.is_multiple_of(8);
            let is_last = left == length;
            let is_right = is_in_order && is_aligned && length <= left && is_last == (now == 0);
            if !is_right || !visit(&piece) {
                return false;
            }
            left -= length;
            position = Some(now);
            next = pmem.load_u64(at + NEXT_AT);
        }
        bytes > 0
    }

    /// The chunk at a location, if it is one of this record and has this name.
    fn piece<P: Pmem>(
        &self,
        pool: &Pool<P>,
        location: u64,
        record: &Place,
        name: u64,
    ) -> Option<Piece> {
        let place = self.checked_place(pool, location)?;
        let at = place.record_at;
        let Some(Entry::Chunk { bytes }) = Entry::decode(pool.pmem.load_u64(at)) else {
            return None;
        };
        let is_right = at + chunk_span(u64::from(bytes)) <= self.block_end(&place)
            && pool.pmem.load_u64(at + RECORD_AT) == record.location().raw()
            && pool.pmem.load_u64(at + NAME_AT) == name;
        is_right.then(|| Piece {
            place,
            bytes: pool.extent(at + BYTES_AT, u64::from(bytes)),
            length: bytes as usize,
        })
    }

    /// Bytes of a record's value, as its descriptor says.
    pub(super) fn described_bytes<P: Pmem>(
        pool: &Pool<P>,
        place: &Place,
        lengths: Lengths,
    ) -> Option<usize> {
        let descriptor_at = Self::value_at(place, lengths.key_bytes as usize);
        checked_word::decode(pool.pmem.load_u64(descriptor_at + 16)).map(|bytes| bytes as usize)
    }

    /// Offset in the pool of byte `at` of a record's value.
    pub(super) fn piece_byte<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        lengths: Lengths,
        at: usize,
    ) -> Option<u64> {
        let (mut before, mut found) = (0, None);
        self.for_pieces(pool, place, lengths, |piece| {
            if at < before + piece.length {
                found = Some(piece.place.record_at + BYTES_AT + (at - before) as u64);
            }
            before += piece.length;
            found.is_none()
        });
        found
    }

    /// The place of the record that a chunk belongs to, and whether the chunk counts.
    pub(super) fn record_of_chunk<P: Pmem>(
        &self,
        pool: &Pool<P>,
        at: u64,
    ) -> Option<(Place, bool)> {
        let pmem = &pool.pmem;
        let place = self.checked_place(pool, pmem.load_u64(at + RECORD_AT))?;
        let Some(Entry::Record { is_set, lengths }) = Entry::decode(pmem.load_u64(place.record_at))
        else {
            return Some((place, false));
        };
        let descriptor_at = Self::value_at(&place, lengths.key_bytes as usize);
        let is_alike = lengths.is_elsewhere
            && descriptor_at + DESCRIPTOR_BYTES as u64 <= self.block_end(&place)
            && pmem.load_u64(descriptor_at + 8) == pmem.load_u64(at + NAME_AT);
        Some((place, is_set && is_alike))
    }

    /// Reads a value that lies elsewhere; `false` when not all of it can be found.
    #[cold]
    pub(super) fn read_pieces<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        lengths: Lengths,
        into: &mut Vec<u8>,
    ) -> bool {
        into.clear();
        let is_whole = self.for_pieces(pool, place, lengths, |piece| {
            let before = into.len();
            into.resize(before + piece.length, 0);
            pool.pmem.read(piece.bytes, &mut into[before..]);
            true
        });
        is_whole && Self::still_counts(pool, place, lengths)
    }

    /// Whether a record counts after its chunks were read. One that is being deleted is retired before the
    /// index knows, and its chunks may be used again from then on.
    pub(super) fn still_counts<P: Pmem>(pool: &Pool<P>, place: &Place, lengths: Lengths) -> bool {
        fence(Ordering::Acquire);
        let entry = Entry::decode(pool.pmem.load_u64(place.record_at));
        entry == Some(Entry::Record { is_set: true, lengths })
    }

    /// Whether a value that lies elsewhere is this one.
    #[cold]
    pub(super) fn pieces_are<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        lengths: Lengths,
        value: &[u8],
    ) -> bool {
        let mut rest = value;
        let is_alike = self.for_pieces(pool, place, lengths, |piece| {
            let Some((part, after)) = rest.split_at_checked(piece.length) else { return false };
            rest = after;
            pool.pmem.compare(piece.bytes, part)
        });
        is_alike && rest.is_empty()
    }

    /// Bytes of a value that the next chunk can take.
    pub(super) fn room_for_chunk(point: &InsertPoint) -> usize {
        let room = point.end.saturating_sub(point.tail + BYTES_AT);
        (room.min(u64::from(VALUE_BYTES_MAX)) & !7) as usize
    }

    /// Writes a chunk at the point and flushes it.
    pub(super) fn write_chunk<P: Pmem>(
        pool: &Pool<P>,
        point: &mut InsertPoint,
        chunk: &Chunk<'_>,
    ) -> (Location, Extent) {
        let place = Place {
            block: point.block.unwrap_or_default(),
            page: point.page,
            slot: (point.tail / 8) as u32,
            page_at: point.page_at,
            record_at: point.page_at + point.tail,
        };
        let (at, length) = (place.record_at, chunk.bytes.len() as u64);
        let fields = [
            (NAME_AT, chunk.name),
            (RECORD_AT, chunk.record.location().raw()),
            (NEXT_AT, chunk.next.map_or(0, Location::raw)),
            (POSITION_AT, checked_word::encode(chunk.position)),
            (0, Entry::chunk(chunk.bytes.len())),
        ];
        pool.pmem.copy(pool.extent(at + BYTES_AT, length), chunk.bytes, sites::RECORD);
        for (field_at, word) in fields {
            pool.pmem.store_u64(at + field_at, word, sites::RECORD);
        }
        let all = pool.extent(at, chunk_span(length));
        pool.pmem.flush(all, sites::RECORD);
        point.tail += chunk_span(length);
        debug_assert!(point.tail <= point.end && place.record_at >= place.page_at + LOG_AT);
        (place.location(), all)
    }
}
