//! Plain files: the journal under a model of the page cache in which any subset of the pages that were
//! not synced survives a power loss.
//!
//! A store runs on simulated files with background work stepped by hand. Before a random part of all
//! changes of files (writes, syncs, creations, removals) the disk is kept. Afterwards each kept disk
//! loses its power in several ways; the store is opened on what is left, read-only and for writing, and
//! compared with what was promised; the power fails again during recovery; and one of the survivors
//! lives on, to crash again.
//!
//! - `disk`: the model; `files`: the disk as files; `life`: one life of a store, and its verification.
//! - `beside`: operations in the middle of syncs and of writes to the data files.
//! - `failing`: one sync that fails, each in turn, and what follows.

mod beside;
mod chance;
mod disk;
mod failing;
mod files;
mod life;
mod plan;

pub use beside::{Beside, explore_beside};
pub use chance::Chance;
pub use failing::{Failing, explore_failing};
pub use files::Lie;
pub use life::explore;
pub use plan::{Findings, Plan};
