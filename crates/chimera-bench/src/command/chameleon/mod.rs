//! `chameleon`: ChameleonDB and what its paper compares it with (EuroSys'21, section 3).

mod bursts;
mod ratios;
mod restart;
mod shape;
mod sides;
mod written;

use super::benchmark::measure;
use super::common::Common;
use crate::error::Result;
use crate::report::Report;
use crate::results::series::Results;
pub use bursts::BurstsArguments;
pub use ratios::RatiosArguments;
pub use restart::RestartArguments;
pub use shape::ShapeArguments;
pub use sides::Side;
pub use written::WrittenArguments;

/// What to measure of ChameleonDB.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ChameleonCommand {
    /// Puts, gets and DRAM of ChameleonDB against the stores that it is compared with. As large as the goals say:
    /// --records 31250000 --shards 512 --profile optane-100
    Ratios(RatiosArguments),
    /// From opening a store to the first answer, and to complete bypass indexes, by the number of records. As large as the
    /// goals say: --sizes 5000000,15000000,31250000,50000000
    Restart(RestartArguments),
    /// Bursts of puts over a steady load of gets, with and without the Get-Protect Mode
    Bursts(BurstsArguments),
    /// Bytes written and read, by cause: of the index against the formulas, and by the size of values
    Written(WrittenArguments),
}

impl ChameleonCommand {
    /// Measures it.
    pub(super) fn measure(&self) -> Result<(Report, Results, &Common)> {
        match self {
            Self::Ratios(arguments) => measure(arguments),
            Self::Restart(arguments) => measure(arguments),
            Self::Bursts(arguments) => measure(arguments),
            Self::Written(arguments) => measure(arguments),
        }
    }
}
