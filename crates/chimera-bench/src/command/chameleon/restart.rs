//! `chameleon restart`: from opening a store to the first answer, and to complete bypass indexes (EuroSys'21, section 3.3).

use std::path::Path;
use std::time::Duration;

use chimera::Db;

use super::super::benchmark::Benchmark;
use super::super::common::Common;
use super::super::given::Unused;
use super::shape::ShapeArguments;
use super::sides::{CHAMELEON, DRAM_HASH, Side};
use crate::driver::backend::Backend;
use crate::driver::clock::Measure;
use crate::driver::opening::{Opening, open_and_get};
use crate::driver::pass::{Finished, Pass, Plan, demand};
use crate::driver::progress::Progress;
use crate::driver::setup::Setup;
use crate::driver::store::{Footprint, Store};
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::chameleon::{Restart, RestartRow};
use crate::report::{Chameleon, Facts, Report, StoreRow};
use crate::results::machine::cores;
use crate::results::measured::Measured;
use crate::results::series::Results;
use crate::results::statistics::{median, range, ratio};

/// Arguments of `chameleon restart`.
#[derive(Clone, Debug, clap::Args)]
pub struct RestartArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// What all benchmarks of ChameleonDB have. Shards are those for the largest size.
    #[command(flatten)]
    pub shape: ShapeArguments,
    /// Stores, separated by commas
    #[arg(long, value_delimiter = ',', help_heading = "Store")]
    #[arg(default_value = "chameleon,chameleon-write-intensive,dram-hash")]
    pub sides: Vec<Side>,
    /// Numbers of records, separated by commas [default: an eighth, a quarter, a half and all of --records]
    #[arg(long, value_delimiter = ',', value_name = "N", help_heading = "Work")]
    pub sizes: Vec<u64>,
    /// Seconds of gets once bypass indexes are complete
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS", help_heading = "Work")]
    pub after: f64,
}

impl RestartArguments {
    fn sizes(&self, records: u64) -> Vec<u64> {
        match self.sizes.as_slice() {
            [] => [8, 4, 2, 1].map(|part| (records / part).max(1)).to_vec(),
            sizes => sizes.to_vec(),
        }
    }

    fn after(&self) -> Result<Duration> {
        Duration::try_from_secs_f64(self.after)
            .map_err(|_| BenchError::Arguments("--after must be 0 seconds or more".to_owned()))
    }
}

impl Benchmark for RestartArguments {
    const UNUSED: &'static [Unused] = &[
        ("operations", "gets end with the time: give --after"),
        ("threads", "one thread gets records"),
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        self.after()?;
        if self.sizes.contains(&0) {
            return Err(BenchError::Arguments("--sizes must be at least 1".to_owned()));
        }
        if !self.sizes.is_empty() {
            self.common.given.refuse_all(&["records"], "--sizes says how many there are")?;
        }
        ShapeArguments::refuse_without_levels(&self.common, &self.sides)?;
        let records = self.sizes.iter().copied().max().or(self.common.records);
        let setups = self.shape.setups(&Common { records, ..self.common.clone() }, &self.sides)?;
        if setups[0].is_anonymous() {
            let what = "a store in anonymous memory cannot be opened again: give a --path";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        Ok(setups)
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let sizes = self.sizes(setup.records);
        let progress = Progress::new(sizes.len() * setups.len() * 3);
        let (mut rows, mut stores) = (Vec::new(), Vec::new());
        for (side, setup) in self.sides.iter().zip(setups) {
            let mut of_side = None;
            for (number, records) in (1..).zip(&sizes) {
                let setup = Setup { records: *records, ..setup.clone() };
                let path = workspace.store(side.name)?;
                let size = Size { side, setup: &setup, data: &data, after: self.after()? };
                let (row, store) = size.measure::<B>(&path, &progress)?;
                rows.push(row);
                of_side = Some(store);
                if !(setup.keep && number == sizes.len()) {
                    workspace.remove(&path)?;
                }
            }
            stores.extend(of_side);
        }
        let tuning = setup.tuning.expect("of ChameleonDB");
        let restart = Restart {
            shards: tuning.shards,
            after_ms: self.after * 1e3,
            dram_hash_ratio: dram_hash_ratio(&rows),
            size_ratio: size_ratio(&rows),
            rows,
        };
        let results = Results::default();
        let setup = Setup { operations: 0, ..setup.clone() };
        let report = Report::new("chameleon restart", &setup, stores, &results);
        Ok((Report { chameleon: Some(Chameleon::Restart(restart)), ..report }, results))
    }
}

/// One side with so many records.
struct Size<'a> {
    side: &'a Side,
    setup: &'a Setup,
    data: &'a Data,
    after: Duration,
}

