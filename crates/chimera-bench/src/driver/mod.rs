//! How workloads are run and measured. Knows stores and clocks, nothing of arguments and output.
//!
//! - `setup`: what is to be measured, decided; `backend`: the persistence seam it runs on.
//! - `workspace`: the directory, what is created in it and removed from it.
//! - `clock`: the loops that operations run in, with and without a clock reading for each.
//! - `worker`: one thread's session and its operations; `phase`: threads doing one kind of work.
//! - `pass`: a store from its creation through its phases; `series`: what was measured of each.
//! - `counting`: the same phases with exact counters; `verify`: whether everything is still there;
//!   `recovery`: how long opening takes; `conclusion`: all of this after the last pass.
//!
//! # What is timed
//! Throughput and latency come from separate passes, because reading the clock for each operation
//! costs 20 to 40 ns. Every pass runs on a store made anew, so that all start equal: an update in
//! place, for example, leaves marks in a store that make later reads cheaper.

pub(crate) mod backend;
pub(crate) mod clock;
pub(crate) mod conclusion;
pub(crate) mod counting;
pub(crate) mod pass;
pub(crate) mod phase;
pub(crate) mod progress;
pub(crate) mod recovery;
pub(crate) mod series;
pub(crate) mod setup;
pub(crate) mod verify;
pub(crate) mod worker;
pub(crate) mod workspace;
