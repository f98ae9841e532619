//! Results as JSON, as a table, as figures.

mod beside_scans;
pub mod chameleon;
mod columns;
pub(crate) mod device;
mod json;
pub(crate) mod plot;
pub(crate) mod study;
pub(crate) mod table;
mod updates;

pub use crate::results::machine::Machine;
pub use crate::results::rows::{ApartRow, Counters, Facts, Latency, RecoveryRow, Row, StoreRow};
pub use beside_scans::{BesideScans, BesideScansRow};
pub use chameleon::Chameleon;
pub use columns::{Table, number};
pub use device::{DEVIATION_MAX, DeviceCurve, DeviceLine, DeviceReport, DeviceRow};
pub use json::{
    Adaption, AdaptionRow, Growth, Memory, MemorySample, RatioRow, ReclaimRow, Reclamation, Report,
};
pub use plot::{Curve, check as check_plot, draw_curves};
pub use updates::UpdatesRow;

#[cfg(test)]
mod tests;
