//! [`Violation`]: the part of a history that nothing can explain.

use std::fmt;

use super::event::Event;
use super::model::{Operation, text_of};

/// Events of a violation that are printed: the last ones.
const PRINTED_MAX: usize = 60;

/// Why a history is not durably linearizable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The key.
    pub key: u64,
    /// The shortest beginning of the key's history that has no explanation: without its last event it
    /// has one.
    pub events: Vec<Event>,
    /// The values that the key could have had before the last event, as far as returned operations
    /// tell.
    pub values: Vec<Option<u64>>,
}

impl std::error::Error for Violation {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no order of the operations on key {} explains the last event:", self.key)?;
        let left_out = self.events.len().saturating_sub(PRINTED_MAX);
        if left_out > 0 {
            writeln!(f, "  ... {left_out} events before")?;
        }
        let mut running: Vec<(u32, Operation)> = Vec::new();
        for (number, event) in self.events.iter().enumerate() {
            let text = match *event {
                Event::Invoke { thread, operation, .. } => {
                    running.push((thread, operation));
                    format!("thread {thread} begins  {operation}")
                }
                Event::Return { thread, outcome } => {
                    let position = running.iter().position(|(other, _)| *other == thread);
                    let operation = position.map(|position| running.remove(position).1);
                    let operation = operation.map(|one| one.to_string()).unwrap_or_default();
                    format!("thread {thread} returns {operation}: {outcome}")
                }
                Event::Crash => {
                    running.clear();
                    "crash".to_owned()
                }
            };
            if number >= left_out {
                writeln!(f, "  {text}")?;
            }
        }
        for (thread, operation) in running {
            writeln!(f, "  still in progress: thread {thread}: {operation}")?;
        }
        let values: Vec<_> = self.values.iter().map(|value| text_of(*value)).collect();
        write!(f, "  before it the value could have been: {}", values.join(", "))
    }
}
