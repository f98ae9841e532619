//! A staged race: while one thread overwrites a value, another reads it, once at every step of the
//! write; then every crash is tried. What the reader has returned must not revert.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chimera_pmem::{Environment, SteppedEnvironment};

use super::case::value;
use super::expectation::Expectation;
use super::lab::{Violation, describe};
use super::model::{Effect, Model, Write};
use super::verify::verify;
use crate::chance::Chance;
use crate::durability::End;
use crate::linter::{Lint, Linter};
use crate::media::{Media, States};
use crate::simulated::Event;
use crate::simulated::{Machine, Mark, Memory, SimulatedFiles, State};
use crate::subject::{Failure, Store, Subject, Value};

/// What the races of a subject came to.
#[derive(Debug, Default)]
pub(crate) struct StagedRead {
    /// Steps of the write before which the reader was let in.
    pub(crate) places: u64,
    /// Different crash states verified.
    pub(crate) states: u64,
    pub(crate) lints: Vec<Lint>,
    pub(crate) violation: Option<Violation>,
}

const KEY: u64 = 0;
const WRITER: u8 = 0;
const READER: u8 = 1;
/// Numbers of the operations, as marks have them.
const FIRST_PUT: u32 = 0;
const SECOND_PUT: u32 = 1;
const READ: u32 = 2;
/// Seam calls of one race.
const STEPS_MAX: u64 = 100_000;

/// Lets the reader in before a step of the writer.
struct Stage<S> {
    thread: AtomicU8,
    /// Steps until then; 0: never.
    countdown: AtomicU64,
    reader: Mutex<Option<S>>,
    returned: Mutex<Option<Result<Returned, Failure>>>,
}

/// What the reader returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Returned(Option<Value>);

/// Runs every race of `subject`, until one goes wrong or all have been tried.
///
/// # Errors
/// When an operation fails without any crash.
pub(crate) fn staged_read<S>(subject: &S, seed: u64) -> Result<StagedRead, Failure>
where
    S: Subject,
    S::Store: Clone + Send + 'static,
{
    let mut races = StagedRead::default();
    while races.violation.is_none() {
        let machine = Machine::new(subject.image_bytes());
        let Some(returned) = race(subject, &machine, races.places + 1, seed)? else { break };
        races.places += 1;
        crashes(subject, &machine.state(), returned, seed, &mut races);
    }
    Ok(races)
}

/// Records one race, the reader being let in before step `place` of the second put. What it returned;
/// none when there are not so many steps.
fn race<S>(
    subject: &S,
    machine: &Arc<Machine>,
    place: u64,
    seed: u64,
) -> Result<Option<Returned>, Failure>
where
    S: Subject,
    S::Store: Clone + Send + 'static,
{
    let files = Arc::new(SimulatedFiles(machine.clone()));
    let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::with_files(seed, files));
    machine.start(STEPS_MAX);
    machine.remember(Memory::Trace);
    let mut store = subject.open(machine, &environment)?;
    let stage = Arc::new(Stage {
        thread: AtomicU8::new(WRITER),
        countdown: AtomicU64::new(0),
        reader: Mutex::new(Some(store.clone())),
        returned: Mutex::new(None),
    });
    let (director, weak) = (stage.clone(), Arc::downgrade(machine));
    machine.set_scheduler(Box::new(move |_| {
        if let Some(machine) = weak.upgrade() {
            director.step(&machine);
        }
        director.thread.load(Ordering::Relaxed)
    }));
    machine.mark(Mark::Begin(FIRST_PUT));
    store.put(0, KEY, &value(seed))?;
    machine.mark(Mark::End(FIRST_PUT));
    machine.mark(Mark::Begin(SECOND_PUT));
    stage.countdown.store(place, Ordering::Relaxed);
    store.put(0, KEY, &value(seed.wrapping_add(1)))?;
    stage.countdown.store(0, Ordering::Relaxed);
    machine.mark(Mark::End(SECOND_PUT));
    machine.remember(Memory::Off);
    // The stage belongs to the machine: it must not own it.
    stage.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
    stage.returned.lock().unwrap_or_else(PoisonError::into_inner).take().transpose()
}

impl<S: Store> Stage<S> {
    /// Before every step of either thread.
    fn step(&self, machine: &Machine) {
        let countdown = self.countdown.load(Ordering::Relaxed);
        if countdown == 0 || self.thread.load(Ordering::Relaxed) == READER {
            return;
        }
        self.countdown.store(countdown - 1, Ordering::Relaxed);
        if countdown > 1 {
            return;
        }
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut reader) = reader else { return };
        self.thread.store(READER, Ordering::Relaxed);
        let found = reader.get(0, KEY);
        machine.mark(Mark::End(READ));
        self.thread.store(WRITER, Ordering::Relaxed);
        *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.map(Returned));
    }
}

/// Goes through the trace of a race and tries every crash.
fn crashes<S: Subject>(
    subject: &S,
    trace: &State,
    returned: Returned,
    seed: u64,
    races: &mut StagedRead,
) {
    let durable = Machine::new(subject.image_bytes());
    let files = Arc::new(SimulatedFiles(durable.clone()));
    let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::with_files(!seed, files));
    let mut media = Media::new(durable.clone());
    // Who of the two comes first to flush a line is chance: counts are not checked.
    let mut linter = Linter::new(false);
    let mut now = Expectation::certain(Model::new(subject.keys()), subject.loss(End::PowerLoss));
    let mut seen = HashSet::new();
    for event in &trace.events {
        if let Event::Mark(mark) = event {
            now = after_mark(*mark, now, returned, seed);
        }
        if event.is_crash_point() && races.violation.is_none() {
            let context = now.hash();
            States::new(&media).for_each(&mut Chance::new(seed), &mut |patch| {
                if races.violation.is_some() || !seen.insert(patch.hash ^ context) {
                    return;
                }
                races.states += 1;
                let outcome = verify(subject, &durable, &environment, &now, patch, false);
                races.violation = outcome.err().map(|what| describe(&what, &media, patch, event));
            });
        }
        linter.step(event, &media);
        media.apply(event, &trace.changes);
    }
    for lint in linter.into_found() {
        if !races.lints.contains(&lint) {
            races.lints.push(lint);
        }
    }
}

/// What is expected after a place of the race. A value that was returned is there to stay.
fn after_mark(mark: Mark, mut now: Expectation, returned: Returned, seed: u64) -> Expectation {
    let put = |number: u32| Some(value(seed.wrapping_add(u64::from(number))));
    match mark {
        Mark::Begin(number) => {
            let write = Write { session: 0, key: KEY, value: put(number), word: None };
            now.begin(Effect::Write(write.into()));
            now
        }
        Mark::End(READ) if returned.0 != put(SECOND_PUT) => now,
        Mark::End(number) => {
            let mut model = now.model().clone();
            model.set(KEY, put(number.min(SECOND_PUT)));
            now.settled_as(model)
        }
        Mark::Opened(_) | Mark::Killed => now,
    }
}
