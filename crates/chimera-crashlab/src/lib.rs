//! The crash lab of Chimera: proof that acknowledged writes survive, and proof that the proof can fail.
//!
//! # Rooms
//! - `commands/`: what the user may say, one module for each subcommand.
//! - `histories/`: what several threads did, and whether a store that keeps its promises can have done it.
//! - `report`: how a result is printed: a table or JSON, and the exit code.
//! - `schedules/`: several threads at a store, in an order that a seed decides.
#![forbid(unsafe_code)]

pub mod commands;
pub mod histories;
pub mod report;
pub mod schedules;
