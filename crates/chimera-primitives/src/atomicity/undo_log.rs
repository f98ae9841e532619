//! [`UndoLog`]: what places held before they are changed, so that a crash leaves all of a transaction or nothing.
//!
//! # Layout
//! One line with the head: bytes of records that are in force, 0 outside of transactions. Then records, each at the beginning
//! of a line: offset, length, a checksum of both and of the data, a word that is 0, the data.
//!
//! # Protocol
//! A snapshot is durable before the head counts it, and the head before anything is stored to the place. At the end all
//! places are durable before the head becomes 0, which is the commit. Recovery puts everything back, the last record first,
//! which can be done again.

use chimera_pmem::{CACHE_LINE, Extent, Pmem, sum};

use super::sites;
use crate::error::{PrimitivesError, Result};

const HEADER_BYTES: u64 = 32;

/// An undo log. A region of memory belongs to it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoLog {
    at: u64,
    bytes: u64,
}

/// A transaction that is under way. Dropped without [`commit`](Self::commit), it stays in force: recovery takes it back.
#[derive(Debug)]
pub struct Transaction<'a, P: Pmem> {
    log: UndoLog,
    pmem: &'a P,
    used: u64,
    places: Vec<Extent>,
}

/// A word with its checksum's seed: records of zeros are no records.
fn check(offset: u64, data: &[u8]) -> u64 {
    let header = [offset.to_le_bytes(), (data.len() as u64).to_le_bytes()].concat();
    sum(&header).rotate_left(17) ^ sum(data) ^ 0x756E_646F_6C6F_6731
}

/// Bytes that a record of so many bytes takes.
fn record_bytes(length: u64) -> u64 {
    (HEADER_BYTES + length).next_multiple_of(CACHE_LINE)
}

impl UndoLog {
    /// Bytes of a log that holds one snapshot of each of these lengths.
    pub fn bytes_for(lengths: &[u64]) -> u64 {
        CACHE_LINE + lengths.iter().copied().map(record_bytes).sum::<u64>()
    }

    /// The log in a region. One of zeros is empty.
    ///
    /// # Errors
    /// `Corrupted` when the region is not mapped, does not begin at a line, or has no room for a record.
    pub fn new<P: Pmem>(pmem: &P, at: u64, bytes: u64) -> Result<Self> {
        let is_sound = at.is_multiple_of(CACHE_LINE) && bytes >= 2 * CACHE_LINE;
        if !is_sound || pmem.check(at, bytes).is_none() {
            return PrimitivesError::corrupted("an undo log lies nowhere", at);
        }
        Ok(Self { at, bytes })
    }

    /// Begins a transaction. The log must be empty, as it is after [`recover`](Self::recover).
    pub fn begin<P: Pmem>(self, pmem: &P) -> Transaction<'_, P> {
        Transaction { log: self, pmem, used: 0, places: Vec::new() }
    }

    fn set_head<P: Pmem>(self, pmem: &P, used: u64, record: Option<Extent>) {
        match record {
            Some(record) => pmem.publish(self.at, used, &[record], sites::UNDO_HEAD),
            None => pmem.store_u64(self.at, used, sites::UNDO_HEAD),
        }
        pmem.flush(Extent::new_checked(self.at, 8), sites::UNDO_HEAD);
        pmem.fence(sites::UNDO_HEAD);
    }

    /// The records in force: the place, and where its former contents lie.
    fn records<P: Pmem>(self, pmem: &P) -> Result<Vec<(Extent, Vec<u8>)>> {
        let used = pmem.load_u64(self.at);
        if used > self.bytes - CACHE_LINE {
            return PrimitivesError::corrupted("an undo log has more records than room", self.at);
        }
        let (mut records, mut at) = (Vec::new(), self.at + CACHE_LINE);
        let end = at + used;
        while at < end {
            let (offset, length) = (pmem.load_u64(at), pmem.load_u64(at + 8));
            let place = pmem.check(offset, length).filter(|_| length <= end - at);
            let fits = place.filter(|_| record_bytes(length) <= end - at);
            let Some(place) = fits else {
                return PrimitivesError::corrupted("a record of an undo log leads nowhere", at);
            };
            let mut data = vec![0; length as usize];
            pmem.read(Extent::new_checked(at + HEADER_BYTES, length), &mut data);
            if pmem.load_u64(at + 16) != check(offset, &data) {
                return PrimitivesError::corrupted("a record of an undo log is damaged", at);
            }
            records.push((place, data));
            at += record_bytes(length);
        }
        Ok(records)
    }

    /// Takes back a transaction that a crash has cut off; whether there was one.
    ///
    /// # Errors
    /// `Corrupted` when the log is damaged; nothing has been put back then.
    ///
    /// # Durability
    /// Everything is as it was before the transaction when the call returns.
    pub fn recover<P: Pmem>(self, pmem: &P) -> Result<bool> {
        let records = self.records(pmem)?;
        if records.is_empty() {
            return Ok(false);
        }
        for (place, data) in records.iter().rev() {
            pmem.copy(*place, data, sites::UNDO_BACK);
            pmem.flush(*place, sites::UNDO_BACK);
        }
        pmem.fence(sites::UNDO_BACK);
        self.set_head(pmem, 0, None);
        Ok(true)
    }
}

impl<P: Pmem> Transaction<'_, P> {
    /// Keeps what a place holds, before it is changed.
    ///
    /// # Errors
    /// `Full` when the log has no room for it.
    ///
    /// # Cost
    /// The place is read and written once; two fences.
    pub fn snapshot(&mut self, place: Extent) -> Result<()> {
        let bytes = record_bytes(place.length());
        let at = self.log.at + CACHE_LINE + self.used;
        if CACHE_LINE + self.used + bytes > self.log.bytes {
            return Err(PrimitivesError::Full);
        }
        let mut data = vec![0; place.length() as usize];
        self.pmem.read(place, &mut data);
        let header = [place.offset(), place.length(), check(place.offset(), &data), 0];
        let header: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        let record = Extent::new_checked(at, HEADER_BYTES + place.length());
        self.pmem.copy(Extent::new_checked(at, HEADER_BYTES), &header, sites::UNDO_RECORD);
        let to = Extent::new_checked(at + HEADER_BYTES, place.length());
        self.pmem.copy(to, &data, sites::UNDO_RECORD);
        self.pmem.flush(record, sites::UNDO_RECORD);
        self.pmem.fence(sites::UNDO_RECORD);
        self.used += bytes;
        self.log.set_head(self.pmem, self.used, Some(record));
        self.places.push(place);
        Ok(())
    }

    /// Stores a word of a place that was snapshot. Durable at the end.
    pub fn store(&mut self, at: u64, value: u64) {
        debug_assert!(self.places.iter().any(|place| (place.offset()..place.end()).contains(&at)));
        self.pmem.store_u64(at, value, sites::UNDO_STORE);
    }

    /// Makes everything that was stored durable, and ends the transaction.
    ///
    /// # Durability
    /// All of it survives a power loss once the call returns, and nothing of it before.
    ///
    /// # Cost
    /// A flush for each line of the places; two fences.
    pub fn commit(self) {
        for place in &self.places {
            self.pmem.flush(*place, sites::UNDO_COMMIT);
        }
        self.pmem.fence(sites::UNDO_COMMIT);
        // The records are reachable no more once the head says so; the linter learns it from the withdrawal.
        self.log.set_head(self.pmem, 0, None);
        self.pmem.withdrawn(Extent::new_checked(self.log.at + CACHE_LINE, self.used));
    }
}
