//! [`Writer`]: inserts, overwrites and deletes. docs/DURABILITY.md has what a crash in each step leaves.
//!
//! # Rules
//! 1. The place of a record is reserved once, and before the key's lock where the caller has none yet: others need not wait
//!    while a block is taken.
//! 2. A record is written under its key's lock, and is durable before it is live.
//! 3. A value that is spilled is written to chunks first. Their blocks are given back when the record is live, or will never
//!    be.
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
//!
//! # Values that are spilled
//! A chunk is live while its record is. It names the record, and both have the same random name, so a record that comes to
//! lie at that place later does not make it live. A chunk's lengths are stored with the rest of the chunk, so a crash may leave
//! it torn. That is never taken for damage: the lengths are one word, which is there or zero, and a chunk without a live
//! record is not read. The pages of chunks are sealed after the record's fence, because only that makes the chunks durable. If
//! the record is not written, a fence of its own comes first.

use std::collections::BTreeMap;

use chimera_pmem::{Extent, Operation, Pmem};

use super::records::{Existing, Records, Unsound, no_index_memory};
use super::space::{Client, Reserved};
use super::steps;
use crate::engine::{Core, KeyChange};
use crate::index::volatile::extendible_hash::Glance;
use crate::pool::Location;
use crate::records::checksum::Summed;
use crate::records::chunks::{Chunk, Descriptor};
use crate::records::header::RecordHeader;
use crate::records::unchecked_word::UncheckedWord;
use crate::records::vpage::{Abandoned, LogPages, Pages, Place, Record, Stored, sites};
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

/// A block that was in use before is taken for chunks when one in so many of its bytes is free.
const REUSED_PART: u32 = 4;

/// A value to be written.
#[derive(Clone, Copy)]
pub(super) struct NewValue<'a> {
    pub(super) bytes: &'a [u8],
    /// The word that its checksum leaves out.
    pub(super) unchecked: UncheckedWord,
}

impl<'a> NewValue<'a> {
    /// The value as it is stored: `beside` its key, and in `chunks`.
    #[inline(always)]
    fn stored(self, beside: &'a [u8], chunks: &'a [Extent]) -> Stored<'a> {
        Stored { value: self.bytes, beside, chunks, unchecked: self.unchecked }
    }
}

/// Writes records, and removes them.
pub(super) struct Writer<P: Pmem, V: Pages> {
    records: Records<P, V>,
    /// Hashes of keys that have an old record in a damaged word, and where: salvage could not clear it.
    shadowed: BTreeMap<u64, u64>,
    /// The number that each value has, if each has one.
    counter: UncheckedWord,
}

impl<P: Pmem, V: Pages> Writer<P, V> {
    pub(super) fn new(
        records: Records<P, V>,
        shadowed: BTreeMap<u64, u64>,
        counter: UncheckedWord,
    ) -> Self {
        Self { records, shadowed, counter }
    }

