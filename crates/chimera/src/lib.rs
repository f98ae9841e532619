//! Chimera: an embedded key-value store for machines with fast volatile memory and large
//! byte-addressable persistent memory.
//!
//! # Rooms (each uses only those below it)
//! - [`db`]: what a user sees: [`Options`], [`Error`], [`Stats`].
//! - [`index`]: where a key's record is; never touches a record.
//! - `pool`: superblock, segments, blocks, [`Location`].
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "used by the engine, which is being added")]

pub mod db;
pub mod index;
mod pool;
mod records;
mod sync;

pub use db::check::{CheckReport, Damage};
pub use db::error::{Error, Result};
pub use db::options::{
    Durability, EngineKind, Geometry, IndexPlacement, Options, Progress, RecordLayout,
};
pub use db::stats::{RecoveryStats, Stats};
pub use pool::Location;

pub use chimera_pmem as pmem;
