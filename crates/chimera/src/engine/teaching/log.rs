//! The log: appending, reading and retiring records, taking and freeing runs.

use chimera_pmem::{Extent, Pmem};

use super::{LogRun, State, Teaching};
use crate::pool::BlockKind;
use crate::records::checksum::{Summed, value_checksum};
use crate::records::header::RecordHeader;
use crate::records::lengths::{
    BESIDE_BYTES_MAX, Entry, HEADER_AT, KEY_AT, Lengths, beside_at, span,
};
use crate::records::unchecked_word::UncheckedWord;
use crate::types::error::{Error, Result};

/// Where the log stores, flushes and fences.
pub(super) mod sites {
    chimera_pmem::sites! {
        /// Zero, where the log of a run that is taken begins.
        BEGIN = "teaching.begin";
        /// A record and the zero behind it, before the record is live.
        RECORD = "teaching.record";
        /// The word that makes a record live.
        COMMIT = "teaching.commit";
        /// The word of a record that is retired.
        RETIRE = "teaching.retire", in_place;
        /// What recovery found, written back once more.
        FOUND = "teaching.found", may_be_clean;
    }
}

/// Checks and steps of recovery that a tool can leave out.
pub(super) mod steps {
    chimera_pmem::steps! {
        /// The checksums of a record that is read.
        READ_CHECK = "teaching.step.read_check";
        /// Retiring the records that lost.
        RETIRE_LOSERS = "teaching.step.retire_losers";
    }
}

/// The kind of the log's runs.
pub(super) const LOG: BlockKind = BlockKind::new(1, "log");

/// Blocks of a run, unless a record needs more: 256 KiB.
const RUN_BLOCKS: u32 = 64;
/// Longest key, in bytes, where a run has room for it.
const KEY_BYTES_MAX: usize = 4096;

impl<P: Pmem> Teaching<P> {
    /// Longest key and longest value.
    pub(super) fn bytes_max(&self) -> (usize, usize) {
        let pool = &self.core.pool;
        let run_bytes = u64::from(pool.run_blocks_max()) * pool.map.block_bytes - 64 - 8;
        let key_bytes = KEY_BYTES_MAX.min(run_bytes as usize / 4);
        let beside_bytes = (run_bytes - span(key_bytes, 0)).min(u64::from(BESIDE_BYTES_MAX)) & !7;
        (key_bytes, beside_bytes as usize)
    }

