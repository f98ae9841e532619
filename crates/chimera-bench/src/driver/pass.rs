//! [`Plan`]: a store from its creation through its phases, measured once.

use std::path::{Path, PathBuf};

use chimera::{Db, Stats};
use chimera_pmem::Pmem;

use super::backend::{Backend, open};
use super::clock::Measure;
use super::phase::{self, Action, Extent, Ledger, Phase};
use super::progress::Progress;
use super::series::Results;
use super::setup::{Needs, Setup};
use super::worker::Data;
use super::workspace::Workspace;
use crate::error::Result;

/// What happens to a store in every pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) data: &'a Data,
    /// The name of the load phase in the results, if it is measured.
    pub(crate) load_name: Option<&'a str>,
    pub(crate) phases: &'a [Phase],
}

/// A store after its phases.
pub(crate) struct Finished<B: Pmem> {
    pub(crate) db: Db<B>,
    pub(crate) ledger: Ledger,
    /// What the store said of itself once it was loaded.
    pub(crate) loaded: Stats,
    pub(crate) path: PathBuf,
}

/// What to measure in which pass: throughput in as many as there are repetitions, latency in one more
/// for every three of them, one at least, in between.
pub(crate) fn measures(repetitions: usize) -> Vec<Measure> {
    let mut measures = Vec::new();
    for repetition in 0..repetitions {
        measures.push(Measure::Throughput);
        if repetition % 3 == 2 || (repetitions < 3 && repetition + 1 == repetitions) {
            measures.push(Measure::Latency);
        }
    }
    measures
}

/// Bytes of a pool that has room for all phases.
pub(crate) fn capacity_bytes(setup: &Setup, phases: &[Phase], threads: usize) -> u64 {
    let (mut live, mut most, mut written) = (setup.records, setup.records, setup.records);
    for phase in phases {
        let inserts = phase.inserts_max(setup.operations);
        written += if phase.rewrites() { setup.operations } else { inserts };
        live = if phase.action == Action::Delete {
            live.saturating_sub(setup.operations)
        } else {
            live + inserts
        };
        most = most.max(live);
    }
    let rewritten = if phases.iter().any(Phase::rewrites) { setup.records } else { 0 };
    setup.capacity_bytes(Needs { live: most, rewritten, written }, threads)
}

/// One pass: on how many threads, what is measured, and its number, which makes its random numbers
/// its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub(crate) number: usize,
    pub(crate) threads: usize,
    pub(crate) measure: Measure,
}

impl Plan<'_> {
    /// Creates a store at `path`, loads it and runs every phase, adding to `results` what is
    /// measured.
    pub(crate) fn run<B: Backend>(
        &self,
        path: &Path,
        pass: Pass,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<Finished<B>> {
        let capacity = capacity_bytes(self.setup, self.phases, pass.threads.max(cores()));
        let mut finished = self.create(path, capacity, pass, results, progress)?;
        for (number, phase) in self.phases.iter().enumerate() {
            progress.step(&format!("pass {}: {}", pass.number + 1, phase.name));
            let extent = Extent {
                threads: pass.threads,
                operations: self.setup.operations,
                duration: self.setup.duration,
                measure: pass.measure,
            };
            let stream = (pass.number as u64) << 8 | (number as u64 + 1);
            let Finished { db, ledger, .. } = &mut finished;
            let measured = phase::run(db, self.data, ledger, phase, extent, stream)?;
            results.add(&phase.name, pass.threads, measured);
        }
        Ok(finished)
    }

    /// Creates a store in a pool of `capacity_bytes` and inserts the records that every phase begins
    /// with; on all cores when nobody looks.
    pub(crate) fn create<B: Backend>(
        &self,
        path: &Path,
        capacity_bytes: u64,
        pass: Pass,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<Finished<B>> {
        let setup = self.setup;
        progress.step(&format!("pass {}: creating a store", pass.number + 1));
        let db = open::<B>(path, &setup.options(capacity_bytes), setup.timed(), setup.seed)?;
        progress.step(&format!("pass {}: loading", pass.number + 1));
        let (threads, measure) = match self.load_name {
            Some(_) => (pass.threads, pass.measure),
            None => (cores(), Measure::Throughput),
        };
        let mut ledger = Ledger::default();
        let phase = Phase::new("load", Action::Insert);
        let extent = Extent { threads, operations: setup.records, duration: None, measure };
        let stream = (pass.number as u64) << 8;
        let measured = phase::run(&db, self.data, &mut ledger, &phase, extent, stream)?;
        ledger.settle();
        if let Some(name) = self.load_name {
            results.add(name, threads, measured);
        }
        let loaded = db.stats();
        Ok(Finished { db, ledger, loaded, path: path.to_owned() })
    }
}

impl<B: Backend> Finished<B> {
    /// Closes the store and removes it.
    pub(crate) fn discard(self, workspace: &Workspace) -> Result<()> {
        discard(self.db, workspace, &self.path)
    }
}

/// Closes a store that nobody needs any more, and removes it.
pub(crate) fn discard<B: Backend>(db: Db<B>, workspace: &Workspace, path: &Path) -> Result<()> {
    db.close()?;
    workspace.remove(path)
}

/// Threads worth using.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_passes_lie_between_throughput_passes() {
        use Measure::{Latency, Throughput};
        assert_eq!(measures(1), [Throughput, Latency]);
        assert_eq!(measures(2), [Throughput, Throughput, Latency]);
        let five = measures(5);
        assert_eq!(five.iter().filter(|measure| **measure == Throughput).count(), 5);
        assert_eq!(five.iter().filter(|measure| **measure == Latency).count(), 1);
        assert_eq!(five.last(), Some(&Throughput));
        let fifteen = measures(15);
        assert_eq!(fifteen.iter().filter(|measure| **measure == Latency).count(), 5);
    }
}
