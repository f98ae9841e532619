//! Running an epoch: opening the store, its actions, every return value compared with the model.

use std::iter::{Copied, Enumerate, Peekable};
use std::slice;
use std::sync::Arc;

use chimera_pmem::Environment;

use super::case::Action;
use super::expectation::Expectation;
use super::model::{Effect, Model, Returned};
use super::quiet;
use crate::durability::End;
use crate::simulated::{Machine, Mark, Memory};
use crate::subject::{Failure, Store, Subject, Value};

/// What happened.
#[derive(Default)]
pub(crate) struct Recording {
    /// What the store held each time that it was open: at the beginning, and after each kill.
    pub(crate) opened: Vec<Model>,
    /// What each action did.
    pub(crate) effects: Vec<Effect>,
    /// Something went wrong without any crash.
    pub(crate) failure: Option<String>,
}

/// Seam calls that a process may make.
const STEPS_MAX: u64 = 10_000_000;

/// Opens the store on `machine` and does `actions`, with `between` after each. The trace is left in the machine.
pub(crate) fn record<S: Subject>(
    subject: &S,
    machine: &Arc<Machine>,
    environment: &Arc<dyn Environment>,
    expectation: &Expectation,
    actions: &[Action],
    between: &dyn Fn(),
) -> Recording {
    machine.start(STEPS_MAX);
    machine.clear_trace();
    machine.remember(Memory::Trace);
    let mut run = Run {
        subject,
        machine,
        environment,
        between,
        model: expectation.model().clone(),
        expectation: expectation.clone(),
        recording: Recording::default(),
    };
    let outcome = quiet::catch(|| run.run(actions));
    machine.remember(Memory::Off);
    let failure = outcome.err().map(|failure| failure.to_string());
    Recording { failure, ..run.recording }
}

/// Actions that are still to be done, with their numbers.
type Actions<'a> = Peekable<Enumerate<Copied<slice::Iter<'a, Action>>>>;

struct Run<'a, S: Subject> {
    subject: &'a S,
    machine: &'a Arc<Machine>,
    environment: &'a Arc<dyn Environment>,
    /// Done after each action.
    between: &'a dyn Fn(),
    /// What the open store holds.
    model: Model,
    /// What the next process may find when this one is killed; at first, what the power loss left.
    expectation: Expectation,
    recording: Recording,
}

