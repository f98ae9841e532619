//! `chameleon bursts`: bursts of puts over a steady load of gets, with and without the Get-Protect Mode (EuroSys'21, sections
//! 2.4 and 3.6).

mod threshold;

use std::path::Path;
use std::time::Duration;

use chimera::Db;
use hdrhistogram::Histogram;

use super::super::benchmark::Benchmark;
use super::super::common::Common;
use super::super::given::Unused;
use super::shape::ShapeArguments;
use super::sides::{CHAMELEON, GET_PROTECT, Side};
use crate::driver::backend::Backend;
use crate::driver::bursts::{Course, Processors, Seen, Window, run_bursts};
use crate::driver::clock::Measure;
use crate::driver::pass::{Finished, Pass, Plan};
use crate::driver::progress::Progress;
use crate::driver::setup::Setup;
use crate::driver::store::Store;
use crate::driver::tuning::Tuning;
use crate::driver::verify::verify;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::chameleon::{Bursts, BurstsRow, BurstsTail, BurstsWindow, Threshold};
use crate::report::{Chameleon, Facts, Report, StoreRow};
use crate::results::machine::cores;
use crate::results::measured::{Measured, histogram};
use crate::results::series::Results;
use crate::results::statistics::{median, range, ratio};

/// Arguments of `chameleon bursts`.
#[derive(Clone, Debug, clap::Args)]
pub struct BurstsArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// What all benchmarks of ChameleonDB have.
    #[command(flatten)]
    pub shape: ShapeArguments,
    /// Stores that take turns, separated by commas
    #[arg(long, value_delimiter = ',', help_heading = "Store")]
    #[arg(default_value = "chameleon,chameleon-get-protect,pmem-hash")]
    pub sides: Vec<Side>,
    /// The Get-Protect Mode begins when the 99th percentile of gets is above so many nanoseconds; or, where that is more, as
    /// far above the one at rest as published. That at rest is measured first
    #[arg(long, default_value_t = threshold::published_ns(), value_name = "NS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..), help_heading = "Store")]
    pub threshold: u64,
    /// Bursts, each of --operations puts that overwrite any record
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(value_name = "N", help_heading = "Work")]
    pub bursts: u32,
    /// Threads that put
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    #[arg(value_name = "N", help_heading = "Work")]
    pub writers: u32,
    /// Seconds of gets alone before each burst, and after the last one
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", help_heading = "Work")]
    pub rest: f64,
    /// Milliseconds of a window, at least; it has 1000 gets at least, too
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(value_name = "MS", help_heading = "Measurement")]
    pub window: u64,
}

impl BurstsArguments {
    fn course(&self, puts: u64) -> Result<Course> {
        let rest = Duration::try_from_secs_f64(self.rest)
            .map_err(|_| BenchError::Arguments("--rest must be 0 seconds or more".to_owned()))?;
        Ok(Course {
            bursts: self.bursts as usize,
            rest,
            puts,
            writers: self.writers as usize,
            window: Duration::from_millis(self.window),
        })
    }
}

impl Benchmark for BurstsArguments {
    const UNUSED: &'static [Unused] = &[("threads", "one thread gets, and --writers put")];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        self.course(0)?;
        let threshold = Duration::from_nanos(self.threshold);
        let setups = self.shape.setups(&self.common, &self.sides)?;
        if !self.sides.iter().any(|side| side.protects_gets) {
            let why = "no side has the Get-Protect Mode";
            self.common.given.refuse_all(&["threshold"], why)?;
        }
        ShapeArguments::refuse_without_levels(&self.common, &self.sides)?;
        Ok(setups.into_iter().map(|setup| with_threshold(setup, Some(threshold))).collect())
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let course = self.course(setup.operations)?;
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let progress = Progress::new(setup.repetitions * setups.len() * 4 + 4);
        let mut all: Vec<_> = self.sides.iter().map(OfSide::new).collect();
        let processors = Processors::divide();
        let at_rest = Turn { setup, data: &data, course, processors: processors.as_ref() };
        let threshold = self.threshold::<B>(&at_rest, setups, &workspace, &progress)?;
        let in_force = threshold.as_ref().map(|threshold| Duration::from_nanos(threshold.ns));
        let of_side = |setup: &Setup| with_threshold(setup.clone(), in_force);
        let setups: Vec<_> = setups.iter().map(of_side).collect();
        for number in 0..setup.repetitions {
            for turn in 0..setups.len() {
                // Each comes first in its turn.
                let which = (turn + number) % setups.len();
                let setup = &setups[which];
                let path = workspace.store(self.sides[which].name)?;
                let turn = Turn { setup, data: &data, course, processors: processors.as_ref() };
                turn.run::<B>(&path, number, &mut all[which], &progress)?;
                if !(setup.keep && number + 1 == setup.repetitions) {
                    workspace.remove(&path)?;
                }
            }
        }
        drop(processors);
        let is_pinned = all.iter().flat_map(|side| &side.seen).all(|seen| seen.is_pinned);
        let bursts = Bursts {
            bursts: self.bursts,
            puts: course.puts,
            writers: self.writers,
            threshold_ns: threshold.as_ref().map_or(self.threshold, |threshold| threshold.ns),
            threshold,
            rest_ms: course.rest.as_secs_f64() * 1e3,
            window_ms: self.window,
            profile: setup.profile.to_string(),
            is_pinned,
            protected_p99_ratio: protected_p99_ratio(&all),
            rows: all.iter().map(OfSide::row).collect(),
            windows: all.iter().flat_map(OfSide::windows).collect(),
        };
        let stores: Vec<StoreRow> = all.into_iter().filter_map(|side| side.store).collect();
        let results = Results::default();
        let report = Report::new("chameleon bursts", setup, stores, &results);
        let oversubscribed = 1 + course.writers > cores();
        let chameleon = Some(Chameleon::Bursts(bursts));
        Ok((Report { chameleon, oversubscribed, ..report }, results))
    }
}

