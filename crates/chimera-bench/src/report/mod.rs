//! Results as JSON, as a table, as figures.

mod columns;
mod json;
pub(crate) mod plot;
pub(crate) mod table;

pub use crate::results::machine::Machine;
pub use crate::results::rows::{ApartRow, Counters, Facts, Latency, RecoveryRow, Row, StoreRow};
pub use json::{
    Adaption, AdaptionRow, Growth, Memory, MemorySample, RatioRow, ReclaimRow, Reclamation, Report,
};
pub use table::number;

#[cfg(test)]
mod tests;
