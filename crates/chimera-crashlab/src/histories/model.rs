//! What one key does when operations come one after the other.

use std::fmt;

/// An operation on one key. A value is a number; a counter is a value that is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Stores a value.
    Put(u64),
    /// Reads the value.
    Get,
    /// Removes the key.
    Delete,
    /// Adds to the value, wrapping, if the key is there.
    FetchAdd(u64),
    /// Replaces the value if it is the expected one.
    CompareAndSwap {
        /// The value to be replaced.
        expected: u64,
        /// The value to replace it by.
        new: u64,
    },
}

/// What an operation answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Of a put: whether the key is new.
    WasNew(bool),
    /// Of a put that does not say whether the key is new.
    Written,
    /// Of a get: the value.
    Found(Option<u64>),
    /// Of a delete: whether the key was there.
    WasThere(bool),
    /// Of an addition or a swap: the value before it.
    Previous(Option<u64>),
    /// Of a swap.
    Swap(SwapOutcome),
    /// Of any operation: an error that promises that nothing was changed.
    Refused,
}

/// What a swap answered that does not tell the value before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapOutcome {
    /// The value was replaced.
    Swapped,
    /// Another value was there.
    Different,
    /// The key was not there.
    Missing,
}

impl Operation {
    /// What the operation makes of a key's value.
    pub(super) fn apply(self, value: Option<u64>) -> Option<u64> {
        match self {
            Self::Put(new) => Some(new),
            Self::Get => value,
            Self::Delete => None,
            Self::FetchAdd(delta) => value.map(|value| value.wrapping_add(delta)),
            Self::CompareAndSwap { expected, new } => {
                if value == Some(expected) {
                    Some(new)
                } else {
                    value
                }
            }
        }
    }

    /// Whether the operation stores something when it finds `value`.
    pub(super) fn writes(self, value: Option<u64>) -> bool {
        match self {
            Self::Put(_) => true,
            Self::Get => false,
            Self::Delete | Self::FetchAdd(_) => value.is_some(),
            Self::CompareAndSwap { expected, .. } => value == Some(expected),
        }
    }

    /// Whether the operation can give this outcome when it finds `value`. `None` when it never can.
    pub(super) fn agrees(self, value: Option<u64>, outcome: Outcome) -> Option<bool> {
        match (self, outcome) {
            (Self::Put(_), Outcome::WasNew(was_new)) => Some(was_new == value.is_none()),
            (Self::Get, Outcome::Found(found)) => Some(found == value),
            (Self::Delete, Outcome::WasThere(was_there)) => Some(was_there == value.is_some()),
            (Self::FetchAdd(_) | Self::CompareAndSwap { .. }, Outcome::Previous(previous)) => {
                Some(previous == value)
            }
            (Self::CompareAndSwap { expected, .. }, Outcome::Swap(swap)) => Some(match swap {
                SwapOutcome::Swapped => value == Some(expected),
                SwapOutcome::Different => value.is_some_and(|value| value != expected),
                SwapOutcome::Missing => value.is_none(),
            }),
            (Self::Put(_), Outcome::Written) | (_, Outcome::Refused) => Some(true),
            _ => None,
        }
    }

    /// Whether the operation, given its outcome, changes nothing whenever it takes effect.
    pub(super) fn only_looks(self, outcome: Outcome) -> bool {
        match (self, outcome) {
            (Self::Get, _)
            | (Self::Delete, Outcome::WasThere(false))
            | (Self::FetchAdd(_) | Self::CompareAndSwap { .. }, Outcome::Previous(None))
            | (
                _,
                Outcome::Refused | Outcome::Swap(SwapOutcome::Different | SwapOutcome::Missing),
            ) => true,
            (Self::CompareAndSwap { expected, .. }, Outcome::Previous(Some(previous))) => {
                previous != expected
            }
            _ => false,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put(value) => write!(f, "put({value})"),
            Self::Get => f.write_str("get"),
            Self::Delete => f.write_str("delete"),
            Self::FetchAdd(delta) => write!(f, "fetch_add({delta})"),
            Self::CompareAndSwap { expected, new } => {
                write!(f, "compare_and_swap({expected}, {new})")
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WasNew(true) => f.write_str("new"),
            Self::WasNew(false) => f.write_str("overwritten"),
            Self::Written => f.write_str("written"),
            Self::Found(value) | Self::Previous(value) => f.write_str(&text_of(*value)),
            Self::WasThere(true) => f.write_str("was there"),
            Self::WasThere(false) => f.write_str("was not there"),
            Self::Swap(SwapOutcome::Swapped) => f.write_str("swapped"),
            Self::Swap(SwapOutcome::Different) => f.write_str("different"),
            Self::Swap(SwapOutcome::Missing) => f.write_str("missing"),
            Self::Refused => f.write_str("refused"),
        }
    }
}

/// A key's value for people to read.
pub(super) fn text_of(value: Option<u64>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
}
