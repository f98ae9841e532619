//! `chameleon ratios`: ChameleonDB against what its paper compares it with, in one run (EuroSys'21, section 3.3).

mod goals;

use std::path::Path;

use chimera::Db;

use super::super::benchmark::Benchmark;
use super::super::common::Common;
use super::super::given::Unused;
use super::shape::ShapeArguments;
use super::sides::Side;
use crate::driver::backend::Backend;
use crate::driver::ledger::Ledger;
use crate::driver::pass::{Pass, demand, measures, store_row};
use crate::driver::phase::{self, Action, Extent, Phase};
use crate::driver::progress::Progress;
use crate::driver::setup::Setup;
use crate::driver::store::{Create, Store};
use crate::driver::tuning::Tuning;
use crate::driver::verify::verify;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::Result;
use crate::report::chameleon::Ratios;
use crate::report::{Chameleon, Facts, Report, StoreRow};
use crate::results::machine::cores;
use crate::results::measured::Measured;
use crate::results::series::Results;
use crate::results::statistics::ratio;
use goals::{goals, share_rows, side_rows};

const PUT: &str = "put";
const GET: &str = "get";
const OVERWRITE: &str = "overwrite";
/// Gets with other shares of keys above the last level than at the end: full bypass indexes that went to the last level
/// before, the share, and the name. With MemTables that are filled by chance to 65 to 85 % all shards are in the same cycle
/// at these.
const SHARES: [(f64, f64, &str); 2] =
    [(1.0, 0.4, "get, 40 % above"), (2.0, 0.12, "get, 10 % above")];

/// Arguments of `chameleon ratios`.
#[derive(Clone, Debug, clap::Args)]
pub struct RatiosArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// What all benchmarks of ChameleonDB have.
    #[command(flatten)]
    pub shape: ShapeArguments,
    /// Stores that take turns, separated by commas
    #[arg(long, value_delimiter = ',', help_heading = "Store")]
    #[arg(
        default_value = "chameleon,chameleon-write-intensive,chameleon-unbatched,pmem-lsm-nf,pmem-lsm-f,pmem-lsm-pink,pmem-hash,dram-hash"
    )]
    pub sides: Vec<Side>,
    /// Puts look whether their key is there, and count exactly. Those of the paper do not, nor do these without the option, but
    /// for pmem-hash and dram-hash, which have to
    #[arg(long, help_heading = "Store")]
    pub exact_puts: bool,
}

/// Gets are measured when so many records are there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Point {
    gets: &'static str,
    records: u64,
}

/// Where gets are measured while records are put: at other shares of keys above the last level, and at the end.
fn points(tuning: &Tuning, records: u64) -> Vec<Point> {
    let full = (tuning.bypass_keys() * u64::from(tuning.shards)) as f64;
    let at = |(cycles, share, gets): (f64, f64, _)| Point {
        gets,
        records: (full * cycles / (1.0 - share)) as u64,
    };
    let others = SHARES.into_iter().map(at).filter(|point| point.records < records);
    others.chain([Point { gets: GET, records }]).collect()
}

impl Benchmark for RatiosArguments {
    const UNUSED: &'static [Unused] = &[];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        ShapeArguments::refuse_without_levels(&self.common, &self.sides)?;
        let mut setups = self.shape.setups(&self.common, &self.sides)?;
        for tuning in setups.iter_mut().filter_map(|setup| setup.tuning.as_mut()) {
            tuning.blind_puts = !self.exact_puts;
        }
        Ok(setups)
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let tuning = setup.tuning.expect("of ChameleonDB");
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let points = points(&tuning, setup.records);
        let passes = measures(setup.repetitions);
        let steps = passes.len() * setup.threads.len() * setups.len() * (2 * points.len() + 3);
        let progress = Progress::new(steps);
        let mut all = All::of(setups.len(), points.len());
        for (number, measure) in passes.iter().copied().enumerate() {
            for (nth, threads) in setup.threads.iter().copied().enumerate() {
                let is_last = number + 1 == passes.len() && nth + 1 == setup.threads.len();
                for turn in 0..setups.len() {
                    // Each comes first in its turn.
                    let which = (turn + number) % setups.len();
                    let pass = Pass { number, threads, measure };
                    let (side, setup) = (&self.sides[which], &setups[which]);
                    let turn = Turn { side, setup, data: &data, points: &points, pass, is_last };
                    let path = workspace.store(side.name)?;
                    turn.run::<B>(&path, which, &mut all, &progress)?;
                    if !(is_last && setup.keep) {
                        workspace.remove(&path)?;
                    }
                }
            }
        }
        self.sort(&mut all.results, setup, &points);
        let All { results, stores, shares } = all;
        let stores: Vec<_> = stores.into_iter().flatten().collect();
        let ratios = Ratios {
            shards: tuning.shards,
            batch_bytes: self.shape.batch_bytes,
            exact_puts: self.exact_puts,
            sides: side_rows(&results, &stores),
            shares: share_rows(&self.sides, &points, &shares),
            goals: goals(&results, &stores, &setup.threads),
        };
        let report = Report::new("chameleon ratios", setup, stores, &results);
        Ok((Report { chameleon: Some(Chameleon::Ratios(ratios)), ..report }, results))
    }
}

