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

use super::{Client, Viper, steps};
use crate::index::Probe;
use crate::index::volatile::extendible_hash::{Found, Glance};
use crate::pool::Location;
use crate::records::checksum::Summed;
use crate::records::vpage::{self, Pages, Place, Record};
use crate::sync::VersionLock;
use crate::types::error::{Error, Result};
use crate::types::verify_reads::VerifyReads;

/// Keys of a `multi_get` whose misses overlap.
const GROUP: usize = 16;

/// What a reader found wrong with a record.
pub(super) struct Unsound {
    pub(super) at: u64,
}

/// A value that was read.
struct ReadValue<'a> {
    /// With its sum, if that was asked for.
    summed: Option<Summed<'a>>,
}

impl Unsound {
    #[cold]
    pub(super) fn into_error(self) -> Error {
        Error::corrupted("a record does not match its checksum", self.at)
    }
}

impl<P: Pmem, V: Pages> Viper<P, V> {
    /// Hands the values of `keys` to `take`, with the key's number. Cache misses of up to 16 keys
    /// overlap.
    pub(super) fn read_many<K: AsRef<[u8]>>(
        &self,
        client: &mut Client,
        keys: &[K],
        mut take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for (group_number, group) in keys.chunks(GROUP).enumerate() {
            let mut hashes = [0; GROUP];
            for (hash, key) in hashes.iter_mut().zip(group) {
                *hash = self.core.hash.of(key.as_ref());
                self.index.prefetch(*hash);
            }
            for hash in &hashes[..group.len()] {
                if let Some(location) = self.index.peek(*hash) {
                    let place = self.pages.place_of(location);
                    self.core.pool.pmem.prefetch(self.pages.whole(&self.core.pool, &place));
                }
            }
            for (number, (hash, key)) in hashes.iter().zip(group).enumerate() {
                let found = self.get_hashed(client, *hash, key.as_ref())?;
                take(group_number * GROUP + number, found.then_some(&client.shared.value));
            }
        }
        Ok(())
    }

    /// Reads the value of `key` into the client's buffer, and verifies its sum if it is this get's turn. `false` when
    /// there is none.
    #[inline]
    pub(super) fn get_hashed(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        if self.verify_reads == VerifyReads::Always {
            return self.read_hashed(client, hash, key);
        }
        self.get_in_turn(client, hash, key)
    }

