//! What stands for the standard library, and for tables in DRAM, in models.

mod arena;
pub(crate) mod atomic;
#[cfg(test)]
pub(crate) mod model;

pub(crate) use arena::{Arena, ArenaRange};
