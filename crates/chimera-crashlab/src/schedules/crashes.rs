//! Histories with power failures: several threads at a store on simulated media, then crashes at many
//! points of what they did, each judged with what recovery brings back.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chimera::{Db, EngineKind};
use chimera_pmem::{Environment, SteppedEnvironment};
use shuttle::sync::atomic::AtomicUsize as Turn;

use super::explore::{Problem, execute};
use super::{Plan, Recorder, ShuttleEnvironment, read_all, run_threads};
use crate::chance::Chance;
use crate::durability::End;
use crate::explore::{STEPS_PER_WORD_MAX, quiet};
use crate::histories::{Event as Step, History};
use crate::linter::{Lint, Linter};
use crate::media::{Media, Patch, States};
use crate::simulated::{Event, Machine, Memory, Mutation, Simulated, SimulatedFiles, State};
use crate::subject::{Engine, EngineShape, Failure, Subject};

/// Crash points that are tried in each history.
const POINTS: usize = 24;
/// States that are tried at each.
const STATES: usize = 8;

/// Histories to crash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrashPlan {
    pub(crate) engine: EngineKind,
    pub(crate) plan: Plan,
    pub(crate) mutation: Option<Mutation>,
}

/// What was done and found.
#[derive(Debug, Default)]
pub(crate) struct Crashes {
    pub(crate) histories: u64,
    pub(crate) operations: u64,
    pub(crate) states: u64,
    pub(crate) lints: BTreeSet<Lint>,
    pub(crate) problem: Option<Problem>,
}

impl Crashes {
    pub(crate) fn add(&mut self, other: Self) {
        self.histories += other.histories;
        self.operations += other.operations;
        self.states += other.states;
        self.lints.extend(other.lints);
        self.problem = self.problem.take().or(other.problem);
    }
}

/// Runs the histories of a plan and crashes each at many points, until something is wrong.
pub(crate) fn explore_crashes(plan: &CrashPlan) -> Crashes {
    let found = Arc::new(Mutex::new(Crashes::default()));
    let into = found.clone();
    let is_over = AtomicBool::new(false);
    let crash_plan = *plan;
    let problem = execute(&plan.plan, move |number| {
        if is_over.load(Ordering::Relaxed) {
            return false;
        }
        let one = One::new(&crash_plan, number);
        let outcome = quiet::catch(|| one.run());
        let mut found = into.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(crashes) => found.add(crashes),
            Err(failure) => {
                found.problem = Some(Problem { number, text: failure.to_string() });
            }
        }
        if found.problem.is_some() {
            is_over.store(true, Ordering::Relaxed);
        }
        true
    });
    let mut found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    found.problem = found.problem.or(problem);
    found
}

/// One history.
struct One {
    plan: CrashPlan,
    number: u64,
    chance: Chance,
    engine: Engine,
    working: Arc<Machine>,
    durable: Arc<Machine>,
}

impl One {
    fn new(plan: &CrashPlan, number: u64) -> Self {
        let seed = plan.plan.workload.seed.wrapping_add(number);
        let mut chance = Chance::new(seed);
        let shape = EngineShape::random(plan.engine, &mut chance);
        let engine = Engine::new(&shape);
        let working = Machine::new(engine.image_bytes());
        let durable = Machine::new(engine.image_bytes());
        working.set_mutation(plan.mutation);
        durable.set_mutation(plan.mutation);
        Self { plan: *plan, number, chance, engine, working, durable }
    }

    /// Inside an execution of `shuttle`.
    fn run(mut self) -> Result<Crashes, Failure> {
        let turn = Arc::new(Turn::new(0));
        self.working.set_scheduler(Box::new(move |_| {
            // A place where somebody else may go on.
            turn.load(Ordering::SeqCst);
            usize::from(shuttle::current::me()) as u8
        }));
        let recorder = Recorder::new();
        let working = self.working.clone();
        recorder.observe(move |events| working.note(Event::History(events as u32)));
        let mut workload = self.plan.plan.workload;
        workload.seed = workload.seed.wrapping_add(self.number);
        workload.abilities = self.engine.abilities();
        let files = Arc::new(SimulatedFiles(self.working.clone()));
        let stepped = Arc::new(SteppedEnvironment::with_files(workload.seed, files));
        let environment = Arc::new(ShuttleEnvironment::new(stepped, 1));
        self.working.start(u64::MAX);
        self.working.remember(Memory::Trace);
        let as_dyn: Arc<dyn Environment> = environment.clone();
        let db =
            Db::open_on(Simulated::new(&self.working), &as_dyn, "store", self.engine.options())
                .map_err(|error| Failure::Wrong(error.to_string()))?;
        run_threads(&db, &environment, &workload, &recorder);
        self.working.remember(Memory::Off);
        drop(db);
        if let Some(problem) = recorder.problems().first() {
            return Err(Failure::Wrong(problem.clone()));
        }
        let history = recorder.history();
        history.check().map_err(|violation| Failure::Wrong(violation.to_string()))?;
        Ok(self.crash(&history, workload.keys))
    }

