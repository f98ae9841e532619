//! Histories of operations by several threads, and whether a store that keeps its promises can have
//! brought them about.
//!
//! # What is checked
//! Linearizability of each key by itself: there is an order of the operations in which each takes
//! effect at once, somewhere between its invocation and its return, and every result is the one of
//! that order. Keys are independent of each other, so a history has such an order when each key has.
//!
//! With crashes the property is durable linearizability. An operation that had not returned when the
//! machine crashed took effect before the crash or never. One that had returned has taken effect for
//! good, unless the store may lose it ([`Loss`](crate::durability::Loss)): then what is left of a key is the
//! last write to it that was not lost. Of one key alone, losing any of its last writes looks like losing all of
//! them; that a session's losses are a suffix over all keys is judged by `explore`. What is read after recovery is appended to the history like any other operation. There may be any number
//! of crashes.
//!
//! # How
//! The search of Wing and Gong with the memory of Lowe, in the order of events ("just in time"): a
//! configuration is the value of the key and which of the operations in progress have taken effect.
//! At a return every way is tried in which the operation can have taken effect by now, alone or after
//! others in progress; configurations that were seen already are not followed again. Results may
//! occur twice: nothing depends on values being unique, they only keep the number of configurations
//! small.
//!
//! # What is deliberately absent
//! Nothing here knows a store. A driver writes a [`History`] and asks [`History::check`].

mod check;
mod event;
mod history;
mod model;
#[cfg(test)]
mod tests;
mod violation;

pub use event::Event;
pub use history::{History, PENDING_MAX};
pub use model::{Operation, Outcome, SwapOutcome};
pub use violation::Violation;
