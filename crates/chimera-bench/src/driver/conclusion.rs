//! [`conclude`]: after the last pass: close, reopen, verify.

use super::backend::{Backend, open};
use super::pass::{Finished, Pass, Plan, cores, measures};
use super::progress::Progress;
use super::recovery::Reopening;
use super::series::Results;
use super::verify::verify;
use super::workspace::Workspace;
use crate::error::Result;
use crate::report::{Facts, RecoveryRow};

/// What is known after the last pass.
#[derive(Debug)]
pub(crate) struct Conclusion {
    pub(crate) facts: Facts,
    pub(crate) recovery: Vec<RecoveryRow>,
    pub(crate) verified_records: u64,
}

/// Runs all passes of a plan on each number of threads, and keeps the last store.
pub(crate) fn run_passes<B: Backend>(
    plan: &Plan<'_>,
    workspace: &Workspace,
    progress: &Progress,
) -> Result<(Results, Finished<B>)> {
    let mut results = Results::default();
    let mut last: Option<Finished<B>> = None;
    for (number, measure) in measures(plan.setup.repetitions).into_iter().enumerate() {
        for threads in &plan.setup.threads {
            if let Some(finished) = last.take() {
                finished.discard(workspace)?;
            }
            let pass = Pass { number, threads: *threads, measure };
            last = Some(plan.run(workspace.path(), pass, &mut results, progress)?);
        }
    }
    Ok((results, last.expect("there is at least one pass and one number of threads")))
}

/// Steps of progress that [`run_passes`] and [`conclude`] take.
pub(crate) fn steps(plan: &Plan<'_>) -> usize {
    measures(plan.setup.repetitions).len() * plan.setup.threads.len() * (plan.phases.len() + 2) + 2
}

/// Closes the store, measures how long opening it takes, and verifies every record of the reopened
/// store. A store in anonymous memory is verified as it is.
///
/// # Errors
/// When a record is wrong.
pub(crate) fn conclude<B: Backend>(
    plan: &Plan<'_>,
    finished: Finished<B>,
    reopenings: usize,
    progress: &Progress,
) -> Result<Conclusion> {
    let Finished { db, ledger, loaded, path } = finished;
    let facts = Facts::of(&db, &loaded, plan.data);
    let setup = plan.setup;
    if setup.is_anonymous() {
        progress.step("verifying");
        let verified_records = verify(&db, plan.data, &ledger, cores())?;
        return Ok(Conclusion { facts, recovery: Vec::new(), verified_records });
    }
    progress.step("reopening");
    db.close()?;
    let threads = Reopening::standard_threads();
    let recovery = Reopening::measure::<B>(setup, &path, &threads, reopenings)?.rows();
    progress.step("verifying");
    let options = setup.options_to_open().create(false);
    let db = open::<B>(&path, &options, setup.timed(), setup.seed)?;
    let verified_records = verify(&db, plan.data, &ledger, cores())?;
    db.close()?;
    Ok(Conclusion { facts, recovery, verified_records })
}
