//! `recovery`: time to open a store by its size and the number of threads (section 5.3.9).

use std::path::Path;

use chimera::Db;

use super::benchmark::Benchmark;
use super::common::Common;
use super::given::{NO_GETS, NOT_COUNTED, NOT_KEPT, Unused};
use crate::driver::backend::Backend;
use crate::driver::clock::Measure;
use crate::driver::pass::{Pass, Plan};
use crate::driver::progress::Progress;
use crate::driver::recovery::Reopening;
use crate::driver::setup::Setup;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::{RecoveryRow, Report, StoreRow};
use crate::results::series::Results;

/// Arguments of `recovery`.
#[derive(Clone, Debug, clap::Args)]
pub struct RecoveryArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// Numbers of records, separated by commas [default: none, a quarter, a half and all of --records]
    #[arg(long, value_delimiter = ',', value_name = "N", help_heading = "Work")]
    pub sizes: Vec<u64>,
    /// Numbers of recovery threads, separated by commas [default: 1 and one for each core]
    #[arg(long, value_delimiter = ',', value_name = "N", help_heading = "Work")]
    pub recovery_threads: Vec<usize>,
}

impl RecoveryArguments {
    fn sizes(&self, records: u64) -> Vec<u64> {
        match self.sizes.as_slice() {
            [] => vec![0, records / 4, records / 2, records],
            sizes => sizes.to_vec(),
        }
    }

    fn threads(&self) -> Vec<usize> {
        match self.recovery_threads.as_slice() {
            [] => Reopening::standard_threads(),
            threads => threads.to_vec(),
        }
    }
}

impl Benchmark for RecoveryArguments {
    const UNUSED: &'static [Unused] = &[
        ("operations", "stores are loaded and opened"),
        ("duration", "stores are loaded and opened"),
        ("threads", "give --recovery-threads"),
        NO_GETS,
        NOT_COUNTED,
        NOT_KEPT,
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let setup = self.common.setup((16, 200))?;
        if setup.is_anonymous() {
            let what = "a store in anonymous memory cannot be opened again: give a --path";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        if !self.sizes.is_empty() {
            self.common.given.refuse_all(&["records"], "--sizes says how many there are")?;
        }
        if self.recovery_threads.contains(&0) {
            return Err(BenchError::Arguments("recovery threads must be at least 1".to_owned()));
        }
        Ok(vec![setup])
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let sizes = self.sizes(setup.records);
        let progress = Progress::new(sizes.len() * 3);
        let mut rows = Vec::new();
        let mut store = None;
        for records in &sizes {
            let setup = Setup { records: *records, ..setup.clone() };
            let path = workspace.store("sizes")?;
            let (of_size, its) = self.measure_size::<B>(&setup, &path, &progress)?;
            rows.extend(of_size);
            store = Some(its);
            workspace.remove(&path)?;
        }
        let store = store.ok_or_else(|| BenchError::Arguments("no sizes".to_owned()))?;
        let results = Results::default();
        let records = sizes.iter().copied().max().unwrap_or_default();
        let setup = Setup { records, operations: 0, threads: self.threads(), ..setup.clone() };
        let report = Report::new("recovery", &setup, vec![store], &results);
        Ok((Report { recovery: rows, ..report }, results))
    }
}

impl RecoveryArguments {
    /// Makes a store and opens it again and again.
    fn measure_size<B: Backend>(
        &self,
        setup: &Setup,
        path: &Path,
        progress: &Progress,
    ) -> Result<(Vec<RecoveryRow>, StoreRow)> {
        let data = Data::new(setup);
        let plan = Plan { setup, data: &data, load_name: None, phases: &[] };
        let mut results = Results::default();
        let pass = Pass { number: 0, threads: 1, measure: Measure::Throughput };
        let finished = plan.run::<Db<B>>(path, pass, &mut results, progress)?;
        let store = finished.row(&data);
        finished.store.close()?;
        progress.step(&format!("reopening {} records", setup.records));
        let all = Reopening::measure::<Db<B>>(setup, path, &self.threads(), setup.repetitions)?;
        Ok((all.rows(), store))
    }
}
