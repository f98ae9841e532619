//! Recovery: the runs are walked, and the map is built anew.

use chimera_pmem::{Operation, Pmem};

use super::log::{LOG, sites, steps};
use super::{LogRun, State, Teaching};
use crate::engine::Options;
use crate::pool::runs::FoundRun;
use crate::records::header::RecordHeader;
use crate::records::lengths::HEADER_AT;
use crate::types::error::{Error, Result};
use crate::types::stats::RecoveryStats;

impl<P: Pmem> Teaching<P> {
    pub(super) fn recover(&self, state: &mut State, options: &Options) -> Result<RecoveryStats> {
        let _booked = self.core.book(Operation::Recovery, 0);
        let (pool, salvage) = (&self.core.pool, options.pool.salvage);
        let mut stats = RecoveryStats { threads: 1, ..RecoveryStats::default() };
        let (mut found, mut losers) = (Vec::new(), Vec::new());
        pool.recover_runs(&[LOG], salvage, |run| {
            match run {
                FoundRun::InUse(run) => found.push(run),
                FoundRun::Damaged(_) => stats.records_damaged += 1,
            }
            Ok(())
        })?;
        for run in found {
            stats.blocks_scanned += u64::from(run.blocks());
            let bytes = pool.run_bytes(&run);
            let (start, end) = (bytes.offset(), bytes.end());
            let mut log = LogRun { run, tail: start, end, live_records: 0 };
            while log.tail < end {
                match self.recover_record(state, &mut log, &mut losers) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(Error::Corrupted { .. }) if salvage => {
                        // The run is never freed.
                        stats.records_damaged += 1;
                        log.live_records += 1;
                    }
                    Err(error) => return Err(error),
                }
            }
            if !pool.read_only && log.tail > start {
                // The last process may have ended before it wrote the last words back.
                pool.pmem.flush(pool.extent(start, log.tail - start), sites::FOUND);
                pool.pmem.fence(sites::FOUND);
            }
            state.runs.insert(start, log);
        }
        if let Some(progress) = &options.progress {
            progress(pool.used_blocks(), pool.used_blocks());
        }
        stats.duplicates_cleared = losers.len() as u64;
        stats.records = state.map.len() as u64;
        if !pool.read_only {
            self.tidy(state, &losers)?;
        }
        Ok(stats)
    }

    /// Enters the record at the tail of a run into the map, and moves the tail behind it; behind the whole run
    /// where its lengths are damaged. `false` where the log ends.
    fn recover_record(
        &self,
        state: &mut State,
        log: &mut LogRun,
        losers: &mut Vec<u64>,
    ) -> Result<bool> {
        let at = std::mem::replace(&mut log.tail, log.end);
        let Some((is_live, lengths)) = self.entry(at, log.end)? else {
            log.tail = at;
            return Ok(false);
        };
        log.tail = at + lengths.span();
        if is_live {
            let (key, hash, version) = self.read_at(at, lengths, &mut Vec::new(), true)?;
            losers.extend(self.enter(state, (hash, key), at));
            state.clock = state.clock.max(version);
            log.live_records += 1;
        }
        Ok(true)
    }

    /// Enters a record into the map. Returns the record of the same key that lost, if there is one.
    fn enter(&self, state: &mut State, key: (u64, Vec<u8>), at: u64) -> Option<u64> {
        let pmem = &self.core.pool.pmem;
        let version = |at: u64| RecordHeader::load(pmem, at + HEADER_AT).version();
        let Some(old) = state.map.get_mut(&key) else {
            state.map.insert(key, at);
            return None;
        };
        let is_newer = version(at) > version(*old);
        Some(if is_newer { std::mem::replace(old, at) } else { at })
    }

    /// Retires the records that lost, chooses the run to append to, and frees what holds nothing.
    fn tidy(&self, state: &mut State, losers: &[u64]) -> Result<()> {
        let room = |log: &LogRun| log.end - log.tail;
        let live = state.runs.iter().filter(|(_, log)| log.live_records > 0 && room(log) > 0);
        state.filling = live.max_by_key(|(_, log)| room(log)).map(|(start, _)| *start);
        if !self.core.pool.pmem.skips(steps::RETIRE_LOSERS) {
            losers.iter().try_for_each(|at| self.retire(state, *at))?;
        }
        let starts: Vec<_> = state.runs.keys().copied().collect();
        starts.into_iter().try_for_each(|start| self.free_if_empty(state, start))
    }
}
