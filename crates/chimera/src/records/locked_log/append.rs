//! Changing the log: records appended and retired, runs taken and freed.

use chimera_pmem::{Extent, Pmem};

use super::{LockedLog, LogRun, RUN_OVERHEAD_BYTES, end_word, sites};
use crate::records::checksum::{Summed, value_checksum};
use crate::records::header::RecordHeader;
use crate::records::lengths::{Entry, HEADER_AT, KEY_AT, beside_at, span};
use crate::records::unchecked_word::UncheckedWord;
use crate::types::error::Result;

/// Blocks of a run, unless a record needs more: 256 KiB.
const RUN_BLOCKS: u32 = 64;

impl<P: Pmem> LockedLog<P> {
    /// Appends a live record of `key`, which has this hash, within the [limits](Self::limits). Returns its offset. Its
    /// version is higher than that of every live record before it.
    ///
    /// # Errors
    /// `PoolFull` when there is no run with room for it, with nothing changed.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves no record, or all of it.
    ///
    /// # Cost
    /// The lines of the record and 1 more, 2 fences; what a run costs where the last one is full.
    pub(crate) fn append(&mut self, hash: u64, key: &[u8], value: &[u8]) -> Result<u64> {
        let bytes = span(key.len(), value.len());
        let has_room = |start: &u64| self.runs[start].tail + bytes < self.runs[start].end;
        let start = match self.filling.filter(has_room) {
            Some(start) => start,
            None => self.take_run(bytes)?,
        };
        let (pool, pmem) = (&self.pool, &self.pool.pmem);
        let log = self.runs.get_mut(&start).expect("just found");
        let at = log.tail;
        self.version += 1;
        let checksum = value_checksum(at, Summed::of(value));
        let header = RecordHeader::new(at, hash, self.version, UncheckedWord::NONE, checksum);
        header.store(pmem, at + HEADER_AT, sites::RECORD);
        pmem.copy(pool.extent(at + KEY_AT, key.len() as u64), key, sites::RECORD);
        let beside_at = pool.extent(at + beside_at(key.len()), value.len() as u64);
        pmem.copy(beside_at, value, sites::RECORD);
        pmem.store_u64(at + bytes, end_word(at + bytes), sites::RECORD);
        let body = pool.extent(at + HEADER_AT, bytes - HEADER_AT);
        pmem.flush(pool.extent(at + HEADER_AT, bytes), sites::RECORD);
        pmem.fence(sites::RECORD);
        pmem.publish(at, Entry::record(at, key.len(), value.len()), &[body], sites::COMMIT);
        pmem.flush(pool.extent(at, 8), sites::COMMIT);
        pmem.fence(sites::COMMIT);
        log.tail += bytes;
        log.live_records += 1;
        Ok(at)
    }

    /// Takes a run with room for a record, with an empty log, durably; it is appended to from now on.
    fn take_run(&mut self, record_bytes: u64) -> Result<u64> {
        let pool = &self.pool;
        let need = (record_bytes + RUN_OVERHEAD_BYTES).div_ceil(pool.map.block_bytes) as u32;
        let usual = need.max(RUN_BLOCKS.min(pool.run_blocks_max() / 4));
        let begin = |bytes: Extent| {
            let at = bytes.offset();
            pool.pmem.store_u64(at, end_word(at), sites::BEGIN);
            pool.pmem.flush(pool.extent(at, 8), sites::BEGIN);
        };
        // Where there is no usual run any more, a short one may do.
        let taken = pool.take_run(self.kind, usual, begin);
        let run = taken.or_else(|_| pool.take_run(self.kind, need, begin))?;
        let bytes = pool.run_bytes(&run);
        let tail = bytes.offset();
        self.runs.insert(tail, LogRun { run, tail, end: bytes.end(), live_records: 0 });
        let full = self.filling.replace(tail);
        full.map_or(Ok(()), |full| self.free_if_empty(full))?;
        Ok(tail)
    }

    /// Makes the live record at `at` dead. A run without live records is freed.
    ///
    /// # Errors
    /// `Corrupted` when the word of a run that is to be freed is damaged; the record is dead all the same.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the record live or dead.
    ///
    /// # Cost
    /// 1 line, 1 fence; for a run that is freed the same again.
    pub(crate) fn retire(&mut self, at: u64) -> Result<()> {
        let pmem = &self.pool.pmem;
        pmem.store_u64(at, Entry::retired(pmem.load_u64(at), at), sites::RETIRE);
        pmem.flush(self.pool.extent(at, 8), sites::RETIRE);
        pmem.fence(sites::RETIRE);
        let (start, log) = self.runs.range_mut(..=at).next_back().expect("the run of a record");
        log.live_records -= 1;
        let start = *start;
        self.free_if_empty(start)
    }

    /// Frees a run without live records, unless it is appended to.
    pub(super) fn free_if_empty(&mut self, start: u64) -> Result<()> {
        if self.filling == Some(start) || self.runs[&start].live_records > 0 {
            return Ok(());
        }
        self.pool.free_run(self.runs.remove(&start).expect("just found").run)
    }
}
