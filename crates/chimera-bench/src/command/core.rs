//! `core`: the operations on a loaded store (Viper, section 5.3.1).

use super::{Benchmark, Common};
use crate::driver::backend::Backend;
use crate::driver::conclusion::{Conclusion, conclude, run_passes, steps};
use crate::driver::counting::count;
use crate::driver::pass::Plan;
use crate::driver::phase::{Action, Phase};
use crate::driver::progress::Progress;
use crate::driver::series::Results;
use crate::driver::setup::Setup;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::Result;
use crate::report::Report;

/// Arguments of `core`.
#[derive(Clone, Debug, clap::Args)]
pub struct CoreArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
}

/// The operations: `update` changes a word in place, `modify` reads a value and writes another one
/// (section 5.3.5, Figure 10); without the update where values have no room for a counter.
pub(crate) fn phases(data: &Data) -> Vec<Phase> {
    let all = [
        ("insert", Action::Insert),
        ("get", Action::Get),
        ("update", Action::Update),
        ("overwrite", Action::Overwrite),
        ("modify", Action::Modify),
        ("delete", Action::Delete),
    ];
    all.into_iter()
        .filter(|(_, action)| *action != Action::Update || data.values.counter_at().is_some())
        .map(|(name, action)| Phase::new(name, action))
        .collect()
}

impl Benchmark for CoreArguments {
    fn common(&self) -> &Common {
        &self.common
    }

    fn setup(&self) -> Result<Setup> {
        self.common.setup((16, 200))
    }

    fn measure<B: Backend>(&self, setup: &Setup) -> Result<(Report, Results)> {
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let phases = phases(&data);
        let plan = Plan { setup, data: &data, load_name: None, phases: &phases };
        measure_plan::<B>("core", &plan, &workspace, setup.repetitions, 0.5)
    }
}

/// Runs all passes of a plan, verifies the last store, counts.
pub(super) fn measure_plan<B: Backend>(
    command: &str,
    plan: &Plan<'_>,
    workspace: &Workspace,
    reopenings: usize,
    theta: f64,
) -> Result<(Report, Results)> {
    let progress = Progress::new(steps(plan) + 1);
    let (mut results, last) = run_passes::<B>(plan, workspace, &progress)?;
    let Conclusion { facts, recovery, verified_records } =
        conclude(plan, last, reopenings, &progress)?;
    if plan.setup.counters {
        progress.step("counting");
        results.enter_counted(&count(plan.setup, plan.load_name, plan.phases, theta)?);
    }
    let report = Report {
        recovery,
        verified_records: Some(verified_records),
        ..Report::new(command, plan.setup, facts, &results)
    };
    Ok((report, results))
}
