//! The crash lab of Chimera: proof that acknowledged writes survive, and proof that the proof can fail.
//!
//! # Rooms
//! - `commands/`: what the user may say, one module for each subcommand.
//! - `plain_file/`: the journal of plain files under a model of the page cache.
//! - `report`: how a result is printed: a table or JSON, and the exit code.
#![forbid(unsafe_code)]

pub mod commands;
pub mod plain_file;
pub mod report;
