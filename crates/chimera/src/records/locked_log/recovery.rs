//! Recovery of the log: its runs are walked, and the run to append to is chosen.

use chimera_pmem::Pmem;

use super::read::LogRecord;
use super::{LockedLog, LogRun, sites};
use crate::pool::runs::Run;
use crate::types::error::{Error, Result};

/// What a run of the log holds.
#[derive(Default)]
pub(crate) struct RecoveredRun {
    /// Live records, in the order of the log.
    pub(crate) records: Vec<LogRecord>,
    /// Records that are left out, with what follows them where their lengths are damaged (salvage only).
    pub(crate) damaged: u64,
}

impl<P: Pmem> LockedLog<P> {
    /// Takes over a run that [`recover_runs`](crate::pool::Pool::recover_runs) found, and reads every live record in
    /// it.
    ///
    /// # Errors
    /// `Corrupted` for a damaged record. With `salvage` it is left out, and the run is never freed.
    ///
    /// # Durability
    /// Opened for writing: what was found is durable on return.
    ///
    /// # Cost
    /// All of the run's records are loaded. For writing also the lines of the log, dead records included, and 1 fence.
    pub(crate) fn recover_run(&mut self, run: Run, salvage: bool) -> Result<RecoveredRun> {
        let (pool, mut found) = (&self.pool, RecoveredRun::default());
        let bytes = pool.run_bytes(&run);
        let (start, end) = (bytes.offset(), bytes.end());
        let mut log = LogRun { run, tail: start, end, live_records: 0 };
        while log.tail < end {
            match self.next_record(&mut log, &mut found.records) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error @ Error::Corrupted { .. }) if salvage => {
                    pool.note_lost(&error, start);
                    // The run is never freed.
                    found.damaged += 1;
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
        let versions = found.records.iter().map(|record| record.version);
        self.version = versions.fold(self.version, u64::max);
        self.runs.insert(start, log);
        Ok(found)
    }

    /// Reads the record at the tail of a run, if it is live, and moves the tail behind it; behind the whole run
    /// where its lengths are damaged. `false` where the log ends.
    fn next_record(&self, log: &mut LogRun, records: &mut Vec<LogRecord>) -> Result<bool> {
        let at = std::mem::replace(&mut log.tail, log.end);
        let Some((is_live, lengths)) = self.entry(at, log.end)? else {
            log.tail = at;
            return Ok(false);
        };
        log.tail = at + lengths.span();
        if is_live {
            records.push(self.read_record(at, lengths, &mut Vec::new(), true)?);
            log.live_records += 1;
        }
        Ok(true)
    }

    /// Chooses the run to append to: of those with live records the one with the most room.
    pub(crate) fn choose_run(&mut self) {
        let room = |log: &LogRun| log.end - log.tail;
        let live = self.runs.iter().filter(|(_, log)| log.live_records > 0);
        self.filling = live.max_by_key(|(_, log)| room(log)).map(|(start, _)| *start);
    }

    /// Frees every run without live records but the one that is appended to.
    ///
    /// # Errors
    /// `Corrupted` when the word of such a run is damaged.
    ///
    /// # Cost
    /// 1 line and 1 fence for each.
    pub(crate) fn free_empty_runs(&mut self) -> Result<()> {
        let starts: Vec<_> = self.runs.keys().copied().collect();
        starts.into_iter().try_for_each(|start| self.free_if_empty(start))
    }
}
