//! `reclaim`: gets and puts beside space reclamation, a third of the records being deleted (Viper,
//! section 5.3.8).

use std::path::Path;
use std::time::Instant;

use chimera::{Db, EngineKind};

use super::benchmark::Benchmark;
use super::common::Common;
use super::given::{NO_DURATION, NOT_COUNTED, NOT_KEPT, Unused};
use crate::driver::backend::Backend;
use crate::driver::clock::Measure;
use crate::driver::engine::EngineChoice;
use crate::driver::pass::{Finished, Pass, Plan, demand, measures};
use crate::driver::phase::{self, Action, Extent, Phase};
use crate::driver::progress::Progress;
use crate::driver::setup::{Reclaim, Setup};
use crate::driver::verify::verify;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::{ReclaimRow, Reclamation, Report};
use crate::results::machine::cores;
use crate::results::series::Results;
use crate::results::statistics::{median, range, ratio};

/// Arguments of `reclaim`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReclaimArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// Reclaim blocks of which so many percent are free
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(value_name = "PERCENT", help_heading = "Work")]
    pub reclaim_percent: u32,
    /// Move at most so many MiB of keys and values per second in the background
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    #[arg(value_name = "MIB", help_heading = "Work")]
    pub reclaim_rate: u64,
}

/// Both sides: the names of their stores, and whether they reclaim.
const SIDES: [(&str, bool); 2] = [("resting", false), ("reclaiming", true)];
/// What is done beside it.
const WORK: [(&str, Action); 2] = [("get", Action::Get), ("put", Action::Overwrite)];
/// The least that a record which lies alone may gain by being moved.
const COMPACT_PERCENT: u32 = 1;

/// What was seen of reclamation in one piece of work.
#[derive(Clone, Copy, Debug)]
struct Seen {
    work: &'static str,
    threads: usize,
    moved_bytes_per_second: f64,
}

/// What was seen of space, in multiples of the bytes of live keys and values.
#[derive(Debug, Default)]
struct Space {
    loaded: Vec<f64>,
    thinned: Vec<f64>,
    compacted: Vec<f64>,
    compact_records_per_second: Vec<f64>,
}

impl Benchmark for ReclaimArguments {
    const UNUSED: &'static [Unused] = &[NO_DURATION, NOT_COUNTED, NOT_KEPT];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let setup = self.common.setup((16, 200))?;
        let movers = [EngineKind::Viper, EngineKind::Chameleon].map(EngineChoice::Store);
        if !movers.contains(&setup.engine) {
            let what = format!("`{}` moves no records in the background", setup.engine);
            return Err(BenchError::Arguments(what));
        }
        Ok(vec![setup])
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let passes = measures(setup.repetitions);
        let progress = Progress::new(passes.len() * setup.threads.len() * 12);
        let mut all =
            All { results: Results::default(), seen: Vec::new(), space: Space::default() };
        let mut store = None;
        for (number, measure) in passes.into_iter().enumerate() {
            for threads in &setup.threads {
                for side in 0..SIDES.len() {
                    // Neither side always comes first.
                    let (name, reclaims) = SIDES[(side + number) % 2];
                    let percent = if reclaims { self.reclaim_percent } else { 0 };
                    let bytes_per_second = self.reclaim_rate << 20;
                    let reclaim = Some(Reclaim { percent, bytes_per_second });
                    let setup = Setup { reclaim, ..setup.clone() };
                    let pass = Pass { number, threads: *threads, measure };
                    let turn = Turn { setup: &setup, data: &data, pass, name, reclaims };
                    let path = workspace.store(name)?;
                    let finished = turn.run::<B>(&path, &mut all, &progress)?;
                    store = Some(finished.row(&data));
                    finished.discard(&workspace)?;
                }
            }
        }
        let store = store.expect("there is at least one pass");
        let reclamation = Some(self.summary(&all, &setup.threads));
        let report = Report::new("reclaim", setup, vec![store], &all.results);
        Ok((Report { reclamation, ..report }, all.results))
    }
}

/// All that was measured.
struct All {
    results: Results,
    seen: Vec<Seen>,
    space: Space,
}

/// One side in one pass.
struct Turn<'a> {
    setup: &'a Setup,
    data: &'a Data,
    pass: Pass,
    name: &'static str,
    reclaims: bool,
}

