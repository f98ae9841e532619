//! Records in a log: lengths in front, then a header, the key, and the value or its descriptor.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::{KEY_AT, LOG_AT, LogPages, sites, span, steps};
use crate::pool::{Location, Pool};
use crate::records::checksum::Summed;
use crate::records::header::RecordHeader;
use crate::records::lengths::{self, Entry, HEADER_AT, Lengths};
use crate::records::vpage::{Codec, Place, Record, Stored};
use crate::types::error::Result;

/// Bytes of a record of unknown size that are loaded ahead.
const LOADED_AHEAD: u64 = 256;

impl LogPages {
    /// The lengths at a place, when they are those of a record that lies in its block.
    #[inline(always)]
    fn lengths<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Option<Lengths> {
        let Some(Entry::Record { lengths, .. }) =
            Entry::decode(pool.pmem.load_u64(place.record_at), place.record_at)
        else {
            return None;
        };
        let is_inside = place.record_at + lengths.span() <= self.block_end(place);
        (is_inside && lengths.key_bytes as usize <= self.key_bytes_max).then_some(lengths)
    }

    /// Flushes what of the first `length` bytes of a record is not in the line of its first word; whether
    /// there is any. What is in that line reaches media no later than the word (invariant 1).
    #[inline(always)]
    fn flush_behind_first_line<P: Pmem>(pool: &Pool<P>, place: &Place, length: u64) -> bool {
        let next_line = (place.record_at + 1).next_multiple_of(CACHE_LINE);
        let end = place.record_at + length;
        if next_line < end {
            pool.pmem.flush(pool.extent(next_line, end - next_line), sites::RECORD);
        }
        next_line < end
    }

    /// Bytes of a record of `bytes`, and of the zero that ends the log behind it, if one is written there.
    #[inline(always)]
    fn with_end<P: Pmem>(&self, pool: &Pool<P>, place: &Place, bytes: u64) -> u64 {
        let page_bytes = self.map.page_bytes;
        let end = place.record_at + bytes;
        let is_ended = if LOG_AT + bytes <= page_bytes {
            end < place.page_at + page_bytes
        } else {
            pool.pmem.is_journaled() && end < self.block_end(place)
        };
        bytes + if is_ended { 8 } else { 0 }
    }
}

impl Codec for LogPages {
    #[inline(always)]
    fn place_of(&self, location: Location) -> Place {
        Place::of(&self.map, location, |slot| 8 * u64::from(slot))
    }

    #[inline(always)]
    fn is_checked(&self) -> bool {
        true
    }

