//! `core`: the operations on a loaded store (Viper, section 5.3.1).

use std::num::NonZeroUsize;

use super::benchmark::Benchmark;
use super::common::Common;
use super::given::Unused;
use crate::driver::backend::Backend;
use crate::driver::engine::EngineChoice;
use crate::driver::pass::Plan;
use crate::driver::phase::{Action, Phase};
use crate::driver::setup::{OrderChoice, Setup};
use crate::driver::turns::{Contest, Outcome, take_turns};
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::Report;
use crate::results::series::Results;

/// Records of a scan.
const SCAN_RECORDS: usize = 100;

/// Arguments of `core`.
#[derive(Clone, Debug, clap::Args)]
pub struct CoreArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// Also overwrite so many records at a time, all or none: as many records as --operations says. Each batch is one
    /// operation of that row
    #[arg(long, value_name = "RECORDS", help_heading = "Work")]
    pub batch: Option<NonZeroUsize>,
}

/// The operations: `update` changes a word in place, `modify` reads a value and writes another one
/// (section 5.3.5, Figure 10); without the update where values have no room for a counter, and with scans where all
/// stores are ordered.
pub(crate) fn phases(data: &Data, are_ordered: bool) -> Vec<Phase> {
    let all = [
        ("insert", Action::Insert),
        ("get", Action::Get),
        ("scan", Action::Scan(SCAN_RECORDS)),
        ("update", Action::Update),
        ("overwrite", Action::Overwrite),
        ("modify", Action::Modify),
        ("delete", Action::Delete),
    ];
    all.into_iter()
        .filter(|(_, action)| match action {
            Action::Update => data.values.counter_at().is_some(),
            Action::Scan(_) => are_ordered,
            _ => true,
        })
        .map(|(name, action)| Phase::new(name, action))
        .collect()
}

impl Benchmark for CoreArguments {
    const UNUSED: &'static [Unused] = &[];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let setups = self.common.setups((16, 200))?;
        let is_store =
            |setup: &Setup| matches!(setup.engine, EngineChoice::Store(_) | EngineChoice::HikvWal);
        if self.batch.is_some() && !setups.iter().all(is_store) {
            let what =
                "--batch writes all or none, which only stores can: give no baseline beside them";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        Ok(setups)
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let are_ordered = setups.iter().all(|setup| setup.order != OrderChoice::None);
        let mut phases = phases(&data, are_ordered);
        phases.extend(self.batch.map(|records| Phase::new("batch", Action::Atomic(records.get()))));
        let plan = Plan { setup, data: &data, load_name: None, phases: &phases };
        let contest = Contest { setups, plan, reopenings: setup.repetitions, theta: 0.5 };
        compare::<B>("core", contest, &workspace)
    }
}

/// Lets engines take turns, and reports what was measured.
pub(super) fn compare<B: Backend>(
    command: &str,
    contest: Contest<'_>,
    workspace: &Workspace,
) -> Result<(Report, Results)> {
    let Outcome { results, stores, recovery } = take_turns::<B>(contest, workspace)?;
    let report = Report::new(command, contest.plan.setup, stores, &results);
    Ok((Report { recovery, ..report }, results))
}
