//! [`Plan`]: a store from its creation through its phases, measured once.

use std::path::{Path, PathBuf};

use chimera::Demand;

use super::clock::Measure;
use super::ledger::Ledger;
use super::phase::{self, Action, Extent, Phase};
use super::progress::Progress;
use super::setup::Setup;
use super::store::{Create, Footprint, Store};
use super::worker::Data;
use super::workspace::Workspace;
use crate::error::Result;
use crate::results::machine::cores;
use crate::results::rows::{Facts, StoreRow};
use crate::results::series::Results;
use crate::results::statistics::ratio;

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
pub(crate) struct Finished<S> {
    pub(crate) store: S,
    pub(crate) ledger: Ledger,
    /// What the store said of itself once it was loaded.
    pub(crate) facts: Facts,
    /// What it needed then.
    pub(crate) loaded: Footprint,
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

/// What a store must have room for in all phases, done by so many threads.
pub(crate) fn demand(setup: &Setup, phases: &[Phase], threads: usize) -> Demand {
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
    Demand {
        live: most,
        rewritten,
        written,
        key_bytes: setup.key_bytes,
        value_bytes: setup.value_bytes,
        sessions: threads as u64,
    }
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
    pub(crate) fn run<S: Create>(
        &self,
        path: &Path,
        pass: Pass,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<Finished<S>> {
        let demand = demand(self.setup, self.phases, pass.threads.max(cores()));
        let mut finished = self.create::<S>(path, &demand, pass, results, progress)?;
        for (number, phase) in self.phases.iter().enumerate() {
            progress.step(&format!("pass {}: {}", pass.number + 1, phase.name));
            let extent = Extent {
                threads: pass.threads,
                operations: phase.calls(self.setup.operations),
                duration: self.setup.duration,
                measure: pass.measure,
            };
            let stream = (pass.number as u64) << 8 | (number as u64 + 1);
            let Finished { store, ledger, .. } = &mut finished;
            phase::prepare(store, self.data, ledger, phase, extent, stream)?;
            let measured = phase::run(store, self.data, ledger, phase, extent, stream)?;
            results.add(&finished.facts, &phase.name, pass.threads, measured);
        }
        Ok(finished)
    }

    /// Creates a store with room for `demand` and inserts the records that every phase begins with; on
    /// all cores when nobody looks. They are durable then, as far as the medium can.
    pub(crate) fn create<S: Create>(
        &self,
        path: &Path,
        demand: &Demand,
        pass: Pass,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<Finished<S>> {
        let setup = self.setup;
        progress.step(&format!("pass {}: creating a store", pass.number + 1));
        let store = S::create(setup, path, demand)?;
        progress.step(&format!("pass {}: loading", pass.number + 1));
        let (threads, measure) = match self.load_name {
            Some(_) => (pass.threads, pass.measure),
            None => (cores(), Measure::Throughput),
        };
        let mut ledger = Ledger::default();
        let phase = Phase::new("load", Action::Insert);
        let extent = Extent { threads, operations: setup.records, duration: None, measure };
        let stream = (pass.number as u64) << 8;
        let measured = phase::run(&store, self.data, &mut ledger, &phase, extent, stream)?;
        ledger.settle();
        store.sync()?;
        let (facts, loaded) = (store.facts(), store.footprint());
        if let Some(name) = self.load_name {
            results.add(&facts, name, threads, measured);
        }
        Ok(Finished { store, ledger, facts, loaded, path: path.to_owned() })
    }
}

impl<S: Store> Finished<S> {
    /// What a report says of the store, which was loaded with records of `data`.
    pub(crate) fn row(&self, data: &Data) -> StoreRow {
        store_row(self.facts.clone(), self.loaded, data)
    }

    /// Closes the store and removes it.
    pub(crate) fn discard(self, workspace: &Workspace) -> Result<()> {
        self.store.close()?;
        workspace.remove(&self.path)
    }
}

/// What a report says of a store that holds records of `data`.
pub(crate) fn store_row(facts: Facts, footprint: Footprint, data: &Data) -> StoreRow {
    let records = footprint.records as f64;
    StoreRow {
        facts,
        dram_bytes_per_key: ratio(footprint.dram_bytes as f64, records),
        space_amplification: ratio(footprint.pmem_bytes as f64, records * data.record_bytes()),
        verified_records: None,
    }
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