    #[inline(always)]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        self.limits().check_key(key)
    }

    #[inline(always)]
    fn check_value(&self, value: &[u8]) -> Result<()> {
        self.limits().check_value(value)
    }

    #[inline(always)]
    fn fixed_value_bytes(&self) -> Option<usize> {
        None
    }

    fn units_of(&self, key_bytes: usize, beside_bytes: usize) -> u32 {
        (span(key_bytes, beside_bytes) / 8) as u32
    }

    // ---- loading ahead -------------------------------------------------------------------------

    #[inline(always)]
    fn head<P: Pmem>(&self, pool: &Pool<P>, place: &Place, key_bytes: usize) -> Extent {
        pool.extent(place.record_at, KEY_AT + key_bytes as u64)
    }

    #[inline(always)]
    fn whole<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent {
        pool.extent(place.record_at, LOADED_AHEAD)
    }

    #[inline(always)]
    fn prefetch_unknown<P: Pmem>(&self, pool: &Pool<P>, place: &Place) {
        pool.pmem.prefetch(self.whole(pool, place));
    }

    #[inline]
    fn expected_word(&self, place: &Place, key_bytes: usize, at: usize) -> Option<u64> {
        let value_at = place.record_at + lengths::beside_at(key_bytes);
        let word_at = value_at.checked_add(at as u64)?;
        let is_likely = at.is_multiple_of(8) && word_at < self.block_end(place);
        is_likely.then_some(word_at)
    }

    // ---- reading -------------------------------------------------------------------------------

    #[inline(always)]
    fn decode<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Option<Record> {
        let lengths = self.lengths(pool, place)?;
        let header = RecordHeader::load(&pool.pmem, place.record_at + HEADER_AT);
        Some(Record { place: *place, lengths, header: Some(header) })
    }

    #[inline(always)]
    fn key_is<P: Pmem>(&self, pool: &Pool<P>, record: &Record, key: &[u8]) -> bool {
        record.lengths.key_bytes as usize == key.len()
            && pool.pmem.compare(Self::key_extent(pool, &record.place, key.len()), key)
    }

    fn read_key<P: Pmem>(&self, pool: &Pool<P>, record: &Record, into: &mut Vec<u8>) {
        let key_bytes = record.lengths.key_bytes as usize;
        into.resize(key_bytes, 0);
        pool.pmem.read(Self::key_extent(pool, &record.place, key_bytes), into);
    }

    #[inline(always)]
    fn read_value<'v, P: Pmem>(
        &self,
        pool: &Pool<P>,
        record: &Record,
        into: &'v mut Vec<u8>,
    ) -> Option<Summed<'v>> {
        if record.lengths.is_spilled {
            let sum = self.read_chunks::<true, P>(pool, record, into)?;
            return Some(Summed { bytes: into, sum });
        }
        into.resize(record.lengths.beside_bytes as usize, 0);
        let sum = pool.pmem.read_sum(Self::beside_extent(pool, record), 0, into);
        Some(Summed { bytes: into, sum })
    }

    #[inline(always)]
    fn copy_value<P: Pmem>(&self, pool: &Pool<P>, record: &Record, into: &mut Vec<u8>) -> bool {
        if record.lengths.is_spilled {
            return self.read_chunks::<false, P>(pool, record, into).is_some();
        }
        into.resize(record.lengths.beside_bytes as usize, 0);
        pool.pmem.read(Self::beside_extent(pool, record), into);
        true
    }

    fn value_is<P: Pmem>(&self, pool: &Pool<P>, record: &Record, value: &[u8]) -> bool {
        if record.lengths.is_spilled {
            return self.chunks_are(pool, record, value);
        }
        record.lengths.beside_bytes as usize == value.len()
            && pool.pmem.compare(Self::beside_extent(pool, record), value)
    }

    fn value_bytes<P: Pmem>(&self, pool: &Pool<P>, record: &Record) -> Option<usize> {
        if record.lengths.is_spilled {
            return Self::spilled_bytes(pool, record);
        }
        Some(record.lengths.beside_bytes as usize)
    }

    #[inline]
    fn value_word<P: Pmem>(&self, pool: &Pool<P>, record: &Record, at: usize) -> Option<u64> {
        let end = at.checked_add(8).filter(|_| at.is_multiple_of(8))?;
        if record.lengths.is_spilled {
            // All chunks but the last have whole words.
            return (end <= Self::spilled_bytes(pool, record)?)
                .then(|| self.spilled_byte(pool, record, at))?;
        }
        let is_inside = end <= record.lengths.beside_bytes as usize;
        is_inside.then_some(Self::beside_at(record) + at as u64)
    }

    // ---- writing -------------------------------------------------------------------------------

    #[inline(always)]
    fn write_body<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> u32 {
        pool.pmem.copy(Self::key_extent(pool, place, key.len()), key, sites::RECORD);
        let beside_at = place.record_at + lengths::beside_at(key.len());
        let beside = pool.extent(beside_at, stored.beside.len() as u64);
        let sum = pool.pmem.copy_sum(beside, stored.beside, sites::RECORD);
        let bytes = span(key.len(), stored.beside.len());
        if self.with_end(pool, place, bytes) > bytes && !pool.pmem.skips(steps::END) {
            pool.pmem.store_u64(place.record_at + bytes, 0, sites::RECORD);
        }
        let value = match stored.chunks {
            [] => Summed { bytes: stored.value, sum },
            _ => Summed::of(stored.value),
        };
        stored.value_checksum(place.record_at, value)
    }

    #[inline(always)]
    fn write_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place, header: &RecordHeader) {
        header.store(&pool.pmem, place.record_at + HEADER_AT, sites::RECORD);
    }

    fn flush_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> bool {
        Self::flush_behind_first_line(pool, place, KEY_AT)
    }

    #[inline(always)]
    fn flush_record<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> bool {
        let bytes = span(key.len(), stored.beside.len());
        let is_end_flushed = !pool.pmem.skips(steps::END_FLUSH);
        let bytes = if is_end_flushed { self.with_end(pool, place, bytes) } else { bytes };
        Self::flush_behind_first_line(pool, place, bytes)
    }
}
