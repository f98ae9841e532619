//! How workloads are run and measured. Knows stores and clocks, nothing of arguments and output.
//!
//! - `engine`: what can be measured; `setup`: what is to be measured, decided.
//! - `store`: the traits that drivers drive; `db`, `dram_map`, `dram_index`, `tree`: their implementers; `shared`, `backend`: the
//!   persistence seam that stores lie on.
//! - `workspace`: the directory that stores are made in; `marked`: what may be removed from it.
//! - `clock`: the loops that operations run in, with and without a clock reading for each.
//! - `worker`: one thread's session and its operations; `phase`: threads doing one kind of work; `ledger`:
//!   which records a store has then.
//! - `pass`: a store from its creation through its phases; `turns`: all passes of all engines.
//! - `beside`: a thread that scans beside other work; `pool`: threads that serve, or apply changes of the order of keys, as is decided.
//! - `tuning`, what of a setup is ChameleonDB's; `opening`, a store from its opening on;
//!   `bursts`, puts over a steady load of gets.
//! - `study`: cells of the primitives study, timed and counted.
//! - `counting`: the same phases with exact counters; `verify`: whether everything is still there;
//!   `recovery`: how long opening takes; `conclusion`: the last two after the last pass.
//!
//! # What is timed
//! Throughput and latency come from separate passes, because reading the clock for each operation
//! costs 20 to 40 ns. Every pass runs on a store made anew, so that all start equal: an update in
//! place, for example, leaves marks in a store that make later reads cheaper. Engines that are compared
//! take turns, pass by pass, and another one comes first each time.

pub(crate) mod backend;
pub(crate) mod beside;
pub(crate) mod bursts;
pub(crate) mod clock;
pub(crate) mod conclusion;
pub(crate) mod counting;
pub(crate) mod db;
pub(crate) mod dram_index;
pub(crate) mod dram_map;
pub(crate) mod engine;
pub(crate) mod ledger;
mod marked;
pub(crate) mod opening;
pub(crate) mod pass;
pub(crate) mod phase;
pub(crate) mod pool;
pub(crate) mod progress;
pub(crate) mod recovery;
pub(crate) mod setup;
mod shared;
pub(crate) mod store;
pub(crate) mod study;
pub(crate) mod tree;
pub(crate) mod tuning;
pub(crate) mod turns;
pub(crate) mod verify;
pub(crate) mod worker;
pub(crate) mod workspace;
