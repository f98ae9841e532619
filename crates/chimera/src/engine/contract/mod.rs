//! The contract of engines with the rest of the store: the traits that an engine implements, and the plain things that
//! they speak of. Nothing here knows an engine, or what engines share.
//!
//! - `engine_type`: what is known before a store is open. `engine`: an open store, its sessions and records.
//! - `upkeep`: its work beside sessions. `reports`: what it says of itself.
//! - `core`: what an engine is built on; with `poison`, whether writes are refused or wait for a batch, `held_keys`, the keys
//!   of batches, and `changes`, who is told of writes.
//! - `client`: what a session keeps. `listed`: a record of a listing.
//! - `capabilities`, `demand`: what an engine can do, and how much it is to take in.

pub(crate) mod capabilities;
pub(crate) mod changes;
pub(crate) mod client;
pub(crate) mod core;
pub(crate) mod demand;
pub(crate) mod engine;
pub(crate) mod engine_type;
pub(crate) mod held_keys;
pub(crate) mod listed;
pub(crate) mod poison;
pub(crate) mod reports;
pub(crate) mod upkeep;