/// A setup whose gets are protected above this threshold, if they are protected.
fn with_threshold(setup: Setup, threshold: Option<Duration>) -> Setup {
    let protecting =
        |tuning: Tuning| Tuning { get_protect: tuning.get_protect.and(threshold), ..tuning };
    Setup { tuning: setup.tuning.map(protecting), ..setup }
}

impl BurstsArguments {
    /// The threshold, where gets are protected: the 99th percentile at rest is measured first, on a store like it without the
    /// mode.
    fn threshold<B: Backend>(
        &self,
        turn: &Turn<'_>,
        setups: &[Setup],
        workspace: &Workspace,
        progress: &Progress,
    ) -> Result<Option<Threshold>> {
        let protecting = self.sides.iter().zip(setups).find(|(side, _)| side.protects_gets);
        let Some((side, setup)) = protecting else { return Ok(None) };
        let setup = &with_threshold(setup.clone(), None);
        let course = Course { bursts: 0, ..turn.course };
        let path = workspace.store("rest")?;
        let mut at_rest = OfSide::new(side);
        Turn { setup, course, ..*turn }.run::<B>(&path, 0, &mut at_rest, progress)?;
        workspace.remove(&path)?;
        let rest_p99_ns = at_rest.tail(|seen| &seen.rest).p99;
        Ok(Some(threshold::decide(self.threshold, rest_p99_ns)))
    }
}

/// One side in one repetition.
#[derive(Clone, Copy)]
struct Turn<'a> {
    setup: &'a Setup,
    data: &'a Data,
    course: Course,
    processors: Option<&'a Processors>,
}

impl Turn<'_> {
    /// Loads a store made anew, puts in bursts while somebody gets, and verifies it.
    fn run<B: Backend>(
        &self,
        path: &Path,
        number: usize,
        side: &mut OfSide,
        progress: &Progress,
    ) -> Result<()> {
        let Self { setup, data, course, processors } = *self;
        let plan = Plan { setup, data, load_name: None, phases: &[] };
        let pass = Pass { number, threads: 1, measure: Measure::Throughput };
        let demand = chimera::Demand {
            written: setup.records + course.puts * course.bursts as u64,
            live: setup.records,
            rewritten: setup.records,
            key_bytes: setup.key_bytes,
            value_bytes: setup.value_bytes,
            sessions: (1 + course.writers.max(cores())) as u64,
        };
        let mut finished =
            plan.create::<Db<B>>(path, &demand, pass, &mut Results::default(), progress)?;
        finished.facts = Facts { engine: side.name.to_owned(), ..finished.facts };
        let mut row = finished.row(data);
        let Finished { store: db, ledger, .. } = finished;
        progress.step(&format!("repetition {}: bursts, {}", number + 1, side.name));
        let stream = number as u64 + 1;
        let seen = run_bursts(&db, data, setup.records, course, (processors, stream))?;
        let stats = db.stats();
        side.switches = stats.chameleon().map_or(0, |chameleon| chameleon.protect_switches);
        side.dumps = stats.chameleon().map_or(0, |chameleon| chameleon.written.dumps.tables);
        progress.step(&format!("repetition {}: verifying, {}", number + 1, side.name));
        row.verified_records = Some(verify(&db, data, &ledger, cores())?);
        side.store = Some(row);
        side.seen.push(seen);
        Store::close(db)
    }
}

