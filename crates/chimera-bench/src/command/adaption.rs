//! `adaption`: a fixed pool of threads, divided between serving and applying changes of the order of keys as HiKV does
//! (sections 3.2.2 and 4.5), against fixed divisions.

use chimera::Db;

use super::benchmark::Benchmark;
use super::common::Common;
use super::given::{NO_DURATION, NOT_COUNTED, NOT_KEPT, Unused};
use crate::driver::backend::Backend;
use crate::driver::clock::Measure;
use crate::driver::pass::{Pass, Plan, demand};
use crate::driver::phase::{Action, Phase};
use crate::driver::pool::{self, Division, Done, Work};
use crate::driver::progress::Progress;
use crate::driver::setup::{OrderChoice, Setup};
use crate::driver::verify::verify;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::{Adaption, AdaptionRow, Report};
use crate::results::machine::cores;
use crate::results::rows::StoreRow;
use crate::results::series::Results;
use crate::results::statistics::{median, range, ratio};

/// Arguments of `adaption`.
#[derive(Clone, Debug, clap::Args)]
pub struct AdaptionArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// Threads of the pool, which serve or apply changes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=64))]
    #[arg(value_name = "N", help_heading = "Work")]
    pub pool: u8,
}

/// Gets for each insert: as YCSB A, B and F have them for each write. Inserts, because overwrites change no order.
const GETS: [u64; 3] = [1, 19, 3];

/// All that was measured of a division.
struct Side {
    gets: u64,
    division: Division,
    done: Vec<Done>,
}

impl Benchmark for AdaptionArguments {
    const UNUSED: &'static [Unused] = &[
        NO_DURATION,
        ("order", "the pool applies the changes of an ordered store itself"),
        ("trees", "the pool applies the changes of one tree"),
        ("threads", "give --pool"),
        NOT_COUNTED,
        NOT_KEPT,
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let setup = self.common.setup((16, 200))?;
        let threads = usize::from(self.pool);
        let order = OrderChoice::Asynchronous;
        Ok(vec![Setup { order, pool: Some(threads), threads: vec![threads], ..setup }])
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let (setup, threads) = (&setups[0], usize::from(self.pool));
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let mut sides: Vec<Side> = Vec::new();
        for gets in GETS {
            for division in divisions(threads) {
                sides.push(Side { gets, division, done: Vec::new() });
            }
        }
        let progress = Progress::new(setup.repetitions * sides.len() * 4);
        let mut row = None;
        for number in 0..setup.repetitions {
            for turn in 0..sides.len() {
                // Each comes first in its turn.
                let at = (turn + number) % sides.len();
                let side = &mut sides[at];
                let work = Work {
                    threads,
                    division: side.division,
                    operations: setup.operations,
                    gets: side.gets,
                    records: setup.records,
                };
                let pass = Pass { number, threads, measure: Measure::Throughput };
                let (done, store) =
                    measure_once::<B>(setup, &data, &workspace, work, pass, &progress)?;
                side.done.push(done);
                row = Some(store);
            }
        }
        let rows = sides.iter().map(|side| side.row(threads, setup.operations)).collect();
        let adaption = Some(Adaption { threads, cores: cores(), rows });
        let results = Results::default();
        let row = row.expect("there is at least one pass");
        let report = Report::new("adaption", setup, vec![row], &results);
        Ok((Report { adaption, ..report }, results))
    }
}

/// As decided, all but one serve, and half of them do.
fn divisions(threads: usize) -> Vec<Division> {
    let mut all = vec![Division::Adaptive, Division::Serving(threads - 1)];
    if threads > 2 {
        all.push(Division::Serving(threads / 2));
    }
    all
}

/// One division on a store made anew, which is verified afterwards.
fn measure_once<B: Backend>(
    setup: &Setup,
    data: &Data,
    workspace: &Workspace,
    work: Work,
    pass: Pass,
    progress: &Progress,
) -> Result<(Done, StoreRow)> {
    let inserts = [Phase::new("insert", Action::Insert)];
    let demand = demand(setup, &inserts, work.threads.max(cores()));
    let plan = Plan { setup, data, load_name: None, phases: &[] };
    let path = workspace.store("pool")?;
    let mut finished =
        plan.create::<Db<B>>(&path, &demand, pass, &mut Results::default(), progress)?;
    progress.step(&format!("pass {}: serving", pass.number + 1));
    let done = pool::run(&finished.store, data, work, (pass.number as u64) << 8 | 1)?;
    progress.step(&format!("pass {}: verifying", pass.number + 1));
    finished.ledger.loaded += done.inserted;
    verify(&finished.store, data, &finished.ledger, cores())?;
    let order = finished.store.stats().order.unwrap_or_default();
    if (order.keys, order.waiting) != (finished.ledger.records(), 0) {
        let (number, what) = (order.keys, "left keys out of their order");
        return Err(BenchError::WrongAnswer { operation: "a pool", number, what });
    }
    let row = finished.row(data);
    finished.discard(workspace)?;
    Ok((done, row))
}

impl Side {
    fn row(&self, threads: usize, operations: u64) -> AdaptionRow {
        let rates: Vec<_> =
            self.done.iter().map(|done| ratio(operations as f64, done.seconds)).collect();
        let serving: Vec<_> = self.done.iter().map(|done| done.serving_mean).collect();
        AdaptionRow {
            gets_per_insert: self.gets,
            division: match self.division {
                Division::Adaptive => "adaptive".to_owned(),
                Division::Serving(serving) => format!("{serving}/{}", threads - serving),
            },
            ops_per_second: median(&rates),
            ops_per_second_min: range(&rates).0,
            ops_per_second_max: range(&rates).1,
            serving_threads: median(&serving),
            decisions: self.done.iter().map(|done| done.decisions).sum(),
        }
    }
}
