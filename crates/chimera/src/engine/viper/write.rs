//! Inserts, overwrites and deletes.
//!
//! # What a crash leaves
//! - Before the commit word (the word of the bitset, or the lengths) is durable, the slot is free and the log ends where it
//!   did. An early eviction of the word makes no difference: the word is stored after the fence of the record. The same
//!   word may hold bits that other sessions have cleared and not fenced. Each of these changes is valid alone.
//! - Between the commit and the retirement of the old record both are live. When a record becomes live, its version is
//!   higher than that of every live record of its key, whatever the clocks of the sessions say. Recovery keeps it, and
//!   retires the other one durably before the store serves anybody. So a third record never meets a forgotten first one.
//! - In the published layout there are no versions. The record at the higher place stays, which may be the old one. Its
//!   page is locked until the old record is durably retired, so no reader has seen the new record by then.
//! - A delete clears the commit word before the index forgets the key. A reader that finds the entry in between returns a
//!   value that was right when its read began.

use chimera_pmem::{Extent, Operation, Pmem};

use super::read::Existing;
use super::{Client, Viper, no_index_memory, steps};
use crate::engine::KeyChange;
use crate::index::volatile::extendible_hash::Glance;
use crate::pool::Location;
use crate::records::header::RecordHeader;
use crate::records::lengths::DESCRIPTOR_BYTES;
use crate::records::unchecked_word::UncheckedWord;
use crate::records::vpage::{Abandoned, LogPages, Pages, Place, Stored, sites};
use crate::sync::atomic::Ordering;
use crate::types::error::{Error, Result};

/// A value to be written.
#[derive(Clone, Copy)]
pub(super) struct NewValue<'a> {
    pub(super) bytes: &'a [u8],
    /// The word that its checksum leaves out.
    pub(super) unchecked: UncheckedWord,
}

impl<'a> NewValue<'a> {
    /// All of the value is in its checksum.
    #[inline(always)]
    pub(super) fn checked(bytes: &'a [u8]) -> Self {
        Self { bytes, unchecked: UncheckedWord::NONE }
    }

    /// The value as it is stored: `beside` its key, and in `chunks`.
    #[inline(always)]
    pub(super) fn stored(self, beside: &'a [u8], chunks: &'a [Extent]) -> Stored<'a> {
        Stored { value: self.bytes, beside, chunks, unchecked: self.unchecked }
    }
}

impl<P: Pmem, V: Pages> Viper<P, V> {
    /// Stores `value` under `key`; tells whether the key is new.
    #[inline]
    pub(crate) fn put(&self, client: &mut Client, key: &[u8], value: &[u8]) -> Result<bool> {
        self.pages.check_key(key)?;
        self.pages.check_value(value)?;
        // Before a block is looked for: where nobody may write, none may be made ready.
        self.core.poison.check()?;
        let booked = self.core.book(Operation::Insert, client.shared.number);
        let hash = self.core.hash.of(key);
        self.index.prefetch_to_change(hash);
        // A block, if one is needed, before the lock: others need not wait for it.
        let spilling = self.spilling(client, key, value);
        client.place(self, key.len(), beside_bytes(spilling, value))?;
        let _key = self.keys.lock(hash, &self.core.poison)?;
        self.index.prepare_insert().map_err(no_index_memory)?;
        let is_new = self.write(client, hash, key, NewValue::checked(value), None)?;
        if !is_new {
            booked.is(Operation::Overwrite);
        }
        Ok(is_new)
    }

