//! `beside-scans`: one writer alone, and beside a thread that scans so many times a second.

use chimera::Db;

use super::benchmark::Benchmark;
use super::common::Common;
use super::given::{NO_DURATION, NO_GETS, NOT_COUNTED, NOT_KEPT, Unused};
use crate::driver::backend::Backend;
use crate::driver::beside::{Scans, with_scans};
use crate::driver::pass::{Finished, Pass, Plan, demand, measures};
use crate::driver::phase::{self, Action, Extent, Phase};
use crate::driver::progress::Progress;
use crate::driver::setup::{OrderChoice, Setup};
use crate::driver::verify::verify;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::Result;
use crate::report::{BesideScans, BesideScansRow, Latency, Report};
use crate::results::machine::cores;
use crate::results::measured::{Measured, histogram};
use crate::results::rows::StoreRow;
use crate::results::series::Results;
use crate::results::statistics::{median, range, ratio};
use crate::workload::Distribution;
use crate::workload::mix::Mix;

/// Arguments of `beside-scans`.
#[derive(Clone, Debug, clap::Args)]
pub struct BesideScansArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// Scans a second that the second thread tries to do
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(value_name = "N", help_heading = "Work")]
    pub scans_per_second: u32,
    /// Records of each scan
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(value_name = "N", help_heading = "Work")]
    pub scan_length: u32,
    /// Of the writer's operations so many percent insert new records; the others overwrite
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(0..=100))]
    #[arg(value_name = "PERCENT", help_heading = "Work")]
    pub inserts: u8,
    /// The same once more, in turns, on stores whose scans hold up writers (HiKV's published barrier)
    #[arg(long, help_heading = "Work")]
    pub barrier: bool,
}

/// All that was measured of stores with one kind of scans.
#[derive(Default)]
struct Side {
    has_barrier: bool,
    scans: Vec<Measured>,
    background_threads: usize,
}

impl Benchmark for BesideScansArguments {
    const UNUSED: &'static [Unused] =
        &[NO_DURATION, ("threads", "there is one writer"), NO_GETS, NOT_COUNTED, NOT_KEPT];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let mut setup = self.common.setup((16, 200))?;
        let given = &self.common.given;
        match setup.order {
            OrderChoice::None => {
                given.refuse_all(&["order"], "without order there is nothing to scan")?;
                setup.order = OrderChoice::Asynchronous;
            }
            OrderChoice::Synchronous => {
                given.refuse_all(&["barrier"], "synchronous scans wait for no queue")?;
            }
            OrderChoice::Asynchronous | OrderChoice::Partitioned => {}
        }
        Ok(vec![setup])
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let passes = measures(setup.repetitions);
        let barriers: &[bool] = if self.barrier { &[false, true] } else { &[false] };
        let side = |has_barrier: &bool| Side { has_barrier: *has_barrier, ..Side::default() };
        let mut sides: Vec<_> = barriers.iter().map(side).collect();
        let progress = Progress::new(passes.len() * sides.len() * 5);
        let (mut results, mut row) = (Results::default(), None);
        for (number, measure) in passes.into_iter().enumerate() {
            for turn in 0..sides.len() {
                // Each comes first in its turn.
                let at = (turn + number) % sides.len();
                let side = &mut sides[at];
                let setup = Setup { barrier: side.has_barrier, ..setup.clone() };
                let pass = Pass { number, threads: 1, measure };
                let turn = Turn { arguments: self, setup: &setup, data: &data, pass };
                row = Some(turn.run::<B>(side, &workspace, &mut results, &progress)?);
            }
        }
        let row = row.expect("there is at least one pass");
        let threads = 2 + sides[0].background_threads;
        let beside_scans = Some(BesideScans {
            threads,
            cores: cores(),
            scans_per_second: self.scans_per_second,
            scan_records: self.scan_length,
            inserts_percent: self.inserts,
            rows: sides.iter().map(|side| side.row(&results)).collect(),
        });
        let report = Report::new("beside-scans", setup, vec![row], &results);
        let oversubscribed = threads > cores();
        Ok((Report { beside_scans, oversubscribed, ..report }, results))
    }
}

/// One side in one pass.
struct Turn<'a> {
    arguments: &'a BesideScansArguments,
    setup: &'a Setup,
    data: &'a Data,
    pass: Pass,
}

