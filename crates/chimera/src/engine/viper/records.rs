//! [`Records`]: the records of a store and the index that leads to them. Finds the record of a key under the key's lock.
//!
//! # Rules
//! 1. Whoever changes or removes what the index has of a key holds the key's lock.
//! 2. A record that was found under its key's lock is the key's, and stays as it is until the lock is let go.
//! 3. A record is an answer only if its key and version match their checksum.

use chimera_pmem::Pmem;

use super::space::Space;
use crate::engine::Core;
use crate::engine::shared::{KeyGuard, KeyLocks};
use crate::index::volatile::extendible_hash::{ExtendibleHash, Found, Glance};
use crate::index::{OutOfSpace, Probe};
use crate::pool::Pool;
use crate::records::vpage::{Pages, Place, Record};
use crate::sync::VersionLock;
use crate::types::error::{Error, Result};
use crate::types::totals::Totals;
use crate::types::verify_reads::VerifyReads;

/// The records of a store.
pub(super) struct Records<P: Pmem, V: Pages> {
    space: Space<P, V>,
    index: ExtendibleHash,
    keys: KeyLocks,
    /// Whether gets verify the sums of values: never where there are none.
    verify_reads: VerifyReads,
}

/// A record that was found under its key's lock.
#[derive(Clone, Copy)]
pub(super) struct Existing<'a> {
    pub(super) found: Found<'a>,
    pub(super) record: Record,
}

/// What a reader found wrong with a record.
pub(super) struct Unsound {
    pub(super) at: u64,
}

impl Unsound {
    #[cold]
    pub(super) fn into_error(self) -> Error {
        Error::corrupted("a record does not match its checksum", self.at)
    }
}

impl<P: Pmem, V: Pages> Records<P, V> {
    /// The records in `space`, of which an empty index says nothing yet.
    pub(super) fn new(space: Space<P, V>, index: ExtendibleHash) -> Self {
        let core = space.core();
        let has_sums = space.pages().is_checked();
        Self {
            keys: KeyLocks::new(core.environment().clone()),
            verify_reads: if has_sums { core.verify_reads } else { VerifyReads::Never },
            index,
            space,
        }
    }

    #[inline(always)]
    pub(super) fn core(&self) -> &Core<P> {
        self.space.core()
    }

    #[inline(always)]
    pub(super) fn pool(&self) -> &Pool<P> {
        &self.core().pool
    }

    #[inline(always)]
    pub(super) fn pages(&self) -> &V {
        self.space.pages()
    }

    #[inline(always)]
    pub(super) fn space(&self) -> &Space<P, V> {
        &self.space
    }

    #[inline(always)]
    pub(super) fn index(&self) -> &ExtendibleHash {
        &self.index
    }

    /// Whether gets verify the sums of values.
    #[inline(always)]
    pub(super) fn verify_reads(&self) -> VerifyReads {
        self.verify_reads
    }

    /// Bytes of DRAM beside the index.
    pub(super) fn table_bytes(&self) -> u64 {
        self.space.blocks().bytes() + self.keys.bytes()
    }

    /// What the store holds, when nobody changes it.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.index.for_each(|hash, location| totals.add(hash, location.raw()));
        totals
    }

    /// Locks the keys of this hash for a write, of a batch or of none.
    ///
    /// # Errors
    /// When writes are refused.
    #[inline(always)]
    pub(super) fn lock_key_to_write(&self, hash: u64, batch: u64) -> Result<KeyGuard<'_>> {
        self.keys.lock_to_write(hash, &self.core().poison, batch)
    }

    /// Waits until whoever holds the lock of the keys of this hash has let go of it.
    pub(super) fn pass_key(&self, hash: u64) {
        self.keys.pass(hash, &self.core().poison);
    }

    /// Locks the keys of this hash, to move a record.
    ///
    /// # Errors
    /// When writes are refused.
    #[inline(always)]
    pub(super) fn lock_key(&self, hash: u64) -> Result<KeyGuard<'_>> {
        self.keys.lock(hash, &self.core().poison)
    }

    /// Locks the keys of this hash, also when writes are refused.
    #[inline(always)]
    pub(super) fn lock_key_to_look(&self, hash: u64) -> KeyGuard<'_> {
        self.keys.lock_to_look(hash, &self.core().poison)
    }

    #[inline(always)]
    pub(super) fn page_lock(&self, place: &Place) -> &VersionLock {
        self.space.supply().page_lock(place)
    }

    /// Starts loading what retiring the record at `place` touches.
    #[inline(always)]
    pub(super) fn prefetch_to_retire(&self, place: &Place) {
        self.pages().prefetch_retire(self.pool(), place);
        self.space.blocks().prefetch(place.block);
    }

    // ---- of any key ----------------------------------------------------------------------------

    /// The record at `place`; its key, whichever that is, in `key`.
    pub(super) fn decode_with_key(&self, place: &Place, key: &mut Vec<u8>) -> Option<Record> {
        let record = self.pages().decode(self.pool(), place)?;
        self.pages().read_key(self.pool(), &record, key);
        Some(record)
    }

    /// The record at `place`, with the hash of its key, whichever that is.
    #[cold]
    pub(super) fn decode_stored(&self, place: &Place) -> Option<(Record, u64)> {
        let mut key = Vec::new();
        let record = self.decode_with_key(place, &mut key)?;
        Some((record, self.core().hash.of(&key)))
    }

    /// Whether the key and version stored at `place`, whichever they are, match their checksum.
    #[cold]
    pub(super) fn stored_key_is_sound(&self, place: &Place) -> bool {
        let stored = self.decode_stored(place);
        stored.is_some_and(|(record, stored_hash)| record.verify(stored_hash, None).is_ok())
    }

    // ---- of a key whose lock the caller holds --------------------------------------------------

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
            let place = self.pages().place_of(found.location);
            self.pool().pmem.prefetch(self.pages().head(self.pool(), &place, key.len()));
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
                let (pool, pages) = (self.pool(), self.pages());
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
        let (pool, pages) = (self.pool(), self.pages());
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

#[cold]
pub(super) fn no_index_memory(_: OutOfSpace) -> Error {
    Error::no_memory("its index")
}
