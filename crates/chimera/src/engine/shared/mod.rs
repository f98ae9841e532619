//! What engines share, each in one place:
//!
//! - `keys`: the locks of keys.
//! - `poison`: the state after a failure.
//! - `client`: what every session keeps.
//! - `booking`: which operation counters book persistence steps under.
//! - `settle`: waiting, where there is a journal, until an operation may be acknowledged.
//! - `creation`: agreement of a store with the options.
//! - `gets`, `writes`: gets of many records; puts and deletes, of one or many.
//! - `unlocked`: reading what others may change meanwhile.
//! - `update`: reading, changing and replacing a value as one step.
//! - `listing`: records as listings give them, and their positions.
//! - `maintenance`: steps of work in the background, and their pace.
//! - `order`: making the order of the keys of a store that is opened.
//! - `scan`: records in the order of their keys.
//! - `scrub`: verifying a store, step by step.
//! - `recovery`: work on many blocks by several threads.

pub(crate) mod booking;
pub(crate) mod client;
pub(crate) mod creation;
pub(crate) mod gets;
mod keys;
pub(crate) mod listing;
pub(crate) mod maintenance;
pub(crate) mod order;
mod poison;
pub(crate) mod recovery;
pub(crate) mod scan;
pub(crate) mod scrub;
pub(crate) mod settle;
pub(crate) mod totals;
mod unlocked;
pub(crate) mod update;
pub(crate) mod writes;

/// Keys whose cache misses overlap.
const GROUP: usize = 16;

pub(crate) use keys::{KeyGuard, KeyLocks};
pub(crate) use poison::{Poison, PoisonOnPanic};
