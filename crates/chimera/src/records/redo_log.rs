//! [`RedoLog`]: a write-ahead log of changes that can be made again. For HiKV-wal (section 4.5 of ATC'17).
//!
//! ```text
//! run       64 bytes of the pool | area | area | ..
//! area      one record, and what is left of longer ones
//! record    [lengths, live for a put and not for a delete: 8]
//!           [check of place, sequence, key: 4 | check of place, value: 4] [sequence: 8] key value
//! ```
//! Each area has the changes of some keys, by their hash, one after the other: who changes one of them holds the area from
//! before the record is written until the change is made. So at most one change of an area is under way, and a record takes
//! the place of the one before, whose change is made and durable.
//!
//! # Protocol
//! - **write**: the record; flush, *fence*. Then the caller makes the change, and lets go of the area.
//! - **withdraw**, where the change could not be made: zero to the word of the checks; flush, *fence*. Not to that of the
//!   lengths: the next record may have the same one, and become durable up to there.
//! - **recovery**: what an area has is read. A record that is not whole was never complete, so its change had not begun. What
//!   is whole is made again, durably. Then all areas are emptied: zero to the words of their checks; flush, one *fence*.
//!
//! # Invariants
//! 1. A change begins when its record is durable.
//! 2. The record of an area is that of the last change of its keys that has begun, unless that was withdrawn. So making it
//!    again leaves every key as it is, or completes what a crash has cut off.
//!
//! An area of a new log has whatever its blocks had before. No record was ever there, because the run of a log is never
//! freed, and bytes of another kind do not pass for one.
//!
//! The log knows nothing of any index or heap. A damaged record of it is as good as none: see `engine/hikv/log.rs`.

use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Pmem};

use super::checksum::{Summed, value_checksum};
use super::header::{RecordHeader, VERSION_MAX};
use super::lengths::{BESIDE_BYTES_MAX, Entry, HEADER_AT, KEY_AT, Lengths, beside_at, span};
use super::limits::Limits;
use super::unchecked_word::UncheckedWord;
use crate::pool::Pool;
use crate::pool::runs::Run;
use crate::sync::{Mutex, MutexGuard, lock_relaxing};

/// Where the log stores, flushes and fences.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// A record, before its change begins.
        RECORD = "redo.record";
        /// The checks of a record whose change could not be made, or was made again.
        CLEAR = "redo.clear";
    }
}

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The checks of a record that recovery reads.
        READ_CHECK = "redo.step.read_check";
    }
}

/// Fewest and most bytes of an area, a multiple of a cache line.
pub(crate) const AREA_BYTES_MIN: u32 = 128;
pub(crate) const AREA_BYTES_MAX: u32 = 64 << 10;

/// Changes that can be made again.
pub(crate) struct RedoLog<P: Pmem> {
    pool: Arc<Pool<P>>,
    run: Run,
    area_bytes: u64,
    /// For each area the records that were written since the store was opened.
    areas: Box<[Mutex<u64>]>,
}

/// A change whose record is durable. Others of its area wait until it is dropped.
pub(crate) struct Logged<'a, P: Pmem> {
    log: &'a RedoLog<P>,
    at: u64,
    _area: MutexGuard<'a, u64>,
}

/// A change that recovery found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundChange {
    pub(crate) hash: u64,
    pub(crate) key: Vec<u8>,
    /// None for a delete.
    pub(crate) value: Option<Vec<u8>>,
}

/// Blocks of a run with so many areas.
pub(crate) fn run_blocks(areas: u32, area_bytes: u32, block_bytes: u64) -> u64 {
    (u64::from(areas) * u64::from(area_bytes) + CACHE_LINE).div_ceil(block_bytes)
}

impl<P: Pmem> RedoLog<P> {
    /// The log in a run of [`run_blocks`] blocks.
    pub(crate) fn new(pool: Arc<Pool<P>>, run: Run, areas: u32, area_bytes: u32) -> Self {
        let areas = (0..areas).map(|_| Mutex::new(0)).collect();
        Self { pool, run, area_bytes: area_bytes.into(), areas }
    }

    fn area_at(&self, area: usize) -> u64 {
        self.pool.run_bytes(&self.run).offset() + area as u64 * self.area_bytes
    }

