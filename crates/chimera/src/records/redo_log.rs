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
//! - **withdraw**, where the change could not be made: zero to the word of the lengths; flush, *fence*.
//! - **recovery**: what an area has is read. A record that is not whole was never complete, so its change had not begun.
//!
//! # Invariants
//! 1. A change begins when its record is durable.
//! 2. The record of an area is that of the last change of its keys that has begun, unless that was withdrawn. So making it
//!    again leaves every key as it is, or completes what a crash has cut off.
//!
//! The log is told nothing of any index or heap. What is damaged in it is as good as nothing: see docs/DURABILITY.md.

use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

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
        /// The start of an area, before its run is taken.
        BEGIN = "redo.begin";
        /// A record, before its change begins.
        RECORD = "redo.record";
        /// The word of a record whose change could not be made.
        WITHDRAW = "redo.withdraw";
        /// The records that recovery found, written back once more.
        FOUND = "redo.found", may_be_clean;
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

/// Makes the areas of a run empty, before it is taken.
pub(crate) fn begin<P: Pmem>(pool: &Pool<P>, run: Extent, areas: u32, area_bytes: u32) {
    for area in 0..u64::from(areas) {
        let at = run.offset() + area * u64::from(area_bytes);
        pool.pmem.store_u64(at, 0, sites::BEGIN);
        pool.pmem.flush(pool.extent(at, 8), sites::BEGIN);
    }
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
        let put = Entry::record(key.len(), bytes.len());
        pmem.store_u64(at, if value.is_some() { put } else { Entry::retired(put) }, sites::RECORD);
        pmem.copy(pool.extent(at + KEY_AT, key.len() as u64), key, sites::RECORD);
        let value_to = pool.extent(at + beside_at(key.len()), bytes.len() as u64);
        let sum = pmem.copy_sum(value_to, bytes, sites::RECORD);
        let (place, sequence_now) = (place(at, value.is_some()), (*sequence).min(VERSION_MAX));
        let checksum = value_checksum(place, Summed { bytes, sum });
        let header = RecordHeader::new(place, hash, sequence_now, UncheckedWord::NONE, checksum);
        header.store(pmem, at + HEADER_AT, sites::RECORD);
        pmem.flush(pool.extent(at, span(key.len(), bytes.len())), sites::RECORD);
        pmem.fence(sites::RECORD);
        Logged { log: self, at, _area: sequence }
    }

    /// The change that an area has, by a function that hashes keys: before there are sessions. `None` where there is none,
    /// or it is not whole.
    ///
    /// # Durability
    /// Where a process was killed, what the area says is durable after [`end_recovery`](Self::end_recovery).
    pub(crate) fn read(&self, area: usize, hash_of: impl Fn(&[u8]) -> u64) -> Option<FoundChange> {
        let (pool, pmem, at) = (&self.pool, &self.pool.pmem, self.area_at(area));
        let found = self.lengths(at);
        if pool.may_hold_undurable() {
            // The last process may have stored it without a fence. What follows it relies on what is read here.
            let bytes = found.map_or(8, |(_, lengths)| lengths.span());
            pmem.flush(pool.extent(at, bytes), sites::FOUND);
        }
        let (is_put, lengths) = found?;
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
        let Entry::Record { is_live, lengths } = Entry::decode(self.pool.pmem.load_u64(at))? else {
            return None;
        };
        (!lengths.is_spilled && lengths.span() <= self.area_bytes).then_some((is_live, lengths))
    }

    /// Ends reading all areas.
    pub(crate) fn end_recovery(&self) {
        if self.pool.may_hold_undurable() {
            self.pool.pmem.fence(sites::FOUND);
        }
    }

    /// Takes back what an area says: its change cannot be made. See [`Logged::withdraw`].
    pub(crate) fn withdraw(&self, area: usize) {
        self.clear(self.area_at(area));
    }

    fn clear(&self, at: u64) {
        let pmem = &self.pool.pmem;
        pmem.store_u64(at, 0, sites::WITHDRAW);
        pmem.flush(self.pool.extent(at, 8), sites::WITHDRAW);
        pmem.fence(sites::WITHDRAW);
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
