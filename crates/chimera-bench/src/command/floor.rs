//! `floor`: the engine against the cost nobody can beat.

use std::sync::Arc;

use chimera_pmem::environment::{AnonymousFile, File};
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{Hardware, Instrumented};

use super::{Benchmark, Common};
use crate::driver::backend::Backend;
use crate::driver::clock::Measure;
use crate::driver::counting::{Counted, begin_counting, count, summary};
use crate::driver::pass::{Finished, Pass, Plan, capacity_bytes, cores, measures};
use crate::driver::phase::{self, Action, Extent, Phase};
use crate::driver::progress::Progress;
use crate::driver::series::{Results, Series, median, range, ratio};
use crate::driver::setup::{Setup, Sizing};
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::floor::{Floor, FloorAction, region_bytes, run};
use crate::report::{Facts, RatioRow, Report};

/// Arguments of `floor`.
#[derive(Clone, Debug, clap::Args)]
pub struct FloorArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
}

/// An operation on both sides. Gets come before updates, which leave marks in the engine's store that
/// make later reads cheaper.
const OPERATIONS: [(&str, FloorAction, Action); 5] = [
    ("insert", FloorAction::Insert, Action::Insert),
    ("get", FloorAction::Get, Action::Get),
    ("update", FloorAction::Update, Action::Update),
    ("overwrite", FloorAction::Overwrite, Action::Overwrite),
    ("delete", FloorAction::Delete, Action::Delete),
];

/// Both shapes, and whether they are chained.
const SHAPES: [(&str, bool); 2] = [("independent", false), ("chained", true)];

/// One comparison.
#[derive(Clone, Debug)]
struct Pair {
    operation: &'static str,
    shape: &'static str,
    floor: FloorAction,
    engine: Phase,
}

impl Pair {
    fn floor_name(&self) -> String {
        format!("{}/floor/{}", self.operation, self.shape)
    }
}

/// All comparisons, in the order in which they run.
fn pairs(data: &Data) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (operation, floor, action) in OPERATIONS {
        if action == Action::Update && data.values.counter_at().is_none() {
            continue;
        }
        for (shape, chained) in SHAPES {
            let name = format!("{operation}/engine/{shape}");
            let engine = Phase { name, action, chained };
            pairs.push(Pair { operation, shape, floor, engine });
        }
    }
    pairs
}

impl Benchmark for FloorArguments {
    fn common(&self) -> &Common {
        &self.common
    }

