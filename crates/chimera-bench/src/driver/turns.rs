//! [`take_turns`]: all passes of one engine, or of several that take turns.

use chimera::Db;
use chimera_pmem::{Hardware, Instrumented};
use chimera_primitives::tree::{CachedFpTree, FpTree, NvTree};

use super::backend::Backend;
use super::conclusion::{Conclusion, conclude, conclude_volatile};
use super::counting::count;
use super::dram_map::DramMap;
use super::engine::{EngineChoice, TreeKind};
use super::pass::{Finished, Pass, Plan, measures};
use super::phase::Phase;
use super::progress::Progress;
use super::recovery::Reopening;
use super::setup::Setup;
use super::shared::Shared;
use super::store::{Create, Reopen};
use super::tree::TreeStore;
use super::workspace::Workspace;
use crate::error::Result;
use crate::results::rows::{Counted, RecoveryRow, StoreRow};
use crate::results::series::{Results, Series};

/// What was measured of all engines.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Sorted by threads, operation, engine.
    pub(crate) results: Results,
    /// One for each engine.
    pub(crate) stores: Vec<StoreRow>,
    pub(crate) recovery: Vec<RecoveryRow>,
}

/// What is done to the stores of several engines, or of one whose gets verify in several ways: the same to each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contest<'a> {
    /// The setup of each. They differ in nothing else.
    pub(crate) setups: &'a [Setup],
    /// The plan of the first one.
    pub(crate) plan: Plan<'a>,
    /// How often the store of the last pass is opened again.
    pub(crate) reopenings: usize,
    /// The exponent of skewed distributions.
    pub(crate) theta: f64,
}

/// Runs all passes on each number of threads: in every pass, each engine on a store of its own, another
/// one first each time. Verifies the last store of each engine, and counts.
///
/// # Errors
/// When a store fails or a record is wrong.
pub(crate) fn take_turns<B: Backend>(
    contest: Contest<'_>,
    workspace: &Workspace,
) -> Result<Outcome> {
    let setup = contest.plan.setup;
    let passes = measures(setup.repetitions);
    let progress = Progress::new(contest.steps(passes.len()));
    let mut results = Results::default();
    let mut conclusions: Vec<_> = contest.setups.iter().map(|_| None).collect();
    for (number, measure) in passes.iter().copied().enumerate() {
        for (nth, threads) in setup.threads.iter().copied().enumerate() {
            let is_last = number + 1 == passes.len() && nth + 1 == setup.threads.len();
            for turn in 0..contest.setups.len() {
                let which = (turn + number) % contest.setups.len();
                let pass = Pass { number, threads, measure };
                let mut turn = Turn {
                    contest,
                    plan: Plan { setup: &contest.setups[which], ..contest.plan },
                    pass,
                    is_last,
                    workspace,
                    progress: &progress,
                    results: &mut results,
                };
                conclusions[which] = turn.run::<B>()?;
            }
        }
    }
    let mut outcome = Outcome { results, ..Outcome::default() };
    for Conclusion { store, recovery } in conclusions.into_iter().flatten() {
        outcome.stores.push(store);
        outcome.recovery.extend(recovery);
    }
    contest.count(&mut outcome.results, &progress)?;
    contest.sort(&mut outcome.results.series);
    Ok(outcome)
}

impl Contest<'_> {
    /// Steps of progress that all of it takes.
    fn steps(&self, passes: usize) -> usize {
        let of_passes = passes * self.plan.setup.threads.len() * (self.plan.phases.len() + 2);
        self.setups.len() * (of_passes + 3)
    }

    /// Counts what engines of the store do, when that is wanted.
    fn count(&self, results: &mut Results, progress: &Progress) -> Result<()> {
        let Plan { load_name, phases, .. } = self.plan;
        for setup in self.setups.iter().filter(|setup| setup.counters) {
            progress.step("counting");
            match setup.engine {
                EngineChoice::Store(_) | EngineChoice::HikvWal => {
                    let all =
                        count::<Db<Instrumented<Hardware>>>(setup, load_name, phases, self.theta)?;
                    results.enter_counted(&setup.name(), &all);
                }
                // Nothing of it lies in persistent memory.
                EngineChoice::DramMap => {}
                EngineChoice::Tree(tree) => {
                    let all = count_tree(tree, setup, (load_name, phases, self.theta))?;
                    results.enter_counted(&setup.name(), &all);
                }
            }
        }
        Ok(())
    }

    /// Puts next to each other what is to be compared.
    fn sort(&self, series: &mut [Series]) {
        let Plan { setup, load_name, phases, .. } = self.plan;
        let engines: Vec<_> = self.setups.iter().map(Setup::name).collect();
        let names = phases.iter().map(|phase| phase.name.as_str());
        let names: Vec<_> = load_name.into_iter().chain(names).collect();
        series.sort_by_key(|one| {
            (
                setup.threads.iter().position(|threads| *threads == one.threads),
                names.iter().position(|name| *name == one.operation),
                engines.iter().position(|engine| *engine == one.engine),
            )
        });
    }
}