impl RatiosArguments {
    /// Puts next to each other what is to be compared.
    fn sort(&self, results: &mut Results, setup: &Setup, points: &[Point]) {
        let gets = points.iter().map(|point| point.gets);
        let work: Vec<_> = [PUT].into_iter().chain(gets).chain([OVERWRITE]).collect();
        results.series.sort_by_key(|one| {
            (
                setup.threads.iter().position(|threads| *threads == one.threads),
                work.iter().position(|name| *name == one.operation),
                self.sides.iter().position(|side| side.name == one.engine),
            )
        });
    }
}

/// All that was measured.
struct All {
    results: Results,
    /// One for each side.
    stores: Vec<Option<StoreRow>>,
    /// Shares of keys above the last level, of each side at each point.
    shares: Vec<Vec<Vec<f64>>>,
}

impl All {
    fn of(sides: usize, points: usize) -> Self {
        let shares = vec![vec![Vec::new(); points]; sides];
        Self { results: Results::default(), stores: vec![None; sides], shares }
    }
}

/// One side in one pass.
struct Turn<'a> {
    side: &'a Side,
    setup: &'a Setup,
    data: &'a Data,
    points: &'a [Point],
    pass: Pass,
    is_last: bool,
}

impl Turn<'_> {
    /// Puts all records into a store made anew, with gets at each point, and overwrites some.
    fn run<B: Backend>(
        &self,
        path: &Path,
        which: usize,
        all: &mut All,
        progress: &Progress,
    ) -> Result<()> {
        let Self { side, setup, data, pass, .. } = *self;
        let step = |what: &str| {
            progress.step(&format!("pass {}: {what}, {side}", pass.number + 1));
        };
        let phase = |name: &str, action| Phase::new(name, action);
        let insert = phase(PUT, Action::Insert);
        let overwrite = phase(OVERWRITE, Action::Overwrite);
        step("creating a store");
        let demand = demand(setup, std::slice::from_ref(&overwrite), pass.threads.max(cores()));
        let db = Db::<B>::create(setup, path, &demand)?;
        let facts = Facts { engine: side.name.to_owned(), ..db.facts() };
        let mut ledger = Ledger::default();
        let mut stream = (pass.number as u64) << 8;
        let mut work = |ledger: &mut Ledger, phase: &Phase, operations| {
            let (threads, measure) = (pass.threads, pass.measure);
            let extent = Extent { threads, operations, duration: None, measure };
            stream += 1;
            phase::run(&db, data, ledger, phase, extent, stream)
        };
        let mut put: Option<Measured> = None;
        for (number, point) in self.points.iter().enumerate() {
            step(PUT);
            let inserted = work(&mut ledger, &insert, point.records - put_so_far(put.as_ref()))?;
            ledger.settle();
            db.sync()?;
            put = Some(match put {
                Some(before) => before.and(inserted),
                None => inserted,
            });
            all.shares[which][number].extend(share(&db));
            step(point.gets);
            let measured = work(&mut ledger, &phase(point.gets, Action::Get), setup.operations)?;
            all.results.add(&facts, point.gets, pass.threads, measured);
        }
        let put = put.expect("there is at least one point");
        all.results.add(&facts, PUT, pass.threads, put);
        let mut row = store_row(facts.clone(), db.footprint(), data);
        step(OVERWRITE);
        let measured = work(&mut ledger, &overwrite, setup.operations)?;
        all.results.add(&facts, OVERWRITE, pass.threads, measured);
        if self.is_last {
            step("verifying");
            row.verified_records = Some(verify(&db, data, &ledger, cores())?);
            all.stores[which] = Some(row);
        }
        Store::close(db)
    }
}

fn put_so_far(put: Option<&Measured>) -> u64 {
    put.map_or(0, |put| put.operations)
}

/// Keys in MemTables and above the last level, over all keys; of a store that has levels.
fn share<B: Backend>(db: &Db<B>) -> Option<f64> {
    let stats = db.stats();
    let chameleon = stats.chameleon()?;
    let above = chameleon.memtable_entries + chameleon.bypass_entries;
    Some(ratio(above as f64, stats.records as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gets_are_measured_at_three_shares_of_the_published_size() {
        let tuning = Tuning { shards: 512, ..Tuning::published(1) };
        let of_shard = |point: &Point| point.records / 512;
        let all = points(&tuning, 31_250_000);
        assert_eq!(all.iter().map(of_shard).collect::<Vec<_>>(), [40_960, 55_854, 61_035]);
        assert_eq!(all[2], Point { gets: GET, records: 31_250_000 });
        assert_eq!(points(&tuning, 25_000_000).len(), 2);
        assert_eq!(points(&tuning, 1000), [Point { gets: GET, records: 1000 }]);
    }
}