    /// The points at which to crash: half of them anywhere, half where threads are close to each other.
    fn choose(&mut self, trace: &State) -> BTreeSet<usize> {
        let (mut anywhere, mut close) = (Vec::new(), Vec::new());
        let mut media = Media::new(Machine::new(self.engine.image_bytes()));
        for (number, event) in trace.events.iter().enumerate() {
            if matches!(event, Event::Fence { .. } | Event::History(_) | Event::Publish { .. }) {
                anywhere.push(number);
                if media.is_contended() {
                    close.push(number);
                }
            }
            media.apply(event, &trace.changes);
        }
        let mut pick = |points: &[usize]| -> Vec<usize> {
            let count = if points.is_empty() { 0 } else { POINTS / 2 };
            (0..count).map(|_| points[self.chance.below(points.len() as u64) as usize]).collect()
        };
        pick(&anywhere).into_iter().chain(pick(&close)).collect()
    }

    /// Goes through the trace and crashes.
    fn crash(&mut self, history: &History, keys: u64) -> Crashes {
        let operations = history.events().len() as u64 / 2;
        let mut crashes = Crashes { histories: 1, operations, ..Crashes::default() };
        let working = self.working.clone();
        let trace = working.state();
        let chosen = self.choose(&trace);
        let mut media = Media::new(self.durable.clone());
        // Two threads may flush a line at the same time, and one of them in vain.
        let mut linter = Linter::new(false);
        let mut steps = 0;
        let mut problem = None;
        for (number, event) in trace.events.iter().enumerate() {
            if problem.is_none() && chosen.contains(&number) {
                problem = self.point(&media, &history.events()[..steps], keys, &mut crashes).err();
            }
            if let Event::History(events) = event {
                steps = *events as usize;
            }
            linter.step(event, &media);
            media.apply(event, &trace.changes);
        }
        linter.compare(&media, &self.working);
        crashes.lints.extend(linter.into_found());
        crashes.problem = problem.map(|text| Problem { number: self.number, text });
        crashes
    }

    /// Tries some of the states at one point.
    fn point(
        &mut self,
        media: &Media,
        before: &[Step],
        keys: u64,
        crashes: &mut Crashes,
    ) -> Result<(), String> {
        let seed = self.chance.next();
        let mut count = 0;
        States::new(media).for_each(&mut Chance::new(seed), &mut |_| count += 1);
        let chosen: BTreeSet<u64> = (0..STATES).map(|_| self.chance.below(count)).collect();
        let (mut number, mut outcome) = (0, Ok(()));
        States::new(media).for_each(&mut Chance::new(seed), &mut |patch| {
            if chosen.contains(&number) && outcome.is_ok() {
                crashes.states += 1;
                outcome = self
                    .state(patch, before, keys)
                    .map_err(|what| format!("after a crash: {what}"));
            }
            number += 1;
        });
        outcome
    }

    /// Recovers from one state, and judges the history with what is there.
    fn state(&self, patch: &Patch, before: &[Step], keys: u64) -> Result<(), String> {
        let machine = &self.durable;
        machine.start(STEPS_PER_WORD_MAX * machine.len() as u64);
        {
            let mut state = machine.state();
            for (word, value) in &patch.words {
                machine.patch(&mut state, *word, *value);
            }
            state.tree = patch.tree.clone();
        }
        machine.remember(Memory::Undo);
        let files = Arc::new(SimulatedFiles(machine.clone()));
        let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::with_files(1, files));
        let outcome = quiet::catch(|| {
            let wrong = |text: String| Failure::Wrong(text);
            let db =
                Db::open_on(Simulated::new(machine), &environment, "store", self.engine.options())
                    .map_err(|error| wrong(error.to_string()))?;
            let recorder = Recorder::after_crash(History::from_events(
                before,
                self.engine.loss(End::PowerLoss),
            ));
            read_all(&db, keys, &recorder);
            machine.remember(Memory::Off);
            if let Some(problem) = recorder.problems().into_iter().next() {
                return Err(wrong(problem));
            }
            recorder.history().check().map_err(|violation| wrong(violation.to_string()))
        });
        machine.remember(Memory::Off);
        machine.undo();
        outcome.map_err(|failure| failure.to_string())
    }
}