impl<S: Subject> Run<'_, S> {
    fn run(&mut self, actions: &[Action]) -> Result<(), Failure> {
        let mut actions = actions.iter().copied().enumerate().peekable();
        let mut store = Some(self.open(&mut actions)?);
        while let Some((number, action)) = actions.next() {
            if let Action::Kill { after } = action {
                self.recording.effects.push(Effect::Nothing);
                let next = actions.next_if(|(_, action)| !action.is_kill());
                self.kill(after, &mut store, |run, store| match next {
                    Some((number, action)) => run.act(store, number, action),
                    None => Ok(()),
                })?;
                store = Some(self.open(&mut actions)?);
            } else {
                self.act(&mut store, number, action)?;
                (self.between)();
            }
        }
        // The power goes off before anything is closed.
        self.machine.remember(Memory::Off);
        Ok(())
    }

    /// Opens the store and looks at what it holds. Kills that come next hit the opening.
    fn open(&mut self, actions: &mut Actions<'_>) -> Result<S::Store, Failure> {
        while let Some((_, action)) = actions.next_if(|(_, action)| action.is_kill()) {
            self.recording.effects.push(Effect::Nothing);
            let Action::Kill { after } = action else { unreachable!("it is one") };
            self.kill(after, &mut None, |run, store| {
                *store = Some(run.subject.open(run.machine, run.environment)?);
                Ok(())
            })?;
        }
        let mut store = self.subject.open(self.machine, self.environment)?;
        self.machine.mark(Mark::Opened(self.recording.opened.len() as u32));
        let found = read_all(&mut store, self.subject.keys())?;
        self.expectation.judge(&found).map_err(Failure::Wrong)?;
        self.model = Model::of(found);
        self.expectation = Expectation::certain(self.model.clone(), self.subject.loss(End::Kill));
        self.recording.opened.push(self.model.clone());
        Ok(store)
    }

    /// Kills the process during `work`, after so many steps that change something, or at its end. Then another
    /// one begins.
    fn kill(
        &mut self,
        after: u8,
        store: &mut Option<S::Store>,
        work: impl FnOnce(&mut Self, &mut Option<S::Store>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.machine.kill_after(after.into());
        let outcome = quiet::catch(|| work(self, store));
        if self.machine.is_off() {
            self.leave_open();
        } else {
            outcome?;
            self.machine.kill();
        }
        // Whatever the handles of the dead process do, and be it a panic, it changes nothing.
        let _ = quiet::catch(|| {
            drop(store.take());
            Ok(())
        });
        self.machine.start(STEPS_MAX);
        self.machine.remember(Memory::Trace);
        self.machine.mark(Mark::Killed);
        Ok(())
    }

    /// Nobody will know whether the write that was cut off would have been refused.
    fn leave_open(&mut self) {
        let refuses_at_once = self.subject.abilities().refuses_at_once;
        if let Some(effect) = self.recording.effects.last_mut()
            && let Effect::Write(writes) = *effect
            && !(refuses_at_once && writes.all().len() == 1)
        {
            *effect = Effect::Refused(writes);
        }
    }

    /// Does an action and compares what it returns.
    fn act(
        &mut self,
        store: &mut Option<S::Store>,
        number: usize,
        action: Action,
    ) -> Result<(), Failure> {
        let (effect, expected) = self.model.effect(action);
        self.recording.effects.push(effect);
        self.expectation.begin(effect);
        self.machine.mark(Mark::Begin(number as u32));
        match self.perform(store, action) {
            Ok(returned) if self.may_return(action, returned, expected) => {
                if let Effect::Write(writes) = effect {
                    self.model.apply(&writes);
                }
            }
            Ok(returned) => {
                let text = format!("{action:?} returned {returned:?} instead of {expected:?}");
                return Err(Failure::Wrong(text));
            }
            // Nothing may have changed.
            Err(Failure::Full) => {
                let refuses_at_once = self.subject.abilities().refuses_at_once;
                let effect = match effect {
                    // The record of a batch may be there, until it is cleared.
                    Effect::Write(writes) if !(refuses_at_once && writes.all().len() == 1) => {
                        Effect::Refused(writes)
                    }
                    _ => Effect::Nothing,
                };
                self.recording.effects[number] = effect;
                self.expectation.begin(effect);
            }
            Err(failure) => return Err(failure),
        }
        self.expectation.acknowledge();
        self.machine.mark(Mark::End(number as u32));
        Ok(())
    }

    /// Whether an action may return this where the model says what is so.
    fn may_return(&self, action: Action, returned: Returned, expected: Returned) -> bool {
        let is_blind = matches!(action, Action::Put { .. }) && !self.subject.abilities().knows_new;
        returned == expected || is_blind && returned == Returned::Flag(true)
    }

    fn perform(&self, store: &mut Option<S::Store>, action: Action) -> Result<Returned, Failure> {
        if action == Action::Reopen {
            let closed = store.take().expect("an open store");
            *store = Some(self.reopen(closed)?);
            return Ok(Returned::Nothing);
        }
        perform(store.as_mut().expect("an open store"), action)
    }

    /// Closes the store in order and opens it again.
    fn reopen(&self, store: S::Store) -> Result<S::Store, Failure> {
        store.close()?;
        self.machine.start(STEPS_MAX);
        let mut opened = self.subject.open(self.machine, self.environment)?;
        if opened.was_clean() == Some(false) {
            let what = "closed in order, and opened as if it had crashed";
            return Err(Failure::Wrong(what.to_owned()));
        }
        Ok(opened)
    }
}

/// The value of every key.
pub(crate) fn read_all<S: Store>(store: &mut S, keys: u64) -> Result<Vec<Option<Value>>, Failure> {
    (0..keys).map(|key| store.get(0, key)).collect()
}

/// Does one action.
pub(crate) fn perform<S: Store>(store: &mut S, action: Action) -> Result<Returned, Failure> {
    let value = super::case::value;
    Ok(match action {
        Action::Put { session, key, value: number } => {
            Returned::Flag(store.put(session.into(), key.into(), &value(number))?)
        }
        Action::Delete { session, key } => {
            Returned::Flag(store.delete(session.into(), key.into())?)
        }
        Action::Get { session, key } => Returned::Value(store.get(session.into(), key.into())?),
        Action::Add { session, key, word, delta } => {
            Returned::Word(store.add(session.into(), key.into(), word.into(), delta)?)
        }
        Action::Replace { session, key, value: number } => {
            Returned::Flag(store.replace(session.into(), key.into(), &value(number))?)
        }
        Action::Batch { session, keys, value: number, deletes } => {
            store.write(session.into(), &super::case::batch(keys, number, deletes))?;
            Returned::Nothing
        }
        Action::EndSession { session } => {
            store.end_session(session.into());
            Returned::Nothing
        }
        Action::Sync => {
            store.sync()?;
            Returned::Nothing
        }
        Action::Compact { percent } => {
            store.compact(percent.into())?;
            Returned::Nothing
        }
        Action::Reopen | Action::Kill { .. } => Returned::Nothing,
    })
}
