//! Several threads at a store, run in an order that a seed decides.
//!
//! # How
//! The threads are coroutines of [`shuttle`] on one thread of the operating system. They take turns
//! where the store uses persistent memory, if the backend of the seam lets them, and where it waits,
//! for [`ShuttleEnvironment`] yields. Nothing else is a place to take turns: between two of these
//! places the store's own words in DRAM change as if at once, in one order for all. Other orders of
//! DRAM are for the models of `loom` to find.
//!
//! What threads do is written down by a [`Recorder`] and judged by [`crate::histories`].
//!
//! # Crashes
//! A backend that simulates power failures decides when the power fails, takes what survives, and
//! tells the recorder with [`Recorder::crash`]: nothing is written down from then on, while the threads
//! run to their end on memory that no longer counts. Then what survived is opened, [`Recorder::resume`]
//! and [`read_all`] go on with the history.

mod environment;
mod explore;
mod recorder;
mod worker;

pub use environment::ShuttleEnvironment;
pub use explore::{Exploration, Plan, Problem, Scheduling, explore, run_history};
pub use recorder::Recorder;
pub use worker::{Workload, read_all, run_threads};
