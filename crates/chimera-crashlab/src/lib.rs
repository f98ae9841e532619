//! The crash lab of Chimera: proof that acknowledged writes survive, and proof that the proof can fail.
//!
//! # Rooms
//! - `commands/`: what the user may say, one module for each subcommand.
//! - `dax_guest/`: the store on emulated persistent memory in a virtual machine.
//! - `report`: how a result is printed: a table or JSON, and the exit code.
#![forbid(unsafe_code)]

pub mod commands;
pub mod dax_guest;
pub mod report;
