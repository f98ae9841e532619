//! [`Mover`]: moves the records of a block to other blocks.
//!
//! # Rules
//! 1. A record is moved under its key's lock, as an overwrite with the same value: so a crash leaves the same states as
//!    one in the middle of a put.
//! 2. It is moved only if the index leads to it: so no update is lost.
//! 3. A value is moved only if it is as it was written: a damaged one must not get a checksum that is right.

use chimera_pmem::Pmem;

use super::records::Records;
use super::space::{Client, Space};
use super::steps;
use super::write::{NewValue, Writer};
use crate::records::block_flags;
use crate::records::lengths::Lengths;
use crate::records::vpage::{Pages, Place, Record};
use crate::sync::MutexGuard;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::error::Result;

/// What was moved since the store was opened.
#[derive(Default)]
pub(super) struct Moved {
    pub(super) records: AtomicU64,
    /// Of keys and values.
    pub(super) bytes: AtomicU64,
    /// Blocks that are free now.
    pub(super) blocks_freed: AtomicU64,
}

/// What the mover keeps between blocks.
#[derive(Default)]
pub(super) struct Buffers {
    places: Vec<Place>,
    key: Vec<u8>,
}

/// Moves records, while it is the only one who does.
pub(super) struct Mover<'w, P: Pmem, V: Pages> {
    writer: &'w Writer<P, V>,
    client: MutexGuard<'w, Client>,
    moved: &'w Moved,
}

impl<'w, P: Pmem, V: Pages> Mover<'w, P, V> {
    /// Waits until nobody else moves records.
    pub(super) fn new(writer: &'w Writer<P, V>, moved: &'w Moved) -> Self {
        Self { client: writer.records().space().lock_mover(), writer, moved }
    }

    pub(super) fn records(&self) -> &'w Records<P, V> {
        self.writer.records()
    }

    fn space(&self) -> &'w Space<P, V> {
        self.records().space()
    }

    /// For counters.
    pub(super) fn number(&self) -> u32 {
        self.client.shared.number
    }

    /// Gives back the blocks that it fills.
    pub(super) fn leave(&mut self) {
        self.space().leave(&mut self.client);
    }

    /// Makes the mover the owner of a block that no session fills, and starts loading it: its records are met
    /// one after the other.
    pub(super) fn claim(&self, block: u64) -> bool {
        let is_claimed = self.space().blocks().claim(block);
        if is_claimed {
            let pool = self.records().pool();
            pool.pmem.prefetch(pool.extent(pool.map.block_at(block), pool.map.block_bytes));
        }
        is_claimed
    }

    /// Gives a block back, for sessions to fill.
    pub(super) fn leave_block(&self, block: u64) {
        self.space().supply().leave_block(block, None);
    }

    /// Units for new records that the records of a block need.
    pub(super) fn units_in_use(&self, block: u64, buffers: &mut Buffers) -> u64 {
        let (pool, pages, places) =
            (self.records().pool(), self.records().pages(), &mut buffers.places);
        places.clear();
        pages.places(pool, block, places);
        // A record with several chunks here comes once for each.
        places.dedup();
        let records = places.iter().filter_map(|place| pages.decode(pool, place));
        records.map(|record| self.units_of(&record)).sum()
    }

    /// Units of a record, with all its chunks.
    fn units_of(&self, record: &Record) -> u64 {
        let (pool, pages) = (self.records().pool(), self.records().pages());
        let spilling = pages.spilling();
        let chunks = spilling.map_or_else(Vec::new, |pages| pages.chunks_of(pool, record));
        let of_chunks: u64 = chunks.iter().map(|(_, units)| u64::from(*units)).sum();
        let Lengths { key_bytes, beside_bytes, .. } = record.lengths;
        of_chunks + u64::from(pages.units_of(key_bytes as usize, beside_bytes as usize))
    }

    /// Moves the records of a block that the mover has claimed, and marks it as free if none is left.
    pub(super) fn empty_block(&mut self, block: u64, buffers: &mut Buffers) -> Result<()> {
        let (records, Buffers { places, key }) = (self.records(), buffers);
        let (pool, pages) = (records.pool(), records.pages());
        places.clear();
        pages.places(pool, block, places);
        for place in &*places {
            if records.decode_with_key(place, key).is_some() {
                records.index().prefetch_to_change(records.core().hash.of(key));
            }
        }
        places.iter().try_for_each(|place| self.move_record(place, key))?;
        let is_empty = pages.is_empty(pool, block) && !self.space().blocks().is_damaged(block);
        if is_empty && block_flags::read(pool, block)? != block_flags::FREE {
            self.space().supply().empty(block, block_flags::FREE)?;
            self.moved.blocks_freed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes the record at a place anew, if the index leads to it.
    fn move_record(&mut self, place: &Place, key: &mut Vec<u8>) -> Result<()> {
        let (records, client) = (self.writer.records(), &mut *self.client);
        let (pool, pages) = (records.pool(), records.pages());
        let Some(before) = records.decode_with_key(place, key) else { return Ok(()) };
        // Whatever was read: only the index says whether it is a key of this place.
        let hash = records.core().hash.of(key);
        let _key = records.lock_key(hash)?;
        let is_any_moved = pool.pmem.skips(steps::MOVE_CURRENT);
        if !records.index().contains_exact(hash, place.location()) && !is_any_moved {
            return Ok(());
        }
        let Some(existing) = records.find_locked(hash, key, |_| {})? else { return Ok(()) };
        // Under the lock nothing changes any more what was decoded.
        let record = if is_any_moved { &before } else { &existing.record };
        let mut value = std::mem::take(&mut client.shared.value);
        // A damaged value must not get a checksum that is right.
        let is_sound = record.place == *place
            && pages.read_value(pool, record, &mut value).is_some_and(|value| {
                record.verify(hash, Some(value)).is_ok() || pool.pmem.skips(steps::MOVE_CHECK)
            });
        let moved = if is_sound {
            let value = NewValue { bytes: &value, unchecked: record.unchecked() };
            self.writer.overwrite(client, hash, key, value, existing)
        } else {
            Ok(())
        };
        let bytes = (key.len() + value.len()) as u64;
        client.shared.value = value;
        moved?;
        if is_sound {
            self.moved.records.fetch_add(1, Ordering::Relaxed);
            self.moved.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}
