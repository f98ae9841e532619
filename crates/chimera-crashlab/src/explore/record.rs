//! Running an epoch: opening the store, its actions, every return value compared with the model.

use std::sync::Arc;

use chimera_pmem::Environment;

use super::case::Action;
use super::expectation::Expectation;
use super::model::{Effect, Model, Returned};
use super::quiet;
use crate::simulated::{Machine, Mark, Memory};
use crate::subject::{Failure, Store, Subject, Value};

/// What happened.
pub(crate) struct Recording {
    /// What the store held once it was open.
    pub(crate) opened: Model,
    /// What each action did.
    pub(crate) effects: Vec<Effect>,
    /// Something went wrong without any crash.
    pub(crate) failure: Option<String>,
}

/// Seam calls that an epoch may make.
const STEPS_MAX: u64 = 10_000_000;

/// Opens the store on `machine` and does `actions`. The trace is left in the machine.
pub(crate) fn record<S: Subject>(
    subject: &S,
    machine: &Arc<Machine>,
    environment: &Arc<dyn Environment>,
    expectation: &Expectation,
    actions: &[Action],
) -> Recording {
    machine.start(STEPS_MAX);
    machine.clear_trace();
    machine.remember(Memory::Trace);
    let mut recording =
        Recording { opened: expectation.model().clone(), effects: Vec::new(), failure: None };
    let run = Run { subject, machine, environment, recording: &mut recording };
    let outcome = quiet::catch(|| run.run(expectation, actions));
    machine.remember(Memory::Off);
    recording.failure = outcome.err().map(|failure| failure.to_string());
    recording
}

struct Run<'a, S: Subject> {
    subject: &'a S,
    machine: &'a Arc<Machine>,
    environment: &'a Arc<dyn Environment>,
    recording: &'a mut Recording,
}

impl<S: Subject> Run<'_, S> {
    fn run(self, expectation: &Expectation, actions: &[Action]) -> Result<(), Failure> {
        let mut store = self.subject.open(self.machine, self.environment)?;
        self.machine.mark(Mark::Opened);
        let found = read_all(&mut store, self.subject.keys())?;
        expectation.judge(&found).map_err(Failure::Wrong)?;
        let mut model = Model::of(found);
        self.recording.opened = model.clone();
        for (number, action) in actions.iter().enumerate() {
            let (effect, expected) = model.effect(*action);
            self.recording.effects.push(effect);
            self.machine.mark(Mark::Begin(number as u32));
            let returned = if *action == Action::Reopen {
                store = self.reopen(store)?;
                Ok(Returned::Nothing)
            } else {
                perform(&mut store, *action)
            };
            match returned {
                Ok(returned) if returned == expected => {
                    if let Effect::Write(write) = effect {
                        model.set(write.key, write.value);
                    }
                }
                Ok(returned) => {
                    let text = format!("{action:?} returned {returned:?} instead of {expected:?}");
                    return Err(Failure::Wrong(text));
                }
                // Nothing may have changed.
                Err(Failure::Full) => self.recording.effects[number] = Effect::Nothing,
                Err(failure) => return Err(failure),
            }
            self.machine.mark(Mark::End(number as u32));
        }
        // The power goes off before anything is closed.
        self.machine.remember(Memory::Off);
        Ok(())
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
        Action::Reopen => Returned::Nothing,
    })
}