/// What was seen of a side.
struct OfSide {
    name: &'static str,
    /// Of each repetition.
    seen: Vec<Seen>,
    /// Of the last one.
    store: Option<StoreRow>,
    switches: u64,
    dumps: u64,
}

impl OfSide {
    fn new(side: &Side) -> Self {
        Self { name: side.name, seen: Vec::new(), store: None, switches: 0, dumps: 0 }
    }

    fn row(&self) -> BurstsRow {
        let rate = |part: fn(&Seen) -> &Measured| {
            let rates: Vec<_> = self.seen.iter().map(part).map(Measured::ops_per_second).collect();
            median(&rates)
        };
        BurstsRow {
            side: self.name.to_owned(),
            durability: self
                .store
                .as_ref()
                .map_or_else(String::new, |row| row.facts.durability.clone()),
            rest_gets_per_second: rate(|seen| &seen.rest),
            burst_gets_per_second: rate(|seen| &seen.burst),
            burst_puts_per_second: rate(|seen| &seen.puts),
            rest_gets: self.tail(|seen| &seen.rest),
            burst_gets: self.tail(|seen| &seen.burst),
            puts: self.tail(|seen| &seen.puts),
            protect_switches: self.switches,
            dumps: self.dumps,
        }
    }

    /// Of all repetitions together.
    fn tail(&self, part: fn(&Seen) -> &Measured) -> BurstsTail {
        let mut all = histogram();
        for of_one in self.seen.iter().filter_map(|seen| part(seen).histogram.as_ref()) {
            all.add(of_one).expect("both have the same bounds");
        }
        tail_of(&all)
    }

    /// Of the last repetition.
    fn windows(&self) -> Vec<BurstsWindow> {
        let per_second =
            |number: u64, window: &Window| ratio(number as f64, window.elapsed.as_secs_f64());
        let row = |window: &Window| BurstsWindow {
            side: self.name.to_owned(),
            from_ms: window.from.as_secs_f64() * 1e3,
            gets: window.gets,
            gets_per_second: per_second(window.gets, window),
            puts_per_second: per_second(window.puts, window),
            get_p99_ns: window.get_p99_ns,
        };
        self.seen.last().map(|seen| seen.windows.iter().map(row).collect()).unwrap_or_default()
    }
}

fn tail_of(latencies: &Histogram<u64>) -> BurstsTail {
    let at = |percentile| latencies.value_at_percentile(percentile);
    BurstsTail {
        operations: latencies.len(),
        p50: at(50.0),
        p99: at(99.0),
        p999: at(99.9),
        p9999: at(99.99),
        max: latencies.max(),
    }
}

/// The 99th percentile of gets in bursts, with the mode over without: median, lowest and highest of the repetitions.
fn protected_p99_ratio(all: &[OfSide]) -> Option<(f64, f64, f64)> {
    let p99 = |name: &str| {
        let side = all.iter().find(|side| side.name == name)?;
        let of_one = |seen: &Seen| {
            let latencies = seen.burst.histogram.as_ref();
            latencies.map_or(0.0, |latencies| latencies.value_at_percentile(99.0) as f64)
        };
        Some(side.seen.iter().map(of_one).collect::<Vec<_>>())
    };
    let (protected, plain) = (p99(GET_PROTECT)?, p99(CHAMELEON)?);
    let pairs = protected.iter().zip(&plain);
    let ratios: Vec<_> = pairs.map(|(protected, plain)| ratio(*protected, *plain)).collect();
    let (least, most) = range(&ratios);
    Some((median(&ratios), least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(burst_ns: u64) -> Seen {
        let measured = |ns| {
            let mut latencies = histogram();
            latencies.record_n(ns, 100).expect("in range");
            Measured {
                operations: 100,
                elapsed: Duration::from_secs(1),
                histogram: Some(latencies),
            }
        };
        let (rest, burst, puts) = (measured(100), measured(burst_ns), measured(300));
        Seen { windows: Vec::new(), rest, burst, puts, is_pinned: false }
    }

    #[test]
    fn the_mode_is_compared_repetition_by_repetition() {
        let side = |name, bursts: [u64; 3]| OfSide {
            name,
            seen: bursts.map(seen).into(),
            store: None,
            switches: 0,
            dumps: 0,
        };
        let all = [side(CHAMELEON, [1000, 1000, 500]), side(GET_PROTECT, [500, 800, 500])];
        assert_eq!(protected_p99_ratio(&all), Some((0.8, 0.5, 1.0)));
        assert_eq!(protected_p99_ratio(&all[..1]), None);
        let row = all[0].row();
        assert_eq!((row.burst_gets.max, row.rest_gets.p9999, row.puts.p50), (1000, 100, 300));
        assert_eq!((row.burst_gets.operations, row.burst_puts_per_second), (300, 100.0));
    }
}
