//! Process kill: a writer process is killed at random moments, and what it acknowledged must be there.
//!
//! The writer is this program once more. It prints an acknowledgement for the beginning and for the end
//! of every operation; whatever has begun and not ended at the kill may be done or not, everything else
//! is certain. The same store lives through many kills, also while it is created, opened, recovered and
//! closed; now and then a new one begins.
//!
//! This proves nothing about power loss: the machine lives on, with all that the process has stored.
//!
//! - `pipe`: acknowledgements as bytes.
//! - `operations`: what a session does; follows from a seed, so both processes know.
//! - `writer`: the process that is killed.
//! - `model`: what must be in the store.
//! - `life`: one store and its kills.
//! - `plan`, `campaign`: what to do, and all kills one after the other.

mod campaign;
mod life;
mod model;
mod operations;
mod pipe;
mod plan;
pub mod writer;

pub use campaign::run;
pub use plan::{Outcome, Plan};