impl Size<'_> {
    /// Makes a store, closes it, and opens it again and again.
    fn measure<B: Backend>(
        &self,
        path: &Path,
        progress: &Progress,
    ) -> Result<(RestartRow, StoreRow)> {
        let Self { side, setup, data, after } = *self;
        let plan = Plan { setup, data, load_name: None, phases: &[] };
        let pass = Pass { number: 0, threads: 1, measure: Measure::Throughput };
        let demand = demand(setup, &[], cores());
        let mut finished =
            plan.create::<Db<B>>(path, &demand, pass, &mut Results::default(), progress)?;
        finished.facts = Facts { engine: side.name.to_owned(), ..finished.facts };
        let store = finished.row(data);
        let Finished { store: db, facts, .. } = finished;
        Store::close(db)?;
        progress.step(&format!("reopening {} records, {side}", setup.records));
        let (mut openings, mut replayed, mut loaded) = (Vec::new(), 0, Footprint::default());
        for number in 0..setup.repetitions as u64 {
            let (db, opening) =
                open_and_get::<B>((setup, path), data, setup.records, after, number + 1)?;
            openings.push(opening);
            (replayed, loaded) = (replayed_bytes(&db), db.footprint());
            Store::close(db)?;
        }
        let row = RestartRow {
            side: facts.engine,
            durability: facts.durability,
            records: setup.records,
            replayed_log_bytes: replayed,
            dram_bytes_per_key: ratio(loaded.dram_bytes as f64, loaded.records as f64),
            ..row_of(&openings)
        };
        Ok((row, store))
    }
}

fn replayed_bytes<B: Backend>(db: &Db<B>) -> u64 {
    let stats = db.stats();
    let chameleon = stats.chameleon().map(|chameleon| chameleon.replayed_log_bytes);
    let hash = stats.log_hash().map(|hash| hash.replayed_log_bytes);
    chameleon.or(hash).unwrap_or_default()
}

/// What openings of one store were.
fn row_of(openings: &[Opening]) -> RestartRow {
    let ns = |duration: Duration| duration.as_nanos() as f64;
    let first: Vec<_> = openings.iter().map(|opening| ns(opening.first_answer)).collect();
    let complete: Vec<_> = openings.iter().filter_map(|it| it.complete.map(ns)).collect();
    let rates = |measured: fn(&Opening) -> Option<&Measured>| {
        let rates: Vec<_> =
            openings.iter().filter_map(measured).map(Measured::ops_per_second).collect();
        (!rates.is_empty()).then(|| median(&rates))
    };
    RestartRow {
        side: String::new(),
        durability: String::new(),
        records: 0,
        first_answer_ns: median(&first),
        first_answer_ns_min: range(&first).0,
        first_answer_ns_max: range(&first).1,
        complete_ns: (complete.len() == openings.len()).then(|| median(&complete)),
        gets_per_second_between: rates(|opening| opening.between.as_ref()),
        gets_per_second_after: rates(|opening| Some(&opening.after)).unwrap_or_default(),
        replayed_log_bytes: 0,
        dram_bytes_per_key: 0.0,
        repetitions: openings.len(),
    }
}

/// The first answer of `dram-hash` over that of ChameleonDB, at the largest size.
fn dram_hash_ratio(rows: &[RestartRow]) -> Option<f64> {
    let of = |side: &str| {
        let rows = rows.iter().filter(|row| row.side == side);
        rows.max_by_key(|row| row.records).map(|row| row.first_answer_ns)
    };
    Some(ratio(of(DRAM_HASH)?, of(CHAMELEON)?))
}

/// The first answer of ChameleonDB at the largest size over that at the smallest.
fn size_ratio(rows: &[RestartRow]) -> Option<f64> {
    let of_side = || rows.iter().filter(|row| row.side == CHAMELEON);
    let least = of_side().min_by_key(|row| row.records)?;
    let most = of_side().max_by_key(|row| row.records)?;
    (least.records < most.records).then(|| ratio(most.first_answer_ns, least.first_answer_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(first_ms: u64, complete_ms: Option<u64>, between: Option<u64>) -> Opening {
        let second = Duration::from_secs(1);
        let measured = |operations| Measured { operations, elapsed: second, histogram: None };
        Opening {
            first_answer: Duration::from_millis(first_ms),
            complete: complete_ms.map(Duration::from_millis),
            between: between.map(measured),
            after: measured(100),
        }
    }

    #[test]
    fn rows_have_medians_and_what_was_never_complete_says_so() {
        let all = [
            opening(2, Some(10), Some(40)),
            opening(4, Some(20), Some(60)),
            opening(3, Some(90), Some(50)),
        ];
        let row = row_of(&all);
        assert_eq!((row.first_answer_ns, row.first_answer_ns_max), (3e6, 4e6));
        assert_eq!(row.complete_ns, Some(20e6));
        assert_eq!((row.gets_per_second_between, row.gets_per_second_after), (Some(50.0), 100.0));
        let row = row_of(&[opening(1, Some(5), None), opening(1, None, None)]);
        assert_eq!((row.complete_ns, row.gets_per_second_between), (None, None));
    }

    #[test]
    fn sizes_and_stores_are_compared_at_the_largest_size() {
        let row = |side: &str, records, first_answer_ns| RestartRow {
            side: side.to_owned(),
            records,
            first_answer_ns,
            ..row_of(&[opening(0, None, None)])
        };
        let mut rows = vec![row(CHAMELEON, 20, 3.0), row(CHAMELEON, 10, 2.0)];
        assert_eq!((size_ratio(&rows), dram_hash_ratio(&rows)), (Some(1.5), None));
        rows.extend([row(DRAM_HASH, 10, 9.0), row(DRAM_HASH, 20, 30.0)]);
        assert_eq!(dram_hash_ratio(&rows), Some(10.0));
        assert_eq!(size_ratio(&rows[1..]), None, "one size");
    }
}
