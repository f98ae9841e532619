//! `replay`: run one failure again.

use std::path::PathBuf;

use super::common::{Common, Outcome};
use super::found::describe;
use crate::explore::{Case, Found, replay};
use crate::report::Report;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What `explore` or `mutate --save` wrote
    case: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_engine("the case names its engine")?;
    common.refuse_seed("nothing in a case is left to chance")?;
    let path = &arguments.case;
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let case: Case = serde_json::from_str(&text)
        .map_err(|error| format!("{} is not a case: {error}", path.display()))?;
    let violation = replay(&case);
    let mut report = Report::new();
    report.figure("epochs", case.epochs.len()).figure("violations", u64::from(violation.is_some()));
    if let Some(violation) = violation {
        report.problem(describe(&Found { case, violation }, path));
    }
    Ok(report)
}
