//! Lookups: lock-free, validated by page versions, verified by checksums.
//!
//! # Why a value is whole, also where its sum is not verified
//! A get that does not verify the sum ([`VerifyReads`]) relies on what every get does. It takes an answer only if
//! 1. the version of the record's page was even before the first byte was read and is the same after the last one;
//! 2. the index leads to the record after that;
//! 3. a value in chunks was found whole, and the record was still live after the last chunk was read.
//!
//! Whoever writes bytes of records in a page holds its lock: for a new record until the header is written, in the
//! published layout until it is live; for an update in place, also of a word in a chunk, for the store. So by 1 what
//! was read beside the key is of one moment, with the header that was read. By 2 it is a record that is live, or was
//! during the read, and not one in the making. The one word that changes without the page's lock is that with the
//! lengths in a log: it is loaded once and is zero before the record is live, which is no record.
//!
//! Chunks lie in other pages, whose versions nobody looks at. They are written before the record is, so a reader
//! that finds the record finds its chunks; and they are used again only after the record was retired. By 3 that was
//! not so when the last of them had been read. The fence in that check is what orders the two: whoever has read a
//! byte that was written to a chunk's new use sees the record retired.
//!
//! So the sum of a value finds what the medium has changed, and nothing else. The tests `without_sums` of
//! `tests/concurrency` look for torn values where sums are not verified.

use chimera_pmem::{Operation, Pmem};

use super::records::{Records, Unsound};
use super::space::Client;
use super::steps;
use crate::index::Probe;
use crate::index::volatile::extendible_hash::Found;
use crate::pool::Location;
use crate::records::checksum::Summed;
use crate::records::vpage::{self, Pages, Place, Record};
use crate::types::error::Result;
use crate::types::verify_reads::VerifyReads;

/// A value that was read.
struct ReadValue<'a> {
    /// With its sum, if that was asked for.
    summed: Option<Summed<'a>>,
}

impl<P: Pmem, V: Pages> Records<P, V> {
    /// Reads the value of `key` into the client's buffer, and verifies its sum if it is this get's turn. `false` when
    /// there is none.
    #[inline]
    pub(super) fn get_hashed(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        if self.verify_reads() == VerifyReads::Always {
            return self.read_hashed(client, hash, key);
        }
        self.get_in_turn(client, hash, key)
    }

    /// As [`get_hashed`](Self::get_hashed), where not each get verifies the sum: apart, so that those which do stay
    /// as short as they are.
    #[inline(never)]
    fn get_in_turn(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        if self.verify_reads().is_turn(&mut client.shared.gets_left) {
            return self.read_hashed(client, hash, key);
        }
        self.read_by::<false>(client, hash, key)
    }

    /// Reads the value of `key` into the client's buffer, and verifies everything. `false` when there is none.
    #[inline]
    pub(super) fn read_hashed(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        self.read_by::<true>(client, hash, key)
    }

    #[inline(always)]
    fn read_by<const SUM: bool>(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        let _booked = self.core().book(Operation::Get, client.shared.number);
        let into = &mut client.shared.value;
        Ok(self.read_at_once::<SUM>(hash, key, into) || self.read_slowly::<SUM>(hash, key, into)?)
    }

    /// Reads the value of `key` where nothing at all is unusual: else `false`, and nothing is known. Every check
    /// is made once, on the first entry of the hash; [`read_record`](Self::read_record) says what each is for.
    #[inline(always)]
    fn read_at_once<const SUM: bool>(&self, hash: u64, key: &[u8], into: &mut Vec<u8>) -> bool {
        let (pool, pages) = (self.pool(), self.pages());
        let Some(found) = self.index().first(hash) else { return false };
        let place = pages.place_of(found.location);
        let lock = self.page_lock(&place);
        pages.prefetch_unknown(pool, &place);
        let Some(version) = lock.read_begin() else { return false };
        let Some(record) = pages.decode(pool, &place) else { return false };
        if !pages.key_is(pool, &record, key) {
            return false;
        }
        let Some(value) = self.read_value::<SUM>(&record, into) else { return false };
        lock.read_is_valid(version)
            && found.is_there(hash)
            && record.verify(hash, value.summed).is_ok()
    }

