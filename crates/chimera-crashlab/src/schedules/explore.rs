//! Running many histories and judging them.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chimera::{Db, Error};
use chimera_pmem::{Pmem, SteppedEnvironment};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use super::stalls::StallScheduler;
use super::{Recorder, ShuttleEnvironment, Workload, read_all, run_threads};
use crate::histories::History;

/// Bytes of a coroutine's stack; touched only as far as it is used.
const STACK_BYTES: usize = 512 << 10;
/// Turns after which a run is taken to go on for ever.
const TURNS_MAX: usize = 20_000_000;
/// From the seed of one life to that of the next: more than the values that one writes.
const LIFE_STEP: u64 = (1 << 20) + 257;

/// Who decides which thread runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Chance, at every turn.
    Random,
    /// Threads have priorities, which change this many times in a history less one, at random: finds
    /// with a known probability what needs that many turns to happen in a certain order (Burckhardt
    /// et al., ASPLOS'10).
    Priorities(usize),
    /// Chance; and once in so many turns, on average, a thread stops where it is, for long.
    Stalls(u64),
}

/// Histories to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What the threads of each do; every history has a seed of its own, counted up from this one.
    pub workload: Workload,
    /// Who decides which thread runs next.
    pub scheduling: Scheduling,
    /// How many.
    pub histories: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Exploration {
    /// Histories that were run to their end and checked.
    pub histories: u64,
    /// Operations in them.
    pub operations: u64,
    /// The first problem, if there was one; nothing is run after it.
    pub problem: Option<Problem>,
}

/// A history that went wrong. The same plan with `number` + 1 histories brings it about again.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The number of the history, from 0.
    pub number: u64,
    /// What is wrong.
    pub text: String,
}

/// Runs the histories of a plan, each on a store that `open` makes with a seed, and checks each.
pub fn explore<P, O>(plan: &Plan, open: O) -> Exploration
where
    P: Pmem,
    O: Fn(&Arc<ShuttleEnvironment>, u64) -> Result<Db<P>, Error> + Send + Sync + 'static,
{
    explore_lives(plan, 1, open, |_| ())
}

/// As [`explore`], in as many lives of each store: it is closed and opened again, and the threads do as much again. Before
/// it is closed `see` looks at it.
pub fn explore_lives<P, O, S>(plan: &Plan, lives: u32, open: O, see: S) -> Exploration
where
    P: Pmem,
    O: Fn(&Arc<ShuttleEnvironment>, u64) -> Result<Db<P>, Error> + Send + Sync + 'static,
    S: Fn(&Db<P>) + Send + Sync + 'static,
{
    let found = Arc::new(Mutex::new(Exploration::default()));
    let into = found.clone();
    let problem = run(plan, lives, (open, see), move |number, recorder| {
        let history = recorder.history();
        let problem = match (recorder.problems().first(), history.check()) {
            (Some(problem), _) => Some(problem.clone()),
            (None, Err(violation)) => Some(violation.to_string()),
            (None, Ok(())) => None,
        };
        let mut found = into.lock().unwrap_or_else(PoisonError::into_inner);
        found.histories += 1;
        found.operations += history.events().len() as u64 / 2;
        found.problem = problem.map(|text| Problem { number, text });
        found.problem.is_none()
    });
    let mut found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    found.problem = found.problem.or(problem);
    found
}

/// Runs the first history of a plan.
///
/// # Errors
/// When it could not be run to its end.
pub fn run_history<P, O>(plan: &Plan, open: O) -> Result<History, Problem>
where
    P: Pmem,
    O: Fn(&Arc<ShuttleEnvironment>, u64) -> Result<Db<P>, Error> + Send + Sync + 'static,
{
    let history = Arc::new(Mutex::new(History::new()));
    let into = history.clone();
    let see = |_: &Db<P>| ();
    let problem = run(&Plan { histories: 1, ..*plan }, 1, (open, see), move |_, recorder| {
        *into.lock().unwrap_or_else(PoisonError::into_inner) = recorder.history();
        true
    });
    let history = history.lock().unwrap_or_else(PoisonError::into_inner).clone();
    problem.map_or(Ok(history), Err)
}

/// Runs histories until `judge` says no. A panic of the store, or a run without an end, is a problem.
fn run<P, O, S, J>(plan: &Plan, lives: u32, (open, see): (O, S), judge: J) -> Option<Problem>
where
    P: Pmem,
    O: Fn(&Arc<ShuttleEnvironment>, u64) -> Result<Db<P>, Error> + Send + Sync + 'static,
    S: Fn(&Db<P>) + Send + Sync + 'static,
    J: Fn(u64, &Recorder) -> bool + Send + Sync + 'static,
{
    let workload = plan.workload;
    execute(plan, move |number| {
        let recorder = Recorder::new();
        let seed = workload.seed.wrapping_add(number);
        one(&Workload { seed, ..workload }, lives, &open, &see, &recorder);
        judge(number, &recorder)
    })
}

/// Runs `body` in as many executions as the plan has histories, with their numbers, until it says no.
/// A panic, or a run without an end, is a problem.
pub(super) fn execute(
    plan: &Plan,
    body: impl Fn(u64) -> bool + Send + Sync + 'static,
) -> Option<Problem> {
    let next = Arc::new(AtomicU64::new(0));
    let numbers = next.clone();
    let is_over = AtomicU64::new(0);
    let body = move || {
        // There is no way to stop a runner but to have nothing to do.
        if is_over.load(Ordering::Relaxed) == 1 {
            return;
        }
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        if !body(number) {
            is_over.store(1, Ordering::Relaxed);
        }
    };
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(TURNS_MAX);
    config.silence_warnings = true;
    let (seed, histories) = (plan.workload.seed, plan.histories as usize);
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| match plan.scheduling {
        Scheduling::Random => {
            Runner::new(RandomScheduler::new_from_seed(seed, histories), config).run(body)
        }
        Scheduling::Priorities(depth) => {
            Runner::new(PctScheduler::new_from_seed(seed, depth, histories), config).run(body)
        }
        Scheduling::Stalls(every) => {
            Runner::new(StallScheduler::new(seed, histories, every), config).run(body)
        }
    }));
    let panic = outcome.err()?;
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let number = next.load(Ordering::Relaxed).saturating_sub(1);
    Some(Problem { number, text: text.unwrap_or_else(|| "a panic".to_owned()) })
}

/// One history: inside an execution.
fn one<P: Pmem>(
    workload: &Workload,
    lives: u32,
    open: &impl Fn(&Arc<ShuttleEnvironment>, u64) -> Result<Db<P>, Error>,
    see: &impl Fn(&Db<P>),
    recorder: &Recorder,
) {
    let stepped = Arc::new(SteppedEnvironment::in_memory(workload.seed));
    let environment = Arc::new(ShuttleEnvironment::new(stepped, 2));
    for life in 0..lives {
        let db = match open(&environment, workload.seed) {
            Ok(db) => db,
            Err(error) => return recorder.problem(format!("open: {error}")),
        };
        let seed = workload.seed.wrapping_add(u64::from(life) * LIFE_STEP);
        run_threads(&db, &environment, &Workload { seed, ..*workload }, recorder);
        if life + 1 == lives {
            read_all(&db, workload.keys, recorder);
        }
        see(&db);
        if let Err(error) = db.close() {
            recorder.problem(format!("close: {error}"));
        }
    }
}