impl Turn<'_> {
    /// Writes to a store made anew, alone and beside scans, and verifies it.
    fn run<B: Backend>(
        &self,
        side: &mut Side,
        workspace: &Workspace,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<StoreRow> {
        let Self { setup, data, pass, .. } = *self;
        let insert = self.arguments.inserts;
        let mix = Mix { insert, overwrite: 100 - insert, ..Mix::default() };
        let action = Action::Mix(mix, Distribution::Uniform);
        let phases = [false, true].map(|is_beside| Phase::new(&side.name(is_beside), action));
        let plan = Plan { setup, data, load_name: None, phases: &[] };
        let path = workspace.store(if side.has_barrier { "barrier" } else { "scans" })?;
        let demand = demand(setup, &phases, cores().max(2));
        let mut finished = plan.create::<Db<B>>(&path, &demand, pass, results, progress)?;
        let Finished { store: db, ledger, facts, .. } = &mut finished;
        for turn in 0..phases.len() {
            // Neither comes first always.
            let which = (turn + pass.number) % phases.len();
            let phase = &phases[which];
            progress.step(&format!("pass {}: {}", pass.number + 1, phase.name));
            let stream = (pass.number as u64) << 8 | (1 + which as u64);
            let extent = Extent {
                threads: 1,
                operations: setup.operations,
                duration: None,
                measure: pass.measure,
            };
            let live = ledger.population();
            let mut work = || phase::run(db, data, ledger, phase, extent, stream);
            let measured = if which == 0 {
                work()?
            } else {
                let scans = self.arguments.scans();
                let (measured, scanned) = with_scans(db, data, live, scans, stream << 8 | 1, work)?;
                side.scans.push(scanned);
                measured
            };
            results.add(facts, &phase.name, 1, measured);
        }
        progress.step(&format!("pass {}: verifying", pass.number + 1));
        verify(db, data, ledger, cores())?;
        side.background_threads = db.stats().order.map_or(0, |order| order.threads);
        let row = finished.row(data);
        finished.discard(workspace)?;
        Ok(row)
    }
}

impl BesideScansArguments {
    fn scans(&self) -> Scans {
        Scans { per_second: self.scans_per_second, records: self.scan_length as usize }
    }
}

impl Side {
    /// What results call the writer's work.
    fn name(&self, is_beside: bool) -> String {
        let name = if is_beside { "write/beside scans" } else { "write/alone" };
        let barrier = if self.has_barrier { ", barrier" } else { "" };
        format!("{name}{barrier}")
    }

    fn row(&self, results: &Results) -> BesideScansRow {
        let [alone, beside] = [false, true].map(|is_beside| {
            let series = results.find(&self.name(is_beside), 1);
            series.map(|series| series.throughputs.clone()).unwrap_or_default()
        });
        let pairs = alone.iter().zip(&beside);
        let ratios: Vec<_> = pairs.map(|(alone, beside)| ratio(*beside, *alone)).collect();
        let rates: Vec<_> = self.scans.iter().map(Measured::ops_per_second).collect();
        let mut latencies = histogram();
        for of_pass in self.scans.iter().filter_map(|scans| scans.histogram.as_ref()) {
            latencies.add(of_pass).expect("both have the same bounds");
        }
        let at = |percentile| latencies.value_at_percentile(percentile);
        BesideScansRow {
            barrier: self.has_barrier,
            alone_ops_per_second: median(&alone),
            beside_ops_per_second: median(&beside),
            throughput_ratio: median(&ratios),
            throughput_ratio_min: range(&ratios).0,
            throughput_ratio_max: range(&ratios).1,
            scans: latencies.len(),
            scans_per_second: median(&rates),
            scan_latency_ns: Latency {
                mean: latencies.mean(),
                p50: at(50.0),
                p99: at(99.0),
                p999: at(99.9),
                p9999: at(99.99),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::report::Facts;

    #[test]
    fn what_the_writer_keeps_is_of_the_same_pass_and_the_same_kind_of_scans() {
        let facts = Facts {
            engine: "viper-ordered".to_owned(),
            medium: "tmpfs".to_owned(),
            durability: "process".to_owned(),
            flush_instruction: "clwb".to_owned(),
            huge_pages: false,
        };
        let second = |operations, histogram| Measured {
            operations,
            elapsed: Duration::from_secs(1),
            histogram,
        };
        let plain = Side::default();
        let barrier = Side { has_barrier: true, ..Side::default() };
        let mut results = Results::default();
        for (side, is_beside, rates) in [
            (&plain, false, [1000, 2000, 4000]),
            (&plain, true, [900, 1000, 3200]),
            (&barrier, false, [1000, 1000, 1000]),
            (&barrier, true, [100, 200, 300]),
        ] {
            for rate in rates {
                results.add(&facts, &side.name(is_beside), 1, second(rate, None));
            }
        }
        let mut side = plain;
        for (scans, took_ns) in [(10, 100), (30, 300)] {
            let mut latencies = histogram();
            latencies.record_n(took_ns, scans).expect("in range");
            side.scans.push(second(scans, Some(latencies)));
        }
        let row = side.row(&results);
        assert_eq!((row.alone_ops_per_second, row.beside_ops_per_second), (2000.0, 1000.0));
        assert_eq!((row.throughput_ratio_min, row.throughput_ratio_max), (0.5, 0.9));
        assert_eq!((row.throughput_ratio, barrier.row(&results).throughput_ratio), (0.8, 0.2));
        assert_eq!((row.scans, row.scans_per_second), (40, 20.0));
        assert_eq!((row.scan_latency_ns.mean, row.scan_latency_ns.p999), (250.0, 300));
    }
}
