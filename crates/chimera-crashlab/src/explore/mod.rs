//! The explorer: random operations, every crash worth trying, recovery, verification, and on.

mod case;
mod lab;
mod model;
mod quiet;
mod record;
mod run;
mod verify;

pub(crate) use case::{Action, Case, Crash, Epoch};
pub(crate) use lab::{Counts, Lab, Violation};
pub(crate) use run::{Plan, explore, rerun};
