//! Chunks in logs: where one can lie, following a value through its chunks, and writing them, each in a block
//! that is one page. `records::chunks` tells their form and when they are live.
//!
//! Until its record is live, a chunk is protected by its session's hold of the block.

use chimera_pmem::{Extent, Pmem};

use super::{BESIDE_BYTES_MAX, LOG_AT, LogPages, sites};
use crate::pool::{Location, Pool};
use crate::records::chunks::{self, BYTES_AT, Chain, Chunk, ChunkAt, Descriptor};
use crate::records::lengths::{DESCRIPTOR_BYTES, Entry};
use crate::records::vpage::{Codec, InsertPoint, Place, Record};
use crate::sync::atomic::{Ordering, fence};

/// A chunk that was found where its value leads.
pub(super) struct FoundChunk {
    pub(super) place: Place,
    pub(super) bytes: Extent,
    pub(super) length: usize,
}

impl LogPages {
    /// Whether a value is too long to lie beside its key, or worth going to its place ahead of the journal.
    #[inline(always)]
    pub(crate) fn is_large(&self, value_bytes: usize) -> bool {
        value_bytes > self.usual_bytes_max
    }

    /// Whether a value is too long to lie beside its key.
    #[inline(always)]
    pub(crate) fn is_spilled(&self, value_bytes: usize) -> bool {
        value_bytes > self.beside_bytes_max
    }

    /// A key of so many bytes is worth storing at the end of a page that has no room for its value.
    #[inline(always)]
    pub(crate) fn spill_key_bytes_min(&self) -> usize {
        self.spill_key_bytes_min
    }

    /// Bytes of a value that a chunk at the point can take.
    pub(crate) fn room_for_chunk(point: &InsertPoint) -> usize {
        let room = point.log.end.saturating_sub(point.log.tail + BYTES_AT);
        (room.min(u64::from(BESIDE_BYTES_MAX)) & !7) as usize
    }

    /// Writes a chunk at the point, which has room for it, and flushes it. Returns where it is.
    ///
    /// # Durability
    /// After the caller's next fence. That the log ends behind it, before.
    ///
    /// # Cost
    /// The lines of the chunk. Under a journal 1 line and 1 fence more in a block that was in use before.
    pub(crate) fn write_chunk<P: Pmem>(
        pool: &Pool<P>,
        point: &mut InsertPoint,
        chunk: &Chunk<'_>,
    ) -> (Location, Extent) {
        let place = Self::next_place(point);
        point.log.tail += chunks::span(chunk.bytes.len() as u64);
        debug_assert!(point.log.tail <= point.log.end, "the chunk fits");
        if point.log.tail < point.log.end {
            Self::end_ahead(pool, point.page_at + point.log.tail, point.emptied.is_some());
        }
        let all = chunk.write(pool, place.record_at, point.emptied, sites::RECORD);
        debug_assert!(place.record_at >= place.page_at + LOG_AT, "in the log");
        (place.location(), all)
    }

    /// Blocks of the chunks of a record, and the units they take there.
    pub(crate) fn chunks_of<P: Pmem>(&self, pool: &Pool<P>, record: &Record) -> Vec<(u64, u32)> {
        let mut found = Vec::new();
        if record.lengths.is_spilled {
            self.for_chunks(pool, record, |chunk| {
                found.push((chunk.place.block, (chunks::span(chunk.length as u64) / 8) as u32));
                true
            });
        }
        found
    }

    /// The place of a location read from media, if a record can begin there.
    fn checked_place<P: Pmem>(&self, pool: &Pool<P>, raw: u64) -> Option<Place> {
        let is_in_use = raw & 0xffff != 0 && raw >> 19 < pool.used_blocks();
        let location = Location::from_raw(raw).filter(|_| is_in_use)?;
        let place = self.place_of(location);
        let is_inside = place.record_at + BYTES_AT <= self.block_end(&place);
        is_inside.then_some(place)
    }

    /// Hands the chunks of a record's value to `visit`, in their order, as far as they can be found.
    /// Whether that was all.
    pub(super) fn for_chunks<P: Pmem>(
        &self,
        pool: &Pool<P>,
        record: &Record,
        mut visit: impl FnMut(&FoundChunk) -> bool,
    ) -> bool {
        let pmem = &pool.pmem;
        let Some(value) = Descriptor::load(pmem, Self::beside_at(record)) else { return false };
        let (mut chain, mut next) = (Chain::new(value.bytes), value.first);
        while !chain.is_complete() {
            let chunk = self.chunk_at(pool, next, &record.place, value.name);
            let Some(chunk) = chunk else { return false };
            let at = ChunkAt(chunk.place.record_at);
            let Some(position) = at.position(pmem) else { return false };
            if !chain.accepts(chunk.length as u64, position) || !visit(&chunk) {
                return false;
            }
            next = at.next(pmem);
        }
        value.bytes > 0
    }

