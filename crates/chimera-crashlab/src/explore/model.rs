//! [`Model`]: what a store must hold; [`Expectation`]: what it may hold after a crash.

use super::case::{Action, value};
use crate::subject::Value;

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    values: Vec<Option<Value>>,
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

    pub(crate) fn get(&self, key: u64) -> Option<Value> {
        self.values[key as usize]
    }

    pub(crate) fn set(&mut self, key: u64, value: Option<Value>) {
        self.values[key as usize] = value;
    }

    /// What an action changes, and what it returns.
    pub(crate) fn effect(&self, action: Action) -> (Option<(u64, Option<Value>)>, Returned) {
        match action {
            Action::Put { key, value: number, .. } => {
                let is_new = self.get(key.into()).is_none();
                (Some((key.into(), Some(value(number)))), Returned::Flag(is_new))
            }
            Action::Delete { key, .. } => {
                let was_there = self.get(key.into()).is_some();
                (Some((key.into(), None)), Returned::Flag(was_there))
            }
            Action::Get { key, .. } => (None, Returned::Value(self.get(key.into()))),
            Action::Add { key, word, delta, .. } => match self.get(key.into()) {
                None => (None, Returned::Word(None)),
                Some(mut value) => {
                    let place = &mut value[usize::from(word)];
                    let previous = *place;
                    *place = previous.wrapping_add(delta);
                    (Some((key.into(), Some(value))), Returned::Word(Some(previous)))
                }
            },
            Action::Replace { key, value: number, .. } => match self.get(key.into()) {
                None => (None, Returned::Flag(false)),
                Some(_) => (Some((key.into(), Some(value(number)))), Returned::Flag(true)),
            },
            Action::EndSession { .. } | Action::Sync | Action::Compact { .. } | Action::Reopen => {
                (None, Returned::Nothing)
            }
        }
    }
}

/// What a store may hold after a crash: what was acknowledged, and of one operation in flight its
/// effect as a whole or nothing of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectation {
    pub(crate) model: Model,
    pub(crate) in_flight: Option<(u64, Option<Value>)>,
}

impl Expectation {
    /// Whether `found` may be there under `key`.
    pub(crate) fn allows(&self, key: u64, found: Option<&Value>) -> bool {
        self.model.get(key).as_ref() == found
            || matches!(&self.in_flight, Some((of, value)) if *of == key && value.as_ref() == found)
    }

    /// What may be there, for people.
    pub(crate) fn text(&self, key: u64) -> String {
        let acknowledged = text(self.model.get(key).as_ref());
        match &self.in_flight {
            Some((of, value)) if *of == key => {
                format!("{acknowledged}, or {} of the operation in flight", text(value.as_ref()))
            }
            _ => acknowledged,
        }
    }

    /// A hash that equal expectations share.
    pub(crate) fn hash(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.model.values.hash(&mut hasher);
        self.in_flight.hash(&mut hasher);
        hasher.finish()
    }
}

/// A value for people.
pub(crate) fn text(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(words) => words.map(|word| format!("{:04x}", word >> 48)).join("-"),
    }
}
