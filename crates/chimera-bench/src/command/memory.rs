//! `memory`: DRAM per key over a range of sizes, and of an empty store (Viper, Figure 9).

use chimera::Db;

use super::benchmark::Benchmark;
use super::common::Common;
use super::given::{NO_GETS, NOT_COUNTED, NOT_KEPT, Unused};
use crate::driver::backend::Backend;
use crate::driver::clock::Measure;
use crate::driver::ledger::Ledger;
use crate::driver::pass::{demand, store_row};
use crate::driver::phase::{self, Action, Extent, Phase};
use crate::driver::progress::Progress;
use crate::driver::setup::Setup;
use crate::driver::store::{Create, Footprint, Store};
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::{Memory, MemorySample, Report};
use crate::results::machine::{cores, private_resident_bytes};
use crate::results::series::Results;
use crate::results::statistics::{range, ratio};

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
    const UNUSED: &'static [Unused] = &[
        ("records", "give --from and --to"),
        ("operations", "records are inserted: give --from and --to"),
        ("duration", "records are inserted: give --from and --to"),
        ("repetitions", "each sample is taken once"),
        ("populate", "the pool grows with the records"),
        ("growing", "the pool grows with the records anyway"),
        NO_GETS,
        NOT_COUNTED,
        NOT_KEPT,
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let records = self.sizes()?.last().copied().unwrap_or_default();
        let common = Common { records: Some(records), operations: None, ..self.common.clone() };
        let setup = common.setup((8, 8))?;
        if setup.threads.len() != 1 {
            let what = "one number of threads inserts all records: give one --threads";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        Ok(vec![Setup { growing: true, ..setup }])
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let sizes = self.sizes()?;
        let data = Data::new(setup);
        let progress = Progress::new(sizes.len());
        let before = private_resident_bytes();
        let gained = || private_resident_bytes().saturating_sub(before);
        let db = Db::<B>::create(setup, workspace.path(), &demand(setup, &[], cores()))?;
        let (empty_resident_bytes, empty) = (gained(), db.footprint());
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
            let Footprint { records, dram_bytes, .. } = db.footprint();
            let per_key = |bytes: u64| ratio(bytes as f64, records as f64);
            let resident = per_key(gained());
            samples.push(MemorySample {
                records,
                dram_bytes_per_key: per_key(dram_bytes),
                resident_bytes_per_key: (!setup.is_anonymous()).then_some(resident),
            });
        }
        let store = store_row(db.facts(), db.footprint(), &data);
        db.close()?;
        workspace.remove(workspace.path())?;
        let per_key: Vec<_> = samples.iter().map(|sample| sample.dram_bytes_per_key).collect();
        let memory = Memory {
            empty_resident_bytes,
            empty_dram_bytes: empty.dram_bytes,
            bytes_per_key_max: range(&per_key).1,
            bytes_per_key_mean: per_key.iter().sum::<f64>() / per_key.len() as f64,
            samples,
        };
        let results = Results::default();
        let report = Report::new("memory", setup, vec![store], &results);
        Ok((Report { memory: Some(memory), ..report }, results))
    }
}