    /// The chunk at a location, if it is one of this record and has this name.
    fn chunk_at<P: Pmem>(
        &self,
        pool: &Pool<P>,
        location: u64,
        record: &Place,
        name: u64,
    ) -> Option<FoundChunk> {
        let place = self.checked_place(pool, location)?;
        let at = ChunkAt(place.record_at);
        let length = at.length(&pool.pmem)?;
        let is_right = at.0 + chunks::span(u64::from(length)) <= self.block_end(&place)
            && at.record(&pool.pmem) == record.location().raw()
            && at.name(&pool.pmem) == name;
        is_right.then(|| FoundChunk {
            place,
            bytes: pool.extent(at.0 + BYTES_AT, u64::from(length)),
            length: length as usize,
        })
    }

    /// Bytes of a record's value, as its descriptor says. None is spilled that has no bytes.
    pub(super) fn spilled_bytes<P: Pmem>(pool: &Pool<P>, record: &Record) -> Option<usize> {
        let value = Descriptor::load(&pool.pmem, Self::beside_at(record));
        value.map(|value| value.bytes as usize).filter(|bytes| *bytes > 0)
    }

    /// Offset in the pool of byte `at` of a record's value, if all of the value can be found. A chain that is cut
    /// behind the byte is damage, too: nothing is stored in a value that no get can read.
    pub(super) fn spilled_byte<P: Pmem>(
        &self,
        pool: &Pool<P>,
        record: &Record,
        at: usize,
    ) -> Option<u64> {
        let (mut before, mut found) = (0, None);
        let is_whole = self.for_chunks(pool, record, |chunk| {
            if found.is_none() && at < before + chunk.length {
                found = Some(chunk.place.record_at + BYTES_AT + (at - before) as u64);
            }
            before += chunk.length;
            true
        });
        found.filter(|_| is_whole)
    }

    /// The place of the record that the chunk at an offset belongs to, and whether the chunk is live.
    pub(super) fn record_of_chunk<P: Pmem>(
        &self,
        pool: &Pool<P>,
        at: u64,
    ) -> Option<(Place, bool)> {
        let (pmem, chunk) = (&pool.pmem, ChunkAt(at));
        let place = self.checked_place(pool, chunk.record(pmem))?;
        let Some(Entry::Record { is_live, lengths }) =
            Entry::decode(pmem.load_u64(place.record_at), place.record_at)
        else {
            return Some((place, false));
        };
        let descriptor_at = place.record_at + lengths.beside_at();
        let is_named = lengths.is_spilled
            && descriptor_at + DESCRIPTOR_BYTES as u64 <= self.block_end(&place)
            && Descriptor::load_name(pmem, descriptor_at) == chunk.name(pmem);
        Some((place, is_live && is_named))
    }

    /// Reads a value that is spilled; its sum, or 0 where none is asked for. None when not all of it can be found.
    #[cold]
    pub(super) fn read_chunks<const SUM: bool, P: Pmem>(
        &self,
        pool: &Pool<P>,
        record: &Record,
        into: &mut Vec<u8>,
    ) -> Option<u64> {
        let (mut end, mut sum) = (0, 0_u64);
        let is_whole = self.for_chunks(pool, record, |chunk| {
            let start = end;
            end += chunk.length;
            // What the last value has left there need not be zero first.
            if into.len() < end {
                into.resize(end, 0);
            }
            let part = &mut into[start..end];
            if SUM {
                // All chunks but the last have whole words.
                sum = sum.wrapping_add(pool.pmem.read_sum(chunk.bytes, start as u64 / 8, part));
            } else {
                pool.pmem.read(chunk.bytes, part);
            }
            true
        });
        into.truncate(end);
        (is_whole && Self::is_still_live(pool, record)).then_some(sum)
    }

    /// Whether a record is live after its chunks were read. One that is being deleted is retired before the
    /// index knows, and its chunks may be used again from then on.
    pub(super) fn is_still_live<P: Pmem>(pool: &Pool<P>, record: &Record) -> bool {
        fence(Ordering::Acquire);
        let at = record.place.record_at;
        let entry = Entry::decode(pool.pmem.load_u64(at), at);
        entry == Some(Entry::Record { is_live: true, lengths: record.lengths })
    }

    /// Whether a value that is spilled is this one.
    #[cold]
    pub(super) fn chunks_are<P: Pmem>(
        &self,
        pool: &Pool<P>,
        record: &Record,
        value: &[u8],
    ) -> bool {
        let mut rest = value;
        let is_alike = self.for_chunks(pool, record, |chunk| {
            let Some((part, after)) = rest.split_at_checked(chunk.length) else { return false };
            rest = after;
            pool.pmem.compare(chunk.bytes, part)
        });
        is_alike && rest.is_empty()
    }
}
