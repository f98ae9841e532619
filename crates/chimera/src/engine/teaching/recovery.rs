//! Recovery: the log is walked, and the map is built anew.

use std::collections::btree_map::Entry;

use chimera_pmem::{Operation, Pmem};

use super::{LOG, State, Teaching, steps};
use crate::engine::{Options, Recovered};
use crate::pool::Sums;
use crate::pool::runs::FoundRun;
use crate::records::locked_log::LogRecord;
use crate::types::error::Result;
use crate::types::stats::RecoveryStats;
use crate::types::totals::Totals;

impl<P: Pmem> Teaching<P> {
    pub(super) fn recover(&self, state: &mut State<P>, options: &Options) -> Result<Recovered> {
        let _booked = self.core.book(Operation::Recovery, 0);
        let (pool, salvage) = (&self.core.pool, options.pool.salvage);
        let mut stats = RecoveryStats { threads: 1, ..RecoveryStats::default() };
        let (mut runs, mut losers) = (Vec::new(), Vec::new());
        pool.recover_runs(&[LOG], salvage, |run| {
            match run {
                FoundRun::InUse(run) => runs.push(run),
                FoundRun::Damaged(_) => stats.records_damaged += 1,
            }
            Ok(())
        })?;
        for run in runs {
            stats.blocks_scanned += u64::from(run.blocks());
            let found = state.log.recover_run(run, salvage)?;
            stats.records_damaged += found.damaged;
            losers.extend(found.records.into_iter().filter_map(|record| state.enter(record)));
        }
        if let Some(progress) = &options.progress {
            progress(pool.used_blocks(), pool.used_blocks());
        }
        stats.duplicates_cleared = losers.len() as u64;
        stats.records = state.map.len() as u64;
        let compared = pool.compare_with_closing(salvage, Sums::Records, || state.totals())?;
        if !pool.read_only {
            state.log.choose_run();
            if !pool.pmem.skips(steps::RETIRE_LOSERS) {
                losers.iter().try_for_each(|at| state.log.retire(*at))?;
            }
            state.log.free_empty_runs()?;
        }
        Ok(Recovered { stats, compared })
    }
}

impl<P: Pmem> State<P> {
    /// What the store holds.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.map.iter().for_each(|((hash, _), at)| totals.add(*hash, *at));
        totals
    }

    /// Enters a record into the map. Returns the record of the same key that lost, if there is one.
    fn enter(&mut self, record: LogRecord) -> Option<u64> {
        let LogRecord { at, hash, key, version } = record;
        match self.map.entry((hash, key)) {
            Entry::Vacant(place) => {
                place.insert(at);
                None
            }
            Entry::Occupied(mut place) if version > self.log.version(*place.get()) => {
                Some(place.insert(at))
            }
            Entry::Occupied(_) => Some(at),
        }
    }
}
