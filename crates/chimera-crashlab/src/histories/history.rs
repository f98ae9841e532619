//! [`History`]: what several threads did, in the order in which it was seen.

use std::collections::BTreeMap;

use super::check::check;
use super::event::Event;
use super::model::{Operation, Outcome};
use super::violation::Violation;
use crate::durability::Loss;

/// Most operations that may be in progress at a time.
pub const PENDING_MAX: usize = 64;

/// What several threads did to the keys of a store that was empty at first.
#[derive(Clone, Debug, Default)]
pub struct History {
    events: Vec<Event>,
    /// What each thread has begun and not finished.
    pending: BTreeMap<u32, (u64, Operation)>,
    /// What crashes may take of what had returned.
    loss: Loss,
}

impl History {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Crashes may take what `loss` says of what had returned. Each thread is a session.
    pub fn with_loss(loss: Loss) -> Self {
        Self { loss, ..Self::default() }
    }

    /// What these events tell.
    pub(crate) fn from_events(events: &[Event], loss: Loss) -> Self {
        let mut history = Self::with_loss(loss);
        for event in events {
            match *event {
                Event::Invoke { thread, key, operation } => history.invoke(thread, key, operation),
                Event::Return { thread, outcome } => history.returns(thread, outcome),
                Event::Crash => history.crash(),
            }
        }
        history
    }

    /// A thread begins an operation.
    ///
    /// # Panics
    /// When the thread has another one in progress, or there are [`PENDING_MAX`] already.
    pub fn invoke(&mut self, thread: u32, key: u64, operation: Operation) {
        let before = self.pending.insert(thread, (key, operation));
        assert!(before.is_none(), "thread {thread} does two things at a time");
        assert!(self.pending.len() <= PENDING_MAX, "too many operations in progress");
        self.events.push(Event::Invoke { thread, key, operation });
    }

    /// The thread's operation returns.
    ///
    /// # Panics
    /// When it has none in progress, or one that never has such an outcome.
    pub fn returns(&mut self, thread: u32, outcome: Outcome) {
        let pending = self.pending.remove(&thread);
        let (_, operation) = pending.expect("only what was begun can return");
        let fits = operation.agrees(None, outcome).is_some();
        assert!(fits, "{operation} has no outcome like `{outcome}`");
        self.events.push(Event::Return { thread, outcome });
    }

    /// The machine crashes; its threads are gone with it, and their numbers may be used again.
    pub fn crash(&mut self) {
        self.pending.clear();
        self.events.push(Event::Crash);
    }

    /// A read that nothing else overlaps: what recovery brought back.
    pub fn read(&mut self, thread: u32, key: u64, found: Option<u64>) {
        self.invoke(thread, key, Operation::Get);
        self.returns(thread, Outcome::Found(found));
    }

    /// Everything so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Whether the history is durably linearizable.
    ///
    /// # Errors
    /// The first key that is not, and the shortest part of its history that shows it.
    pub fn check(&self) -> Result<(), Violation> {
        check(&self.events, self.loss)
    }
}
