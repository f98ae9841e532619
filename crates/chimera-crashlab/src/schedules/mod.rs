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
//! On simulated media every step of a history is recorded together with its events. Afterwards the
//! history is cut at many points; what a crash there leaves is opened, every key is read, and the
//! history up to the point, the crash and these reads are judged together.

mod campaign;
mod crashes;
mod environment;
mod explore;
mod recorder;
mod stalls;
mod worker;

pub use crate::subject::Abilities;
pub(crate) use campaign::CrashCampaign;
pub(crate) use crashes::Crashes;
pub use environment::ShuttleEnvironment;
pub use explore::{Exploration, Plan, Problem, Scheduling, explore, explore_lives, run_history};
pub use recorder::Recorder;
pub use worker::{Workload, read_all, run_threads};
