//! `growth`: inserting into a growing pool against a populated one.

use chimera::Db;
use chimera_pmem::{Hardware, Instrumented};

use super::benchmark::Benchmark;
use super::common::Common;
use super::given::{NO_GETS, NOT_KEPT, Unused};
use crate::driver::backend::Backend;
use crate::driver::clock::Measure;
use crate::driver::counting::count;
use crate::driver::pass::{Pass, Plan, measures};
use crate::driver::progress::Progress;
use crate::driver::setup::Setup;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::{Growth, Report};
use crate::results::series::Results;
use crate::results::statistics::{median, ratio};

/// Arguments of `growth`.
#[derive(Clone, Debug, clap::Args)]
pub struct GrowthArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
}

/// Both sides: the name of a store, that of its row, and whether its pool grows.
const SIDES: [(&str, &str, bool); 2] =
    [("growing", "insert/growing", true), ("populated", "insert/populated", false)];

/// The background task's work in all throughput passes.
#[derive(Debug, Default)]
struct Background {
    processor_ns: f64,
    inserting_ns: f64,
    records: f64,
}

impl Benchmark for GrowthArguments {
    const UNUSED: &'static [Unused] = &[
        ("populate", "both kinds of pools are measured"),
        ("growing", "both kinds of pools are measured"),
        ("operations", "each side inserts --records"),
        ("duration", "each side inserts --records"),
        NO_GETS,
        NOT_KEPT,
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let setup = self.common.setup((16, 200))?;
        let refuse = |what: &str| Err(BenchError::Arguments(what.to_owned()));
        if setup.is_anonymous() {
            return refuse("memory without files has one size: give a --path");
        }
        if setup.threads.len() != 1 {
            return refuse("the pools are compared at one number of threads: give one --threads");
        }
        Ok(vec![setup])
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let mut results = Results::default();
        let mut background = Background::default();
        let mut row = None;
        let passes = measures(setup.repetitions);
        let progress = Progress::new(passes.len() * setup.threads.len() * 4 + 1);
        for (number, measure) in passes.into_iter().enumerate() {
            for threads in &setup.threads {
                for side in 0..2 {
                    // Neither side always comes first.
                    let (store, name, growing) = SIDES[(side + number) % 2];
                    let setup = Setup { growing, ..setup.clone() };
                    let plan =
                        Plan { setup: &setup, data: &data, load_name: Some(name), phases: &[] };
                    let path = workspace.store(store)?;
                    let pass = Pass { number, threads: *threads, measure };
                    let finished = plan.run::<Db<B>>(&path, pass, &mut results, &progress)?;
                    if growing && measure == Measure::Throughput {
                        let last =
                            results.find(name, *threads).and_then(|it| it.throughputs.last());
                        background.add(&finished.store.stats(), last.copied().unwrap_or_default());
                        row = Some(finished.row(&data));
                    }
                    finished.discard(&workspace)?;
                }
            }
        }
        if setup.counters {
            progress.step("counting");
            let engine = setup.name();
            for (_, name, _) in SIDES {
                let all = count::<Db<Instrumented<Hardware>>>(setup, Some(name), &[], 0.5)?;
                results.enter_counted(&engine, &all);
            }
        }
        let row = row.expect("there is at least one throughput pass");
        let growth = Some(compare(&results, setup.threads[0], &background));
        let operations = setup.records;
        let setup = Setup { records: 0, operations, ..setup.clone() };
        Ok((Report { growth, ..Report::new("growth", &setup, vec![row], &results) }, results))
    }
}

impl Background {
    fn add(&mut self, stats: &chimera::Stats, ops_per_second: f64) {
        let records = stats.records as f64;
        self.processor_ns += stats.background_ns as f64;
        self.inserting_ns += ratio(records * 1e9, ops_per_second);
        self.records += records;
    }
}

fn compare(results: &Results, threads: usize, background: &Background) -> Growth {
    let [growing, populated] = SIDES.map(|(_, row, _)| results.find(row, threads));
    let (growing, populated) = (growing.expect("was measured"), populated.expect("was measured"));
    let pairs = growing.throughputs.iter().zip(&populated.throughputs);
    let times: Vec<_> = pairs.map(|(growing, populated)| ratio(*populated, *growing)).collect();
    let at = |percentile: f64| {
        let [growing, populated] =
            [growing, populated].map(|it| it.latencies.value_at_percentile(percentile) as f64);
        ratio(growing, populated)
    };
    Growth {
        time_ratio: median(&times),
        p50_ratio: at(50.0),
        p99_ratio: at(99.0),
        background_ns_per_record: ratio(background.processor_ns, background.records),
        background_core_share: ratio(background.processor_ns, background.inserting_ns),
    }
}