    /// As [`get_hashed`](Self::get_hashed), where not each get verifies the sum: apart, so that those which do stay
    /// as short as they are.
    #[inline(never)]
    fn get_in_turn(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        if self.verify_reads.is_turn(&mut client.shared.gets_left) {
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
        let _booked = self.core.book(Operation::Get, client.shared.number);
        let into = &mut client.shared.value;
        Ok(self.read_at_once::<SUM>(hash, key, into) || self.read_slowly::<SUM>(hash, key, into)?)
    }

    /// Reads the value of `key` where nothing at all is unusual: else `false`, and nothing is known. Every check
    /// is made once, on the first entry of the hash; [`read_record`](Self::read_record) says what each is for.
    #[inline(always)]
    fn read_at_once<const SUM: bool>(&self, hash: u64, key: &[u8], into: &mut Vec<u8>) -> bool {
        let (pool, pages) = (&*self.core.pool, &self.pages);
        let Some(found) = self.index.first(hash) else { return false };
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
            && self.index.is_there(hash, &found)
            && record.verify(hash, value.summed).is_ok()
    }

    /// Reads the value of a record, with its sum if that is asked for; none when a part of it cannot be found.
    #[inline(always)]
    fn read_value<'v, const SUM: bool>(
        &self,
        record: &Record,
        into: &'v mut Vec<u8>,
    ) -> Option<ReadValue<'v>> {
        let pool = &*self.core.pool;
        if SUM {
            let summed = self.pages.read_value(pool, record, into)?;
            return Some(ReadValue { summed: Some(summed) });
        }
        self.pages.copy_value(pool, record, into).then_some(ReadValue { summed: None })
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
        self.core.pool.pmem.operation_rereads();
        let found = self.index.find(hash, |found| self.read_record::<SUM>(hash, &found, key, into));
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
        let (pool, pages) = (&*self.core.pool, &self.pages);
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
            || !self.index.leads_to(hash, found) && !pool.pmem.skips(steps::LEADS_TO)
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
        self.core.pool.pmem.operation_rereads();
        let _key = self.keys.lock_to_look(hash, &self.core.poison);
        if !self.index.contains_exact(hash, location) {
            return Probe::Retry;
        }
        let mut value = Vec::new();
        let is_sound = self.decode_stored(place).is_some_and(|(record, stored_hash)| {
            self.pages.read_value(&self.core.pool, &record, &mut value).is_some_and(|value| {
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
        if is_sound || !self.index.leads_to(hash, found) {
            return Probe::NotThis;
        }
        self.suspect(hash, found.location, place, false)
    }

    /// The record at `place`, with the hash of its key, whichever that is.
    #[cold]
    fn decode_stored(&self, place: &Place) -> Option<(Record, u64)> {
        let mut key = Vec::new();
        let record = self.decode_with_key(place, &mut key)?;
        Some((record, self.core.hash.of(&key)))
    }

    /// The record at `place`; its key, whichever that is, in `key`.
    pub(super) fn decode_with_key(&self, place: &Place, key: &mut Vec<u8>) -> Option<Record> {
        let record = self.pages.decode(&self.core.pool, place)?;
        self.pages.read_key(&self.core.pool, &record, key);
        Some(record)
    }

    /// Whether the key and version stored at `place`, whichever they are, match their checksum.
    #[cold]
    fn stored_key_is_sound(&self, place: &Place) -> bool {
        let stored = self.decode_stored(place);
        stored.is_some_and(|(record, stored_hash)| record.verify(stored_hash, None).is_ok())
    }

    /// Starts loading what retiring the record at `place` touches.
    #[inline(always)]
    pub(super) fn prefetch_to_retire(&self, place: &Place) {
        self.pages.prefetch_retire(&self.core.pool, place);
        self.blocks.prefetch(place.block);
    }

    #[inline(always)]
    pub(super) fn page_lock(&self, place: &Place) -> &VersionLock {
        self.blocks.page_lock(self.pages.page_number(place.block, place.page))
    }

    /// Finds the record of `key`, whose lock the caller holds. `prefetch` is told of its place, to
    /// start loading what the caller will change.
    #[inline(always)]
    pub(super) fn find_locked(
        &self,
        hash: u64,
        key: &[u8],
        prefetch: impl Fn(&Place),
    ) -> Result<Option<Existing<'_>>> {
        // The key is expected to be there.
        let glance = self.index.first(hash).map_or_else(|| self.index.glance(hash), Glance::Entry);
        if let Glance::Entry(found) = &glance {
            let place = self.pages.place_of(found.location);
            self.core.pool.pmem.prefetch(self.pages.head(&self.core.pool, &place, key.len()));
            prefetch(&place);
        }
        self.find_glanced(hash, key, glance)
    }

    /// As [`find_locked`](Self::find_locked), after a look at the index under the same lock.
    ///
    /// Nobody enters or retires a record of the key meanwhile. So if the record at an entry of its hash is one of
    /// the key and the entry is still there, it is the record; and where there was no entry there is no record.
    #[inline(always)]
    pub(super) fn find_glanced<'a>(
        &'a self,
        hash: u64,
        key: &[u8],
        glance: Glance<'a>,
    ) -> Result<Option<Existing<'a>>> {
        match glance {
            Glance::Nothing => return Ok(None),
            Glance::Entry(found) => {
                let (pool, pages) = (&*self.core.pool, &self.pages);
                let place = pages.place_of(found.location);
                if let Some(record) = pages.decode(pool, &place)
                    && pages.key_is(pool, &record, key)
                    // A damaged version would decide wrongly after a crash.
                    && record.verify(hash, None).is_ok()
                    && self.index.leads_to(hash, &found)
                {
                    return Ok(Some(Existing { found, record }));
                }
            }
            Glance::Unclear => {}
        }
        self.find_slowly(hash, key)
    }

    /// As [`find_locked`](Self::find_locked), where the first entry of the hash is not the key's, or may be damaged.
    #[cold]
    fn find_slowly(&self, hash: u64, key: &[u8]) -> Result<Option<Existing<'_>>> {
        let (pool, pages) = (&*self.core.pool, &self.pages);
        let mut existing = None;
        let found = self.index.find(hash, |found| {
            let place = pages.place_of(found.location);
            if let Some(record) = pages.decode(pool, &place)
                && pages.key_is(pool, &record, key)
            {
                if record.verify(hash, None).is_ok() {
                    existing = Some(Existing { found, record });
                    return Probe::Found(Ok(()));
                }
            } else if self.stored_key_is_sound(&place) {
                return Probe::NotThis;
            }
            if self.index.leads_to(hash, &found) {
                return Probe::Found(Err(Unsound { at: place.record_at }));
            }
            // An old location, or one of another hash, read while the entry was moved.
            Probe::NotThis
        });
        found.transpose().map_err(Unsound::into_error)?;
        Ok(existing)
    }
}

/// A record that was found under its key's lock.
#[derive(Clone, Copy)]
pub(super) struct Existing<'a> {
    pub(super) found: Found<'a>,
    pub(super) record: Record,
}