    /// Reads the value of a record, with its sum if that is asked for; none when a part of it cannot be found.
    #[inline(always)]
    fn read_value<'v, const SUM: bool>(
        &self,
        record: &Record,
        into: &'v mut Vec<u8>,
    ) -> Option<ReadValue<'v>> {
        let pool = self.pool();
        if SUM {
            let summed = self.pages().read_value(pool, record, into)?;
            return Some(ReadValue { summed: Some(summed) });
        }
        self.pages().copy_value(pool, record, into).then_some(ReadValue { summed: None })
    }

    /// As [`read_by`](Self::read_by), whatever there is.
    #[cold]
    #[inline(never)]
    fn read_slowly<const SUM: bool>(
        &self,
        hash: u64,
        key: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<bool> {
        self.pool().pmem.operation_rereads();
        let found =
            self.index().find(hash, |found| self.read_record::<SUM>(hash, &found, key, into));
        Ok(found.transpose().map_err(Unsound::into_error)?.is_some())
    }

    /// Reads the record at `location` if it is that of `key`.
    ///
    /// The record is an answer only if the index leads to it afterwards. The location may be an old one: the
    /// key has moved away since it was found, and its next record may be in the making in the very same slot,
    /// whole but neither durable nor live. If the index does lead to it, the record was live when the location
    /// was found, or is now, or was in between: another record of the key is not written here before the index
    /// leads to another place.
    ///
    /// In the published layout the page stays locked until the record is live, so no record in the making is read.
    /// But the record may have been moved away, and its block been given back, before the page's version was read.
    /// Then the slot has zeros, which are the key whose bytes are all zero, and no checksum says otherwise.
    #[inline(always)]
    fn read_record<const SUM: bool>(
        &self,
        hash: u64,
        found: &Found<'_>,
        key: &[u8],
        into: &mut Vec<u8>,
    ) -> Probe<Result<(), Unsound>> {
        let (pool, pages) = (self.pool(), self.pages());
        let place = pages.place_of(found.location);
        let lock = self.page_lock(&place);
        pool.pmem.prefetch(pages.whole(pool, &place));
        let Some(version) = lock.read_begin() else { return Probe::Retry };
        let record = pages.decode(pool, &place).filter(|record| pages.key_is(pool, record, key));
        let Some(record) = record else {
            let probe = self.other_key(hash, found, &place);
            pool.pmem.operation_rereads();
            return probe;
        };
        let value = self.read_value::<SUM>(&record, into);
        if !lock.read_is_valid(version)
            || !self.index().leads_to(hash, found) && !pool.pmem.skips(steps::LEADS_TO)
        {
            pool.pmem.operation_rereads();
            return Probe::Retry;
        }
        let is_sound = value.is_some_and(|value| record.verify(hash, value.summed).is_ok());
        if is_sound || pool.pmem.skips(vpage::steps::READ_CHECK) {
            return Probe::Found(Ok(()));
        }
        self.suspect(hash, found.location, &place, SUM)
    }

    /// What to make of a record that looks damaged where the index leads. In a log the word that says its
    /// lengths is stored last and not under the page's lock, so the record may have become live, or was retired,
    /// while it was read: whether it is damaged is decided while nobody can change it, by its value if `by_value`.
    #[cold]
    fn suspect(
        &self,
        hash: u64,
        location: Location,
        place: &Place,
        by_value: bool,
    ) -> Probe<Result<(), Unsound>> {
        self.pool().pmem.operation_rereads();
        let _key = self.lock_key_to_look(hash);
        if !self.index().contains_exact(hash, location) {
            return Probe::Retry;
        }
        let mut value = Vec::new();
        let is_sound = self.decode_stored(place).is_some_and(|(record, stored_hash)| {
            self.pages().read_value(self.pool(), &record, &mut value).is_some_and(|value| {
                record.verify(stored_hash, Some(value).filter(|_| by_value)).is_ok()
            })
        });
        if is_sound { Probe::Retry } else { Probe::Found(Err(Unsound { at: place.record_at })) }
    }

    /// What to make of a location under `hash` whose record has another key: 64 bits of two keys'
    /// hashes agree, or the location is an old one, or the record is damaged.
    #[cold]
    fn other_key(&self, hash: u64, found: &Found<'_>, place: &Place) -> Probe<Result<(), Unsound>> {
        let lock = self.page_lock(place);
        let Some(version) = lock.read_begin() else { return Probe::Retry };
        let is_sound = self.stored_key_is_sound(place);
        if !lock.read_is_valid(version) {
            return Probe::Retry;
        }
        if is_sound || !self.index().leads_to(hash, found) {
            return Probe::NotThis;
        }
        self.suspect(hash, found.location, place, false)
    }
}
