//! `memory`: DRAM per key over a range of sizes, and of an empty store (Viper, Figure 9).

use super::{Benchmark, Common};
use crate::driver::backend::{Backend, open};
use crate::driver::clock::Measure;
use crate::driver::pass::{cores, discard};
use crate::driver::phase::{self, Action, Extent, Ledger, Phase};
use crate::driver::progress::Progress;
use crate::driver::series::{Results, range, ratio};
use crate::driver::setup::{Needs, Setup};
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::machine::private_resident_bytes;
use crate::report::{Facts, Memory, MemorySample, Report};

/// From one sample to the next.
const FACTOR: f64 = 1.2;

/// Arguments of `memory`.
#[derive(Clone, Debug, clap::Args)]
pub struct MemoryArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// Records of the first sample [default: 1000000]
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub from: Option<u64>,
    /// Records of the last sample at most [default: 50000000]
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub to: Option<u64>,
}

impl MemoryArguments {
    /// Where samples are taken.
    fn sizes(&self) -> Result<Vec<u64>> {
        let (from, to) = if self.common.quick { (10_000, 40_000) } else { (1_000_000, 50_000_000) };
        let (from, to) = (self.from.unwrap_or(from), self.to.unwrap_or(to));
        if from == 0 || from > to {
            return Err(BenchError::Arguments("--from must be 1 to --to".to_owned()));
        }
        let mut sizes = vec![from];
        let mut next = from as f64 * FACTOR;
        while next <= to as f64 {
            if sizes.last() != Some(&(next as u64)) {
                sizes.push(next as u64);
            }
            next *= FACTOR;
        }
        Ok(sizes)
    }
}

impl Benchmark for MemoryArguments {
    fn common(&self) -> &Common {
        &self.common
    }

    fn setup(&self) -> Result<Setup> {
        let records = self.sizes()?.last().copied().unwrap_or_default();
        let common = Common { records: Some(records), operations: None, ..self.common.clone() };
        Ok(Setup { growing: true, ..common.setup((8, 8))? })
    }

    fn measure<B: Backend>(&self, setup: &Setup) -> Result<(Report, Results)> {
        let workspace = Workspace::prepare(setup)?;
        let sizes = self.sizes()?;
        let data = Data::new(setup);
        let progress = Progress::new(sizes.len());
        let needs = Needs { live: setup.records, rewritten: 0, written: setup.records };
        let options = setup.options(setup.capacity_bytes(needs, cores()));
        let before = private_resident_bytes();
        let gained = || private_resident_bytes().saturating_sub(before);
        let db = open::<B>(workspace.path(), &options, setup.timed(), setup.seed)?;
        let (empty_resident_bytes, empty) = (gained(), db.stats());
        let mut ledger = Ledger::default();
        let mut samples = Vec::new();
        for (number, records) in sizes.iter().enumerate() {
            progress.step(&format!("{records} records"));
            let extent = Extent {
                threads: setup.threads[0],
                operations: records - ledger.records(),
                duration: None,
                measure: Measure::Throughput,
            };
            let insert = Phase::new("insert", Action::Insert);
            phase::run(&db, &data, &mut ledger, &insert, extent, number as u64)?;
            let stats = db.stats();
            let resident = ratio(gained() as f64, stats.records as f64);
            samples.push(MemorySample {
                records: stats.records,
                dram_bytes_per_key: stats.dram_bytes_per_key,
                resident_bytes_per_key: (!setup.is_anonymous()).then_some(resident),
            });
        }
        let facts = Facts::of(&db, &db.stats(), &data);
        discard(db, &workspace, workspace.path())?;
        let per_key: Vec<_> = samples.iter().map(|sample| sample.dram_bytes_per_key).collect();
        let memory = Memory {
            empty_resident_bytes,
            empty_dram_bytes: empty.dram_index_bytes + empty.dram_table_bytes,
            bytes_per_key_max: range(&per_key).1,
            bytes_per_key_mean: per_key.iter().sum::<f64>() / per_key.len() as f64,
            samples,
        };
        let results = Results::default();
        let report = Report::new("memory", setup, facts, &results);
        Ok((Report { memory: Some(memory), ..report }, results))
    }
}