    /// Writes a record of `key`, whose lock the caller holds, in place of the old one, if there is one:
    /// `known` when the caller has found it already. Tells whether there was none.
    ///
    /// The record is made and flushed before the old one is looked for, so that the misses of looking
    /// overlap with the fence. That is why a version comes from the session's clock.
    ///
    /// # Durability
    /// The new record is durable on return, and the old one is durably gone.
    ///
    /// # Cost
    /// The lines of a slot, 1 for its bit, 2 fences; in a log the lines of the record and of the zero behind
    /// it, 2 fences, or 1 where that is one line. 1 line and 1 fence more for an old record, and as many lines
    /// and fences as the header takes where that has a higher version than the session's clock said.
    #[inline(always)]
    pub(super) fn write(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        value: NewValue<'_>,
        known: Option<Existing<'_>>,
    ) -> Result<bool> {
        let spilling = self.spilling(client, key, value.bytes);
        let beside_bytes = beside_bytes(spilling, value.bytes);
        let place = client.place(self, key.len(), beside_bytes)?;
        let written = match spilling {
            None => {
                let stored = value.stored(value.bytes, &[]);
                self.write_at(client, &place, hash, key, &stored, known)
            }
            Some(_) => self.write_in_chunks(client, &place, value, |client, stored| {
                self.write_at(client, &place, hash, key, stored, known)
            }),
        };
        if let Err(error) = &written {
            client.abandon(&self.pages, key.len(), beside_bytes, Abandoned::Begun);
            let fits_page = spilling.is_some_and(|pages| !pages.is_spilled(value.bytes.len()));
            if fits_page && matches!(error, Error::PoolFull { .. }) {
                return self.write_whole(client, hash, key, value, known);
            }
        }
        written
    }

    /// As [`write`](Self::write) where there was no block for a chunk: the value lies beside its key,
    /// and those of the session that fit do so from now on.
    #[cold]
    fn write_whole(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        value: NewValue<'_>,
        known: Option<Existing<'_>>,
    ) -> Result<bool> {
        client.keeps_whole = true;
        self.write(client, hash, key, value, known)
    }

    /// The pages for the chunks of this value, if the client spills it.
    #[inline(always)]
    fn spilling(&self, client: &Client, key: &[u8], value: &[u8]) -> Option<&LogPages> {
        self.pages.spilling().filter(|pages| client.spills(pages, key.len(), value.len()))
    }

    /// As [`write`](Self::write), with a key and what is stored with it at a place of the client's.
    #[inline(always)]
    pub(super) fn write_at(
        &self,
        client: &mut Client,
        place: &Place,
        hash: u64,
        key: &[u8],
        stored: &Stored<'_>,
        known: Option<Existing<'_>>,
    ) -> Result<bool> {
        let (pool, pages) = (&*self.core.pool, &self.pages);
        let mut page = Some(self.page_lock(place).lock(&*pool.environment));
        let value_checksum = pages.write_body(pool, place, key, stored);
        let version = client.tick(0)?;
        let header =
            RecordHeader::new(place.record_at, hash, version, stored.unchecked, value_checksum);
        pages.write_header(pool, place, &header);
        if pages.is_checked() {
            page = None;
        }
        let is_any_flushed = pages.flush_record(pool, place, key, stored);
        client.prefetch_next(self, key.len(), stored.beside.len());
        let glance = known.map_or_else(|| self.index.glance(hash), |old| Glance::Entry(old.found));
        if let Glance::Entry(found) = &glance {
            let old = pages.place_of(found.location);
            pool.pmem.prefetch(pages.head(pool, &old, key.len()));
            self.prefetch_to_retire(&old);
        }
        if is_any_flushed || !stored.chunks.is_empty() {
            pool.pmem.fence(sites::RECORD);
        }

        let existing = match known {
            None => self.find_glanced(hash, key, glance)?,
            known => known,
        };
        if existing.is_none() && !self.index.takes(hash) {
            return Err(Error::KeyCollisions);
        }
        if let Some(old) = &existing {
            // A damaged word would refuse to retire the old record once the new one is live.
            pages.is_live(pool, &old.record.place)?;
            if old.record.version() >= version && !pool.pmem.skips(steps::OUTBID) {
                self.outbid(client, place, hash, header, old)?;
            }
        }
        let location = place.location();
        let commit = || pages.commit(pool, place, key, stored);
        let entered = match &existing {
            None => self.insert_after(hash, key, location, commit).map(|()| true),
            Some(old) => self.index.swap_after(hash, &old.found, location, commit),
        };
        match entered {
            Ok(entered) => assert!(entered, "the entry of a key changed while the key was locked"),
            Err(damage) => {
                client.abandon(pages, key.len(), stored.beside.len(), Abandoned::Damaged);
                return Err(damage);
            }
        }
        client.consume(self, key.len(), stored.beside.len());
        if let Some(old) = &existing {
            self.core.changes.tell(key, KeyChange::Replaced);
            self.retire(old)?;
        }
        // In the published layout nothing but the place tells the two records apart after a crash:
        // until the old one is gone nobody may see the new one.
        drop(page);
        Ok(existing.is_none())
    }