    /// Appends a live record, durably. Returns where it lies.
    ///
    /// # Cost
    /// The lines of the record and 1 more, 2 fences; what a run costs where the last one is full.
    pub(super) fn append(
        &self,
        state: &mut State,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<u64> {
        let (pool, pmem, bytes) =
            (&self.core.pool, &self.core.pool.pmem, span(key.len(), value.len()));
        let has_room = |start: &u64| state.runs[start].tail + bytes < state.runs[start].end;
        let start = match state.filling.filter(has_room) {
            Some(start) => start,
            None => self.take_run(state, bytes)?,
        };
        let log = state.runs.get_mut(&start).expect("just found");
        let at = log.tail;
        state.clock += 1;
        let checksum = value_checksum(at, Summed::of(value));
        let header = RecordHeader::new(at, hash, state.clock, UncheckedWord::NONE, checksum);
        header.store(pmem, at + HEADER_AT, sites::RECORD);
        pmem.copy(pool.extent(at + KEY_AT, key.len() as u64), key, sites::RECORD);
        let beside_at = pool.extent(at + beside_at(key.len()), value.len() as u64);
        pmem.copy(beside_at, value, sites::RECORD);
        pmem.store_u64(at + bytes, 0, sites::RECORD);
        let body = pool.extent(at + HEADER_AT, bytes - HEADER_AT);
        pmem.flush(pool.extent(at + HEADER_AT, bytes), sites::RECORD);
        pmem.fence(sites::RECORD);
        pmem.publish(at, Entry::record(key.len(), value.len()), &[body], sites::COMMIT);
        pmem.flush(pool.extent(at, 8), sites::COMMIT);
        pmem.fence(sites::COMMIT);
        log.tail += bytes;
        log.live_records += 1;
        Ok(at)
    }

    /// Takes a run with room for a record, with an empty log, durably.
    fn take_run(&self, state: &mut State, record_bytes: u64) -> Result<u64> {
        let pool = &self.core.pool;
        let need = (record_bytes + 64 + 8).div_ceil(pool.map.block_bytes) as u32;
        let usual = need.max(RUN_BLOCKS.min(pool.run_blocks_max() / 4));
        let begin = |bytes: Extent| {
            pool.pmem.store_u64(bytes.offset(), 0, sites::BEGIN);
            pool.pmem.flush(pool.extent(bytes.offset(), 8), sites::BEGIN);
        };
        // Where there is no usual run any more, a short one may do.
        let run = pool.take_run(LOG, usual, begin).or_else(|_| pool.take_run(LOG, need, begin))?;
        let bytes = pool.run_bytes(&run);
        let tail = bytes.offset();
        state.runs.insert(tail, LogRun { run, tail, end: bytes.end(), live_records: 0 });
        let full = state.filling.replace(tail);
        full.map_or(Ok(()), |full| self.free_if_empty(state, full))?;
        Ok(tail)
    }

    /// Makes a live record dead, durably: 1 line, 1 fence. A run without live records is freed.
    pub(super) fn retire(&self, state: &mut State, at: u64) -> Result<()> {
        let pmem = &self.core.pool.pmem;
        pmem.store_u64(at, Entry::retired(pmem.load_u64(at)), sites::RETIRE);
        pmem.flush(self.core.pool.extent(at, 8), sites::RETIRE);
        pmem.fence(sites::RETIRE);
        let (start, log) = state.runs.range_mut(..=at).next_back().expect("the run of a record");
        log.live_records -= 1;
        let start = *start;
        self.free_if_empty(state, start)
    }

    /// Frees a run without live records, unless it is appended to.
    pub(super) fn free_if_empty(&self, state: &mut State, start: u64) -> Result<()> {
        if state.filling == Some(start) || state.runs[&start].live_records > 0 {
            return Ok(());
        }
        self.core.pool.free_run(state.runs.remove(&start).expect("just found").run)
    }

    /// The lengths of the live record at `at` that ends at `end` at the latest. `None` where the log ends.
    pub(super) fn entry(&self, at: u64, end: u64) -> Result<Option<(bool, Lengths)>> {
        match Entry::decode(self.core.pool.pmem.load_u64(at)) {
            Some(Entry::End) => Ok(None),
            Some(Entry::Record { is_live, lengths })
                if at + lengths.span() <= end && !lengths.is_spilled =>
            {
                Ok(Some((is_live, lengths)))
            }
            _ => Err(Error::corrupted("the lengths of a record are damaged", at)),
        }
    }

    /// Reads the record at `at` and verifies it, the value only if `sum`; returns its key, the hash of that, and its
    /// version.
    pub(super) fn read_at(
        &self,
        at: u64,
        lengths: Lengths,
        value: &mut Vec<u8>,
        sum: bool,
    ) -> Result<(Vec<u8>, u64, u64)> {
        let (pool, mut key) = (&self.core.pool, vec![0; lengths.key_bytes as usize]);
        pool.pmem.read(pool.extent(at + KEY_AT, key.len() as u64), &mut key);
        value.resize(lengths.beside_bytes as usize, 0);
        pool.pmem.read(pool.extent(at + lengths.beside_at(), value.len() as u64), value);
        let (hash, header) =
            (self.core.hash.of(&key), RecordHeader::load(&pool.pmem, at + HEADER_AT));
        let summed = sum.then(|| Summed::of(value));
        if header.verify(at, hash, summed).is_err() && !pool.pmem.skips(steps::READ_CHECK) {
            return Err(Error::corrupted("a record does not match its checksum", at));
        }
        Ok((key, hash, header.version()))
    }
}
