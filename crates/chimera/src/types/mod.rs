//! Plain data that every room speaks of: options, errors, reports. No behaviour of a store.

pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod durability;
pub(crate) mod error;
pub(crate) mod layout;
pub(crate) mod losses;
pub(crate) mod operations;
pub(crate) mod order;
pub(crate) mod position;
pub(crate) mod progress;
pub(crate) mod runs;
pub(crate) mod scrub;
pub(crate) mod stats;
pub(crate) mod stream;
pub(crate) mod swap;
pub(crate) mod totals;
pub(crate) mod verify_reads;
