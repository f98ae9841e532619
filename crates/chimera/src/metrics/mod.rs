//! Metrics: what sessions count and time, always on.
//!
//! - `histogram`: latencies in buckets.
//! - `block`: the words that one session counts in, and their sums.
//! - `meter`: what one session counts, and which of its operations are timed.
//! - `registry`: the meters of open sessions, and the totals of those that have ended.
//! - `exposition`: writing OpenMetrics text. [`Published`]: reading it.
//!
//! Absent on purpose: any knowledge of records, of an index or of the pool; what is said of these is put
//! together in `db`.
//!
//! # Concurrency
//! 1. Every word has one writer: the session that owns the meter. It loads, adds and stores, relaxed;
//!    there is no read-modify-write, no lock, and no line that two sessions write.
//! 2. Anybody may read at any time. What is read of a session under way may be in the middle of an
//!    operation: the bytes counted but not yet the operation. Each number for itself only grows.
//! 3. A session ends under the registry's lock, which also covers reading the totals: it is counted once
//!    at every moment.

mod block;
mod exposition;
mod histogram;
mod meter;
mod published;
mod registry;

pub(crate) use block::Totals;
pub(crate) use exposition::{Exposition, Kind, seconds};
pub(crate) use meter::{Meter, Started};
pub use published::{Buckets, NotMetrics, Published};
pub(crate) use registry::Registry;

/// The file in a store's directory that metrics are published in; see
/// [`Options::publish_metrics`](crate::Options::publish_metrics).
pub const FILE: &str = "metrics";