    fn setup(&self) -> Result<Setup> {
        let setup = self.common.setup((16, 200))?;
        if setup.sizing == Sizing::Mixed {
            let what = "a floor has slots of one size: give --any-size, not --mixed-sizes";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        if setup.duration.is_some() {
            let what =
                "both sides do the same number of operations: give --operations, no duration";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        Ok(setup)
    }

    fn measure<B: Backend>(&self, setup: &Setup) -> Result<(Report, Results)> {
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let pairs = pairs(&data);
        let phases: Vec<_> = pairs.iter().map(|pair| pair.engine.clone()).collect();
        let passes = measures(setup.repetitions);
        let progress = Progress::new(passes.len() * setup.threads.len() * (pairs.len() + 2) + 1);
        let mut results = Results::default();
        let mut facts = None;
        let mut floor: Option<Floor<B>> = None;
        let plan = Plan { setup, data: &data, load_name: None, phases: &[] };
        for (number, measure) in passes.into_iter().enumerate() {
            for threads in &setup.threads {
                let pass = Pass { number, threads: *threads, measure };
                // Room for both shapes' inserts.
                let capacity = capacity_bytes(setup, &phases, cores().max(*threads));
                let path = workspace.path();
                let finished = plan.create::<B>(path, capacity, pass, &mut results, &progress)?;
                facts = Some(Facts::of(&finished.db, &finished.loaded, &data));
                if floor.is_none() {
                    let index_bytes = finished.loaded.dram_index_bytes;
                    floor = Some(floor_beside(setup, &data, &workspace, index_bytes)?);
                }
                let side = floor.as_ref().expect("made a moment ago");
                let turn = Turn { setup, data: &data, pass };
                turn.run(side, finished, &pairs, &workspace, &mut results, &progress)?;
            }
        }
        if setup.counters {
            progress.step("counting");
            results.enter_counted(&count(setup, None, &phases, 0.5)?);
            results.enter_counted(&count_floors(setup, &pairs)?);
        }
        let order = |name: &str| {
            pairs.iter().position(|pair| pair.engine.name == name || pair.floor_name() == name)
        };
        results.series.sort_by_key(|it| (it.threads, order(&it.operation), is_engine(it)));
        let ratios = Some(ratios(&results, &pairs, &setup.threads));
        let facts = facts.expect("there is at least one pass");
        Ok((Report { ratios, ..Report::new("floor", setup, facts, &results) }, results))
    }
}

/// The floors' region on the medium of the store.
fn floor_beside<B: Backend>(
    setup: &Setup,
    data: &Data,
    workspace: &Workspace,
    index_bytes: u64,
) -> Result<Floor<B>> {
    let memory = |source| BenchError::Memory { what: "the floors' address space", source };
    let hardware = setup.options_to_open().hardware_options();
    let pmem = B::make(hardware, setup.timed()).map_err(memory)?;
    let threads = setup.threads.iter().copied().max().unwrap_or(1);
    let size = (setup.records, setup.operations);
    let bytes = region_bytes(data, size.0, size.1, threads);
    let file: Arc<dyn File> = if setup.is_anonymous() {
        Arc::new(AnonymousFile::new(bytes))
    } else {
        workspace.floor_file(bytes)?
    };
    Floor::new(pmem, &file, data, size, threads, index_bytes)
}

/// One pass over all comparisons.
struct Turn<'a> {
    setup: &'a Setup,
    data: &'a Data,
    pass: Pass,
}

impl Turn<'_> {
    fn run<B: Backend>(
        &self,
        floor: &Floor<B>,
        mut finished: Finished<B>,
        pairs: &[Pair],
        workspace: &Workspace,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<()> {
        for number in 0..pairs.len() {
            // Neither shape always comes first: the engine's index grows from one to the other.
            let pair = &pairs[number ^ (self.pass.number & 1)];
            progress.step(&format!(
                "pass {}: {} {}",
                self.pass.number + 1,
                pair.operation,
                pair.shape
            ));
            let stream = (self.pass.number as u64) << 8 | (number as u64 + 1);
            // Neither side always comes first.
            for side in 0..2 {
                if (side + self.pass.number + number).is_multiple_of(2) {
                    self.run_floor(floor, pair, stream, results)?;
                } else {
                    self.run_engine(&mut finished, pair, stream, results)?;
                }
            }
        }
        finished.discard(workspace)
    }

    fn run_floor<B: Backend>(
        &self,
        floor: &Floor<B>,
        pair: &Pair,
        stream: u64,
        results: &mut Results,
    ) -> Result<()> {
        let shape = (self.pass.measure, pair.engine.chained);
        let size = (self.pass.threads, self.setup.operations);
        let measured = run(floor, self.data, pair.floor, size, shape, stream)?;
        results.add(&pair.floor_name(), self.pass.threads, measured);
        Ok(())
    }

    fn run_engine<B: Backend>(
        &self,
        finished: &mut Finished<B>,
        pair: &Pair,
        stream: u64,
        results: &mut Results,
    ) -> Result<()> {
        let (threads, measure) = (self.pass.threads, self.pass.measure);
        let extent = Extent { threads, operations: self.setup.operations, duration: None, measure };
        let Finished { db, ledger, .. } = finished;
        let measured = phase::run(db, self.data, ledger, &pair.engine, extent, stream)?;
        results.add(&pair.engine.name, threads, measured);
        Ok(())
    }
}

/// Counts the floors as `count` does the engine.
fn count_floors(setup: &Setup, pairs: &[Pair]) -> Result<Vec<(String, Counted)>> {
    let setup = setup.for_counting();
    let data = Data::new(&setup);
    let records = setup.records.min(crate::driver::counting::COUNTED_MAX);
    let operations = setup.operations.min(records);
    let memory = |source| BenchError::Memory { what: "counting", source };
    let hardware = Hardware::new(setup.options_to_open().hardware_options()).map_err(memory)?;
    let pmem = Instrumented::new(hardware, InstrumentedOptions::default());
    let bytes = region_bytes(&data, records, operations, 1);
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(bytes));
    // The size of the table does not matter to counters of persistent memory.
    let floor = Floor::new(pmem, &file, &data, (records, operations), 1, 0)?;
    let mut all = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        begin_counting(&floor.pmem);
        let shape = (Measure::Throughput, pair.engine.chained);
        run(&floor, &data, pair.floor, (1, operations), shape, number as u64)?;
        floor.pmem.drain(pair.floor.class());
        let name = pair.floor_name();
        all.push((name.clone(), summary(&floor.pmem, &name, operations)));
    }
    Ok(all)
}

/// Whether a series is the engine's.
fn is_engine(series: &Series) -> bool {
    series.operation.contains("/engine/")
}

/// The engine's time over the floor's, repetition by repetition.
fn ratios(results: &Results, pairs: &[Pair], threads: &[usize]) -> Vec<RatioRow> {
    let mut rows = Vec::new();
    for pair in pairs {
        for threads in threads {
            let side = |name: &str| results.find(name, *threads).map(|it| it.throughputs.clone());
            let (Some(floor), Some(engine)) = (side(&pair.floor_name()), side(&pair.engine.name))
            else {
                continue;
            };
            let all: Vec<_> =
                floor.iter().zip(&engine).map(|(floor, engine)| ratio(*floor, *engine)).collect();
            rows.push(RatioRow {
                operation: pair.operation.to_owned(),
                shape: pair.shape.to_owned(),
                threads: *threads,
                ratio: median(&all),
                ratio_min: range(&all).0,
                ratio_max: range(&all).1,
            });
        }
    }
    rows
}
