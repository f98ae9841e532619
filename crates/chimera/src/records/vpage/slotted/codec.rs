//! Records in slots: a header in the checked layout, the key, the value.

use chimera_pmem::{Extent, Pmem};

use super::SlottedPages;
use crate::pool::{Location, Pool};
use crate::records::checksum::Summed;
use crate::records::header::{RECORD_HEADER_BYTES, RecordHeader};
use crate::records::lengths::Lengths;
use crate::records::vpage::{Codec, Place, Record, Stored, sites};
use crate::types::error::{Error, Result};

impl SlottedPages {
    /// A record at a place, with this header.
    #[inline(always)]
    pub(super) fn record(&self, place: Place, header: Option<RecordHeader>) -> Record {
        let lengths = Lengths {
            key_bytes: self.key_bytes as u32,
            beside_bytes: self.value_bytes as u32,
            is_spilled: false,
        };
        Record { place, lengths, header }
    }
}

impl Codec for SlottedPages {
    #[inline(always)]
    fn place_of(&self, location: Location) -> Place {
        Place::of(&self.map, location, |slot| self.layout.slot_at(slot))
    }

    #[inline(always)]
    fn is_checked(&self) -> bool {
        self.layout.is_checked()
    }

    #[inline(always)]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        let (found, expected) = (key.len(), self.key_bytes);
        if found == expected { Ok(()) } else { Err(Error::KeySize { found, expected }) }
    }

    #[inline(always)]
    fn check_value(&self, value: &[u8]) -> Result<()> {
        let (found, expected) = (value.len(), self.value_bytes);
        if found == expected { Ok(()) } else { Err(Error::ValueSize { found, expected }) }
    }

    #[inline(always)]
    fn fixed_value_bytes(&self) -> Option<usize> {
        Some(self.value_bytes)
    }

    fn units_of(&self, _key_bytes: usize, _beside_bytes: usize) -> u32 {
        1
    }

    // ---- loading ahead -------------------------------------------------------------------------

    #[inline(always)]
    fn head<P: Pmem>(&self, pool: &Pool<P>, place: &Place, _key_bytes: usize) -> Extent {
        pool.extent(place.record_at, u64::from(self.layout.key_at) + self.key_bytes as u64)
    }

    #[inline(always)]
    fn whole<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Extent {
        self.slot(pool, place)
    }

    /// Nothing: where everything lies follows from the place.
    #[inline(always)]
    fn prefetch_unknown<P: Pmem>(&self, _pool: &Pool<P>, _place: &Place) {}

    fn expected_word(&self, place: &Place, _key_bytes: usize, at: usize) -> Option<u64> {
        (at.is_multiple_of(8) && at + 8 <= self.value_bytes)
            .then(|| place.record_at + u64::from(self.layout.value_at) + at as u64)
    }

    // ---- reading -------------------------------------------------------------------------------

    /// Something can lie in each slot.
    #[inline(always)]
    fn decode<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Option<Record> {
        let header =
            self.layout.is_checked().then(|| RecordHeader::load(&pool.pmem, place.record_at));
        Some(self.record(*place, header))
    }

    #[inline(always)]
    fn key_is<P: Pmem>(&self, pool: &Pool<P>, record: &Record, key: &[u8]) -> bool {
        pool.pmem.compare(self.key(pool, &record.place), key)
    }

    fn read_key<P: Pmem>(&self, pool: &Pool<P>, record: &Record, into: &mut Vec<u8>) {
        into.resize(self.key_bytes, 0);
        pool.pmem.read(self.key(pool, &record.place), into);
    }

    #[inline(always)]
    fn read_value<'v, P: Pmem>(
        &self,
        pool: &Pool<P>,
        record: &Record,
        into: &'v mut Vec<u8>,
    ) -> Option<Summed<'v>> {
        into.resize(self.value_bytes, 0);
        let sum = pool.pmem.read_sum(self.value(pool, &record.place), 0, into);
        Some(Summed { bytes: into, sum })
    }

    #[inline(always)]
    fn copy_value<P: Pmem>(&self, pool: &Pool<P>, record: &Record, into: &mut Vec<u8>) -> bool {
        into.resize(self.value_bytes, 0);
        pool.pmem.read(self.value(pool, &record.place), into);
        true
    }

    #[inline(always)]
    fn value_is<P: Pmem>(&self, pool: &Pool<P>, record: &Record, value: &[u8]) -> bool {
        pool.pmem.compare(self.value(pool, &record.place), value)
    }

    #[inline(always)]
    fn value_bytes<P: Pmem>(&self, _pool: &Pool<P>, _record: &Record) -> Option<usize> {
        Some(self.value_bytes)
    }

    #[inline]
    fn value_word<P: Pmem>(&self, _pool: &Pool<P>, record: &Record, at: usize) -> Option<u64> {
        self.expected_word(&record.place, self.key_bytes, at)
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
        pool.pmem.copy(self.key(pool, place), key, sites::RECORD);
        let value = self.value(pool, place);
        if !self.layout.is_checked() {
            pool.pmem.copy(value, stored.value, sites::RECORD);
            return 0;
        }
        let sum = pool.pmem.copy_sum(value, stored.value, sites::RECORD);
        stored.value_checksum(place.record_at, Summed { bytes: stored.value, sum })
    }

    #[inline(always)]
    fn write_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place, header: &RecordHeader) {
        if self.layout.is_checked() {
            header.store(&pool.pmem, place.record_at, sites::RECORD);
        }
    }

    fn flush_header<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> bool {
        let header = pool.extent(place.record_at, u64::from(RECORD_HEADER_BYTES));
        pool.pmem.flush(header, sites::RECORD);
        true
    }

    #[inline(always)]
    fn flush_record<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        _key: &[u8],
        _stored: &Stored<'_>,
    ) -> bool {
        pool.pmem.flush(self.slot(pool, place), sites::RECORD);
        true
    }
}