    /// A value of which the sum leaves out the number that each has.
    #[inline(always)]
    pub(super) fn new_value<'a>(&self, bytes: &'a [u8]) -> NewValue<'a> {
        NewValue { bytes, unchecked: self.counter }
    }

    /// The word that the sum of a new value leaves out: that of the number that each value has, else `changed`.
    pub(super) fn unchecked(&self, changed: UncheckedWord) -> UncheckedWord {
        if self.counter == UncheckedWord::NONE { changed } else { self.counter }
    }

    #[inline(always)]
    pub(super) fn records(&self) -> &Records<P, V> {
        &self.records
    }

    #[inline(always)]
    fn core(&self) -> &Core<P> {
        self.records.core()
    }

    /// Stores `value` under `key`; tells whether the key is new.
    #[inline]
    pub(super) fn put(&self, client: &mut Client, key: &[u8], value: NewValue<'_>) -> Result<bool> {
        let (records, core) = (&self.records, self.core());
        // Before a block is looked for: where nobody may write, none may be made ready.
        core.poison.check_space(client.shared.batch, &**core.environment())?;
        let booked = core.book(Operation::Insert, client.shared.number);
        let hash = core.hash.of(key);
        records.index().prefetch_to_change(hash);
        let reserved = records.space().reserve(client, key.len(), value.bytes.len())?;
        let _key = records.lock_key_to_write(hash, client.shared.batch)?;
        records.index().prepare_insert().map_err(no_index_memory)?;
        let is_new = self.write(client, reserved, hash, key, value, None)?;
        if !is_new {
            booked.is(Operation::Overwrite);
        }
        Ok(is_new)
    }

    /// Stores `value` under `key`, which has this hash, if there is no such key; tells whether there was none.
    pub(super) fn insert(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let (records, core) = (&self.records, self.core());
        core.poison.check_space(client.shared.batch, &**core.environment())?;
        let _booked = core.book(Operation::Insert, client.shared.number);
        records.index().prefetch_to_change(hash);
        let reserved = match records.space().reserve(client, key.len(), value.len()) {
            // A key that is there needs no room.
            Err(Error::PoolFull { .. }) if self.is_there(client, hash, key)? => return Ok(false),
            reserved => reserved?,
        };
        let _key = records.lock_key_to_write(hash, client.shared.batch)?;
        // What was reserved is the place of the session's next record.
        if records.find_locked(hash, key, |_| {})?.is_some() {
            return Ok(false);
        }
        records.index().prepare_insert().map_err(no_index_memory)?;
        self.write(client, reserved, hash, key, self.new_value(value), None)
    }

    #[cold]
    fn is_there(&self, client: &Client, hash: u64, key: &[u8]) -> Result<bool> {
        let _key = self.records.lock_key_to_write(hash, client.shared.batch)?;
        Ok(self.records.find_locked(hash, key, |_| {})?.is_some())
    }

    /// Writes a record of `key`, whose lock the caller holds, in place of the one that it has found.
    ///
    /// # Durability
    /// As [`write`](Self::write).
    ///
    /// # Cost
    /// As [`write`](Self::write), and a block where one is needed.
    #[inline(always)]
    pub(super) fn overwrite(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        value: NewValue<'_>,
        old: Existing<'_>,
    ) -> Result<()> {
        let reserved = self.records.space().reserve(client, key.len(), value.bytes.len())?;
        self.write(client, reserved, hash, key, value, Some(old)).map(drop)
    }

    /// Writes a record of `key`, whose lock the caller holds, to the place that was reserved for it, in place of the old
    /// one, if there is one: `known` when the caller has found it already. Tells whether there was none.
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
    fn write(
        &self,
        client: &mut Client,
        reserved: Reserved,
        hash: u64,
        key: &[u8],
        value: NewValue<'_>,
        known: Option<Existing<'_>>,
    ) -> Result<bool> {
        let Reserved { place, beside_bytes, is_spilled } = &reserved;
        let spilling = self.records.pages().spilling().filter(|_| *is_spilled);
        let written = match spilling {
            None => {
                let stored = value.stored(value.bytes, &[]);
                self.write_at(client, place, hash, key, &stored, known)
            }
            Some(_) => self.write_spilled(client, place, hash, key, value, known),
        };
        if let Err(error) = &written {
            let space = self.records.space();
            space.abandon(client, key.len(), *beside_bytes, Abandoned::Begun);
            let fits_page = spilling.is_some_and(|pages| !pages.is_spilled(value.bytes.len()));
            if fits_page && matches!(error, Error::PoolFull { .. }) {
                return self.write_whole(client, hash, key, value, known);
            }
        }
        written
    }

    /// As [`write`](Self::write) where there was no block for a chunk: the value lies beside its key. Those of the session that
    /// fit do so from now on, but for large ones.
    #[cold]
    fn write_whole(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        value: NewValue<'_>,
        known: Option<Existing<'_>>,
    ) -> Result<bool> {
        let space = self.records.space();
        let spilling = space.pages().spilling();
        if !spilling.is_some_and(|pages| pages.is_large(value.bytes.len())) {
            client.keep_whole();
        }
        client.keep_large_whole(true);
        let reserved = space.reserve(client, key.len(), value.bytes.len());
        let written =
            reserved.and_then(|reserved| self.write(client, reserved, hash, key, value, known));
        client.keep_large_whole(false);
        written
    }

    /// As [`write_at`](Self::write_at), with the value in chunks, whose descriptor lies beside the key.
    ///
    /// # Cost
    /// The lines of the value and up to two more for each of its chunks, beside what a short record costs;
    /// no fence more but for the blocks that are taken and left.
    #[cold]
    fn write_spilled(
        &self,
        client: &mut Client,
        place: &Place,
        hash: u64,
        key: &[u8],
        value: NewValue<'_>,
        known: Option<Existing<'_>>,
    ) -> Result<bool> {
        let (pmem, mut chunks) = (&self.core().pool.pmem, Vec::new());
        if !pmem.skips(steps::HOLD_BLOCKS) {
            client.hold_blocks();
        }
        let descriptor = self.write_chunks(client, place, value.bytes, &mut chunks);
        let written = descriptor.and_then(|descriptor| {
            let beside = descriptor.to_bytes();
            self.write_at(client, place, hash, key, &value.stored(&beside, &chunks), known)
        });
        if written.is_err() && !chunks.is_empty() {
            // The record that would have waited for them was not written, and their pages may be sealed now.
            pmem.fence(sites::SEAL);
        }
        self.records.space().release_blocks(client);
        written
    }

    /// Writes and flushes the chunks of a value, the last one first, so that each can tell where the next
    /// one is. Returns the descriptor of the record at `place`.
    fn write_chunks(
        &self,
        client: &mut Client,
        place: &Place,
        value: &[u8],
        chunks: &mut Vec<Extent>,
    ) -> Result<Descriptor> {
        let (pool, space) = (self.records.pool(), self.records.space());
        let (record, name) = (place.location(), pool.environment.random_u64());
        let need = space.pages().units_per_block() / REUSED_PART;
        let (mut next, mut end, mut position) = (None, value.len(), 0);
        while end > 0 {
            let point = space.point_for_chunk(client, need)?;
            // Each begins at a whole word of the value.
            let start = end.saturating_sub(LogPages::room_for_chunk(point)).next_multiple_of(8);
            let chunk = Chunk { record, name, next, position, bytes: &value[start..end] };
            // Under a journal nothing has cleared the block. Who still reads a record that was there, without its sum, must not take
            // half of it and half of the chunk for its value.
            let place = LogPages::next_place(point);
            let page = || space.supply().page_lock(&place).lock(&*pool.environment);
            let _page = pool.pmem.is_journaled().then(page);
            let (location, all) = LogPages::write_chunk(pool, point, &chunk);
            chunks.push(all);
            (next, end, position) = (Some(location), start, position + 1);
        }
        Ok(Descriptor { first: next.map_or(0, Location::raw), name, bytes: value.len() as u32 })
    }

    /// As [`write`](Self::write), with a key and what is stored with it at a place of the client's.
    #[inline(always)]
    fn write_at(
        &self,
        client: &mut Client,
        place: &Place,
        hash: u64,
        key: &[u8],
        stored: &Stored<'_>,
        known: Option<Existing<'_>>,
    ) -> Result<bool> {
        let (records, space) = (&self.records, self.records.space());
        let (pool, pages, index) = (records.pool(), records.pages(), records.index());
        let mut page = Some(records.page_lock(place).lock(&*pool.environment));
        let value_checksum = pages.write_body(pool, place, key, stored);
        let version = client.tick(0)?;
        let header =
            RecordHeader::new(place.record_at, hash, version, stored.unchecked, value_checksum);
        pages.write_header(pool, place, &header);
        if pages.is_checked() {
            page = None;
        }
        let is_any_flushed = pages.flush_record(pool, place, key, stored);
        space.prefetch_next(client, key.len(), stored.beside.len());
        let glance = known.map_or_else(|| index.glance(hash), |old| Glance::Entry(old.found));
        if let Glance::Entry(found) = &glance {
            let old = pages.place_of(found.location);
            pool.pmem.prefetch(pages.head(pool, &old, key.len()));
            records.prefetch_to_retire(&old);
        }
        if is_any_flushed || !stored.chunks.is_empty() {
            pool.pmem.fence(sites::RECORD);
        }

        let existing = match known {
            None => records.find_glanced(hash, key, glance)?,
            known => known,
        };
        if existing.is_none() && !index.takes(hash) {
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
            Some(old) => index.swap_after(hash, &old.found, location, commit),
        };
        match entered {
            Ok(entered) => assert!(entered, "the entry of a key changed while the key was locked"),
            Err(damage) => {
                space.abandon(client, key.len(), stored.beside.len(), Abandoned::Damaged);
                return Err(damage);
            }
        }
        space.consume(client, key.len(), stored.beside.len());
        if let Some(old) = &existing {
            self.core().changes.tell(key, KeyChange::Replaced);
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
        self.core().changes.tell(key, KeyChange::Inserted);
        let entered = self.records.index().insert_after(hash, location, commit);
        entered.inspect_err(|_| self.core().changes.tell(key, KeyChange::Removed))
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
        let (records, pool, pages) = (&self.records, self.records.pool(), self.records.pages());
        if !pages.is_checked() {
            return Ok(());
        }
        let met = old.record.version().max(records.space().newest_version());
        let version = client.tick(met)?;
        let page = records.page_lock(place).lock(&*pool.environment);
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
    pub(super) fn delete(&self, client: &mut Client, key: &[u8]) -> Result<bool> {
        let (records, core) = (&self.records, self.core());
        let _booked = core.book(Operation::Delete, client.shared.number);
        let hash = core.hash.of(key);
        records.index().prefetch_to_change(hash);
        let _key = records.lock_key_to_write(hash, client.shared.batch)?;
        let prefetch = |place: &Place| records.prefetch_to_retire(place);
        let Some(old) = records.find_locked(hash, key, prefetch)? else { return Ok(false) };
        self.remove(hash, key, &old)?;
        Ok(true)
    }

    /// Removes `key`, which has this hash, if its value is `expected`, which is verified if `verify`.
    pub(super) fn remove_if(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        verify: bool,
    ) -> Result<Swap> {
        let (records, pool) = (&self.records, self.records.pool());
        let _booked = self.core().book(Operation::Delete, client.shared.number);
        records.index().prefetch_to_change(hash);
        let _key = records.lock_key_to_write(hash, client.shared.batch)?;
        let prefetch = |place: &Place| pool.pmem.prefetch(records.pages().whole(pool, place));
        let Some(old) = records.find_locked(hash, key, prefetch)? else { return Ok(Swap::Missing) };
        let Existing { record, .. } = &old;
        if !records.pages().value_is(pool, record, expected) {
            return Ok(Swap::Different);
        }
        if verify && record.verify(hash, Some(Summed::of(expected))).is_err() {
            return Err(Unsound { at: record.place.record_at }.into_error());
        }
        self.remove(hash, key, &old)?;
        Ok(Swap::Swapped)
    }

    /// Removes the record that `key` has, whose lock the caller holds.
    #[inline(always)]
    fn remove(&self, hash: u64, key: &[u8], old: &Existing<'_>) -> Result<()> {
        let (records, core) = (&self.records, self.core());
        if let Some(at) = self.shadowed.get(&hash) {
            let what =
                "an old record of the key cannot be cleared, and would come back after a delete";
            return Err(Error::corrupted(what, *at));
        }
        let removed = records.index().remove_after(hash, &old.found, || self.retire(old))?;
        assert!(removed, "the entry of a key changed while the key was locked");
        core.changes.tell(key, KeyChange::Removed);
        Ok(())
    }

    /// Makes a record not live any more, durably: 1 line, 1 fence.
    #[inline(always)]
    fn retire(&self, old: &Existing<'_>) -> Result<()> {
        let Existing { record, .. } = old;
        let (pool, pages) = (self.records.pool(), self.records.pages());
        let blocks = self.records.space().blocks();
        match pages.spilling() {
            Some(pages) if record.lengths.is_spilled => self.retire_spilled(pages, record),
            _ => pages.retire(pool, &record.place, |units| {
                blocks.note_freed(record.place.block, units);
            }),
        }
    }

    /// As [`retire`](Self::retire), for a record whose value is in chunks.
    #[cold]
    fn retire_spilled(&self, pages: &LogPages, record: &Record) -> Result<()> {
        let (pool, blocks) = (self.records.pool(), self.records.space().blocks());
        // Looked up before: once the record is retired, others may use its place, and the chunks'.
        let chunks = pages.chunks_of(pool, record);
        let retired = |units| blocks.note_freed(record.place.block, units);
        self.records.pages().retire(pool, &record.place, retired)?;
        for (block, units) in chunks {
            blocks.note_freed(block, units);
        }
        Ok(())
    }
}
