//! What engines share, each in one place:
//!
//! - `keys`: the locks of keys.
//! - `booking`: which operation counters book persistence steps under.
//! - `settle`: waiting, where there is a journal, until an operation may be acknowledged.
//! - `creation`: agreement of a store with the options.
//! - `read`: reading values by their keys, of one or many. `writes`: puts and deletes, of one or many.
//! - `unlocked`: reading what others may change meanwhile.
//! - `update`: reading, changing and replacing a value as one step.
//! - `conditional`: writes with a condition. `batch`: writes of several keys that are made as one.
//! - `listing`: what an engine that does not know better makes of its listing.
//! - `maintenance`: the pace of work in the background.
//! - `order`: making the order of the keys of a store that is opened.
//! - `scan`: records in the order of their keys.
//! - `scrub`: verifying a store, step by step.
//! - `recovery`: work on many blocks by several threads.

pub(crate) mod batch;
pub(crate) mod booking;
pub(crate) mod conditional;
pub(crate) mod creation;
mod keys;
#[cfg(feature = "teaching-engine")]
pub(crate) mod listing;
pub(crate) mod maintenance;
pub(crate) mod order;
pub(crate) mod read;
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