    /// Writes the record of a change of `key`, which has this hash and belongs to this area: a put of `value`, or a delete.
    /// Both are within the [limits].
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the record, or one that is not whole.
    ///
    /// # Cost
    /// The lines of the record, 1 fence. Waits for other changes of the area.
    pub(crate) fn write(
        &self,
        area: usize,
        hash: u64,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Logged<'_, P> {
        let (pool, pmem, at) = (&self.pool, &self.pool.pmem, self.area_at(area));
        let mut sequence = lock_relaxing(&self.areas[area], &*pool.environment);
        *sequence += 1;
        let bytes = value.unwrap_or_default();
        let put = Entry::record(at, key.len(), bytes.len());
        let word = if value.is_some() { put } else { Entry::retired(put, at) };
        pmem.store_u64(at, word, sites::RECORD);
        pmem.copy(pool.extent(at + KEY_AT, key.len() as u64), key, sites::RECORD);
        let value_to = pool.extent(at + beside_at(key.len()), bytes.len() as u64);
        let sum = pmem.copy_sum(value_to, bytes, sites::RECORD);
        let (place, sequence_now) = (place(at, value.is_some()), (*sequence).min(VERSION_MAX));
        let checksum = value_checksum(place, Summed { bytes, sum });
        let header = RecordHeader::new(place, hash, sequence_now, UncheckedWord::NONE, checksum);
        header.store(pmem, at + HEADER_AT, sites::RECORD);
        pmem.flush(pool.extent(at, span(key.len(), bytes.len())), sites::RECORD);
        pmem.fence(sites::RECORD);
        pmem.operation_decided();
        Logged { log: self, at, _area: sequence }
    }

    /// The change that an area has, by a function that hashes keys: before there are sessions. `None` where there is none,
    /// or it is not whole.
    ///
    /// # Durability
    /// None: a process that was killed may have stored it without a fence. Who makes it again [empties](Self::clear_all) the
    /// area afterwards, so that nothing older comes back.
    pub(crate) fn read(&self, area: usize, hash_of: impl Fn(&[u8]) -> u64) -> Option<FoundChange> {
        let (pool, pmem, at) = (&self.pool, &self.pool.pmem, self.area_at(area));
        let (is_put, lengths) = self.lengths(at)?;
        let mut key = vec![0; lengths.key_bytes as usize];
        let mut value = vec![0; lengths.beside_bytes as usize];
        pmem.read(pool.extent(at + KEY_AT, key.len() as u64), &mut key);
        pmem.read(pool.extent(at + lengths.beside_at(), value.len() as u64), &mut value);
        let hash = hash_of(&key);
        let header = RecordHeader::load(pmem, at + HEADER_AT);
        let is_whole = header.verify(place(at, is_put), hash, Some(Summed::of(&value))).is_ok();
        let value = is_put.then_some(value);
        (is_whole || pmem.skips(steps::READ_CHECK)).then_some(FoundChange { hash, key, value })
    }

    /// Whether the record at `at` is a put, and its lengths, if they fit the area.
    fn lengths(&self, at: u64) -> Option<(bool, Lengths)> {
        let word = self.pool.pmem.load_u64(at);
        let Entry::Record { is_live, lengths } = Entry::decode(word, at)? else { return None };
        (!lengths.is_spilled && lengths.span() <= self.area_bytes).then_some((is_live, lengths))
    }

    /// Empties areas whose changes are made, durably, or never will be. Before there are sessions.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves some of the records.
    ///
    /// # Cost
    /// 1 line for each area, 1 fence.
    pub(crate) fn clear_all(&self, areas: impl Iterator<Item = usize>) {
        areas.for_each(|area| self.clear(self.area_at(area)));
        self.pool.pmem.fence(sites::CLEAR);
    }

    /// Empties the area at `at`. The caller fences.
    fn clear(&self, at: u64) {
        let pmem = &self.pool.pmem;
        pmem.store_u64(at + HEADER_AT, 0, sites::CLEAR);
        pmem.flush(self.pool.extent(at + HEADER_AT, 8), sites::CLEAR);
    }
}

impl<P: Pmem> Logged<'_, P> {
    /// Takes the record back: the change was not made, and nobody was told that it was.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the record, or none.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    #[cold]
    pub(crate) fn withdraw(self) {
        self.log.clear(self.at);
        self.log.pool.pmem.fence(sites::CLEAR);
    }
}

/// The longest key and value of which areas of so many bytes hold a record, where a store takes those of `limits`.
pub(crate) fn limits(limits: Limits, area_bytes: u32) -> Limits {
    let key_bytes = limits.key_bytes.min(area_bytes as usize / 4);
    let left = u64::from(area_bytes) - span(key_bytes, 0);
    let value_bytes = left.min(BESIDE_BYTES_MAX.into()) as usize & !7;
    Limits { key_bytes, value_bytes: value_bytes.min(limits.value_bytes) }
}

/// What the checks of a record at `at` depend on: no record of another kind has this place, and no put that of a delete. A
/// put of an empty value and a delete have the same bytes but for one bit.
fn place(at: u64, is_put: bool) -> u64 {
    at + HEADER_AT + u64::from(is_put)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
