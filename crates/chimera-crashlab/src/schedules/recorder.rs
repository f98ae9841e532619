//! [`Recorder`]: writes down what threads do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::histories::{History, Operation, Outcome};

/// Writes down what threads do, in the order in which they do it. Clones write to the same place.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Recording>>);

#[derive(Debug, Default)]
struct Recording {
    history: History,
    problems: Vec<String>,
    has_crashed: bool,
}

impl Recorder {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A thread begins an operation on a key.
    pub fn invoke(&self, thread: u32, key: u64, operation: Operation) {
        let mut recording = self.lock();
        if !recording.has_crashed {
            recording.history.invoke(thread, key, operation);
        }
    }

    /// The thread's operation returns.
    pub fn returns(&self, thread: u32, outcome: Outcome) {
        let mut recording = self.lock();
        if !recording.has_crashed {
            recording.history.returns(thread, outcome);
        }
    }

    /// Something is wrong that the history does not tell: an error, damage.
    pub fn problem(&self, text: String) {
        let mut recording = self.lock();
        if !recording.has_crashed {
            recording.problems.push(text);
        }
    }

    /// The machine crashes now. Nothing is written down until [`resume`](Self::resume).
    pub fn crash(&self) {
        let mut recording = self.lock();
        if !recording.has_crashed {
            recording.history.crash();
            recording.has_crashed = true;
        }
    }

    /// The machine is up again, and no thread of before is left.
    pub fn resume(&self) {
        self.lock().has_crashed = false;
    }

    /// Whether the machine has crashed and is not up again.
    pub fn has_crashed(&self) -> bool {
        self.lock().has_crashed
    }

    /// What was written down so far.
    pub fn history(&self) -> History {
        self.lock().history.clone()
    }

    /// What was found wrong, beside the history.
    pub fn problems(&self) -> Vec<String> {
        self.lock().problems.clone()
    }

    /// Never held while a thread yields.
    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
