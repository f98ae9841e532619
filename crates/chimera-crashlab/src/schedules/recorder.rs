//! [`Recorder`]: writes down what threads do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::histories::{History, Operation, Outcome};

/// Writes down what threads do, in the order in which they do it. Clones write to the same place.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Recording>>);

/// Told of the number of events so far, after each.
type Observer = Box<dyn Fn(usize) + Send>;

#[derive(Default)]
struct Recording {
    history: History,
    observer: Option<Observer>,
    problems: Vec<String>,
}

impl Recorder {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A crash has followed what happened so far, and the machine is up again.
    pub(crate) fn after_crash(mut history: History) -> Self {
        history.crash();
        Self(Arc::new(Mutex::new(Recording { history, ..Recording::default() })))
    }

    /// Tells `observer` the number of events in the history, after each.
    pub(crate) fn observe(&self, observer: impl Fn(usize) + Send + 'static) {
        self.lock().observer = Some(Box::new(observer));
    }

    /// A thread begins an operation on a key.
    pub fn invoke(&self, thread: u32, key: u64, operation: Operation) {
        let mut recording = self.lock();
        recording.history.invoke(thread, key, operation);
        recording.tell();
    }

    /// The thread's operation returns.
    pub fn returns(&self, thread: u32, outcome: Outcome) {
        let mut recording = self.lock();
        recording.history.returns(thread, outcome);
        recording.tell();
    }

    /// Something is wrong that the history does not tell: an error, damage.
    pub fn problem(&self, text: String) {
        self.lock().problems.push(text);
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

impl Recording {
    fn tell(&self) {
        if let Some(observer) = &self.observer {
            observer(self.history.events().len());
        }
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("history", &self.history).finish_non_exhaustive()
    }
}
