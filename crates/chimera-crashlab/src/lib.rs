//! The crash lab of Chimera: proof that acknowledged writes survive, and proof that the proof can fail.
//!
//! # Rooms
//! - `commands/`: what the user may say, one module for each subcommand.
//! - [`hostile`]: stores made of hostile files, for a fuzzer.
//! - [`kill9`]: a writer process, killed at random moments.
//! - `report`: how a result is printed: a table or JSON, and the exit code.
#![forbid(unsafe_code)]

pub mod commands;
pub mod hostile;
pub mod kill9;
pub mod report;
