//! Recovery: the runs are walked, and the map is built anew.

use chimera_pmem::{Operation, Pmem};

use super::log::{LOG, READY, sites, steps};
use super::{LogRun, State, Teaching};
use crate::engine::Options;
use crate::pool::runs::{FoundRun, Run};
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
                FoundRun::InUse(run, flags) => found.push((run, flags)),
                FoundRun::Damaged(_) => stats.records_damaged += 1,
            }
            Ok(())
        })?;
        for (run, flags) in found {
            stats.blocks_scanned += u64::from(run.blocks());
            let is_ready = flags & READY != 0 || pool.pmem.skips(steps::READY_CHECK);
            match self.recover_run(state, run, is_ready, &mut losers) {
                Err(Error::Corrupted { .. }) if salvage => stats.records_damaged += 1,
                other => other?,
            }
        }
        stats.duplicates_cleared = losers.len() as u64;
        stats.records = state.map.len() as u64;
        if !pool.read_only {
            self.tidy(state, &losers)?;
        }
        Ok(stats)
    }

    /// Enters the records of a run into the map.
    fn recover_run(
        &self,
        state: &mut State,
        run: Run,
        is_ready: bool,
        losers: &mut Vec<u64>,
    ) -> Result<()> {
        let (pool, bytes) = (&self.core.pool, self.core.pool.run_bytes(&run));
        let (start, end) = (bytes.offset(), bytes.offset() + bytes.length());
        let mut log = LogRun { run, tail: start, end, live_records: 0 };
        let mut walk = || {
            let mut value = Vec::new();
            while is_ready && log.tail < end {
                let at = log.tail;
                let Some((is_live, lengths)) = self.entry(at, end)? else { break };
                if is_live {
                    let (key, hash, version) = self.read_at(at, lengths, &mut value)?;
                    losers.extend(self.enter(state, (hash, key), at));
                    state.clock = state.clock.max(version);
                    log.live_records += 1;
                }
                log.tail += lengths.span();
            }
            Ok(())
        };
        let walked: Result<()> = walk();
        if !pool.read_only && log.tail > start {
            // The last process may have ended before it wrote the last words back.
            pool.pmem.flush(pool.extent(start, log.tail - start), sites::FOUND);
            pool.pmem.fence(sites::FOUND);
        }
        if walked.is_err() {
            // What follows damage may be records: nothing is appended, and the run is never freed.
            (log.tail, log.live_records) = (end, log.live_records + 1);
        }
        state.runs.insert(start, log);
        walked
    }

    /// Enters a record into the map. Returns the record of the same key that lost, if there is one.
    fn enter(&self, state: &mut State, key: (u64, Vec<u8>), at: u64) -> Option<u64> {
        let pmem = &self.core.pool.pmem;
        let version = |at: u64| RecordHeader::load(pmem, at + HEADER_AT).version;
        let Some(old) = state.map.get_mut(&key) else {
            state.map.insert(key, at);
            return None;
        };
        let is_newer = version(at) > version(*old) && !pmem.skips(steps::VERSION_ORDER);
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