/// Counts what a tree does.
fn count_tree(
    tree: TreeKind,
    setup: &Setup,
    (load_name, phases, theta): (Option<&str>, &[Phase], f64),
) -> Result<Vec<(String, Counted)>> {
    type Memory = Instrumented<Hardware>;
    match tree {
        TreeKind::FpTree => {
            count::<TreeStore<Memory, FpTree<Shared<Memory>>>>(setup, load_name, phases, theta)
        }
        TreeKind::FpTreeCached => count::<TreeStore<Memory, CachedFpTree<Shared<Memory>>>>(
            setup, load_name, phases, theta,
        ),
        TreeKind::NvTree => {
            count::<TreeStore<Memory, NvTree<Shared<Memory>>>>(setup, load_name, phases, theta)
        }
    }
}

/// One engine in one pass.
struct Turn<'a> {
    contest: Contest<'a>,
    plan: Plan<'a>,
    pass: Pass,
    is_last: bool,
    workspace: &'a Workspace,
    progress: &'a Progress,
    results: &'a mut Results,
}

impl Turn<'_> {
    /// Runs the pass, and concludes when it is the last one.
    fn run<B: Backend>(&mut self) -> Result<Option<Conclusion>> {
        let (plan, progress) = (self.plan, self.progress);
        match plan.setup.engine {
            EngineChoice::Store(_) | EngineChoice::HikvWal => {
                self.run_lasting::<Db<B>>(&Reopening::standard_threads())
            }
            // A tree recovers on one thread.
            EngineChoice::Tree(TreeKind::FpTree) => {
                self.run_lasting::<TreeStore<B, FpTree<Shared<B>>>>(&[1])
            }
            EngineChoice::Tree(TreeKind::FpTreeCached) => {
                self.run_lasting::<TreeStore<B, CachedFpTree<Shared<B>>>>(&[1])
            }
            EngineChoice::Tree(TreeKind::NvTree) => {
                self.run_lasting::<TreeStore<B, NvTree<Shared<B>>>>(&[1])
            }
            EngineChoice::DramMap => {
                let Some(finished) = self.run_pass::<DramMap>(self.workspace.path())? else {
                    return Ok(None);
                };
                conclude_volatile(&plan, finished, progress).map(Some)
            }
        }
    }

    /// Runs the pass of a store that lasts; the last one is opened again by each of so many threads.
    fn run_lasting<S: Reopen>(&mut self, threads: &[usize]) -> Result<Option<Conclusion>> {
        let path = if self.contest.setups.len() == 1 {
            self.workspace.path().to_owned()
        } else {
            self.workspace.store(&self.plan.setup.name())?
        };
        let Some(finished) = self.run_pass::<S>(&path)? else { return Ok(None) };
        let opened = (self.contest.reopenings, threads);
        let conclusion = conclude(&self.plan, finished, opened, self.progress)?;
        if !self.plan.setup.keep {
            self.workspace.remove(&path)?;
        }
        Ok(Some(conclusion))
    }

    /// The store after the pass, when it is the last one.
    fn run_pass<S: Create>(&mut self, path: &std::path::Path) -> Result<Option<Finished<S>>> {
        let finished = self.plan.run::<S>(path, self.pass, self.results, self.progress)?;
        if self.is_last {
            return Ok(Some(finished));
        }
        finished.discard(self.workspace)?;
        Ok(None)
    }
}
