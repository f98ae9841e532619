//! The study: workloads, placements by turns, and what came out.
//!
//! - `plan`: which workloads, with which placements. `drive`: threads that work on a database.
//! - `options`: what the caller may say. `session`: one group of runs. `findings`: published values beside ours.
//! - `statistics`: medians. `result`: all of it as plain data, which reports print.

mod drive;
mod findings;
mod options;
mod overhead;
mod plan;
mod result;
mod session;
mod statistics;

pub use options::StudyOptions;
pub use overhead::{Contender, Overhead, OverheadRow, overhead, overhead_runs};
pub use result::{Charged, ComponentBytes, Finding, Latency, Part, Row, RunKey, Settings, Study};
pub use session::{run, runs};
