//! Persistent memory for RocksDB: block cache and memtables in DRAM, in persistent memory or in both, and what that costs.
//!
//! # Rooms (each uses only those above it)
//! - [`region`]: a file on persistent memory, mapped as volatile memory.
//! - [`arena`]: allocating and freeing memory of a region.
//! - [`heap`]: memory of one component, of which a share lies in persistent memory.
//! - [`tier`]: blocks that a block cache in DRAM gave up.
//! - `exports`: what the C++ shim calls of these.
//! - [`database`]: RocksDB, through the shim in `shim/`.
//! - [`placement`]: where components lie, and what is made for that.
//! - [`workload`]: keys, values and mixes; pure arithmetic. [`published`]: what the paper says, with its words.
//! - [`study`]: the workloads of the study, run. [`report`]: what came out, as text and as a page.
//!
//! Nothing here is durable, and nothing goes through the persistence seam of the store: the memory is volatile.
//! docs/PLACEMENT.md says what is measured.

pub mod arena;
pub mod database;
mod error;
mod exports;
pub mod heap;
pub mod placement;
pub mod published;
pub mod region;
pub mod report;
pub mod study;
pub mod tier;
pub mod workload;

pub use error::{Error, Result};
