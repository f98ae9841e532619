//! What benchmarks of ChameleonDB found, as data and as text.

mod bursts;
mod ratios;
mod restart;
mod written;

use serde::{Deserialize, Serialize};

pub use bursts::{Bursts, BurstsRow, BurstsTail, BurstsWindow, Threshold};
pub use ratios::{GoalRow, Ratios, ShareRow, SideRow};
pub use restart::{Restart, RestartRow};
pub use written::{AmplificationRow, Written, WrittenRow};

/// What a benchmark of ChameleonDB found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chameleon {
    /// `chameleon ratios`.
    Ratios(Ratios),
    /// `chameleon restart`.
    Restart(Restart),
    /// `chameleon bursts`.
    Bursts(Bursts),
    /// `chameleon written`.
    Written(Written),
}

/// All of it as text.
pub(super) fn write(out: &mut String, all: &Chameleon) -> std::fmt::Result {
    match all {
        Chameleon::Ratios(ratios) => ratios::write(out, ratios),
        Chameleon::Restart(restart) => restart::write(out, restart),
        Chameleon::Bursts(bursts) => bursts::write(out, bursts),
        Chameleon::Written(written) => written::write(out, written),
    }
}

/// Nanoseconds as microseconds.
fn microseconds(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn millions(number: f64) -> String {
    format!("{:.3}", number / 1e6)
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}
