//! The crash lab of Chimera: proof that acknowledged writes survive, and proof that the proof can fail.
//!
//! # Rooms (each uses only those below it)
//! - [`commands`]: what the user may say, one module for each subcommand.
//! - `dax_guest/`: the store on emulated persistent memory in a virtual machine.
//! - [`kill9`]: a writer process, killed at random moments.
//! - [`hostile`]: stores made of hostile files, for a fuzzer.
//! - `damage/`: stores with damaged files, and whether anything is missing without a word.
//! - `mutate/`: every persistence step made wrong in turn, and who notices.
//! - `explore/`: random operations, every crash worth trying, recovery, verification.
//! - [`rig`]: a store on a simulated machine, for tests written by hand.
//! - `linter/`: rules that hold whatever a crash would leave.
//! - `media/`: what is durable after each step, and every state that a crash can leave.
//! - `subject/`: what is tested: engines, through their public interface.
//! - `simulated/`: the backend of the seam, and the machine behind it.
//! - [`plain_file`]: the journal of plain files under a model of the page cache.
//! - [`schedules`]: several threads at a store, in orders that follow from a seed.
//! - [`histories`]: what several threads did, and whether a store that keeps its promises can have
//!   done it.
//! - [`durability`]: which acknowledged writes may be missing after which end.
//! - `file_memory`: the persistence seam over files in memory.
//! - [`recoveries`]: which steps of recovery were interrupted.
//! - [`report`], `chance`: how a result is printed; numbers from a seed.
#![forbid(unsafe_code)]

mod chance;
pub mod commands;
mod damage;
pub mod dax_guest;
pub mod durability;
mod explore;
mod file_memory;
pub mod histories;
pub mod hostile;
pub mod kill9;
mod linter;
mod media;
mod mutate;
pub mod plain_file;
pub mod recoveries;
pub mod report;
pub mod rig;
pub mod schedules;
mod simulated;
mod subject;
