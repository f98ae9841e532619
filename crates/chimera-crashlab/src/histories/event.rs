//! [`Event`]: one step of a history.

use super::model::{Operation, Outcome};

/// One step of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A thread begins an operation on a key.
    Invoke {
        /// The thread.
        thread: u32,
        /// The key.
        key: u64,
        /// What it begins.
        operation: Operation,
    },
    /// The operation that a thread has begun returns.
    Return {
        /// The thread.
        thread: u32,
        /// What was answered.
        outcome: Outcome,
    },
    /// The machine crashes: whatever is in progress never returns.
    Crash,
}
