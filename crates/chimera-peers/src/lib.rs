//! Chimera beside RocksDB, LMDB, redb and fjall in one run, at matched durability: what the command `chimera-peers` does.
//!
//! # Rooms (each uses only those above it)
//! - [`job`]: which store is measured, where, with which records and at which durability; plain data.
//! - [`window`]: the timer that syncs each 50 ms those stores that do not do it themselves.
//! - [`stores`]: each store behind `chimera-bench`'s traits, configured as its documentation recommends.
//! - [`protocol`]: what a run and the process of a store say to each other; plain data.
//! - [`worker`]: the process of one store.
//! - `limit`, `child`: starting, stopping, sampling and killing such processes, also with limited memory.
//! - `probe`, `disk`: what the disk itself does, and how much of it a store takes.
//! - [`results`]: what was measured; plain data. [`options`]: what the user may say.
//! - [`run`]: all stores in turn, phase by phase.
//! - [`report`]: what came out, as text and as a figure.
//!
//! docs/PEERS.md says what is measured and how to read it.

mod child;
mod disk;
pub mod job;
mod limit;
pub mod options;
mod probe;
pub mod protocol;
pub mod report;
pub mod results;
pub mod run;
pub mod stores;
pub mod window;
pub mod worker;

pub use chimera_bench::{BenchError, Result};
