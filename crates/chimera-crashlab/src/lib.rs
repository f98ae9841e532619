//! The crash lab of Chimera: proof that acknowledged writes survive, and proof that the proof can fail.
//!
//! # Rooms
//! - `commands/`: what the user may say, one module for each subcommand.
//! - `report`: how a result is printed: a table or JSON, and the exit code.
#![forbid(unsafe_code)]

pub mod commands;
pub mod report;