impl Turn<'_> {
    /// Loads a store, deletes a third, does the work, and reclaims what is left to reclaim.
    fn run<B: Backend>(
        &self,
        path: &Path,
        all: &mut All,
        progress: &Progress,
    ) -> Result<Finished<Db<B>>> {
        let Self { setup, data, pass, .. } = *self;
        let plan = Plan { setup, data, load_name: None, phases: &[] };
        let phases = WORK.map(|(work, action)| Phase::new(&self.row(work), action));
        let demand = demand(setup, &phases, pass.threads.max(cores()));
        let mut finished = plan.create(path, &demand, pass, &mut all.results, progress)?;
        let Finished { store: db, ledger, facts, .. } = &mut finished;
        let extent =
            |operations, threads, measure| Extent { threads, operations, duration: None, measure };
        progress.step(&format!("pass {}: deleting a third, {}", pass.number + 1, self.name));
        all.space.loaded.push(self.amplification(db));
        let thin = Phase::new("thin", Action::Thin);
        let stream = (pass.number as u64) << 8 | 1;
        phase::run(db, data, ledger, &thin, extent(0, cores(), Measure::Throughput), stream)?;
        if !self.reclaims {
            all.space.thinned.push(self.amplification(db));
        }
        for (number, (work, _)) in WORK.into_iter().enumerate() {
            let phase = &phases[number];
            progress.step(&format!("pass {}: {}", pass.number + 1, phase.name));
            let (begun, before) = (Instant::now(), db.stats().reclaim.moved_bytes);
            let extent = extent(setup.operations, pass.threads, pass.measure);
            let measured = phase::run(db, data, ledger, phase, extent, stream + 1 + number as u64)?;
            let moved = db.stats().reclaim.moved_bytes - before;
            all.results.add(facts, &phase.name, pass.threads, measured);
            if self.reclaims {
                let moved_bytes_per_second = moved as f64 / begun.elapsed().as_secs_f64();
                all.seen.push(Seen { work, threads: pass.threads, moved_bytes_per_second });
            }
        }
        progress.step(&format!("pass {}: compacting, {}", pass.number + 1, self.name));
        let (begun, before) = (Instant::now(), db.stats().reclaim.moved_records);
        let moved = db.compact(COMPACT_PERCENT, None)?.moved_records - before;
        let seconds = begun.elapsed().as_secs_f64();
        all.space.compacted.push(self.amplification(db));
        if !self.reclaims {
            all.space.compact_records_per_second.push(moved as f64 / seconds);
        }
        progress.step(&format!("pass {}: verifying, {}", pass.number + 1, self.name));
        verify(db, data, ledger, cores())?;
        Ok(finished)
    }

    fn row(&self, work: &str) -> String {
        format!("{work}/{}", self.name)
    }

    fn amplification<B: Backend>(&self, db: &Db<B>) -> f64 {
        let stats = db.stats();
        ratio(stats.pmem_bytes as f64, stats.records as f64 * self.data.record_bytes())
    }
}

impl ReclaimArguments {
    fn summary(&self, all: &All, threads: &[usize]) -> Reclamation {
        let mut rows = Vec::new();
        for (work, _) in WORK {
            for threads in threads.iter().copied() {
                let [resting, reclaiming] = SIDES.map(|(side, _)| {
                    let series = all.results.find(&format!("{work}/{side}"), threads);
                    series.map(|series| series.throughputs.clone()).unwrap_or_default()
                });
                let pairs = resting.iter().zip(&reclaiming);
                let ratios: Vec<_> =
                    pairs.map(|(resting, reclaiming)| ratio(*reclaiming, *resting)).collect();
                let seen = all.seen.iter().filter(|it| (it.work, it.threads) == (work, threads));
                let moved: Vec<_> = seen.map(|it| it.moved_bytes_per_second).collect();
                rows.push(ReclaimRow {
                    operation: work.to_owned(),
                    threads,
                    throughput_ratio: median(&ratios),
                    throughput_ratio_min: range(&ratios).0,
                    throughput_ratio_max: range(&ratios).1,
                    moved_bytes_per_second: median(&moved),
                });
            }
        }
        Reclamation {
            percent: self.reclaim_percent,
            bytes_per_second_max: self.reclaim_rate << 20,
            rows,
            loaded_amplification: median(&all.space.loaded),
            thinned_amplification: median(&all.space.thinned),
            compacted_amplification: median(&all.space.compacted),
            compact_records_per_second: median(&all.space.compact_records_per_second),
        }
    }
}
