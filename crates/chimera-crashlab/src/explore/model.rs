//! [`Model`]: what a store holds, and what operations do to it.

use std::hash::{Hash, Hasher};

use super::case::{Action, BATCH_KEYS, batch, value};
use crate::subject::Value;

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    values: Vec<Option<Value>>,
}

/// A write of a session: a key, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Write {
    pub(crate) session: usize,
    pub(crate) key: u64,
    pub(crate) value: Option<Value>,
    /// The only word that it changes, where damage may go unnoticed from then on.
    pub(crate) word: Option<u8>,
}

/// Writes of a session that happen as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writes {
    all: [Write; BATCH_KEYS],
    count: usize,
}

impl Writes {
    pub(crate) fn all(&self) -> &[Write] {
        &self.all[..self.count]
    }

    pub(crate) fn session(&self) -> usize {
        self.all[0].session
    }
}

impl From<Write> for Writes {
    fn from(write: Write) -> Self {
        Self { all: [write; BATCH_KEYS], count: 1 }
    }
}

/// As that of the writes, one by one: a single one has the hash that it has by itself.
impl Hash for Writes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.all().iter().for_each(|write| write.hash(state));
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    Write(Writes),
    /// A write that is refused in the end. If a crash comes before, it may have happened.
    Refused(Writes),
    /// Everything before it is durable.
    Settle,
    /// A session ends.
    EndSession(usize),
}

/// What an operation returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    Nothing,
    Flag(bool),
    Word(Option<u64>),
    Value(Option<Value>),
}

impl Model {
    /// Without any key.
    pub(crate) fn new(keys: u64) -> Self {
        Self { values: vec![None; keys as usize] }
    }

    /// With these values.
    pub(crate) fn of(values: Vec<Option<Value>>) -> Self {
        Self { values }
    }

    pub(crate) fn get(&self, key: u64) -> Option<Value> {
        self.values[key as usize]
    }

    pub(crate) fn set(&mut self, key: u64, value: Option<Value>) {
        self.values[key as usize] = value;
    }

    /// Of every key.
    pub(crate) fn values(&self) -> &[Option<Value>] {
        &self.values
    }

    /// What an action does, and what it returns.
    pub(crate) fn effect(&self, action: Action) -> (Effect, Returned) {
        match action {
            Action::Put { session, key, value: number } => {
                let is_new = self.get(key.into()).is_none();
                (write(session, key, Some(value(number)), None), Returned::Flag(is_new))
            }
            Action::Delete { session, key } => {
                // What deletes nothing writes nothing, also where another session's delete may be lost still.
                let was_there = self.get(key.into()).is_some();
                let effect =
                    if was_there { write(session, key, None, None) } else { Effect::Nothing };
                (effect, Returned::Flag(was_there))
            }
            Action::Get { key, .. } => (Effect::Nothing, Returned::Value(self.get(key.into()))),
            Action::Add { session, key, word, delta } => match self.get(key.into()) {
                None => (Effect::Nothing, Returned::Word(None)),
                Some(mut value) => {
                    let place = &mut value[usize::from(word)];
                    let previous = *place;
                    *place = previous.wrapping_add(delta);
                    let effect = write(session, key, Some(value), Some(word));
                    (effect, Returned::Word(Some(previous)))
                }
            },
            Action::Replace { session, key, value: number } => match self.get(key.into()) {
                None => (Effect::Nothing, Returned::Flag(false)),
                Some(old) => {
                    let new = value(number);
                    let word = only_difference(&old, &new);
                    (write(session, key, Some(new), word), Returned::Flag(true))
                }
            },
            Action::Batch { session, keys, value: number, deletes } => {
                (self.batch(session.into(), &batch(keys, number, deletes)), Returned::Nothing)
            }
            Action::Sync | Action::Reopen => (Effect::Settle, Returned::Nothing),
            Action::EndSession { session } => {
                (Effect::EndSession(session.into()), Returned::Nothing)
            }
            Action::Compact { .. } | Action::Kill { .. } => (Effect::Nothing, Returned::Nothing),
        }
    }

    /// What a batch does. A key that is as it is to be is not written.
    fn batch(&self, session: usize, writes: &[(u64, Option<Value>)]) -> Effect {
        let mut changed: Option<Writes> = None;
        for (place, (key, value)) in writes.iter().enumerate() {
            let is_last = writes[place + 1..].iter().all(|(later, _)| later != key);
            if !is_last || self.get(*key) == *value {
                continue;
            }
            let write = Write { session, key: *key, value: *value, word: None };
            match &mut changed {
                Some(changed) => {
                    changed.all[changed.count] = write;
                    changed.count += 1;
                }
                None => changed = Some(write.into()),
            }
        }
        changed.map_or(Effect::Nothing, Effect::Write)
    }

    /// What is so when writes have happened.
    pub(crate) fn apply(&mut self, writes: &Writes) {
        for write in writes.all() {
            self.set(write.key, write.value);
        }
    }
}

fn write(session: u8, key: u8, value: Option<Value>, word: Option<u8>) -> Effect {
    Effect::Write(Write { session: session.into(), key: key.into(), value, word }.into())
}

/// The word in which two values differ, if there is one such word.
fn only_difference(old: &Value, new: &Value) -> Option<u8> {
    let mut words = (0..).zip(old.iter().zip(new)).filter(|(_, (old, new))| old != new);
    let (first, _) = words.next()?;
    words.next().is_none().then_some(first)
}

/// A value for people.
pub(crate) fn text(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(words) => words.map(|word| format!("{:04x}", word >> 48)).join("-"),
    }
}
