//! `ycsb`: workloads load, A to F, and the paper's mixes (Viper, section 5.4).

use std::str::FromStr;

use super::benchmark::Benchmark;
use super::common::Common;
use super::core::compare;
use super::given::Unused;
use crate::driver::backend::Backend;
use crate::driver::pass::Plan;
use crate::driver::phase::{Action, Phase};
use crate::driver::setup::{OrderChoice, Setup};
use crate::driver::turns::Contest;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::Report;
use crate::results::series::Results;
use crate::workload::Distribution;
use crate::workload::mix::Workload;

/// Arguments of `ycsb`.
#[derive(Clone, Debug, clap::Args)]
pub struct YcsbArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// Workloads, separated by commas: load, a, b, c, d, e, f, 50:50, 10:90, or all [default:
    /// load,a,b,c,d,f]. Workload e scans: it needs
    /// --order, and is one of all only with it
    #[arg(long, value_delimiter = ',', help_heading = "Work")]
    pub workload: Vec<WorkloadChoice>,
    /// Which records are asked for [default: zipfian, latest in workload d]
    #[arg(long, help_heading = "Work")]
    pub distribution: Option<Distribution>,
    /// Exponent of zipfian and latest, above 0 and below 1
    #[arg(long, default_value_t = 0.99, help_heading = "Work")]
    pub theta: f64,
}

/// One workload, or every one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadChoice {
    /// This one.
    One(Workload),
    /// Every one that the stores can do.
    All,
}

impl FromStr for WorkloadChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

impl YcsbArguments {
    fn workloads(&self) -> Vec<Workload> {
        if self.workload.is_empty() {
            return Workload::STANDARD.to_vec();
        }
        let is_ordered = self.common.order.iter().all(|order| *order != OrderChoice::None);
        let possible = Workload::ALL.into_iter().filter(|one| *one != Workload::E || is_ordered);
        let chosen = self.workload.iter().flat_map(|choice| match choice {
            WorkloadChoice::One(workload) => vec![*workload],
            WorkloadChoice::All => possible.clone().collect(),
        });
        let mut workloads = Vec::new();
        for workload in chosen {
            if !workloads.contains(&workload) {
                workloads.push(workload);
            }
        }
        workloads
    }

    fn phases(&self) -> Vec<Phase> {
        let phase = |workload: &Workload| {
            let distribution = self.distribution.unwrap_or_else(|| workload.distribution());
            let mix = workload.mix()?;
            Some(Phase::new(workload.name(), Action::Mix(mix, distribution)))
        };
        self.workloads().iter().filter_map(phase).collect()
    }
}

impl Benchmark for YcsbArguments {
    const UNUSED: &'static [Unused] = &[];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        if !(self.theta > 0.0 && self.theta < 1.0) {
            return Err(BenchError::Arguments("theta must be above 0 and below 1".to_owned()));
        }
        let setups = self.common.setups((16, 200))?;
        let phases = self.phases();
        if phases.is_empty() {
            let of_phases = ["operations", "duration", "distribution"];
            self.common.given.refuse_all(&of_phases, "the load inserts --records once")?;
        }
        let is_skewed = |phase: &Phase| matches!(phase.action, Action::Mix(_, distribution) if distribution != Distribution::Uniform);
        if !phases.iter().any(is_skewed) {
            self.common.given.refuse_all(&["theta"], "nothing is skewed")?;
        }
        let is_ordered = |setup: &Setup| setup.order != OrderChoice::None;
        if self.workloads().contains(&Workload::E) && !setups.iter().all(is_ordered) {
            let what = "workload e scans: give --order asynchronous, and no engine without order";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        Ok(setups)
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup).with_zipfian(setup.records, self.theta);
        let phases = self.phases();
        let load_name = self.workloads().contains(&Workload::Load).then_some("load");
        let plan = Plan { setup, data: &data, load_name, phases: &phases };
        let contest = Contest { setups, plan, reopenings: 1, theta: self.theta };
        compare::<B>("ycsb", contest, &workspace)
    }
}
