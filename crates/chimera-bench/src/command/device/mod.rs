//! `device`: the model of persistent memory alone, in simulated time, beside what was published of the real one.

mod chameleondb;
mod hikv;
mod viper;
mod yang;

#[cfg(test)]
mod tests;

use std::io::{Write, stdout};
use std::path::PathBuf;

use crate::error::{BenchError, Result};
use crate::report::DeviceReport;
use crate::report::{device, plot};
use crate::simulation::Load;

/// Operations of each experiment.
const OPERATIONS: u64 = 60_000;
/// Operations with `--quick`.
const QUICK_OPERATIONS: u64 = 10_000;

/// Arguments of `device`.
#[derive(Clone, Debug, clap::Args)]
pub struct DeviceArguments {
    /// Operations of all simulated threads in each experiment [default: 60000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    pub operations: Option<u64>,
    /// Fewer operations
    #[arg(long)]
    pub quick: bool,
    /// Everything random follows from it
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Draw what the figures of the papers have
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

impl DeviceArguments {
    fn load(&self, threads: usize, dram_ns: f64) -> Load {
        let usual = if self.quick { QUICK_OPERATIONS } else { OPERATIONS };
        Load {
            threads,
            dram_ns: dram_ns as u64,
            operations: self.operations.unwrap_or(usual),
            seed: self.seed,
        }
    }

    /// Runs all experiments.
    pub(crate) fn measure(&self) -> DeviceReport {
        let mut report = DeviceReport::new(self.seed, self.load(1, 0.0).operations);
        chameleondb::measure(self, &mut report);
        viper::measure(self, &mut report);
        hikv::measure(self, &mut report);
        yang::measure(self, &mut report);
        report
    }

    /// Runs all experiments and prints what came of them.
    ///
    /// # Errors
    /// When the figures cannot be drawn or the result cannot be written.
    pub(crate) fn run(&self, json: bool) -> Result<()> {
        if let Some(path) = &self.plot {
            plot::check(path)?;
        }
        let report = self.measure();
        if let Some(path) = &self.plot {
            plot::draw_device(&report, path)?;
        }
        let text = if json {
            let text = serde_json::to_string_pretty(&report);
            text.map_err(|error| BenchError::Output(error.into()))? + "\n"
        } else {
            device::text(&report)
        };
        stdout().write_all(text.as_bytes()).map_err(BenchError::Output)
    }
}
