//! [`Machine`] and [`Simulated`]: persistent memory of which a crash leaves what hardware may leave.
//!
//! The machine's memory is an array of words, its files are names and lengths. Every step is either
//! recorded, for `media` to find out what a crash before it can leave, or undone, so that one machine
//! can be put into one state after another.
//!
//! # Thread safety
//! Everything is safe to call from any thread; a scheduler decides at every step who goes on.

mod event;
mod files;
mod machine;
mod mutation;
mod seam;
mod tree;

pub(crate) use event::{Event, Mark, Order};
pub(crate) use files::SimulatedFiles;
pub(crate) use machine::{Machine, Memory, State};
pub(crate) use mutation::{Mutation, MutationKind};
pub use seam::Simulated;
#[cfg(test)]
pub(crate) use tree::Name;
pub(crate) use tree::{Change, FileChange, Tree};
