//! `floor`: the engine against the cost nobody can beat.

use std::sync::Arc;

use chimera::{Db, Durability};
use chimera_pmem::environment::{AnonymousFile, File};
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{Hardware, Instrumented};

use super::benchmark::Benchmark;
use super::common::Common;
use super::given::{NO_DURATION, NOT_KEPT, Unused};
use crate::driver::backend::Backend;
use crate::driver::clock::Measure;
use crate::driver::counting::{begin_counting, count, summary};
use crate::driver::pass::{Finished, Pass, Plan, demand, measures};
use crate::driver::phase::{self, Action, Extent, Phase};
use crate::driver::progress::Progress;
use crate::driver::setup::Setup;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::floor::{Floor, FloorAction, region_bytes, run};
use crate::report::{Facts, RatioRow, Report};
use crate::results::machine::cores;
use crate::results::measured::Measured;
use crate::results::rows::Counted;
use crate::results::series::{Results, Series};
use crate::results::statistics::{median, range, ratio};

/// Arguments of `floor`.
#[derive(Clone, Debug, clap::Args)]
pub struct FloorArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
}

/// An operation on both sides, and what the ratio of their times is to be at most: independent, chained.
type Comparison = (&'static str, FloorAction, Action, [f64; 2]);

/// Gets come before updates, which leave marks in the engine's store that make later reads cheaper.
const OPERATIONS: [Comparison; 5] = [
    ("insert", FloorAction::Insert, Action::Insert, [1.25, 1.25]),
    ("get", FloorAction::Get, Action::Get, [2.0, 1.3]),
    ("update", FloorAction::Update, Action::Update, [2.5, 1.3]),
    ("overwrite", FloorAction::Overwrite, Action::Overwrite, [1.25, 1.25]),
    ("delete", FloorAction::Delete, Action::Delete, [2.5, 1.3]),
];

/// The name of floors among engines.
const FLOOR: &str = "floor";

/// Both shapes, and whether they are chained.
const SHAPES: [(&str, bool); 2] = [("independent", false), ("chained", true)];

/// One comparison.
#[derive(Clone, Debug)]
struct Pair {
    operation: &'static str,
    shape: &'static str,
    floor: FloorAction,
    engine: Phase,
    /// What the ratio is to be at most.
    goal: f64,
}

impl Pair {
    fn floor_name(&self) -> String {
        format!("{}/floor/{}", self.operation, self.shape)
    }
}

/// All comparisons, in the order in which they run.
fn pairs(data: &Data) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (operation, floor, action, goals) in OPERATIONS {
        if action == Action::Update && data.values.counter_at().is_none() {
            continue;
        }
        for ((shape, chained), goal) in SHAPES.into_iter().zip(goals) {
            let name = format!("{operation}/engine/{shape}");
            let engine = Phase { name, action, chained };
            pairs.push(Pair { operation, shape, floor, engine, goal });
        }
    }
    pairs
}

impl Benchmark for FloorArguments {
    const UNUSED: &'static [Unused] =
        &[NO_DURATION, NOT_KEPT, ("mixed-sizes", "a floor has slots of one size: give --any-size")];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        Ok(vec![self.common.setup((16, 200))?])
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let pairs = pairs(&data);
        let phases: Vec<_> = pairs.iter().map(|pair| pair.engine.clone()).collect();
        let passes = measures(setup.repetitions);
        let progress = Progress::new(passes.len() * setup.threads.len() * (pairs.len() + 2) + 1);
        let mut results = Results::default();
        let mut store = None;
        let mut floor: Option<Floor<B>> = None;
        let plan = Plan { setup, data: &data, load_name: None, phases: &[] };
        for (number, measure) in passes.into_iter().enumerate() {
            for threads in &setup.threads {
                let pass = Pass { number, threads: *threads, measure };
                // Room for both shapes' inserts.
                let demand = demand(setup, &phases, cores().max(*threads));
                let path = workspace.path();
                let finished =
                    plan.create::<Db<B>>(path, &demand, pass, &mut results, &progress)?;
                store = Some(finished.row(&data));
                if floor.is_none() {
                    let index_bytes = finished.store.stats().dram_index_bytes;
                    floor = Some(floor_beside(setup, &data, &workspace, index_bytes)?);
                }
                let side = floor.as_ref().expect("made a moment ago");
                let turn = Turn { setup, data: &data, pass };
                turn.run(side, finished, &pairs, &workspace, &mut results, &progress)?;
            }
        }
        if setup.counters {
            progress.step("counting");
            let of_engine = count::<Db<Instrumented<Hardware>>>(setup, None, &phases, 0.5)?;
            results.enter_counted(&setup.name(), &of_engine);
            results.enter_counted(FLOOR, &count_floors(setup, &pairs)?);
        }
        let order = |name: &str| {
            pairs.iter().position(|pair| pair.engine.name == name || pair.floor_name() == name)
        };
        results.series.sort_by_key(|it| (it.threads, order(&it.operation), is_engine(it)));
        let ratios = Some(ratios(&results, &pairs, &setup.threads));
        let store = store.expect("there is at least one pass");
        Ok((Report { ratios, ..Report::new("floor", setup, vec![store], &results) }, results))
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

/// What is said of a floor beside the store that says `facts` of itself. Where that has a journal, the
/// floor has none.
fn facts_of<B: Backend>(floor: &Floor<B>, facts: &Facts) -> Facts {
    let is_persistent = floor.pmem.medium().is_persistent_memory();
    let durability = if is_persistent { Durability::Immediate } else { Durability::Process };
    let (engine, durability) = (FLOOR.to_owned(), durability.to_string());
    Facts { engine, durability, ..facts.clone() }
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
        mut finished: Finished<Db<B>>,
        pairs: &[Pair],
        workspace: &Workspace,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<()> {
        let beside = facts_of(floor, &finished.facts);
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
                    let measured = self.run_floor(floor, pair, stream)?;
                    results.add(&beside, &pair.floor_name(), self.pass.threads, measured);
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
    ) -> Result<Measured> {
        let shape = (self.pass.measure, pair.engine.chained);
        let size = (self.pass.threads, self.setup.operations);
        run(floor, self.data, pair.floor, size, shape, stream)
    }

    fn run_engine<B: Backend>(
        &self,
        finished: &mut Finished<Db<B>>,
        pair: &Pair,
        stream: u64,
        results: &mut Results,
    ) -> Result<()> {
        let (threads, measure) = (self.pass.threads, self.pass.measure);
        let extent = Extent { threads, operations: self.setup.operations, duration: None, measure };
        let Finished { store, ledger, facts, .. } = finished;
        phase::prepare(store, self.data, ledger, &pair.engine, extent, stream)?;
        let measured = phase::run(store, self.data, ledger, &pair.engine, extent, stream)?;
        results.add(facts, &pair.engine.name, threads, measured);
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
    let pmem = Instrumented::new(hardware, InstrumentedOptions::counting(setup.profile));
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
        all.push((name.clone(), summary(&floor.pmem, FLOOR, &name, operations)));
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
                goal: pair.goal,
            });
        }
    }
    rows
}