    /// Enters a new key in the index, after `commit`. Tells of it before anybody finds it: a scan of whoever has found it
    /// finds it, too.
    #[inline(always)]
    fn insert_after(
        &self,
        hash: u64,
        key: &[u8],
        location: Location,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.core.changes.tell(key, KeyChange::Inserted);
        let entered = self.index.insert_after(hash, location, commit);
        entered.inspect_err(|_| self.core.changes.tell(key, KeyChange::Removed))
    }

    /// Gives the new record at `place`, which has this header, a higher version than the old one has, durably.
    #[cold]
    fn outbid(
        &self,
        client: &mut Client,
        place: &Place,
        hash: u64,
        header: RecordHeader,
        old: &Existing<'_>,
    ) -> Result<()> {
        let (pool, pages) = (&*self.core.pool, &self.pages);
        if !pages.is_checked() {
            return Ok(());
        }
        let version = client.tick(old.record.version().max(self.clock.load(Ordering::Relaxed)))?;
        let page = self.page_lock(place).lock(&*pool.environment);
        let RecordHeader { value_checksum, .. } = header;
        let unchecked = header.unchecked();
        let header = RecordHeader::new(place.record_at, hash, version, unchecked, value_checksum);
        pages.write_header(pool, place, &header);
        drop(page);
        if pages.flush_header(pool, place) {
            pool.pmem.fence(sites::RECORD);
        }
        Ok(())
    }

    /// Removes `key`; tells whether it was there.
    #[inline]
    pub(crate) fn delete(&self, client: &mut Client, key: &[u8]) -> Result<bool> {
        self.pages.check_key(key)?;
        let _booked = self.core.book(Operation::Delete, client.shared.number);
        let hash = self.core.hash.of(key);
        self.index.prefetch_to_change(hash);
        let _key = self.keys.lock(hash, &self.core.poison)?;
        let Some(old) = self.find_locked(hash, key, |place| self.prefetch_to_retire(place))? else {
            return Ok(false);
        };
        if let Some(at) = self.shadowed.get().and_then(|shadowed| shadowed.get(&hash)) {
            let what =
                "an old record of the key cannot be cleared, and would come back after a delete";
            return Err(Error::corrupted(what, *at));
        }
        let removed = self.index.remove_after(hash, &old.found, || self.retire(&old))?;
        assert!(removed, "the entry of a key changed while the key was locked");
        self.core.changes.tell(key, KeyChange::Removed);
        Ok(true)
    }

    /// Makes a record not live any more, durably: 1 line, 1 fence.
    #[inline(always)]
    fn retire(&self, old: &Existing<'_>) -> Result<()> {
        let Existing { record, .. } = old;
        let retired = |units| self.blocks.note_freed(record.place.block, units);
        // Looked up before: once the record is retired, others may use its place, and the chunks'.
        let chunks = match self.pages.spilling() {
            Some(pages) if record.lengths.is_spilled => pages.chunks_of(&self.core.pool, record),
            _ => Vec::new(),
        };
        self.pages.retire(&self.core.pool, &record.place, retired)?;
        for (block, units) in chunks {
            self.blocks.note_freed(block, units);
        }
        Ok(())
    }
}

/// Bytes beside the key of a record with this value, spilled to chunks in `spilling` if to any.
#[inline(always)]
fn beside_bytes(spilling: Option<&LogPages>, value: &[u8]) -> usize {
    if spilling.is_some() { DESCRIPTOR_BYTES } else { value.len() }
}
